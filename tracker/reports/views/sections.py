"""What the sections of a diff and of a run share: columns, links, and why a table has no rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec.structs import replace

from tracker.reports.cells import READABLE, UNSAID, blank, col, group_words, number, of
from tracker.reports.document import NAME, PLACE, UNDER, Column, Table, Target
from tracker.results import Selection
from tracker.results.diff_rows import CollectiveChange
from tracker.results.sections import SECTION
from tracker.results.shown_rows import CollectiveRow, SplitRow, StepOfRankRow, TreeRow

if TYPE_CHECKING:
    from tracker.columns import Columns

RowKind = TypeVar("RowKind")
SIDES: Final = ("baseline", "candidate")
_OF_TASKS: Final = "tasks"
COLLECTIVE_PARTS: Final[Mapping[str, Column]] = {
    "transit_ns": Column("transit", drop=2), "wait_ns": Column("wait", drop=1),
    "synchronization_ns": Column("sync", drop=3), "idle_ns": Column("idle", drop=1),
}  # fmt: skip
"""Parts of the time of a collective that profilers, or all ranks of a group, tell apart. Where there is no room: how
long a collective stood still says more than how long it worked.
"""
SERIES_OF_RUN: Final[Mapping[str, str]] = {
    "step_ns": "step", "e2e_ns": "e2e", "compute_ns": "compute", "idle_ns": "idle time",
    "exposed_communication_ns": "exposed communication", "exposed_copy_ns": "exposed copy",
    "data_loading_ns": "data loading",
    "peak_allocated_bytes": "peak memory",
}  # fmt: skip
"""Row of the overall table -> the series of whole runs that follows it."""


def collective_parts(words: Collection[str | None]) -> Mapping[str, Column]:
    """Return the columns of the parts of collectives, whose `split_by` are these words.

    Where tasks tell the waiting, each part is named by its source: the profiler's own numbers are no parts of that.
    """
    if _OF_TASKS not in words:
        return COLLECTIVE_PARTS
    named = dict(COLLECTIVE_PARTS)
    if {word for word in words if word} == {_OF_TASKS}:
        for name in ("transit_ns", "wait_ns"):
            named[name] = replace(named[name], header=f"{named[name].header} (tasks)")
    for name in ("synchronization_ns", "idle_ns"):
        named[name] = replace(named[name], header=f"{named[name].header} (profiler)")
    return named


def through(op: str | None, allocator: str | None, more_allocators: float | None = None) -> str:
    """Return the helper that allocated for `op`, and how many others did; "" where it is the op itself."""
    more = f" and {number(more_allocators)} more" if more_allocators else ""
    return "" if not allocator or (allocator == op and not more) else f"{allocator}{more}"


def _group(row: CollectiveRow | CollectiveChange) -> str:
    return group_words(row.group_role, row.group_size, row.data_type, row.size_class_bytes)


OPERATOR: Final = col("operator", "name", **NAME)
SHAPES: Final = col("input shapes", "input_shapes", blank, **UNDER)
MODULE: Final = col("module", form=blank, **UNDER)
CODE: Final = col("code", "code_line", blank, **PLACE)
WHY_IDLE: Final = (
    Column("why the device idles", of("cause"), left=True), Column("place", of("place", blank), **NAME),
)  # fmt: skip
COLLECTIVE: Final = (col("communication", "kind", **NAME), Column("group", _group, **UNDER))
"""Columns of several tables."""


def grain_of(row: SplitRow | StepOfRankRow | TreeRow) -> str:
    """Return of which rank and step a row is; "" where it is of all."""
    grains = [f"rank {number(row.rank)}"] if row.rank is not None else []
    if row.step is not None:
        grains.append(f"step {number(row.step)}")
    return ", ".join(grains)


def history_of(workload: str | None, name: str | None, *options: tuple[str, str]) -> Target | None:
    """Return the history of what has this name in a workload; none for stand-ins, and for files."""
    if name is None or name in READABLE or workload in (None, *UNSAID):
        return None
    return Target("history", (("KEY", name), *options, ("--workload", workload)))


def series_of(
    workload: str | None, name: Callable[[RowKind], str], *options: tuple[str, str]
) -> Callable[[RowKind], Target | None]:
    """Return what finds the history of what a row is about. `name`: what it calls that."""
    return lambda row: history_of(workload, name(row), *options)


def with_sums(found: Table, sums: Sequence[Sequence[str]]) -> Table:
    """Return the table with the first cells of lines that add up; as it is where it has no rows."""
    if not found.rows:
        return found
    lines = ((*line, *[""] * (len(found.columns) - len(line))) for line in sums)
    return replace(found, rows=(*found.rows, *lines), tones=(*found.tones, *["sum"] * len(sums)))


PRUNED: Final = "the details of the run were deleted (tracker prune)"
_FILTERS: Final = ("module", "op", "kind", "group", "ranks", "stage", "minimum_ns", "steps", "baseline_steps",
                   "candidate_steps")  # fmt: skip


def names_modules(modules: Columns) -> bool:
    """Return whether a row of the table of modules has a name: others hold what a phase does outside of modules."""
    return any(modules.listed("module"))


def in_section(found: list[Table], section: str, only: tuple[str, ...], chosen: Selection, pruned: bool) -> list[Table]:
    """Return the tables of a section that have rows.

    Where a reader chose the section, these are all of its tables, with a note on why one has no rows: filters can be a
    reason too, and that the details of the run were deleted (`pruned`).
    """
    kept = []
    for one in found:
        if one.rows:
            kept.append(replace(one, section=section))
        elif section in only:
            is_filtered = any(getattr(chosen, name, None) not in (None, ()) for name in _FILTERS)
            filtered = ", or --step and the filters let nothing through" if is_filtered else ""
            why = PRUNED if pruned else f"{SECTION[section].why_empty}{filtered}"
            kept.append(replace(one, section=section, note=f"no rows: {why}"))
    return kept
