"""The versions of a workload, and what each reached: the content of `tracker log`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, Final

from msgspec import Struct

from tracker.columns import Columns
from tracker.results.options import LogOptions
from tracker.results.screens import Result, columns_of_rows, frames, kinds_of_rows
from tracker.units import counted

__all__ = ["LOG_COLUMNS", "Log"]


class LogVersionRow(Struct, frozen=True, kw_only=True):
    """A version.

    - ordinal: its place among the versions; pinned: 1 where it is the pinned one
    - direction: what kind of optimisation it is, as its runs say; without that, what the advice was about that it took
    - note: of the version and of its runs
    - machine: what slowed its runs down, as text
    - runs: how many are in the columns that are shown
    """

    version: str
    ordinal: int | None = None
    commit: str | None = None
    direction: str | None = None
    note: str | None = None
    machine: str | None = None
    pinned: int | None = None
    runs: int


class LogColumnRow(Struct, frozen=True, kw_only=True):
    """A column of the log that has cells: one measure of one configuration on one device, measured in one way.

    - column: its number
    - title: all that makes the column, in words
    - measure: throughput, step, e2e or memory
    - unit: ns, bytes, or what is counted per second
    - scope: of a throughput `per rank`, `total`, or that it is not stated; "" where the job is one process
    - profiler: a key of PROFILERS
    - configuration: as text
    """

    column: int
    title: str
    measure: str
    unit: str
    scope: str
    profiler: str
    device: str
    configuration: str
    higher_is_better: bool


class LogCellRow(Struct, frozen=True, kw_only=True):
    """What a version reached in a column in which it has runs.

    - value: the geometric mean over `runs` of what a run reached, its sample, as in a diff; minimum, maximum: over runs
    - baseline_diff, previous_diff: against the baseline, and against the version before in this column
    - previous_version: that version
    - gain: how much faster than that one, in speed (a throughput, or 1 / time; smaller for memory)
    - expected: what the tag `expected` of the runs says; without one, what the advice that it took could win at most
    - expected_gain: that as a number, if it is one
    - verdict, judged_diff, reason: of the number against the level before, as `history` and `findings` have it; None:
      not judged
    """

    version: str
    column: int
    value: float
    runs: int
    minimum: float
    maximum: float
    baseline_diff: float | None = None
    previous_diff: float | None = None
    previous_version: str | None = None
    gain: float | None = None
    expected: str | None = None
    expected_gain: float | None = None
    verdict: str | None = None
    judged_diff: float | None = None
    reason: str | None = None


class LogDirectionRow(Struct, frozen=True, kw_only=True):
    """What the versions of a direction gained together in a column.

    - versions: how many they are
    - gain: of all of them; speeds multiply
    """

    direction: str
    column: int
    versions: int
    gain: float


class LogAdviceRow(Struct, frozen=True, kw_only=True):
    """Advice that came with a version, or was taken by it: it is gone, and the step is shorter.

    - status: new, grown or taken
    - expected_ns: what it could win of a step at most
    - realised_ns: what the step won, by all that the version changed; None for what was not taken
    """

    version: str
    device: str
    configuration: str
    status: str
    rule: str
    family: str
    title: str
    expected_ns: float | None
    realised_ns: float | None


class LogRows(Struct, frozen=True, kw_only=True):
    """The rows of each table of `Log`, in the order in which they are shown."""

    versions: tuple[LogVersionRow, ...] = ()
    columns: tuple[LogColumnRow, ...] = ()
    cells: tuple[LogCellRow, ...] = ()
    directions: tuple[LogDirectionRow, ...] = ()
    advice: tuple[LogAdviceRow, ...] = ()


LOG_COLUMNS: Final = {name: kind.__struct_fields__ for name, kind in kinds_of_rows(LogRows).items()}
"""The columns of each frame of `Log`, in order; the rows say what they mean."""


class Log(Result, frozen=True, eq=False, dict=True):
    """The versions of a workload in their order, and what each reached in each column.

    `rows`: of each table; what its columns mean stands with its row: `LogVersionRow`, `LogCellRow`, ... `found.cells`
    and all other names are the same as frames of pandas. A column is one measure of one configuration on one device,
    with or without a profiler: these are never mixed.
    """

    word: ClassVar[str] = "log"
    printed_by: ClassVar[str] = "tracker log"
    json_fields: ClassVar[tuple[str, ...]] = ("workload", "baseline", "options")

    workload: str
    baseline: str | None
    options: LogOptions
    rows: LogRows

    versions, columns, cells, directions, advice = frames(5)

    @cached_property
    def tables(self) -> Mapping[str, Columns]:
        """The rows of each table as columns, by name."""
        return columns_of_rows(self.rows)

    @property
    def headline(self) -> str:
        """The workload, and how many versions and columns there are."""
        versions, columns = counted(len(self.rows.versions), "version"), counted(len(self.rows.columns), "column")
        return f"{self.workload}: {versions}, {columns}"
