"""Slow steps of one rank, and the part that makes each slow."""

from __future__ import annotations

import numpy as np
import pytest

from tracker.detect.slow_steps import find_slow_steps, find_weighted_median

NAN = float("nan")


def causes(
    times: list[float], weights: list[float] | None = None, **parts: list[float]
) -> list[tuple[int, str, float]]:
    own = np.ones(len(times)) if weights is None else np.array(weights)
    arrays = {name: np.array(values) for name, values in parts.items()}
    return [(one.place, one.cause, one.cause_ns) for one in find_slow_steps(np.array(times), own, arrays)]


def test_part_that_makes_half_of_it_is_the_cause():
    assert causes([10, 10, 10, 30], compute=[8, 8, 8, 18], idle=[2, 2, 2, 12]) == [(3, "compute", 10)]
    assert causes([10, 10, 10, 30], compute=[8, 8, 8, 14], idle=[2, 2, 2, 11], copies=[0, 0, 0, 5]) == [(3, "", 0)]


def test_step_of_up_to_one_fifth_more_is_not_slow():
    assert causes([10, 10, 12], compute=[10, 10, 12]) == []


def test_unknown_step_is_none_and_unknown_part_no_cause():
    assert causes([10, NAN, 10, 30], compute=[10, NAN, 10, NAN], idle=[0, 0, 0, 20]) == [(3, "idle", 20)]


def test_steps_count_by_their_weight():
    """Of 60 steps 50 take 30 each, so that 30 is no slow step."""
    assert causes([10, 10, 30], [5, 5, 50]) == []


@pytest.mark.parametrize(
    ("values", "weights", "median"),
    [([1, 2, 9], [1, 1, 1], 2), ([1, 3], [1, 1], 2), ([1, 9], [3, 1], 1), ([NAN, 4], [1, 1], 4)],
)
def test_weighted_median(values, weights, median):
    assert find_weighted_median(np.array(values, dtype=float), np.array(weights, dtype=float)) == median
