"""The cheapest of all segmentations, exactly."""

from __future__ import annotations

import numpy as np

from tracker.detectors.arrays import F64, I64
from tracker.detectors.vote._splitting import MIN_SEGMENT


def cheapest(cost: F64, price: float) -> list[int]:
    """The changes of the segmentation whose segments cost least, each change costing `price`; segments of 3 or more.

    `cost` (n+1, n+1): cost[i, j] is what the segment of values i .. j-1 costs, for i < j. Exact, in n^2 steps: Jackson
    et al. (2005), An algorithm for optimal partitioning of data on an interval.
    """
    n = len(cost) - 1
    best = np.full(n + 1, np.inf)
    best[0] = -price
    origin: I64 = np.zeros(n + 1, dtype=np.int64)
    for stop in range(MIN_SEGMENT, n + 1):
        starts = best[: stop - MIN_SEGMENT + 1] + cost[: stop - MIN_SEGMENT + 1, stop] + price
        origin[stop] = int(np.argmin(starts))
        best[stop] = starts[origin[stop]]
    changes: list[int] = []
    stop = int(origin[n])
    while stop > 0:
        changes.append(stop)
        stop = int(origin[stop])
    return changes[::-1]
