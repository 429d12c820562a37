"""The limits of the judgement that a user can set: their names, between what they must lie, what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Bounds(NamedTuple):
    """`low`, `high`: between which a limit must lie, both allowed. `meaning`: with the value that holds where none is
    set.
    """

    low: float
    high: float
    meaning: str


THRESHOLDS: Final[Mapping[str, Bounds]] = {
    "min_ratio": Bounds(
        0.001,
        1.0,
        "smallest change of a series that counts; usual: 3 %, of collectives 10 %, of whole runs 2 %, 5 % where they "
        "are timed on the host",
    ),
    "min_contribution": Bounds(0.0, 0.5, "smallest change that counts, as a part of the step; usual: 0.1 %"),
    "alpha": Bounds(0.0001, 0.5, "share of false findings that is borne; usual: 0.05"),
    "creep_ratio": Bounds(0.001, 1.0, "smallest slow creep that counts; usual: 8 %, or min_ratio where that is more"),
    "confirm": Bounds(1, 10, "runs of a version that decide, or runs after a suspicion; usual: 2"),
}
"""Name of a limit -> its bounds."""
