"""What the steps of one run say of it. Never of a change between versions: steps are no independent repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from tracker.detectors._arrays import F64

_GAP_IN_MAD: Final = 4.0
_SMALLER_MODE: Final = 0.2


@dataclass(frozen=True, slots=True)
class OneRun:
    """One run's number for a series. `value`: what is judged; nan where no step is known. `intermittent`: the median
    is 0, so `value` is the mean.
    """

    value: float
    intermittent: bool


def one_number(steps: F64, skip: int = 0) -> OneRun:
    """The number of one run: the median over its steps (JUDGEMENT 1), the first `skip` left out as warm-up.

    `steps`: the sum per step; a step without the op is 0, nan is unknown.

    >>> one_number(np.array([9.0, 2.0, 3.0, 4.0]), skip=1), one_number(np.array([0.0, 0.0, 0.0, 4.0]))
    (OneRun(value=3.0, intermittent=False), OneRun(value=1.0, intermittent=True))
    """
    known = steps[skip:]
    known = known[~np.isnan(known)]
    if len(known) == 0:
        return OneRun(float("nan"), False)
    middle = float(np.median(known))
    return OneRun(float(known.mean()), bool(known.any())) if middle == 0 else OneRun(middle, False)


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


def drift_inside(steps: F64) -> float:
    """Spearman's rank correlation of a value with the index of its step, -1 to 1; nan for fewer than 3 or equal values.

    >>> drift_inside(np.array([1.0, 2.0, 5.0])), drift_inside(np.array([3.0, 2.0, 2.0, 1.0])).__round__(3)
    (1.0, -0.949)
    """
    known = ~np.isnan(steps)
    if known.sum() < 3:
        return float("nan")
    ranks, index = _ranks(steps[known]), _ranks(np.flatnonzero(known).astype(np.float64))
    ranks, index = ranks - ranks.mean(), index - index.mean()
    size = float(np.sqrt((ranks**2).sum() * (index**2).sum()))
    return float((ranks * index).sum()) / size if size > 0 else float("nan")


def _ranks(values: F64) -> F64:
    """Ranks from 0, equal values sharing the mean of theirs."""
    ordered = np.sort(values)
    places = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right") - 1
    return np.asarray(0.5 * places, dtype=np.float64)


def warm_up(steps: F64, most: int = 3) -> int:
    """How many of the first steps, at most `most`, stand out as slower than all later ones by 4 MAD: the proposed cut.

    >>> warm_up(np.array([30.0, 12.0, 10.0, 10.1, 9.9, 10.0, 10.2]))
    2
    """
    cut = 0
    for count in range(1, most + 1):
        later = steps[count:]
        later = later[~np.isnan(later)]
        if len(later) < 4:
            break
        spread = 1.4826 * float(np.median(np.abs(later - np.median(later))))
        if steps[count - 1] > max(float(later.max()), float(np.median(later)) + _GAP_IN_MAD * spread):
            cut = count
        else:
            break
    return cut
