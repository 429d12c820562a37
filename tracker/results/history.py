"""A workload over its versions: series with their verdicts, and what each version reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Struct, field

from tracker.columns import Columns
from tracker.results.budgets import JudgedBudget
from tracker.results.options import CONFIG, DEVICE, OUTPUT, ROWS, SIDES, WORKLOAD, Option, Options
from tracker.results.screens import Result, frames
from tracker.schema.series import SERIES_KINDS as SERIES_KINDS  # noqa: PLC0414 words of an option
from tracker.units import counted

__all__ = ["HISTORY_COLUMNS", "SERIES_KINDS", "History", "HistoryOptions"]


class FollowedSeries(Struct, frozen=True, kw_only=True):
    """A series that is followed: a number of the whole run, or of what a name stands for, in one track.

    - metric, unit: of its values: ns, bytes or per_second
    - part: what tells it from others of its name; step_kind: of which steps it is, "" for all
    - versions, runs: how many have it
    """

    series_id: int
    workload: str
    configuration: str
    device: str
    kind: str
    metric: str
    unit: str
    name: str
    input_shapes: str
    part: str
    step_kind: str
    versions: int
    runs: int


class HistoryPoint(Struct, frozen=True, kw_only=True):
    """A series in one version. What is judged is None where nothing was.

    - commit, note: of the version; note: of its runs, too
    - value, calls: geometric mean of its runs, per step, None where no run has it; minimum, maximum: of its runs
    - level_version: with which the level began that it was judged against, "" for the first one
    - change: ratio against the newest 8 runs of that level; judged_change: without what all operators of a run share,
      by which the verdict is
    - contribution: share of the step
    - verdict, reason: words of the judge
    - since: an older version with which the change began, of a version of one run that others decided
    - decided_by: the version whose runs decided
    - change_point: a level begins with this version
    - back_to: the version that began the older level to which it came back
    - gradual_change: of a gradual slowdown that was found in it, against the first runs of the level
    - facts: what changed for certain, as text
    - pinned_change: against the pinned version; pinned_verdict: against it, where `options.against` asks for it
    - environment: what else changed here, as text
    - machine: what slowed its runs down, as text, such as `held by power in 2 of 3 runs`
    """

    series_id: int
    version: str
    pinned: bool
    commit: str | None
    note: str | None
    runs: int
    value: float | None
    minimum: float | None
    maximum: float | None
    calls: float | None
    level_version: str | None = None
    change: float | None = None
    judged_change: float | None = None
    q: float | None = None
    contribution: float | None = None
    verdict: str | None = None
    reason: str | None = None
    since: str | None = None
    decided_by: str | None = None
    change_point: bool = False
    back_to: str | None = None
    gradual_change: float | None = None
    facts: str = ""
    pinned_change: float | None = None
    pinned_verdict: str | None = None
    environment: str = ""
    machine: str = ""


class RunOfPoint(Struct, frozen=True, kw_only=True):
    """A series in one active run.

    - value, calls: over the steps of the run; minimum, maximum: of these
    - rank_spread: largest - smallest rank of a stage, as a fraction of their median; None: one rank
    - steps: how many the value is of
    - intermittent: whether most steps lack it, so that the value is the mean
    """

    series_id: int
    version: str
    run_id: int
    started_at_ns: int | None
    value: float | None
    minimum: float | None
    maximum: float | None
    calls: float | None
    rank_spread: float | None
    steps: int | None
    intermittent: bool | None


class ChangedInVersion(Struct, frozen=True, kw_only=True):
    """A fact that differs between a version and the one before.

    - before, after: None where one does not say
    """

    workload: str
    configuration: str
    device: str
    version: str
    key: str
    before: str | None
    after: str | None


HISTORY_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "series": FollowedSeries.__struct_fields__,
    "points": HistoryPoint.__struct_fields__,
    "runs": RunOfPoint.__struct_fields__,
    "environment": ChangedInVersion.__struct_fields__,
}


class HistoryOptions(Options, frozen=True):
    """Which series to show; None is no limit. `device`: part of vendor and model.

    Of an op with `shape`, the series are those of ops with shapes; a module is a series of its own.
    """

    key: Annotated[
        str | None,
        Option(
            "What to follow: a name such as aten::addmm, step, 'idle time' or all_reduce; a pattern such as "
            "'aten::*norm*'; or the number of a series. Default: step.",
            "KEY",
            positional=True,
            offers="series",
        ),
    ] = None
    workload: Annotated[str | None, WORKLOAD] = None
    kind: Annotated[
        str | None,
        Option(
            "Kind of series: run (step, compute, idle time, peak memory, throughput, ...), op_name (all shapes of an "
            "op together), op (one per input shapes), ... Default: the first with this key; of a pattern and of --top: "
            "run, and the first of the others.",
            group=ROWS,
            words=SERIES_KINDS,
        ),
    ] = None
    metric: Annotated[
        str | None,
        Option("Which number, where a key has several, such as exposed_ns. Default: all.", "NAME", group=ROWS),
    ] = None
    shape: Annotated[
        str | None, Option("Only ops or kernels with these input shapes. Default: all.", "PATTERN", group=ROWS)
    ] = None
    module: Annotated[
        str | None, Option("The time in modules with this path, instead of a key.", "PATTERN", group=ROWS)
    ] = None
    device: Annotated[str | None, DEVICE] = None
    config: Annotated[Mapping[str, str], CONFIG] = field(default_factory=dict)
    top: Annotated[
        int | None,
        Option(
            "The N series that changed most since the pinned version, instead of a key: of the step, its parts, peak "
            "memory and operators, or of --kind.",
            "N",
            group=ROWS,
            least=1,
        ),
    ] = None
    against: Annotated[
        Literal["level", "pinned"],
        Option("pinned: also judge each version against the pinned one.", group=SIDES, what="reference"),
    ] = "level"
    last: Annotated[int | None, Option("Only the newest N versions. Default: all.", "N", least=1)] = None
    from_version: Annotated[
        str | None,
        Option("Only this version and later ones. Default: all.", "VERSION", name="--from", offers="version"),
    ] = None
    to_version: Annotated[
        str | None,
        Option("Only this version and earlier ones. Default: all.", "VERSION", name="--to", offers="version"),
    ] = None
    x_axis: Annotated[
        Literal["version", "date"],
        Option("Charts: one step per version, or by the date of its first run.", group=OUTPUT, what="axis"),
    ] = "version"
    y_axis: Annotated[
        Literal["fit", "zero", "change"],
        Option(
            "Charts: as far as the values reach, from zero, or the change of each series since its first value.",
            group=OUTPUT,
            what="axis",
        ),
    ] = "fit"


class History(Result, frozen=True, eq=False):
    """Series over versions. `tables`: the rows of each table of HISTORY_COLUMNS, with exactly these columns;
    `found.points` and all other names are the same as frames of pandas. What the columns mean stands with the rows:
    `FollowedSeries`, `HistoryPoint`, `RunOfPoint`, `ChangedInVersion`.

    - series: what is followed: whole runs, then the largest first, or the most changed first
    - points: one row per series and version in their order
    - runs: one row per series and active run: its number, and over its steps minimum and maximum
    - environment: facts that differ between a version and the one before
    - pinned: the pinned version, None: there is none
    - budgets: how the newest versions came out by the budgets of the settings on these series; of mfu beside the step
    - earlier: points before the versions that `options` choose, from which the changes of the first ones are read
    - overview: of a single series of which `options` choose a part, all versions with their values; else empty
    - incidents: a series and a version with which a change of it began -> the number of the incident
    """

    word: ClassVar[str] = "history"
    printed_by: ClassVar[str] = "tracker history KEY"
    json_fields: ClassVar[tuple[str, ...]] = ("pinned", "options", "notes", "budgets")

    tables: Mapping[str, Columns]
    pinned: str | None
    options: HistoryOptions = field(default_factory=HistoryOptions)
    notes: tuple[str, ...] = ()
    earlier: Columns | None = None
    budgets: tuple[JudgedBudget, ...] = ()
    overview: tuple[tuple[str, float | None], ...] = ()
    incidents: Mapping[tuple[int, str], int] = field(default_factory=dict)

    series, points, runs, environment = frames(4)

    @property
    def headline(self) -> str:
        """What was asked for, and how many series and versions there are."""
        versions = {*self.tables["points"].listed("version")}
        count = len(self.tables["series"])
        return f"{self.options.key or 'series'}: {count} series over {counted(len(versions), 'version')}"
