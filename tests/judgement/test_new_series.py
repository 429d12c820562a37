"""Series that come between reading those of a line and reading what a run says of them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.factories import save
from tracker.judgement import lines_of
from tracker.store import judged
from tracker.store.judged import SeriesTable


def values_of(connection, run, series):
    """Values and calls of one run."""
    return [rows[:, 0] for rows in judged.values_of(connection, [run], series)]


@pytest.mark.parametrize("new", [0, 1, -1], ids=["the first", "between", "the last"])
def test_a_series_that_nobody_knows_yet_is_no_other_one(store, new):
    (run,) = save(store, ops=[("a", 100), ("b", 200), ("c", 300)], steps=1)
    (line,) = lines_of(store)
    with store.connect() as connection:
        now = judged.series_of(connection, line)
        values, calls = values_of(connection, run, now)
        before = SeriesTable(np.delete(now.ids, new), [key for key in now.keys if key != now.keys[new]])
        found = values_of(connection, run, before)
        nothing = values_of(connection, run, SeriesTable(now.ids[:0], []))
    assert (~np.isnan(values)).all()
    np.testing.assert_array_equal(found, (np.delete(values, new), np.delete(calls, new)))
    assert [len(part) for part in nothing] == [0, 0]
