"""Wishes that make no sense are refused when they are made, with the choices or limits named."""

import pytest

from tracker import results
from tracker.errors import UsageError
from tracker.results import DiffOptions, ShowOptions


@pytest.mark.parametrize(
    ("options", "wishes", "message"),
    [
        ("Diff", {"match": "foo"}, "no match 'foo'; choose from shape, name"),
        ("Diff", {"only": ("overall", "ops")}, "no section 'ops'; choose from overall, operator, .*, efficiency"),
        ("Show", {"by": ("rank", "foo")}, "no grain 'foo'; choose from rank, step, module, phase, op, kernel"),
        ("Diff", {"by": ("communication",)}, "no tree 'communication'; choose from module, phase, op, kernel"),
        ("Cluster", {"only": ("ops",)}, "no section 'ops'; choose from ranks, .*"),
        ("Advise", {"only": ("ops",)}, "no family 'ops'; choose from .*"),
        ("Advise", {"fail_on": "low"}, "no fail-on 'low'; choose from high, medium"),
        ("Findings", {"kind": "foo"}, "no kind 'foo'; choose from run, .*"),
        ("Findings", {"states": ("new", "foo")}, "no state 'foo'; choose from suspect, .*, taken back, .*"),
        ("History", {"against": "foo"}, "no reference 'foo'; choose from level, pinned"),
        ("Log", {"metric": "foo"}, "no metric 'foo'; choose from best, .*"),
        ("Board", {"last": 0}, "option last is 0; give a whole number of 2 or more"),
        ("Calibrate", {"splits": 0}, "option splits is 0; give a whole number of 1 or more"),
        ("Diff", {"by": ("op",), "depth": 0}, "option depth is 0; give a whole number of 1 or more"),
        ("Show", {"ranks": (0, -1)}, "option ranks is -1; give a whole number of 0 or more"),
    ],
)
def test_unknown_word_or_number_names_what_is_allowed(options, wishes, message):
    with pytest.raises(UsageError, match=f"^{message}$"):
        getattr(results, f"{options}Options")(**wishes)


def test_known_words_are_kept():
    options = DiffOptions(match="name", only=("operator", "overall"))
    assert (options.match, options.only) == ("name", ("operator", "overall"))
    assert ShowOptions(by=("step", "rank")).by == ("step", "rank")
