"""What all operators of a run share: the machine, not the code."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracker.detect.statistics import median

F64 = NDArray[np.float64]
BOOL = NDArray[np.bool_]

ROUNDS = 2


def shared_factor(leaves: F64, before: BOOL, new: BOOL, least: int = 20) -> F64:
    """The common-mode shift of each run as a log: 0.05 is a run in which all operators take 5 % longer.

    `leaves` (series, runs): logs of times, nan for missing. `before`, `new`: the compared runs, of which every series
    that counts must have all. Median polish (Tukey 1977) over them gives a level per series; the shift of any run is
    the median distance from those. It is 0 at the median of `before`, and 0 throughout with fewer than `least` series.

    The polish begins with the runs, so that a run times k moves its own shift by log k and no level.

    >>> runs = np.log(np.full((30, 3), 100.0) * np.array([1.0, 1.0, 1.1]))
    >>> shared_factor(runs, np.array([True, True, False]), np.array([False, False, True])).round(3).tolist()
    [0.0, 0.0, 0.095]
    """
    compared = before | new
    complete = ~np.isnan(leaves[:, compared]).any(axis=1)
    if complete.sum() < least or not compared.any():
        return np.zeros(leaves.shape[1])
    table = leaves[complete]
    rest, level = table[:, compared], np.zeros((len(table), 1))
    for _ in range(ROUNDS):
        rest = rest - np.median(rest, axis=0)
        by_row = np.median(rest, axis=1, keepdims=True)
        rest, level = rest - by_row, level + by_row
    distance = table - level
    shift = np.where((~np.isnan(distance)).sum(axis=0) >= least, median(distance, axis=0), np.nan)
    anchor = np.median(shift[before]) if before.any() else np.median(shift[new])
    return np.asarray(np.nan_to_num(shift - anchor))
