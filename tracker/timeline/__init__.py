"""Event columns of one rank -> rows: steps, op trees, links, unions, breakdown, categories, canonical names.

The one place where the meaning of the numbers is computed. Knows neither file formats nor the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from statistics import median
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.columns import Columns
from tracker.profile import (
    AS_WINDOWS,
    CHECK_RULES,
    CHECK_SETTING,
    IDLE_SETTING,
    MARKERS_SETTING,
    MISSING,
    OWNER_RULES,
    OWNER_SETTING,
    ROW_COLUMNS,
    STEP_RULES,
    STEP_SETTING,
    Breakdown,
    Capture,
    Events,
    Rows,
    StepRow,
    Table,
)
from tracker.profile.loader_names import idle_rules_of
from tracker.schema.column_names import START_NS
from tracker.timeline import checks, hccl_kernels, stacks
from tracker.timeline.api import api_table
from tracker.timeline.beside import Beside
from tracker.timeline.breakdown import breakdowns, host_calls
from tracker.timeline.calls import WantedCalls, list_calls
from tracker.timeline.categories import CATEGORIES
from tracker.timeline.checks import Checked
from tracker.timeline.communication import communication_tables
from tracker.timeline.contexts import context_work, op_tree_table
from tracker.timeline.counters import counter_table
from tracker.timeline.defects import Lost
from tracker.timeline.idle import explain_idle, stated_idle_table
from tracker.timeline.idle_gaps import find_gaps
from tracker.timeline.joined import Joined, bounds_of, join
from tracker.timeline.kernels import kernel_tables
from tracker.timeline.memory import blocks_of, largest_table, memory_tables
from tracker.timeline.memory_course import memory_curve
from tracker.timeline.memory_peak import peak_table
from tracker.timeline.named import named
from tracker.timeline.names import RULES_VERSION, canonical_name
from tracker.timeline.operator_names import name_operators_of_rows
from tracker.timeline.ops import op_table
from tracker.timeline.queue import queue_table
from tracker.timeline.stacks import Begun, OpStacks
from tracker.timeline.windows import take_markers

__all__ = [
    "CATEGORIES", "RULES_VERSION", "WantedCalls", "build", "calls_of", "canonical_name", "join_checked", "rows_of",
]  # fmt: skip

_AS_LONG: Final = 0.01
"""By how much windows and markers of steps may differ that stand for each other, as a share."""
LARGEST_SUM = 2.0**60
"""Of times (36 years, in ns) and bytes of one rank."""


def build(capture: Capture, threads: int = 1, loader_names: Sequence[str] = ()) -> Capture:
    """The capture with its events summed to rows and dropped, on so many threads. `loader_names`: of a team's own data
    loaders, see `is_loader`.

    One that has rows already keeps them; only canonical names and categories of kernels are filled in where empty, and
    operators get the names that make their keys.
    """
    if capture.rows is not None:
        _check(_sums_of_rows(capture.rows))
        rows = named(name_operators_of_rows(capture.rows))
        return capture if rows is capture.rows else replace(capture, rows=rows)
    if capture.events is None:
        raise ValueError("a capture holds events or rows; this one holds neither")
    _check(_sums_of_events(capture.events))
    settings = dict(capture.settings)
    if len(capture.events.allocations):
        settings[OWNER_SETTING] = OWNER_RULES
    if len(capture.events.markers) and len(capture.events.device):
        settings[STEP_SETTING] = STEP_RULES
    settings[CHECK_SETTING] = CHECK_RULES
    settings[IDLE_SETTING] = idle_rules_of(loader_names)
    checked = checks.check_times(capture.events)
    if checked.defects or checked.cut.any():
        capture = _with_bounds(capture, checked.events)
    started_ns = _started_ns(capture)
    rows, lost = _rows_and_lost(checked, started_ns, threads, loader_names)
    if _are_as_windows(rows.steps):
        settings[MARKERS_SETTING] = AS_WINDOWS
    defects = (*checked.defects, *lost.defects)
    built = replace(capture, rows=rows, events=None, settings=settings)
    return checks.describe(built, defects, has_markers=lost.has_markers)


def calls_of(capture: Capture, wanted: WantedCalls, loader_names: Sequence[str] = ()) -> Columns:
    """Return the single calls that the rows of a capture with events add up, see `list_calls`; their times count from
    the start of the capture. `loader_names`: as of `build`.
    """
    if capture.events is None:
        raise ValueError("a capture without events has no single calls")
    checked = checks.check_times(capture.events)
    if checked.defects or checked.cut.any():
        capture = _with_bounds(capture, checked.events)
    joined, _ = join_checked(checked, loader_names)
    started_ns = _started_ns(capture)
    return list_calls(joined, wanted, joined.first_ns if started_ns is None else started_ns)


def _started_ns(capture: Capture) -> int | None:
    """Return the start of the capture on the clock of its events, None where that is not known."""
    return None if capture.started_at_ns is None else capture.started_at_ns - capture.clock_zero_ns


def _with_bounds(capture: Capture, events: Events) -> Capture:
    """The capture from the first to the last of these events, where its clock is known."""
    if capture.started_at_ns is None:
        return capture
    first_ns, last_ns = bounds_of(events)
    zero_ns = capture.clock_zero_ns
    return replace(capture, started_at_ns=zero_ns + first_ns, ended_at_ns=zero_ns + last_ns)


def _sums_of_events(events: Events) -> Iterator[float]:
    """What the times and bytes of the events add up to, without wrapping."""
    for table in (events.ops, events.launches, events.device, events.extras.collective_tasks):
        yield float((table.end_ns - table.start_ns).sum(dtype=np.float64))
    extras = events.extras
    times, links = extras.collective_times, extras.collective_links
    columns = [times.transit_ns, times.wait_ns, times.synchronization_ns, times.idle_ns, links.transit_ns, links.bytes]
    columns += [events.device.wait_ns, events.device.bytes, events.collectives.bytes, events.allocations.bytes]
    yield from map(_sum, (*columns, extras.api_totals.total_ns))


def _sums_of_rows(rows: Rows) -> Iterator[float]:
    for name, kinds in ROW_COLUMNS.items():
        for column, kind in kinds.items():
            if kind in ("ns", "bytes"):
                yield _sum(np.asarray(rows.tables[name][column]))


def _sum(values: NDArray[np.int64]) -> float:
    return float(np.abs(values[values != MISSING], dtype=np.float64).sum())


def _check(sums: Iterable[float]) -> None:
    """OverflowError where 64 bits do not hold one of the sums."""
    if max(sums, default=0.0) >= LARGEST_SUM:
        raise OverflowError("its times or bytes add up to more than 64 bits hold")


def rows_of(events: Events, started_ns: int | None = None, threads: int = 1, loader_names: Sequence[str] = ()) -> Rows:
    """The rows of one rank: its breakdown, its steps, every table of ROW_COLUMNS. The order of events never matters.

    `started_ns`: the start of the capture on the clock of the events, from which collective calls count; None: the
    first event. `loader_names`: as of `build`.

    Equal spans on one thread are the exception: of those the earlier row is the outer one.
    """
    return _rows_and_lost(checks.check_times(events), started_ns, threads, loader_names)[0]


def _are_as_windows(steps: Sequence[StepRow]) -> bool:
    """Return whether the steps, windows of the device, are as long as their markers, to 1 %, by their medians."""
    both = [(row.breakdown.duration_ns, row.marker_ns) for row in steps]
    windows_ns = [window_ns for window_ns, marker_ns in both if window_ns and marker_ns]
    markers_ns = [marker_ns for window_ns, marker_ns in both if window_ns and marker_ns]
    if not windows_ns:
        return False
    return abs(median(windows_ns) / median(markers_ns) - 1) <= _AS_LONG


def _rows_and_lost(
    checked: Checked, started_ns: int | None, threads: int, loader_names: Sequence[str]
) -> tuple[Rows, Lost]:
    """The rows of one rank as far as its records reach, and what the checks found of them."""
    with ExitStack() as stack:
        begun = stacks.begin(checked.events, stack)
        called_from = begun.stacks
        joined, lost = join_checked(checked, loader_names)
        beside = Beside(joined.events, threads, stack)
        # what takes longest is begun first, so that no thread is left alone with it in the end
        idle = beside.begin(_breakdowns_and_idle, joined, begun)
        ops = beside.begin(_op_tables, joined, called_from)
        memory = beside.begin(_memory_tables, joined, called_from)
        device = beside.begin(kernel_tables, joined)
        host = beside.begin(_host_tables, joined)
        communication = communication_tables(joined)
        calls, groups = communication.pop("collective_calls"), communication.pop("groups")
        begun_ns = np.asarray(calls[START_NS]) - (joined.first_ns if started_ns is None else started_ns)
        kernels = device()
        overall, steps, idle_rows = idle()
        tables: dict[str, Table] = {
            "op_key": _op_key_table(joined),
            "kernel_key": kernels.keys,
            "kernel": kernels.rows,
            "kernel_metric": kernels.metrics,
            "idle": idle_rows,
            **communication,
            **host(),
            **memory(),
            **ops(),
        }
    kept = {name: tables[name] for name in ROW_COLUMNS}
    rows = Rows(overall, steps, kept, {**calls, "start_ns": begun_ns}, groups, joined.other_threads_ns)
    return rows, lost


def join_checked(checked: Checked, loader_names: Sequence[str]) -> tuple[Joined, Lost]:
    """Return the joined events that rows are made of, as far as the records reach, and what the checks found."""
    joined = join(checked.events, loader_names)
    lost = checks.check_join(joined, checked)
    # the profiler's own tables, against which kernels are checked, may count those of HCCL
    counted_once = checks.leave_out_steps(_count_collectives_once(checked.events), lost)
    if counted_once is not checked.events:
        joined = join(counted_once, loader_names)
    if lost.has_markers:
        joined = replace(joined, windows=take_markers(joined.windows, counted_once.markers))
    return joined, lost


def _count_collectives_once(events: Events) -> Events:
    """Return the events without the kernels of HCCL that are a second record of a collective."""
    collective_of = hccl_kernels.find_collectives(events)
    repeated = collective_of >= 0
    if not repeated.any():
        return events
    return checks.take_device_events(hccl_kernels.hand_over_launches(events, collective_of), ~repeated)


def _op_tables(joined: Joined, called_from: Callable[[], OpStacks]) -> dict[str, Table]:
    work = context_work(joined)
    return {"op_tree": op_tree_table(joined, work), "op": op_table(joined, work, called_from())}


def _memory_tables(joined: Joined, called_from: Callable[[], OpStacks]) -> dict[str, Table]:
    blocks = blocks_of(joined)
    return {
        **memory_tables(joined, blocks),
        "memory_curve": memory_curve(joined),
        "memory_peak": peak_table(joined, blocks, called_from()),
        "memory_block": largest_table(joined, blocks, called_from()),
    }


def _host_tables(joined: Joined) -> dict[str, Table]:
    return {"counter": counter_table(joined), "api": api_table(joined), "queue": queue_table(joined)}


def _breakdowns_and_idle(joined: Joined, begun: Begun) -> tuple[Breakdown, tuple[StepRow, ...], Table]:
    gaps = find_gaps(joined, host_calls(joined))
    if gaps is None:
        overall, steps = breakdowns(joined, None, None)
        return overall, steps, stated_idle_table(steps if joined.on_device else ())
    frames = begun.take_frames() if len(joined.events.frames) else None
    idle = explain_idle(joined, gaps, frames)
    overall, steps = breakdowns(joined, gaps, idle.loading)
    return overall, steps, idle.table


def _op_key_table(joined: Joined) -> Table:
    keys = joined.keys
    return {
        "name": keys.name,
        "input_shapes": keys.input_shapes,
        "input_types": keys.input_types,
        "module": keys.module,
        "phase": keys.phase,
    }
