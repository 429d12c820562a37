"""Slow creep: many small steps, none of which passes, that together are a regression."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.detectors import rule
from tracker.detectors.arrays import F64
from tracker.detectors.judging import Judged, Weights, judge_series

WINDOW: Final = 3
"""Neighbouring versions whose median is the level that `best` is chosen by: one lucky version is no level."""


def best_version(levels: F64) -> NDArray[np.int64]:
    """Per series the version with the lowest level, -1 where fewer than 3 versions are known.

    `levels` (n, versions): centred medians of accepted versions, in order, nan for missing. The level of a version is
    the median of itself and its two neighbours, so that the best is a level that held, not the luckiest of many. Of
    equals the first.

    >>> best_version(np.array([[1.00, 0.80, 1.01, 1.00, 1.10, 1.12]])).tolist()
    [1]
    """
    n, versions = levels.shape
    if versions < WINDOW:
        return np.full(n, -1, dtype=np.int64)
    one, middle, other = levels[:, :-2], levels[:, 1:-1], levels[:, 2:]
    around = np.maximum(np.minimum(one, middle), np.minimum(np.maximum(one, middle), other))  # nan where one is missing
    held = np.full((n, versions), np.inf)
    held[:, 1:-1] = np.where(np.isnan(around), np.inf, around)
    best = held.argmin(axis=1).astype(np.int64)
    return np.where(np.isinf(held.min(axis=1, initial=np.inf)), -1, best)


def judge_creep(
    best: F64,
    candidate: F64,
    largest_step: F64,
    weights: Weights | None = None,
    *,
    limits: rule.Limits | None = None,
    step_ratio: float | F64 = rule.MIN_RATIO,
    called_only: bool = False,
) -> Judged:
    """Which series have crept up against their best accepted version (JUDGEMENT 3): 8 % in all, no step of 3 %.

    `best` (n, A): the runs of the best version of each series and its two neighbours (`best_version`), or of the pinned
    one; `candidate` (n, B): the runs now. Both centred already, since each series may have another best version; in
    linear units. `largest_step`: per series the largest log change between neighbouring accepted
    versions, nan where unknown; a series with a step of `step_ratio` has a finding for that already and is UNCHANGED
    here. REGRESSED is a creep; the other words are those of `judge`, and no series improves here. `called_only`: see
    `verdicts.verdicts`.
    """
    step = np.asarray(largest_step, dtype=np.float64)
    limits = limits or rule.Limits(rule.CREEP_RATIO)
    judged = judge_series(best, candidate, weights, limits=limits, center=False, called_only=called_only)
    stepped = np.nan_to_num(step) >= np.log1p(step_ratio) - rule.ROUNDING
    own = judged.columns
    upward, called = own["ratio"] > 0, np.isin(own["verdict"], rule.CHANGED)
    verdict = np.where(called & (stepped | ~upward), rule.UNCHANGED, own["verdict"])
    reason = np.where(called & ~upward, "lower than the best version", own["reason"])
    reason = np.where(called & stepped & upward, "one step explains it", reason)
    return replace(judged, columns={**own, "verdict": verdict, "reason": reason})
