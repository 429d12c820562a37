"""How much of the time of collective calls no compute hides, and how much of that is waiting for other ranks."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.profile import I64, MISSING
from tracker.table import split_rows_by_value
from tracker.timeline.breakdown import device_unions, host_unions
from tracker.timeline.intervals import Spans, intersect, outside_ns, union
from tracker.timeline.joined import Joined
from tracker.timeline.wait_tasks import Waits


class CallSpans(Struct, frozen=True):
    """The spans of the calls: row of `communication`, and row of `Collectives` that tells of the call or -1."""

    row: I64
    start_ns: I64
    end_ns: I64
    collective: I64


class Exposure(Struct, frozen=True):
    """Columns of `communication`, and of each span the time that no compute of its step hides, or MISSING."""

    columns: dict[str, I64]
    of_spans: I64


def exposure_of(joined: Joined, calls: CallSpans, waits: Waits, step_of_row: I64) -> Exposure:
    """Columns `exposed_ns` and `exposed_wait_ns` of `communication`, given the step of each row.

    exposed: the calls of the row run and no compute does, whichever step launched it. exposed wait: of that, the time
    in the waiting tasks of the calls; where a profiler names no tasks, what it says of a call that is exposed as a
    whole and runs beside no other call of the row; MISSING where that does not tell it, and both where nothing is known
    of compute. Never more than exposed.
    """
    of_spans = np.full(len(calls.row), MISSING, dtype=np.int64)
    if joined.events.extras.only_collectives:
        unknown = np.full(len(step_of_row), MISSING, dtype=np.int64)
        return Exposure({"exposed_ns": unknown, "exposed_wait_ns": unknown.copy()}, of_spans)
    exposed = np.zeros(len(step_of_row), dtype=np.int64)
    waited = np.full(len(step_of_row), MISSING, dtype=np.int64)
    spans_of_row = split_rows_by_value(calls.row)
    unions = device_unions(joined, np.arange(len(joined.step))) if joined.on_device else host_unions(joined)
    idle_of_compute = _outside(unions.compute)
    for step, rows in split_rows_by_value(step_of_row).items():
        inside = calls if joined.on_device else _cut_to_step(joined, calls, step)
        for row in rows.tolist():
            own = spans_of_row[row]
            of_spans[own] = outside_ns(inside.start_ns[own], inside.end_ns[own], unions.compute)
            bare = intersect(union(inside.start_ns[own], inside.end_ns[own]), idle_of_compute)
            exposed[row] = bare.total_ns
            waited[row] = _waited_ns(calls, own, bare, waits)
    return Exposure({"exposed_ns": exposed, "exposed_wait_ns": waited}, of_spans)


def _outside(spans: Spans) -> Spans:
    """Return all time that lies in none of `spans`."""
    ends = np.iinfo(np.int64)
    gap_start = np.concatenate((np.array([ends.min], dtype=np.int64), spans.end_ns))
    gap_end = np.concatenate((spans.start_ns, np.array([ends.max], dtype=np.int64)))
    return Spans(gap_start, gap_end)


def _cut_to_step(joined: Joined, calls: CallSpans, step: int) -> CallSpans:
    """Return the calls cut at the ends of a step on the host: like its breakdown it ends with its marker."""
    spans = joined.windows.spans_of(step)
    if not len(spans):
        return calls
    start_ns, end_ns = (time.clip(spans.start_ns[0], spans.end_ns[-1]) for time in (calls.start_ns, calls.end_ns))
    return replace(calls, start_ns=start_ns, end_ns=end_ns)


def _waited_ns(calls: CallSpans, own: I64, bare: Spans, waits: Waits) -> int:
    """The waiting of the calls `own` inside `bare`, or MISSING where that of any call is not known."""
    if not len(bare):
        return 0
    told_ns = told_bare_ns = 0
    spans: list[I64] = []
    with_tasks: list[I64] = []
    for collective, rows in split_rows_by_value(calls.collective[own]).items():
        if collective >= 0 and waits.has_tasks[collective]:
            spans.append(waits.of_collective.get(collective, own[:0]))
            with_tasks.append(own[rows])
            continue
        call = union(calls.start_ns[own[rows]], calls.end_ns[own[rows]])
        bare_ns = intersect(call, bare).total_ns
        if bare_ns == 0:
            continue
        if collective < 0 or bare_ns < call.total_ns or waits.wait_ns[collective] == MISSING:
            return MISSING
        told_ns += min(int(waits.wait_ns[collective]), bare_ns)
        told_bare_ns += bare_ns
    if not spans:
        # where told calls overlap, so may their waiting, and when they waited is not told
        return told_ns if told_bare_ns == bare.total_ns else MISSING
    tasks, calls_of_tasks = np.concatenate(spans), np.concatenate(with_tasks)
    rest = intersect(union(calls.start_ns[calls_of_tasks], calls.end_ns[calls_of_tasks]), bare)
    if told_bare_ns + rest.total_ns > bare.total_ns:
        return MISSING
    waited = intersect(union(waits.tasks.start_ns[tasks], waits.tasks.end_ns[tasks]), rest)
    return told_ns + waited.total_ns
