"""Where every workload stands this morning: the content of `tracker board`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, ClassVar, Final

from msgspec import Struct, field

from tracker.columns import Columns
from tracker.results.budgets import JudgedBudget
from tracker.results.options import DEVICE, SIDES, WORKLOAD, Option, Options
from tracker.results.screens import Frame, Result, columns_of_rows
from tracker.results.verdicts import OTHER_HOST_CAUSE, THROTTLED_CAUSE
from tracker.results.waiting import WaitingRun
from tracker.units import format_diff

__all__ = ["Board", "BoardOptions"]

_NEEDS_USER: Final = ("new", "open", "acknowledged")
"""States of an incident with an open regression that no user muted."""
LEAST_SEEN_CHANGE: Final = 0.02
"""The least limit of a step (docs/judging.md): a smaller change that is not decided says nothing."""


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
    - incident_id, state: of the first of `incidents`; severity: of the loudest of them; None and "" for none
    - judged_series, expected_series, coverage: as `TrackStanding` has them
    - so_far: how many of the usual runs came, in words, as long as more may come
    - leading_cause, leading_label: what makes most of step_change while runs are lacking, as `TrackStanding` has them;
      else of its first incident
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
    state: str
    severity: str
    step_kind: str
    judged_series: int | None
    expected_series: int | None
    coverage: str
    so_far: str
    leading_cause: str
    leading_label: str

    @property
    def is_regressed(self) -> bool:
        """Whether a regression is new or open that no user muted, and no step that is not decided says more."""
        return self.state in _NEEDS_USER and not self.is_waiting

    @property
    def is_new(self) -> bool:
        """Whether that regression is new."""
        return self.is_regressed and self.state == "new"

    @property
    def other_causes(self) -> list[str]:
        """What may be all of an open regression beside the code."""
        causes = ((self.may_be_host, OTHER_HOST_CAUSE), (self.may_be_throttled, THROTTLED_CAUSE))
        return [cause for may_be, cause in causes if may_be]

    @property
    def is_waiting(self) -> bool:
        """Whether its newest version waits for runs that decide a change one can see, or a suspect."""
        is_known = self.state in _NEEDS_USER and self.severity != "info"
        if is_known or not self.lacks_runs + self.lacks_base_runs:
            return False
        return self.step_verdict == "SUSPECT" or abs(self.step_change or 0.0) >= LEAST_SEEN_CHANGE

    @property
    def since_good(self) -> float | None:
        """By how much the step changed since the level before its oldest open regression, or before the version."""
        return self.step_change if self.good_change is None else self.good_change


class BoardIncident(Struct, frozen=True, kw_only=True):
    """An incident with open regressions of a track.

    - line: the place of the track among the lines
    - version: in which it began
    - state: new, open, acknowledged or muted: that of the finding of it which needs a user most
    - is_of_step: whether the step itself is worse; step_change: by how much it changed with the version, as a ratio
    - name, change, ratio, unit: of its first finding, as `ListedFinding` has them
    - findings: how many no other one covers
    - leading_cause, leading_label: as `ListedIncident` has them
    """

    line: int
    incident_id: int
    version: str
    state: str
    is_of_step: bool
    step_change: float | None
    name: str
    change: str
    ratio: float | None
    unit: str
    findings: int
    leading_cause: str
    leading_label: str

    @property
    def size(self) -> str:
        """The change of its first finding: ADDED where that came with the version."""
        return "ADDED" if self.change == "presence" else format_diff(self.ratio)


class BoardBranch(Struct, frozen=True, kw_only=True):
    """The newest version of a branch, on one device and in one configuration.

    - workload: of the main line
    - against: the newest version of the main line whose runs its step is compared with, "" for none
    - step_change: the ratio of both; step_verdict: of it
    """

    workload: str
    branch: str
    configuration: str
    device: str
    version: str
    runs: int
    against: str
    step_change: float | None
    step_verdict: str | None


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
    incidents: tuple[BoardIncident, ...] = ()
    branches: tuple[BoardBranch, ...] = ()


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
    stands with its row: `BoardLine`, `BoardPoint`, `LateRun`, `WaitingRun`, `BoardIncident`, `BoardBranch`. `tables`:
    the same as columns; NA is not known.

    - lines: where each track stands
    - points: the step of the last versions of each line
    - late: runs that watchers wait for in vain
    - missing: sentences on workloads that did not run in the newest version
    - budgets: how the newest versions came out by the budgets of the settings
    - partial: sentences on newest versions that lost records, or have records that cannot be
    - waiting: runs that are not judged, since fewer ranks came than they should have
    - incidents: with open regressions; of each line what is new first, what is muted last, else as findings has them
    - branches: where each branch stands against its main line, the largest change first

    `page`: which part of the lines a server shows, None for all of them.
    """

    word: ClassVar[str] = "board"
    printed_by: ClassVar[str] = "tracker board"
    json_fields: ClassVar[tuple[str, ...]] = ("headline", "options", "partial", "missing", "budgets")

    rows: BoardRows
    options: BoardOptions = field(default_factory=BoardOptions)
    partial: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    budgets: tuple[JudgedBudget, ...] = ()
    page: int | None = None

    lines = Frame()
    points = Frame()
    late = Frame()
    waiting = Frame()
    incidents = Frame()
    branches = Frame()

    @cached_property
    def tables(self) -> Mapping[str, Columns]:
        """The rows of each table as columns, by name."""
        return columns_of_rows(self.rows)

    @property
    def headline(self) -> str:
        """The worst of what is new, with its cause, and how many tracks have something new, open or undecided."""
        lines = self.rows.lines
        if not lines:
            is_narrowed = self.options.device is not None or self.options.owner is not None
            if is_narrowed:
                return "no workload fits these filters"
            return "no run has all of its ranks yet" if self.rows.waiting else "no runs yet"
        return "; ".join(filter(None, (self._worst, self.counts)))

    @property
    def _worst(self) -> str:
        """What is new and worst, in a clause."""
        lines = self.rows.lines
        first = lines[0]
        incident = next((one for one in self.rows.incidents if one.line == 0), None)
        if incident is None or not first.is_new:
            is_open = any(line.is_regressed for line in lines)
            return "No new regression" if is_open else "No open regression"
        change = incident.step_change
        if incident.is_of_step and change:
            word = "slower" if change > 0 else "faster"
            what = f"{incident.version} is {format_diff(abs(change)).lstrip('+')} {word}"
            why = f": {incident.leading_cause}" if incident.leading_cause else ""
        else:
            what, why = f"{incident.version}: {incident.name} {incident.size}", ""
        doubt = ", ".join(f"maybe {cause}" for cause in first.other_causes)
        return f"{first.workload} {what}{why}{f' ({doubt})' if doubt else ''}"

    @property
    def counts(self) -> str:
        """How many tracks have something new, open, or wait for a run."""
        lines = self.rows.lines
        waiting = sum(line.is_waiting for line in lines)
        numbers = {
            "new": sum(line.is_new for line in lines),
            "open": sum(line.is_regressed and not line.is_new for line in lines),
            "waits for a run" if waiting == 1 else "wait for a run": waiting,
        }
        return ", ".join(f"{count:,} {word}" for word, count in numbers.items() if count)
