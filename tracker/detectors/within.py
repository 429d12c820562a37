"""What repeated numbers of one thing say of it: the levels between which it jumps."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from msgspec import Struct

from tracker.detectors.arrays import F64
from tracker.profile import median

_GAP_IN_MAD: Final = 4.0
_SMALLER_MODE: Final = 0.2
_CROSSINGS: Final = 2
_BY_CHANCE: Final = 0.05

MODES_OF: Final = 20
"""Runs before a change in which two levels of a series are looked for."""


class Modes(Struct, frozen=True):
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
    away = np.concatenate([np.abs(low - median(low)), np.abs(high - median(high))])
    if not gaps.max() > _GAP_IN_MAD * 1.4826 * median(away):
        return None
    # Values that are equal within each side, or nearly, would make any gap a gap; the levels must differ visibly too.
    if median(high) - median(low) < 0.02 * abs(median(high)):
        return None
    return Modes(float(median(low)), float(median(high)), (n - cut) / n)


def jumps_between(before: F64, now: F64, slack: float) -> Modes | None:
    """The two levels between which a series jumps from run to run, where the new runs lie on one of them or between
    them: what looks like a change is none then. None otherwise.

    `before`: a value per older run, in their order; `now`: per new run; nan is left out. `slack`: how far beyond a
    level the median of `now` may lie, as a log. A series that went to the other level and stayed there, once or for
    spells so long that chance hardly makes them (Wald and Wolfowitz), was changed and does not jump: to go back is
    news.

    >>> jumps_between(np.array([1.9, 3.7, 1.88, 3.74, 3.6, 1.86]), np.array([3.7, 3.72]), slack=0.03)
    Modes(low=1.88, high=3.7, upper_share=0.5)
    >>> jumps_between(np.array([3.7, 3.74, 3.6, 1.9, 1.88, 1.86]), np.array([3.7, 3.72]), slack=0.03) is None
    True
    """
    known, new = before[~np.isnan(before)], now[~np.isnan(now)]
    modes = two_modes(known) if len(new) else None
    if modes is None or modes.low <= 0 or not is_between(modes, new, slack):
        return None
    on_upper = known > (modes.low + modes.high) / 2
    crossings = int(np.count_nonzero(on_upper[1:] != on_upper[:-1]))
    above, below = int(on_upper.sum()), int((~on_upper).sum())
    jumps = crossings >= _CROSSINGS and _spells_by_chance(crossings + 1, above, below) >= _BY_CHANCE
    return modes if jumps else None


def is_between(modes: Modes, values: F64, slack: float) -> bool:
    """Whether the median of `values` lies on one of the levels or between them, give or take `slack`, as a log."""
    level = math.log(float(median(values[~np.isnan(values)])))
    return math.log(modes.low) - slack <= level <= math.log(modes.high) + slack


def _spells_by_chance(spells: int, above: int, below: int) -> float:
    """How probable so few spells, or fewer, are among values that lie above and below in any order.

    >>> _spells_by_chance(2, 3, 2), _spells_by_chance(5, 3, 2)
    (0.2, 1.0)
    """
    ways = 0
    for count in range(2, spells + 1):
        half = count // 2
        one, other = (math.comb(number - 1, half - 1) for number in (above, below))
        if count % 2 == 0:
            ways += 2 * one * other
        else:
            ways += math.comb(above - 1, half) * other + one * math.comb(below - 1, half)
    return ways / math.comb(above + below, above)
