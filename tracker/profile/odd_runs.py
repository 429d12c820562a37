"""Which run of several stands alone, far from all others: it says nothing of what they usually take."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

LEAST_RUNS: Final = 4
"""Runs of which one can be the odd one: three others must agree."""
LEAST_AWAY: Final = 0.05
"""Distance of an odd run from the next one, a log, at least."""
TIMES_THE_SPREAD: Final = 4.0
"""The same by how far the others lie from each other."""


def find_odd_runs(logs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which run of each row of (rows, runs) stands alone, nan for no run: at most one of a row.

    It lies above or below all others, by 5 % at least and four times as far as these lie from each other. Of fewer than
    four runs none does.

    >>> times = np.array([[850.0, 851.0, 852.0, 1000.0], [850.0, 851.0, 1000.0, 1000.0], [850.0, 900.0, 950.0, 1100.0]])
    >>> find_odd_runs(np.log(times)).any(axis=1).tolist()
    [True, False, False]
    """
    odd = np.zeros(logs.shape, dtype=bool)
    count = (~np.isnan(logs)).sum(axis=1) if logs.shape[1] >= LEAST_RUNS else np.zeros(len(logs), dtype=np.int64)
    rows = np.flatnonzero(count >= LEAST_RUNS)
    if not len(rows):
        return odd
    order = np.argsort(logs[rows], axis=1)  # nan comes last
    ordered = np.take_along_axis(logs[rows], order, axis=1)
    last = count[rows] - 1
    place = np.arange(len(rows))
    lowest, low = ordered[:, 0], ordered[:, 1]
    highest, high = ordered[place, last], ordered[place, last - 1]
    is_low = low - lowest >= np.maximum(LEAST_AWAY, TIMES_THE_SPREAD * (highest - low))
    is_high = highest - high >= np.maximum(LEAST_AWAY, TIMES_THE_SPREAD * (high - lowest))
    odd[rows[is_low], order[is_low, 0]] = True
    odd[rows[is_high], order[place, last][is_high]] = True
    return odd
