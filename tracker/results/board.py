"""Where every workload stands this morning: the content of `tracker board`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, ClassVar

from msgspec import Struct, field

from tracker.columns import Columns
from tracker.results.budgets import JudgedBudget
from tracker.results.options import DEVICE, SIDES, WORKLOAD, Option, Options
from tracker.results.screens import Frame, Result, columns_of_rows
from tracker.results.waiting import WaitingRun
from tracker.units import counted

__all__ = ["Board", "BoardOptions"]


class BoardLine(Struct, frozen=True, kw_only=True):
    """A track (workload, configuration and device).

    - version: its newest one; version_runs: the runs of it; runs: all active ones
    - last_run_id, last_run_ns: of the runs of the newest version the largest number, and when the last one started,
      UTC; None without a date
    - step_ns: geometric mean of the runs, the span of device activity where no step is known
    - step_verdict: of the newest version
    - step_change: from the step of the runs before to that of the newest version, a ratio, nothing removed
    - may_be_host, may_be_throttled: whether another host, or a clock that was held down, may be all of an open
      regression
    - accepted: whether a user accepted the change of the step that began with the newest version
    - lacks_runs, lacks_base_runs: how many more runs, of the version and before it, would decide it
    - previous_change: to the version before, as a ratio
    - good_change: to the level before the oldest open regression of the step, whose newest version is good_version;
      None without one, and where the newest number is of another host or of other work
    - pinned_change: to the pinned version
    - peak_allocated_bytes: of the newest version
    - new: regressions that the newest version decided; open: the other confirmed ones; suspects; muted: how many of new
      and open are muted
    - incident_id: of the first of these regressions, in the order of findings
    - judged_series, expected_series, coverage: as `TrackStanding` has them
    - so_far: how many of the usual runs came, in words, as long as more may come
    """

    workload: str
    configuration: str
    device: str
    version: str
    version_runs: int
    runs: int
    last_run_id: int
    last_run_ns: int | None
    step_ns: float | None
    step_verdict: str | None
    may_be_host: bool
    may_be_throttled: bool
    step_change: float | None
    accepted: bool
    lacks_runs: int
    lacks_base_runs: int
    previous_change: float | None
    good_version: str | None
    good_change: float | None
    pinned_version: str | None
    pinned_change: float | None
    peak_allocated_bytes: float | None
    new: int
    open: int
    suspects: int
    muted: int
    incident_id: int | None
    step_kind: str
    judged_series: int | None
    expected_series: int | None
    coverage: str
    so_far: str


class BoardPoint(Struct, frozen=True, kw_only=True):
    """The step of one of the last versions of a track.

    - line: the place of the track among the lines
    - verdict: of its step; reason: the code of why
    """

    line: int
    version: str
    step_ns: float | None
    runs: int
    verdict: str | None
    reason: str | None


class LateRun(Struct, frozen=True, kw_only=True):
    """A run that a watcher expects in a folder, and that did not come; times are UTC.

    - workload: "" for any
    - every_ns: how often one is expected; last_ns: when the last one came, None for never; due_ns: when it was due
    """

    workload: str
    folder: str
    every_ns: int
    last_ns: int | None
    due_ns: int


class BoardRows(Struct, frozen=True, kw_only=True):
    """The rows of each table of `Board`."""

    lines: tuple[BoardLine, ...] = ()
    points: tuple[BoardPoint, ...] = ()
    late: tuple[LateRun, ...] = ()
    waiting: tuple[WaitingRun, ...] = ()


class BoardOptions(Options, frozen=True, kw_only=True):
    """Which workloads stand on the board, and over how many versions."""

    workload: Annotated[str | None, WORKLOAD] = None
    device: Annotated[str | None, DEVICE] = None
    owner: Annotated[
        str | None,
        Option(
            "Only workloads with operators of this owner, a `who` of [[alerts.owners]] of the settings file. Default: "
            "any.",
            "NAME",
            group=SIDES,
        ),
    ] = None
    last: Annotated[int, Option("Versions in the course of the step.", "N", least=2)] = 30


class Board(Result, frozen=True, eq=False, dict=True):
    """Every track (workload, configuration and device), worst first. `rows`: of each table; what its columns mean
    stands with its row: `BoardLine`, `BoardPoint`, `LateRun`, `WaitingRun`. `tables`: the same as columns; NA is not
    known.

    - lines: where each track stands
    - points: the step of the last versions of each line
    - late: runs that watchers wait for in vain
    - missing: sentences on workloads that did not run in the newest version
    - budgets: how the newest versions came out by the budgets of the settings
    - partial: sentences on newest versions that lost records, or have records that cannot be
    - waiting: runs that are not judged, since fewer ranks came than they should have
    """

    word: ClassVar[str] = "board"
    printed_by: ClassVar[str] = "tracker board"
    json_fields: ClassVar[tuple[str, ...]] = ("headline", "options", "partial", "missing", "budgets")

    rows: BoardRows
    options: BoardOptions = field(default_factory=BoardOptions)
    partial: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    budgets: tuple[JudgedBudget, ...] = ()

    lines = Frame()
    points = Frame()
    late = Frame()
    waiting = Frame()

    @cached_property
    def tables(self) -> Mapping[str, Columns]:
        """The rows of each table as columns, by name."""
        return columns_of_rows(self.rows)

    @property
    def headline(self) -> str:
        """How many workloads have new or open regressions."""
        lines = self.rows.lines
        if not lines:
            is_narrowed = self.options.device is not None or self.options.owner is not None
            return "no workload fits these filters" if is_narrowed else "no runs yet"
        counts = {
            "new regressions": sum(1 for line in lines if line.new),
            "open regressions": sum(1 for line in lines if line.open),
            "suspects": sum(1 for line in lines if line.suspects),
        }
        what = [f"{count} with {word}" for word, count in counts.items() if count]
        workloads = len({line.workload for line in lines})
        total = counted(workloads, "workload")
        if len(lines) > workloads:
            total += f", {len(lines):,} with each configuration and device"
        return f"{total}: {', '.join(what)}" if what else f"{total}, no open regression"
