"""Lines of made runs in a real database, with noise as runs have it: normal and heavy-tailed, a little and a lot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from itertools import accumulate

import numpy as np

import tracker
from tests.detectors.stories import Story, taken_back, unchanged
from tests.detectors.whole_rates import Alarms, Found, alarms_of, found_of
from tests.detectors.whole_way import judged, told
from tests.factories import EPOCH_NS, save

OPERATORS = 80
STEP_NS = 100_000_000
IDLE = 0.05
"""Part of the step in which no operator runs."""
DRIFT = 0.01
"""Standard deviation of the factor, as a log, that all operators of a run share: a machine that drifts."""
LARGE = 0.0012
"""Change of the step, a part of it, from which a slow-down counts as injected: the rule lets nothing below 0.1 % be a
finding, and noise moves it."""

Noise = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def normal(size: float) -> Noise:
    """Normal noise of the logs; half of the operators are half as noisy, the others up to twice."""
    return lambda draw, shape: draw.normal(0, 1, shape) * _sizes(draw, size, shape[0])


def heavy_tailed(size: float) -> Noise:
    """Noise of the logs as Student's t with 3 degrees of freedom: now and then a run is far off."""
    return lambda draw, shape: draw.standard_t(3, shape) * _sizes(draw, size, shape[0])


def mixed(size: float) -> Noise:
    """Normal noise, but heavy-tailed and twice as large for a tenth of the operators."""

    def noise(draw: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        wild = draw.random((shape[0], 1)) < 0.1
        return np.where(wild, heavy_tailed(2 * size)(draw, shape), normal(size)(draw, shape))

    return noise


NOISES: Mapping[str, Noise] = {
    "normal 1 %": normal(0.01),
    "normal 3 %": normal(0.03),
    "heavy-tailed 1 %": heavy_tailed(0.01),
    "heavy-tailed 3 %": heavy_tailed(0.03),
    "mixed 2 %": mixed(0.02),
}


def _sizes(draw: np.random.Generator, size: float, operators: int) -> np.ndarray:
    return size * np.exp(draw.uniform(np.log(0.5), np.log(2.0), (operators, 1)))


def times_of(noise: Noise, runs: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Names of operators, and how long each takes in each run (ns): a few large ones, and many small ones."""
    draw = np.random.default_rng(seed)
    weight = np.exp(draw.normal(0, 1, OPERATORS))
    levels = STEP_NS * (1 - IDLE) * weight / weight.sum()
    logs = noise(draw, (OPERATORS, runs)) + draw.normal(0, DRIFT, runs)
    return [f"op{number:02}" for number in range(OPERATORS)], levels[:, None] * np.exp(logs)


def large(names: list[str], times: np.ndarray, ratio: float) -> list[str]:
    """The operators of which a slow-down by `ratio` makes more than LARGE of the step."""
    return [name for name, own in zip(names, times, strict=True) if np.median(own) * ratio >= LARGE * STEP_NS]


@contextmanager
def line_of(story: Story, names: list[str], times: np.ndarray):
    """A database in memory with the runs of a story, judged at the end: any order of ingest gives the same rows."""
    ends = list(accumulate(version.runs for version in story))
    idle = np.random.default_rng(len(names)).normal(1.0, 0.05, ends[-1]) * IDLE * STEP_NS
    with tracker.open_store("sqlite://") as store:
        for version, end in zip(story, ends, strict=True):
            factors = np.array([version.slower.get(name, 1.0) for name in names])
            for run in range(end - version.runs, end):
                _save(store, version.label, run, dict(zip(names, times[:, run] * factors, strict=True)), idle[run])
        judged(store)
        yield store


def _save(store, label: str, run: int, times: Mapping[str, float], idle: float) -> None:
    own = {name: int(value) for name, value in times.items()}
    total = sum(own.values())
    step = total + int(idle)
    save(
        store, label, ops=list(own.items()), kernels=[("gemm", total)], steps=1, step_ns=step, e2e_ns=step,
        started_at_ns=EPOCH_NS + run * 10**12,
    )  # fmt: skip


def slow_downs(noise: Noise, ratio: float, *, runs: int, seeds: range) -> Found:
    """Slow-downs by `ratio` in versions of so many runs, over the lines of `seeds`."""
    found = Found()
    for seed in seeds:
        names, times = times_of(noise, 60, seed)
        counted = large(names, times, ratio)
        story = taken_back(np.random.default_rng(seed), counted, ratio, runs=runs)
        with line_of(story, names, times) as store:
            found += found_of(told(store), story)
    return found


def false_alarms(noise: Noise, versions: int, runs: int, *, seeds: range) -> Alarms:
    """What is told of so many versions of so many runs in which nothing changed, over the lines of `seeds`."""
    found = Alarms()
    for seed in seeds:
        with line_of(unchanged(versions, runs), *times_of(noise, versions * runs, seed)) as store:
            found += alarms_of(told(store))
    return found
