"""What the detectors share: split a series at its best place, then its parts, then take back what no longer holds."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np

from tracker.detectors._distributions import t_above, t_exceeded
from tracker.detectors.arrays import F64

MIN_SEGMENT: Final = 3
"""Runs that a level must last for (JUDGEMENT 5); what is shorter is an outlier."""

_TRIMMED_MEAN: Final = (
    0.6574  # of |z| below its 90 % quantile 1.645, z standard normal: 0.7979 (1 - exp(-1.645^2 / 2)) / 0.9
)

BestSplit = Callable[[F64], int | None]
"""The index of the first value of the right part where a series (at least 6 values) splits best and surely, or None."""


def divide(values: F64, best_split: BestSplit) -> list[int]:
    """All places where `best_split` splits the series, its parts, their parts, in order.

    A split that the later ones made superfluous is taken back: each must still be found between its neighbours.
    """
    found: list[int] = []
    open_parts = [(0, len(values))]

    @cache  # taking back looks at many parts again
    def split(start: int, stop: int) -> int | None:
        return best_split(values[start:stop])

    while open_parts:
        start, stop = open_parts.pop()
        if stop - start < 2 * MIN_SEGMENT:
            continue
        place = split(start, stop)
        if place is not None:
            found.append(start + place)
            open_parts += [(start, start + place), (start + place, stop)]
    return _kept(len(values), sorted(found), split)


def _kept(count: int, found: list[int], split: Callable[[int, int], int | None]) -> list[int]:
    settled = False
    while not settled:
        settled = True
        for index in range(len(found)):
            start = found[index - 1] if index else 0
            stop = found[index + 1] if index + 1 < len(found) else count
            place = split(start, stop)
            if place is None:
                del found[index]
                settled = False
                break
            found[index] = start + place
    return found


def window_sums(values: F64, window: int) -> tuple[F64, F64, F64, F64, F64, F64]:
    """For each place 3 .. n-3: number, sum and sum of squares of the up to `window` values before it, and after it."""
    n = len(values)
    place = np.arange(MIN_SEGMENT, n - MIN_SEGMENT + 1)
    first, last = np.maximum(place - window, 0), np.minimum(place + window, n)
    total = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values * values)])
    return (
        (place - first).astype(np.float64), total[place] - total[first], squares[place] - squares[first],
        (last - place).astype(np.float64), total[last] - total[place], squares[last] - squares[place],
    )  # fmt: skip


def noise(values: F64) -> float:
    """The standard deviation of a value about its level, from differences of neighbours, so that steps do not count.

    The mean of |x_i - x_{i-1}| / sqrt 2 without the largest tenth (at least two), scaled to the normal distribution.
    Unlike a median it sees a series that jumps between two levels as noisy. 0.0 for fewer than four values.
    """
    differences = np.sort(np.abs(np.diff(values))) / np.sqrt(2.0)
    kept = differences[: len(differences) - max(2, len(differences) // 10)]
    return float(kept.mean()) / _TRIMMED_MEAN if len(kept) else 0.0


SHORT: Final = 6
"""Runs below which the newest level may be one that some look had to show by chance: twice MIN_SEGMENT."""

_TRUST: Final = 8.0
"""Degrees of freedom that the noise of the whole series is worth beside that of two levels; by score, see `vote`."""


def prune(values: F64, places: list[int], chance: float, *, newest: float | None = None) -> list[int]:
    """The places whose two neighbouring levels differ at `chance`; the least sure goes first, until the rest all do.

    `newest`: the chance for the last place while fewer than SHORT runs follow it; None: the same.

    Two-sided t of two means, the variance moderated by the noise of the whole series: without that, three runs against
    three could never be sure.
    """
    if not places:
        return []
    trusted = _TRUST * noise(values) ** 2
    surely = float(t_exceeded(0.5 * chance, np.array([math.inf]))[0]) if chance < 1.0 else 0.0
    places = list(places)
    total = np.concatenate([[0.0], np.cumsum(values - values.mean())])
    squares = np.concatenate([[0.0], np.cumsum((values - values.mean()) ** 2)])
    while places:
        bounds = np.array([0, *places, len(values)])
        number, sums = np.diff(bounds).astype(np.float64), np.diff(total[bounds])
        within = np.maximum(np.diff(squares[bounds]) - sums**2 / number, 0.0)
        freedom = number[:-1] + number[1:] - 2 + _TRUST
        variance = np.maximum((within[:-1] + within[1:] + trusted) / freedom, 1e-18)
        t = np.abs(np.diff(sums / number)) / np.sqrt(variance * (1 / number[:-1] + 1 / number[1:]))
        least = int(np.argmin(t))
        if t[least] < surely:  # not enough even for the normal, which has the thinnest tail; no need to ask for more
            del places[least]
            continue
        limits = np.full(len(t), chance)
        if newest is not None and number[-1] < SHORT:
            limits[-1] = newest
        excess = 2 * t_above(t, freedom) / limits
        worst = int(np.argmax(excess))
        if excess[worst] < 1.0:
            break
        del places[worst]
    return places
