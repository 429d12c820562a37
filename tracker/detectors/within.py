"""What repeated numbers of one thing say of it: the levels between which it jumps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from tracker.detectors._arrays import F64

_GAP_IN_MAD: Final = 4.0
_SMALLER_MODE: Final = 0.2


@dataclass(frozen=True, slots=True)
class Modes:
    """Two levels between which a series jumps: their medians, and the fraction of the values on the upper one."""

    low: float
    high: float
    upper_share: float


def two_modes(values: F64) -> Modes | None:
    """The two levels of a bistable series, or None: a gap of more than 4 MAD with at least 20 % on either side.

    `values`: steps of a run, or one value per run of one version; nan is left out. MAD: the median distance of a value
    from the median of its own side of the gap, since about one common median two levels would hide each other.

    >>> two_modes(np.array([1.9, 3.7, 1.88, 3.74, 3.6, 1.86, 3.75]))
    Modes(low=1.88, high=3.72, upper_share=0.5714285714285714)
    >>> two_modes(np.array([1.9, 1.91, 1.88, 1.87, 1.9, 1.86, 1.89])) is None
    True
    """
    ordered = np.sort(values[~np.isnan(values)])
    n = len(ordered)
    if n < 5:
        return None
    smallest = max(2, int(np.ceil(_SMALLER_MODE * n)))
    gaps = np.diff(ordered)[smallest - 1 : n - smallest]
    if len(gaps) == 0:
        return None
    cut = smallest + int(np.argmax(gaps))
    low, high = ordered[:cut], ordered[cut:]
    away = np.concatenate([np.abs(low - np.median(low)), np.abs(high - np.median(high))])
    if not gaps.max() > _GAP_IN_MAD * 1.4826 * np.median(away):
        return None
    # Values that are equal within each side, or nearly, would make any gap a gap; the levels must differ visibly too.
    if np.median(high) - np.median(low) < 0.02 * abs(np.median(high)):
        return None
    return Modes(float(np.median(low)), float(np.median(high)), (n - cut) / n)
