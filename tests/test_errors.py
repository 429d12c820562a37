"""Errors are told across processes as they are here."""

from __future__ import annotations

import pickle

import pytest

from tracker.errors import SourceError, TrackerError, UsageError


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
