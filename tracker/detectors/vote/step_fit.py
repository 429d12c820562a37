"""Steps fitted to the whole series by least absolute deviations: what asv does, with the noise known beforehand."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tracker.detectors.arrays import F64
from tracker.detectors.vote._segmentation import cheapest
from tracker.detectors.vote._splitting import noise
from tracker.profile import median

TITLE: Final = "steps fitted by least absolute deviations"

_PRICE: Final = 2.5
"""By score, see `vote`."""


def change_points(values: F64) -> list[int]:
    """The changes of the steps that fit best at a price per step. `values`: one finite number per run, in order.

    The cost of a segment is its sum of absolute deviations from its median, in units of their mean under the noise; a
    change costs 2.5 ln n: the Schwarz criterion for Laplace noise, at a higher price since runs are not independent.
    """
    n = len(values)
    unit = max(noise(values), float(median(np.abs(values - median(values)))) * 0.5)
    if unit == 0.0:
        unit = float(np.abs(values - median(values)).max())
    if unit == 0.0:
        return []
    return cheapest(_absolute_deviations(values) / (unit * math.sqrt(2 / math.pi)), _PRICE * math.log(n))


def _absolute_deviations(values: F64) -> F64:
    """cost[i, j]: sum of |x - median| over values i .. j-1; 0 for i >= j."""
    n = len(values)
    cost = np.zeros((n + 1, n + 1))
    for length in range(2, n + 1):
        half = length // 2
        parted = np.partition(sliding_window_view(values, length), half, axis=1)
        start = np.arange(n - length + 1)
        cost[start, start + length] = parted[:, length - half :].sum(axis=1) - parted[:, :half].sum(axis=1)
    return cost
