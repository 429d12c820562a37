"""Each series against the best level that it held: small steps that the version before does not show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracker.detectors import rule
from tracker.detectors.arrays import Columns
from tracker.detectors.centre import MIN_SERIES
from tracker.detectors.creep import best_version, judge_creep
from tracker.detectors.judging import Weights
from tracker.profile import known_medians, median

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

LOOK_BACK: Final = 20
"""Versions before a version among which its best one is looked for."""


def compare_with_best(
    values: F64,
    versions: Sequence[Sequence[int]],
    candidate: Sequence[int],
    shared: F64,
    step: float,
    *,
    limits: rule.Limits,
    step_ratio: float | F64,
    called_only: bool = False,
) -> tuple[Columns, I64]:
    """The times in the rows of `values` (series, runs) of the `candidate` columns against the best level before.

    `versions`: the columns of each version before the candidate, in order. `shared`: per run the factor that is taken
    out, see `shared_factor`. `step`: the larger step, in the unit of the values. `limits`, `step_ratio`: what creep
    must be, and the step that is none, see `Thresholds.creep`. `called_only`: see `verdicts.verdicts`.

    Returns the columns of `judge_creep`, and per series the place in `versions` of the best one, -1 for none.
    """
    centred = values / np.exp(shared)
    levels = np.column_stack([known_medians(centred[:, list(columns)]) for columns in versions])
    best = best_version(levels)
    widest = max(sum(map(len, neighbours(versions, at))) for at in range(len(versions)))
    baseline = np.full((len(values), widest), np.nan)
    steps = np.abs(np.diff(np.log(levels), axis=1))
    largest = np.full(len(values), np.nan)
    now = np.log(known_medians(centred[:, list(candidate)])) - np.log(levels[:, -1])
    for at in np.unique(best[best >= 0]).tolist():
        rows = best == at
        columns = [column for version in neighbours(versions, at) for column in version]
        baseline[np.ix_(rows, range(len(columns)))] = centred[np.ix_(rows, columns)]
        since = np.column_stack([steps[rows, at:], np.abs(now[rows])])
        largest[rows] = np.where(np.isnan(since), 0.0, since).max(axis=1)
    judged = judge_creep(
        baseline, centred[:, list(candidate)], largest, Weights(step=step), limits=limits, step_ratio=step_ratio,
        called_only=called_only,
    )  # fmt: skip
    return judged.columns, best


def neighbours(versions: Sequence[Sequence[int]], at: int) -> Sequence[Sequence[int]]:
    """The versions that make up the level of the one at the place `at`, see `best_version`."""
    return versions[max(at - 1, 0) : at + 2]


def shared_factor(leaves: F64) -> F64:
    """What the leaves (series, runs) of each run share, as a log about their usual level: 0.05 is a run in which all
    are 5 % slower.

    Series count that are in every run that has any; with fewer than 20 of them there is nothing to subtract, nor is
    there of a run without leaves.

    >>> runs = np.full((30, 3), 100.0) * np.array([1.0, 1.0, 1.1])
    >>> shared_factor(runs).round(3).tolist()
    [0.0, 0.0, 0.095]
    """
    factor = np.zeros(leaves.shape[1])
    telling = ~np.isnan(leaves).all(axis=0)
    own = leaves[:, telling]
    own = own[~np.isnan(own).any(axis=1)]
    if len(own) >= MIN_SERIES:
        logs = np.log(own)
        factor[telling] = median(logs - median(logs, axis=1)[:, None], axis=0)
    return factor
