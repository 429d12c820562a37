"""Errors are told across processes as they are here."""

from __future__ import annotations

import pickle

import pytest

from tracker.errors import SourceError, TrackerError, UsageError, without_place


@pytest.mark.parametrize(
    "error",
    [TrackerError("no", remedy="do"), SourceError("a.json", "byte 1", "is bad", remedy="mend it"), UsageError("what")],
)
def test_errors_travel_between_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.__dict__, again.args) == (str(error), error.__dict__, error.args)


def test_an_error_quotes_little_of_a_file_and_its_remedy_stays():
    error = SourceError("a.csv", "line 7", f"'{'9' * 5_000}' is no number of calls", remedy="export it again")
    assert len(str(error)) < 700
    assert str(error).endswith("999' is no number of calls; export it again")
    assert len(str(SourceError("a" * 90_000, "", "no such file or folder"))) < 1000


@pytest.mark.parametrize("kind", [SourceError, UsageError])
def test_a_path_of_4258_characters_is_shown_by_its_ends(kind):
    path = f"/data/{'x' * 4_248}.csv"
    assert len(path) == 4_258
    error = SourceError(path, "", "is empty") if kind is SourceError else UsageError(f"there is no {path}")
    shown = next(word for word in str(error).split("; ")[0].split(": ") if "..." in word).removeprefix("there is no ")
    assert (shown[:8], shown[-6:].rstrip(":"), len(shown)) == ("/data/xx", "xx.csv", 305)
    assert without_place(str(error), path) == ("is empty" if kind is SourceError else str(error))
