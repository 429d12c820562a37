"""The limits of the judgement that a user can set: their names, between what they must lie, what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

if TYPE_CHECKING:
    from tracker.columns import Columns


class Bounds(NamedTuple):
    """`low`, `high`: between which a limit must lie, both allowed. `meaning`: with the default."""

    low: float
    high: float
    meaning: str


THRESHOLDS: Final[Mapping[str, Bounds]] = {
    "min_ratio": Bounds(
        0.001,
        1.0,
        "smallest change of a series; default: 3 %, of collectives 10 %, of the step and its parts 2 %, 5 % where they "
        "are timed on the host",
    ),
    "min_contribution": Bounds(
        0.0,
        0.5,
        "smallest change as a share of the step; default: 0.1 %, of idle time, phases and other parts of the step 1 %, "
        "2 % where they are timed on the host",
    ),
    "alpha": Bounds(0.0001, 0.5, "false discovery rate; default: 0.05"),
    "gradual_ratio": Bounds(0.001, 1.0, "smallest gradual slowdown; default: 8 %"),
    "confirm": Bounds(1, 10, "runs that confirm a suspect, or that decide as one version; default: 2"),
    "least_base": Bounds(2, 32, "runs of a level without which nothing is tested; default: 3"),
    "window": Bounds(2, 64, "newest runs of a level that a version is compared with; default: 8"),
    "look_back": Bounds(2, 1000, "runs before a version among which its level is looked for; default: 32"),
    "gate_net": Bounds(0.0, 1.0, "net slowdown of the operators, of the step, that fails a gate; default: 1 %"),
    "gate_peak": Bounds(0.0, 10.0, "rise of peak memory that fails a gate; default: 10 %"),
}
"""Name of a limit -> its bounds."""

TRIED_COLUMNS: Final = (
    "movement", "version", "direction", "how", "kind", "metric", "name", "input_shapes", "part", "ratio",
    "contribution", "state", "configuration", "device",
)  # fmt: skip


class TriedThresholds(Struct, frozen=True, eq=False):
    """What other limits would make of the stored runs. `moved`: the findings that would come or go (`movement`: comes
    or goes), as in TRIED_COLUMNS; `stay`: how many stay; `versions`: that were judged again in memory.
    """

    moved: Columns
    stay: int
    versions: int
    notes: tuple[str, ...] = ()
