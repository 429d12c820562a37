"""What is certain without a test: operators that are new or gone, call counts, and peak memory."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.detect.sides import Window
from tracker.detect.thresholds import Thresholds

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
BOOL = NDArray[np.bool_]

LEAST_EXACT = 2
"""Runs of a level from which something counts as constant in it."""


class Presence(Struct, frozen=True):
    """Per series: whether it is in all new runs and in none of its base, the other way round, and whether there are
    runs enough to decide: one new run where presence never varied in the level.
    """

    added: BOOL
    removed: BOOL
    decided: BOOL


def presence_of(window: Window, base: BOOL, new: BOOL, level: BOOL, limits: Thresholds) -> Presence:
    """Which series came and went. A run that did not record such series says nothing of their presence."""
    there = ~np.isnan(window.logs)
    base, level, new_runs = base & window.recorded, level & window.recorded, new & window.recorded
    bases, news = base.sum(axis=1), new_runs.sum(axis=1)
    in_base, in_new = (base & there).sum(axis=1), (new_runs & there).sum(axis=1)
    in_level, levels = (level & there).sum(axis=1), level.sum(axis=1)
    constant = ((in_level == 0) | (in_level == levels)) & (levels >= LEAST_EXACT)
    enough = (bases >= limits.least_base) & (news >= limits.least_new)
    some = (bases > 0) & (news > 0)
    return Presence(
        added=some & (in_base == 0) & (in_new == news),
        removed=some & (in_base == bases) & (in_new == 0),
        decided=(constant & (news > 0)) | enough,
    )


class Facts(Struct, frozen=True):
    """What changed for certain: `series`: index; `before`, `after`: calls per step, or bytes; 0 for absent."""

    series: I64
    before: F64
    after: F64


def exact_changes(numbers: F64, level: BOOL, new: BOOL) -> Facts:
    """Numbers that are constant in the level (at least 2 runs) and have another constant value in the new runs.

    `numbers` (series, runs): calls per step, bytes of collectives, peak memory; nan for absent, which counts as 0.
    `level` (series, runs), `new` (runs,): recorded runs.

    >>> calls = np.array([[129.0, 129.0, 135.0], [4.0, 5.0, 6.0]])
    >>> found = exact_changes(calls, np.array([[True, True, False]] * 2), np.array([False, False, True]))
    >>> found.series.tolist(), found.before.tolist(), found.after.tolist()
    ([0], [129.0], [135.0])
    """
    values = np.nan_to_num(numbers)
    before, after = (
        (np.where(side, values, np.inf).min(axis=1), np.where(side, values, -np.inf).max(axis=1))
        for side in (level, np.broadcast_to(new, values.shape))
    )
    is_constant = (before[0] == before[1]) & (after[0] == after[1]) & (level.sum(axis=1) >= LEAST_EXACT)
    rows = np.flatnonzero(is_constant & (before[0] != after[0]))
    return Facts(rows, before[0][rows], after[0][rows])
