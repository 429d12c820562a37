"""The runs before against the runs after by their ranks: what no outlier can move."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tracker.detectors.arrays import F64
from tracker.detectors.vote._splitting import MIN_SEGMENT, divide

TITLE: Final = "rank test of the runs before against the runs after"

_WINDOW: Final = 20
_CHANCE: Final = 3e-3
"""By score, see `vote`."""


def change_points(values: F64) -> list[int]:
    """Where a window's ranks differ from the next one's. `values`: one finite number per run, in order.

    Mann and Whitney (1947) with the normal approximation, corrected for ties and continuity.
    """
    return divide(values, _best_split)


def _best_split(part: F64) -> int | None:
    n = len(part)
    order = (part[:, None] > part[None, :]).astype(np.float64) + 0.5 * (part[:, None] == part[None, :])
    sums = np.zeros((n + 1, n + 1))
    sums[1:, 1:] = order.cumsum(axis=0).cumsum(axis=1)
    place = np.arange(MIN_SEGMENT, n - MIN_SEGMENT + 1)
    first, last = np.maximum(place - _WINDOW, 0), np.minimum(place + _WINDOW, n)
    above = sums[last, place] - sums[place, place] - sums[last, first] + sums[place, first]
    before, after = (place - first).astype(np.float64), (last - place).astype(np.float64)
    pairs = before * after
    spread = np.sqrt(pairs * (before + after + 1) / 12.0)
    z = np.maximum(np.abs(above - 0.5 * pairs) - 0.5, 0.0) / spread
    best = int(np.argmax(z))
    chance = math.erfc(float(z[best]) / math.sqrt(2.0))
    return int(place[best]) if chance < _CHANCE else None
