"""The sixteen runs before against the sixteen after, by Student's t: Perfherder's way, with a probability as limit."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tracker.detectors._distributions import t_above, t_exceeded
from tracker.detectors.arrays import F64
from tracker.detectors.vote._splitting import MIN_SEGMENT, divide, noise, window_sums

TITLE: Final = "t test of the runs before against the runs after"

_WINDOWS: Final = (16, 3)  # the short one for levels that come and go within a few runs
_TRUST: Final = 8.0
_CHANCE: Final = 2e-4
"""By score, see `vote`."""

_LEAST: Final = float(t_exceeded(0.5 * _CHANCE, np.array([math.inf]))[0])


def change_points(values: F64) -> list[int]:
    """Where a window's mean differs from the next one's. `values`: one finite number per run, in order."""
    trusted = _TRUST * noise(values) ** 2  # a window that is quiet by luck makes no step of what is noise elsewhere

    def best_split(part: F64) -> int | None:
        chances = [_chances(part, window, trusted) for window in _WINDOWS]
        window = int(np.argmin([chance.min() for chance in chances]))
        place = int(np.argmin(chances[window]))
        return place + MIN_SEGMENT if chances[window][place] < _CHANCE else None

    return divide(values, best_split)


def _chances(part: F64, window: int, trusted: float) -> F64:
    before, total, squares, after, next_total, next_squares = window_sums(part, window)
    within = np.maximum(squares - total**2 / before + next_squares - next_total**2 / after, 0.0)
    freedom = before + after - 2 + _TRUST
    variance = np.maximum((within + trusted) / freedom, 1e-18)
    t = np.abs(next_total / after - total / before) / np.sqrt(variance * (1 / before + 1 / after))
    if t.max() < _LEAST:
        return np.ones_like(t)  # not enough even for the normal, which has the thinnest tail
    return 2 * t_above(t, freedom)
