"""The thresholds of change detection that a user can set, and what repeats of one version say of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, NamedTuple

from msgspec import Struct, field

from tracker.columns import Columns
from tracker.results.options import DEVICE, WORKLOAD, Option, Options
from tracker.results.screens import Result, frames
from tracker.units import counted

__all__ = ["CALIBRATION_COLUMNS", "THRESHOLDS", "CalibrateOptions", "Calibration", "TriedThresholds"]


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

EVERYWHERE: Final = 0
"""Number of a configuration or a device that stands for all of them."""


class Threshold(Struct, frozen=True):
    """One limit. `kind`, `pattern`: of the series that it is for, "" for all; in `pattern`, `*` matches any characters
    and `?` one. `configuration_id`, `device_id`: where, EVERYWHERE for all of a workload.
    """

    name: str
    value: float
    kind: str = ""
    pattern: str = ""
    configuration_id: int = EVERYWHERE
    device_id: int = EVERYWHERE
    who: str = ""
    when_ns: int = 0
    reason: str = ""


TRIED_COLUMNS: Final = (
    "movement", "version", "direction", "how", "kind", "metric", "name", "input_shapes", "part", "step_kind", "ratio",
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


CALIBRATION_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "ratios": (
        "kind", "min_ratio", "splits", "tested", "false_share", "mean_false", "worst_false", "splits_with_false",
        "windows_false",
    ),
    "proposals": ("device", "kind", "series", "used_ratio", "used_false", "used_share", "proposed_ratio"),
    "power": ("series_id", "kind", "metric", "name", "input_shapes", "part", "share", "runs", "detectable"),
    "suspects": (
        "series_id", "kind", "metric", "name", "input_shapes", "part", "version", "change", "contribution", "runs",
        "more_runs",
    ),
    "series": ("series_id", "kind", "metric", "unit", "name", "input_shapes", "part", "value", "share", "spread"),
}  # fmt: skip


class CalibrateOptions(Options, frozen=True, kw_only=True):
    """Which repeats, and in how many ways they are split. `device`: part of vendor and model."""

    workload: Annotated[str | None, WORKLOAD] = None
    device: Annotated[str | None, DEVICE] = None
    splits: Annotated[int, Option("Random splits of the runs, at most.", "N", least=1)] = 100
    noisiest: Annotated[int, Option("Series to list, the noisiest first.", "N", least=0)] = 10


class Calibration(Result, frozen=True, eq=False):
    """What is found among repeats between which nothing changed. `tables`: the rows of each table of
    CALIBRATION_COLUMNS, with exactly these columns; `found.ratios` and all other names are the same as frames.

    - ratios: per kind of series and smallest change that counts (0.03 = 3 %), the false verdicts of a split: as a share
      of the series that are tested (`tested`, in the mean), in the mean, in the worst one, in how many; windows_false:
      those of all windows of neighbouring runs together
    - proposals: per kind how many series it has, the smallest change in use with its false verdicts per split and their
      share, and the smallest one from which on there is at most one in the mean; NA: none that was tried
    - power: of the step and of the largest operators, the smallest change that is found in four of five cases
      (`detectable`, a ratio) with a version of so many `runs`, against the 8 runs before it; NA: so few decide nothing
    - suspects: of the newest version of the track; how many more runs like its own would decide (`more_runs`; NA: more
      than 16)
    - series: the noisiest ones. value: geometric mean per step in unit (ns, bytes, per_second); share of the step, NA
      for what is no time; spread: standard deviation of the logs without what all operators of a run share
    - baseline, candidate: runs on either side of a split; windows, splits: how many of each kind were made
    """

    word: ClassVar[str] = "calibration"
    printed_by: ClassVar[str] = "tracker calibrate VERSION"
    json_fields: ClassVar[tuple[str, ...]] = (
        "workload", "configuration", "device", "versions", "run_ids", "baseline", "candidate", "windows", "splits",
        "options", "notes",
    )  # fmt: skip

    tables: Mapping[str, Columns]
    workload: str
    configuration: str
    device: str
    versions: tuple[str, ...]
    run_ids: tuple[int, ...]
    baseline: int
    candidate: int
    windows: int
    splits: int
    options: CalibrateOptions = field(default_factory=CalibrateOptions)
    notes: tuple[str, ...] = ()

    ratios, proposals, series, power, suspects = frames(5)

    @property
    def headline(self) -> str:
        """The workload, the device, and on how many runs it rests."""
        return f"{self.workload} on {self.device}: {counted(len(self.run_ids), 'repeated run')}"
