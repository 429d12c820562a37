"""A slow window is found where a run was slow for long, and nowhere else: runs whose course is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from tracker.readers.training_log.columns import PackedColumn
from tracker.readers.training_log.course import SlowWindow, course_of
from tracker.readers.training_log.intervals import Intervals

Times = NDArray[np.float64]
SEEDS = 25
COUNT = 150


def window_of(times: Times) -> SlowWindow | None:
    nothing = PackedColumn.of(np.full(len(times), np.nan))
    numbers = np.arange(len(times))
    course = course_of(
        Intervals(
            last_step=PackedColumn.of(numbers + 1), stride=np.ones(len(times), dtype=np.int64),
            step_s=PackedColumn.of(times), lines=PackedColumn.of(numbers), data_s=nothing, throughputs={}, mfu=nothing,
            allocated=nothing, reserved=nothing, segments=np.zeros(len(times), dtype=np.int32),
            reasons=np.full(len(times), -1, dtype=np.int8),
        )
    )  # fmt: skip
    assert course is not None
    return course.window


def followed(rng: Generator, part: float, deviation: float) -> Times:
    """Noise of which each value follows the one before it by a part."""
    noise = rng.normal(0, deviation, COUNT)
    for at in range(1, COUNT):
        noise[at] += part * noise[at - 1]
    return 100 * np.exp(noise)


SAME = {
    "normal noise": lambda rng: 100 + rng.normal(0, 8, COUNT),
    "long tails": lambda rng: 100 * (1 + rng.pareto(2.5, COUNT) * 0.1),
    "single slow steps": lambda rng: np.where(rng.random(COUNT) < 0.3, 150, 100) + rng.normal(0, 1, COUNT),
    "noise that follows itself": lambda rng: followed(rng, 0.8, 0.05),
    "clock that wanders": lambda rng: followed(rng, 0.9, 0.03),
    "smoothed times": lambda rng: np.convolve(100 + rng.normal(0, 15, COUNT + 9), np.ones(10) / 10, "valid"),
    "warm-up that ebbs away": lambda rng: 100 * (1 + 0.09 * np.exp(-np.arange(COUNT) / 20)) + rng.normal(0, 1, COUNT),
    "warm-up in a line": lambda rng: 100 + 30 * np.clip(1 - np.arange(COUNT) / 40, 0, 1) + rng.normal(0, 1, COUNT),
    "slow growth": lambda rng: 100 + np.arange(COUNT) / 7 + rng.normal(0, 1, COUNT),
}


@pytest.mark.parametrize("name", SAME)
def test_run_that_is_alike_throughout_has_no_window(name: str):
    make: Callable[[Generator], Times] = SAME[name]
    windows = [window_of(make(default_rng(seed))) for seed in range(SEEDS)]
    assert windows == [None] * SEEDS


@pytest.mark.parametrize(
    ("first", "last", "ratio", "noise"), [(61, 90, 1.1, 1.0), (61, 90, 1.3, 5.0), (121, 150, 1.3, 5.0)]
)
def test_steps_that_were_slow_are_the_window(first: int, last: int, ratio: float, noise: float):
    for seed in range(SEEDS):
        times = 100 + default_rng(seed).normal(0, noise, COUNT)
        times[first - 1 : last] *= ratio
        window = window_of(times)
        assert window is not None
        assert (window.first, window.last) == (pytest.approx(first, abs=3), pytest.approx(last, abs=3))
        assert window.ratio == pytest.approx(ratio, abs=0.05)
