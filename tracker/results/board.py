"""Where every workload stands this morning: the content of `tracker board`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from msgspec import field

from tracker.results.budgets import JudgedBudget
from tracker.results.options import DEVICE, SIDES, WORKLOAD, Option, Options
from tracker.results.screens import Frame, Result
from tracker.results.waiting import WAITING_COLUMNS
from tracker.units import counted

if TYPE_CHECKING:
    from tracker.columns import Columns

__all__ = ["BOARD_COLUMNS", "Board", "BoardOptions"]

BOARD_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "lines": (
        "workload", "configuration", "device", "version", "version_runs", "runs", "last_run_id", "last_run_ns",
        "step_ns", "step_verdict", "may_be_host", "may_be_throttled", "step_change", "accepted", "lacks_runs",
        "lacks_base_runs",
        "previous_change", "good_version", "good_change", "pinned_version", "pinned_change",
        "peak_allocated_bytes", "new", "open", "suspects", "muted", "incident_id", "step_kind",
        "judged_series", "expected_series", "coverage", "so_far",
    ),
    "points": ("line", "version", "step_ns", "runs", "verdict", "reason"),
    "late": ("workload", "folder", "every_ns", "last_ns", "due_ns"),
    "waiting": WAITING_COLUMNS,
}  # fmt: skip


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


class Board(Result, frozen=True, eq=False):
    """Every track (workload, configuration and device), worst first. NA is not known.

    - lines: its newest version with so many runs (`version_runs`), all active `runs`, the last run (started_at, ns
      UTC); step_ns: geometric mean of the runs, the span of device activity where no step is known; step_verdict of the
      newest version; step_change: the change that it rests on; accepted: whether a user expects that change;
      may_be_host, may_be_throttled: whether another host, or a clock that was held down, may be all of a regression of
      the step that is new or open;
      lacks_runs, lacks_base_runs: how many more runs, of the version and before it, would decide it; so_far: how many
      of the usual runs came, in words, as long as more may come, else "".
      previous_change: to the version before, a ratio; good_change: to the level before the oldest open regression of
      the step, whose newest version is good_version, NA without one; pinned_change: to the pinned version.
      peak_allocated_bytes: of the newest version. new, open, suspects, muted: regressions by their state, as
      findings counts them; incident_id: of the first of them there. judged_series of expected_series: as findings has
      them; coverage: that in words
    - points: the step of the last versions of each line, by its place in `lines`, with its verdict and the code of the
      reason of that
    - late: workloads ("": any) of which a watcher expects a run in a folder every `every_ns`, and none came since
      `last_ns` (NA: none ever did), so that one was due at `due_ns`, ns UTC
    - missing: sentences on workloads that did not run in the newest version
    - budgets: how the newest versions came out by the budgets of the settings
    - partial: sentences on newest versions that lost records, or have records that cannot be
    - waiting: runs that are not judged, since fewer `ranks` came than `ranks_awaited`: not yet, or no more came for as
      long as a run waits (`is_over`); step_ns: of those that came
    """

    word: ClassVar[str] = "board"
    printed_by: ClassVar[str] = "tracker board"
    json_fields: ClassVar[tuple[str, ...]] = ("headline", "options", "partial", "missing", "budgets")

    tables: Mapping[str, Columns]
    options: BoardOptions = field(default_factory=BoardOptions)
    partial: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    budgets: tuple[JudgedBudget, ...] = ()

    lines = Frame()
    points = Frame()
    late = Frame()
    waiting = Frame()

    @property
    def headline(self) -> str:
        """How many workloads have new or open regressions."""
        lines = self.tables["lines"]
        counts = {name: sum(1 for count in lines.listed(name) if count) for name in ("new", "open", "suspects")}
        what = [
            f"{count} with {word}"
            for count, word in zip(counts.values(), ("new regressions", "open regressions", "suspects"), strict=True)
            if count
        ]
        if not len(lines):
            is_narrowed = self.options.device is not None or self.options.owner is not None
            return "no workload fits these filters" if is_narrowed else "no runs yet"
        workloads = len({*lines.listed("workload")})
        total = counted(workloads, "workload")
        if len(lines) > workloads:
            total += f", {len(lines):,} with each configuration and device"
        return f"{total}: {', '.join(what)}" if what else f"{total}, no open regression"
