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
