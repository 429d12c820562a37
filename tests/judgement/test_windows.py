"""The runs that a series is judged against."""

from __future__ import annotations

import numpy as np
import pytest

from tracker.judgement.follow.windows import Windows, gathered

ONLY = np.array([0])


def window(windows):
    return [column for column in windows.columns[0].tolist() if column >= 0]


def filled(*columns):
    windows = Windows(1)
    for column in columns:
        windows.accept(ONLY, column)
    return windows


def test_the_window_is_the_last_eight_accepted_runs():
    assert window(filled(*range(12))) == list(range(4, 12))
    assert window(filled(0, 1, 2, 8)) == [0, 1, 2, 8], "3 to 7 were regressed and never came in"


def test_three_runs_are_enough_and_fewer_are_with_the_spread_of_the_level_before():
    assert not filled(0, 1).enough(ONLY)[0]
    assert filled(0, 1, 2).enough(ONLY)[0]
    windows = filled(0, 1, 2)
    windows.restart(0, [3], np.exp([[1.0, 3.0, 2.0, 9.0]]))
    assert window(windows) == [3]
    assert windows.enough(ONLY)[0]
    older = windows.older(ONLY)
    assert (older.variance[0], older.freedom[0]) == (pytest.approx(1.0), 2.0)


def test_a_level_with_three_runs_of_its_own_forgets_the_spread_of_the_one_before():
    windows = filled(0, 1, 2)
    windows.restart(0, [3], np.exp([[1.0, 3.0, 2.0, 9.0]]))
    windows.accept(ONLY, 4)
    assert windows.older(ONLY) is not None
    windows.accept(ONLY, 5)
    assert windows.older(ONLY) is None


def test_runs_that_turn_out_to_be_normal_join_once_and_in_their_order():
    windows = filled(0, 1, 2, 6)
    windows.join(0, [3, 4, 6])
    assert window(windows) == [0, 1, 2, 3, 4, 6]
    windows.join(0, range(7, 12))
    assert window(windows) == [3, 4, 6, 7, 8, 9, 10, 11]


def test_a_missing_run_is_missing_and_not_the_last_one():
    values = np.array([[10.0, 11.0, 12.0]])
    assert gathered(values, ONLY, np.array([[-1, 0, 2]]))[0].tolist() == pytest.approx(
        [np.nan, 10.0, 12.0], nan_ok=True
    )
