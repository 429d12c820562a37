"""The thresholds of change detection that a user can set, and what repeats of one version say of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, ClassVar, Final, NamedTuple

from msgspec import Struct, field

from tracker.columns import Columns
from tracker.results.options import DEVICE, WORKLOAD, Option, Options
from tracker.results.screens import Result, columns_of_rows, frames
from tracker.units import counted

__all__ = ["THRESHOLDS", "CalibrateOptions", "Calibration", "TriedThresholds"]


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


class MovedFinding(Struct, frozen=True, kw_only=True):
    """A finding that other limits would add or take away.

    - movement: comes or goes
    - how: level, presence, gradual, ...; ratio: its change, None for what came or went
    - contribution: its change as a part of the step
    """

    movement: str
    version: str
    direction: str
    how: str
    kind: str
    metric: str
    name: str
    input_shapes: str
    part: str
    step_kind: str
    ratio: float | None
    contribution: float
    state: str
    configuration: str
    device: str


class TriedThresholds(Struct, frozen=True, eq=False):
    """What other limits would make of the stored runs. `moved`: the findings that would come or go with the
    fields of `MovedFinding`; `stay`: how many stay; `versions`: that were judged again in memory.
    """

    moved: Columns
    stay: int
    versions: int
    notes: tuple[str, ...] = ()


class TriedRatio(Struct, frozen=True, kw_only=True):
    """The false verdicts of the series of a kind with a smallest change that counts (0.03 = 3 %).

    - tested: how many series, in the mean of the splits
    - false_share: of those that are tested; mean_false, worst_false: of a split; splits_with_false: of all splits
    - windows_false: of all windows of neighbouring runs together
    """

    kind: str
    min_ratio: float
    splits: int
    tested: float
    false_share: float | None
    mean_false: float
    worst_false: int
    splits_with_false: int
    windows_false: int


class ProposedRatio(Struct, frozen=True, kw_only=True):
    """The smallest change that is proposed for a kind of series.

    - series: how many there are
    - used_ratio: in use, with its false verdicts per split (used_false) and their share (used_share)
    - proposed_ratio: from which on there is at most one false verdict in the mean; None: none that was tried
    """

    device: str
    kind: str
    series: int
    used_ratio: float
    used_false: float
    used_share: float | None
    proposed_ratio: float | None


class SeriesPower(Struct, frozen=True, kw_only=True):
    """The smallest change of a series that is found.

    - share: of the step; nan for what is no time, which is None in a table
    - runs: of a version, against the 8 runs before it
    - detectable: found in four of five cases, a ratio; nan, None in a table: so few decide nothing
    """

    series_id: int
    kind: str
    metric: str
    name: str
    input_shapes: str
    part: str
    share: float | None
    runs: int
    detectable: float | None


class CalibrationSuspect(Struct, frozen=True, kw_only=True):
    """A suspect of the newest version of the track.

    - contribution: its change as a part of the step; runs: of its version
    - more_runs: how many more runs like its own would decide; None: more than 16
    """

    series_id: int
    kind: str
    metric: str
    name: str
    input_shapes: str
    part: str
    version: str
    change: float
    contribution: float
    runs: int
    more_runs: int | None


class NoisySeries(Struct, frozen=True, kw_only=True):
    """A series that varies much.

    - value: geometric mean per step in unit (ns, bytes, per_second)
    - share: of the step; nan for what is no time, which is None in a table
    - spread: standard deviation of the logs without what all operators of a run share
    """

    series_id: int
    kind: str
    metric: str
    unit: str
    name: str
    input_shapes: str
    part: str
    value: float
    share: float | None
    spread: float


class CalibrationRows(Struct, frozen=True, kw_only=True):
    """The rows of each table of `Calibration`."""

    ratios: tuple[TriedRatio, ...] = ()
    proposals: tuple[ProposedRatio, ...] = ()
    power: tuple[SeriesPower, ...] = ()
    suspects: tuple[CalibrationSuspect, ...] = ()
    series: tuple[NoisySeries, ...] = ()


class CalibrateOptions(Options, frozen=True, kw_only=True):
    """Which repeats, and in how many ways they are split. `device`: part of vendor and model."""

    workload: Annotated[str | None, WORKLOAD] = None
    device: Annotated[str | None, DEVICE] = None
    splits: Annotated[int, Option("Random splits of the runs, at most.", "N", least=1)] = 100
    noisiest: Annotated[int, Option("Series to list, the noisiest first.", "N", least=0)] = 10


class Calibration(Result, frozen=True, eq=False, dict=True):
    """What is found among repeats between which nothing changed. `rows`: of each table; what its columns mean stands
    with its row: `TriedRatio`, `ProposedRatio`, `SeriesPower`, `CalibrationSuspect`, `NoisySeries`. `tables`: the same
    as columns; `found.ratios` and all other names are the same as frames.

    - ratios: per kind of series and smallest change that counts, the false verdicts of a split
    - proposals: per kind the smallest change in use, and the one that is proposed
    - power: of the step and of the largest operators, what versions of few runs show
    - suspects: of the newest version of the track
    - series: the noisiest ones
    - baseline, candidate: runs on either side of a split; windows, splits: how many of each kind were made
    """

    word: ClassVar[str] = "calibration"
    printed_by: ClassVar[str] = "tracker calibrate VERSION"
    json_fields: ClassVar[tuple[str, ...]] = (
        "workload", "configuration", "device", "versions", "run_ids", "baseline", "candidate", "windows", "splits",
        "options", "notes",
    )  # fmt: skip

    rows: CalibrationRows
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

    @cached_property
    def tables(self) -> Mapping[str, Columns]:
        """The rows of each table as columns, by name."""
        return columns_of_rows(self.rows)

    @property
    def headline(self) -> str:
        """The workload, the device, and on how many runs it rests."""
        return f"{self.workload} on {self.device}: {counted(len(self.run_ids), 'repeated run')}"
