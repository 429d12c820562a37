"""The limits of the judgement that a user can set, and between what they must lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Bounds(NamedTuple):
    """Between which numbers a limit must lie, both allowed."""

    low: float
    high: float


THRESHOLDS: Final[Mapping[str, Bounds]] = {
    "min_ratio": Bounds(0.001, 10.0),
    "min_contribution": Bounds(0.0, 0.5),
    "alpha": Bounds(0.0001, 0.5),
    "creep_ratio": Bounds(0.001, 10.0),
    "confirm": Bounds(1, 10),
}
"""Name of a limit -> its bounds. What each means, `tracker thresholds --help` says."""
