"""Wishes that make no sense are refused when they are made, with the choices named."""

import pytest

from tracker.errors import UsageError
from tracker.results import DiffOptions, ShowOptions


@pytest.mark.parametrize(
    ("options", "wishes", "message"),
    [
        (DiffOptions, {"match": "foo"}, "no match 'foo'; choose from shape, name"),
        (DiffOptions, {"only": ("overall", "ops")}, "no section 'ops'; choose from overall, operator, .*, efficiency"),
        (ShowOptions, {"by": ("rank", "foo")}, "no grain 'foo'; choose from rank, step, module, phase, op, kernel"),
        (ShowOptions, {"by": ("stage",)}, "no grain 'stage'; choose from rank, step, module, phase, op, kernel"),
        (DiffOptions, {"by": ("rank",)}, "no tree 'rank'; choose from module, phase, op, kernel"),
    ],
)
def test_unknown_word_names_the_choices(options, wishes, message):
    with pytest.raises(UsageError, match=f"^{message}$"):
        options(**wishes)


def test_known_words_are_kept():
    options = DiffOptions(match="name", only=("operator", "overall"))
    assert (options.match, options.only) == ("name", ("operator", "overall"))
    assert ShowOptions(by=("step", "rank")).by == ("step", "rank")
