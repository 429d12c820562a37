"""Slow steps of a rank, each with the part of the step that makes it slow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec import Struct

from tracker.columns import F64

SLOW_FACTOR: Final = 1.2
"""Times the median step of its rank, above which a step is slow."""
_MAIN: Final = 0.5
"""Part of what a step took longer, from which on a part of the step is its cause."""


class SlowStepOfRank(Struct, frozen=True):
    """A step of a rank that took more than SLOW_FACTOR times the median. `place`: in the table of its steps;
    `longer_ns`: than the median; `cause`: the part of the step that makes at least half of that, "" where none does;
    `cause_ns`: by how much that part is longer than its median.
    """

    place: int
    ns: float
    longer_ns: float
    cause: str = ""
    cause_ns: float = 0.0


def find_slow_steps(times: F64, weights: F64, parts: Mapping[str, F64]) -> list[SlowStepOfRank]:
    """Return the slow steps of a rank, in order of time.

    `times`: of each step, nan where it is not known. `weights`: of how many steps each is the mean. `parts`: cause ->
    its time in each step, nan where that is not known; of two that explain as much the first one is the cause.

    >>> times, loading = np.array([10.0, 10.0, 10.0, 210.0]), np.array([0.0, 0.0, 1.0, 200.0])
    >>> find_slow_steps(times, np.ones(4), {"compute": np.full(4, 10.0), "data loading": loading})
    [SlowStepOfRank(place=3, ns=210.0, longer_ns=200.0, cause='data loading', cause_ns=199.5)]
    """
    usual_ns = find_weighted_median(times, weights)
    slow = []
    for place in np.flatnonzero(times > SLOW_FACTOR * usual_ns).tolist():
        longer_ns = float(times[place] - usual_ns)
        changes = {}
        for cause, own in parts.items():
            change = float(own[place] - find_weighted_median(own, weights))
            if change >= _MAIN * longer_ns:
                changes[cause] = change
        main = max(changes, key=lambda cause: changes[cause], default="")
        slow.append(SlowStepOfRank(place, float(times[place]), longer_ns, main, changes.get(main, 0.0)))
    return slow


def find_weighted_median(values: F64, weights: F64) -> float:
    """Return the median of what is known, each value counted as often as its weight says; nan where nothing is.

    >>> find_weighted_median(np.array([1.0, 2.0, 9.0]), np.array([1.0, 1.0, 2.0]))
    5.5
    """
    is_known = ~np.isnan(values)
    if not is_known.any():
        return float("nan")
    order = np.argsort(values[is_known], kind="stable")
    ordered, passed = values[is_known][order], np.cumsum(weights[is_known][order])
    low, high = np.searchsorted(passed, passed[-1] / 2, side="left"), np.searchsorted(passed, passed[-1] / 2, "right")
    return float((ordered[low] + ordered[high]) / 2)
