"""The split that sets two parts farthest apart by their energy distance, tested by Student's t: what Otava does."""

from __future__ import annotations

from typing import Final

import numpy as np

from tracker.detectors.arrays import F64
from tracker.detectors.vote._splitting import MIN_SEGMENT, prune

TITLE: Final = "largest energy distance between the runs before and the runs after"

_CHANCE: Final = 5e-4
"""By score, see `vote`."""


def change_points(values: F64) -> list[int]:
    """Where the distributions before and after differ. `values`: one finite number per run, in order.

    Matteson and James (2014), A nonparametric approach for multiple change point analysis: E-divisive with exponent 1.
    All parts are split to the end, then the splits that are not sure are taken back: what lies behind a split may be
    surer than itself, as when a level comes and goes. The permutations of the paper are replaced by a t test, as Otava
    does: the same series gives the same answer.
    """
    found: list[int] = []
    open_parts = [(0, len(values))]
    while open_parts:
        start, stop = open_parts.pop()
        if stop - start >= 2 * MIN_SEGMENT:
            place = start + _farthest(values[start:stop])
            found.append(place)
            open_parts += [(start, place), (place, stop)]
    return prune(values, sorted(found), _CHANCE)


def _farthest(part: F64) -> int:
    """The split with the largest energy distance, weighted by the sizes of the two parts."""
    n = len(part)
    distance = np.abs(part[:, None] - part[None, :])
    sums = np.zeros((n + 1, n + 1))
    sums[1:, 1:] = distance.cumsum(axis=0).cumsum(axis=1)
    place = np.arange(MIN_SEGMENT, n - MIN_SEGMENT + 1)
    before, after = place.astype(np.float64), (n - place).astype(np.float64)
    inside_left = sums[place, place]
    between = sums[place, n] - inside_left
    inside_right = sums[n, n] - inside_left - 2 * between
    energy = (
        2 * between / (before * after)
        - inside_left / np.maximum(before * (before - 1), 1)
        - inside_right / np.maximum(after * (after - 1), 1)
    )
    return int(place[np.argmax(energy * before * after / n)])
