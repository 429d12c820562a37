"""Levels whose values are alike under a Gaussian kernel: the best segmentation of all, at a price per change."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tracker.detectors.arrays import F64
from tracker.detectors.vote._segmentation import cheapest
from tracker.detectors.vote._splitting import noise
from tracker.profile import median

TITLE: Final = "best segmentation under a Gaussian kernel"

_PRICE: Final = 1.1
"""By score, see `vote`."""


def change_points(values: F64) -> list[int]:
    """The changes of the segmentation with the least scatter within its segments. `values`: one finite number per run.

    Arlot, Celisse and Harchaoui (2019), A kernel multiple change-point algorithm; the price of a change is 1.1 ln n,
    the width of the kernel the median distance of two values, or the noise of neighbours where that is larger.
    """
    n = len(values)
    squares = (values[:, None] - values[None, :]) ** 2
    width = max(float(median(squares[np.triu_indices(n, 1)])), noise(values) ** 2) if n > 1 else 0.0
    if width == 0.0:
        width = float(squares.max())
    if width == 0.0:
        return []
    alike = np.exp(-squares / width)
    sums = np.zeros((n + 1, n + 1))
    sums[1:, 1:] = alike.cumsum(axis=0).cumsum(axis=1)
    corner = np.diag(sums)
    block = corner[:, None] + corner[None, :] - 2.0 * sums  # block[i, j]: sum of the kernel over values i .. j-1
    length = np.abs(np.arange(n + 1)[:, None] - np.arange(n + 1)[None, :])
    cost = length - block / np.maximum(length, 1)
    return cheapest(cost, _PRICE * math.log(n))
