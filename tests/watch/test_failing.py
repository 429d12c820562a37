"""What goes wrong in one of several things keeps no other from being done, and nothing that went wrong is lost."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tracker.errors import StoreError
from tracker.watch.failing import each


def raising(error):
    def step():
        raise error

    return step


@pytest.fixture
def played():
    """What steps did and what was said, and what was raised at the end."""

    def play(*steps):
        said = []
        work = SimpleNamespace(say=lambda event: said.append(event.text.splitlines()[-1]))
        try:
            each(work, steps)
        except Exception as error:  # noqa: BLE001 any of them is what the test looks at
            return said, repr(error)
        return said, None

    return play


def test_the_first_is_raised_and_the_others_are_said_when_all_is_done(played):
    done = []
    steps = raising(ValueError("one")), lambda: done.append("two"), raising(KeyError("three"))
    assert played(*steps) == (["KeyError: 'three'"], "ValueError('one')")
    assert done == ["two"]


def test_a_database_that_fails_ends_it_and_what_went_wrong_before_is_said(played):
    done = []
    steps = raising(ValueError("one")), raising(StoreError("away")), lambda: done.append("three")
    said, raised = played(*steps)
    assert said == ["ValueError: one"]
    assert "away" in raised
    assert done == []


def test_what_goes_wrong_in_the_list_of_things_itself_is_raised(played):
    def steps():
        yield raising(ValueError("one"))
        raise KeyError("no more")

    said = []
    with pytest.raises(KeyError):
        each(SimpleNamespace(say=lambda event: said.append(event.text.splitlines()[-1])), steps())
    assert said == ["ValueError: one"]
    assert played() == ([], None)
