"""Device tasks of kernel_details.csv and trace_view.json -> one table of device events, with arrows to their ops."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import I32, I64, MISSING, DeviceEvents, DeviceKind, Strings, is_hccl_kernel
from tracker.readers._ascend.communication import CommunicationOp
from tracker.readers._ascend.kernels import COLLECTIVE_CORE, COPY_NAME, Kernels
from tracker.readers._ascend.trace.events import Trace
from tracker.readers._ascend.trace.host import CONNECTIONS
from tracker.readers._device import device_events
from tracker.readers._growing import Array, joined_rows
from tracker.readers._sqlite import first_rows

Table = Mapping[str, Array]
_COPY_TYPES: Final = frozenset(("MEMCPY_ASYNC", "SDMA_SQE", "PCIE_DMA_SQE"))
_COPY_NAMES: Final = frozenset(("MEMCPY_ASYNC", "MemcopyAsync"))
_KERNEL_TYPES: Final = re.compile(
    r"(?:KERNEL_)?(?:AI_?CORE|AI_?VEC\w*|MIX_AI[CV]|AI_?CPU)|DSA_SQE|DVPP\w*|FFTS_PLUS", re.I
)
# tasks of the scheduler and of collectives; chips that do not say what a task is call all of them `Other`
_NO_WORK: Final = re.compile(
    r"EVENT_\w+|NOTIFY_\w+|REDUCE_ASYNC\w*|PROFILING_\w+|PLACE_HOLDER\w*|WRITE_VALUE\w*|MEMCPY_ASYNC|MemcopyAsync"
    r"|STARS_\w+|MODEL_\w+|STREAM_\w+|LABEL_\w+|Other|other|SDMA|Notify \w+|Write Value",
)


class TraceTasks(Struct, frozen=True):
    """The device side of a trace: tasks of the hardware, collectives, and their arrows; empty without a trace.

    `arrows`: from the ops; `handovers`: from the calls that launched.
    """

    tasks: Table
    collectives: Table
    arrows: Table
    handovers: Table
    lane_stream: I64


class DeviceRows(Struct, frozen=True):
    """Device events without what collectives add. `trace_call`: row of the trace's collectives, or -1.

    `used_arrows`: rows of the arrows' starts; the correlation of an event is its place there plus 1. `connection`: that
    of CANN, -1 for none. `task_start_ns`: the start of each event by the clock of the trace.
    """

    events: DeviceEvents
    block_num: I64
    task: I64
    trace_call: I32
    used_arrows: I64
    connection: I64
    task_start_ns: I64


def trace_tasks_of(trace: Trace | None) -> TraceTasks:
    """The device side of `trace`; its tables are given up."""
    if trace is None:
        none: dict[str, Array] = dict.fromkeys(
            ("start_ns", "end_ns", "lane", "name", "type", "stream", "task", "connection", "time_ns", "id", "is_end"),
            np.zeros(0, dtype=np.int64),
        )
        return TraceTasks(none, none, none, none, np.zeros(0, dtype=np.int64))
    streams = np.full(len(trace.lanes), -1, dtype=np.int64)
    for lane, name in trace.lane_names.items():
        match = re.fullmatch(r"Stream (\d{1,18})", name)
        streams[lane] = int(match.group(1)) if match else -1
    arrows, handovers = trace.arrows.done(), trace.handovers.done()
    return TraceTasks(trace.tasks.done(), trace.collectives.done(), arrows, handovers, streams)


def device_rows(kernels: Kernels | None, trace: TraceTasks, strings: Strings) -> DeviceRows:
    """Kernels and collectives of `kernels` (without it: those of the trace), then the copies of the trace."""
    if kernels is None:
        kernels, connection = _kernels_of_trace(trace, strings)
        task_start_ns = kernels.start_ns
    else:
        kernels, connection, task_start_ns = _completed(kernels, trace)
        if not (kernels.kind == DeviceKind.COMMUNICATION).any():
            # tables of some versions leave the collectives to the trace
            calls = _calls_of_trace(trace, strings)
            kernels = joined_rows((kernels, calls))
            connection = np.concatenate((connection, trace.collectives["connection"]))
            task_start_ns = np.concatenate((task_start_ns, calls.start_ns))
    copies, copy_connection = _copies(trace, kernels, strings)
    everything = joined_rows((kernels, copies))
    columns = {name: getattr(everything, name) for name in Kernels.__struct_fields__}
    connection = np.concatenate((connection, copy_connection))
    task_start_ns = np.concatenate((task_start_ns, copies.start_ns))
    correlation, used = _arrows(columns, trace)
    by_connection = (correlation < 0) & (connection >= 0)
    correlation[by_connection] = CONNECTIONS + connection[by_connection]
    events = device_events({**columns, "correlation": correlation})
    return DeviceRows(
        events, everything.block_num, everything.task, _trace_calls(events, trace), used, connection, task_start_ns
    )


def kernel_tasks(trace: TraceTasks, strings: Strings) -> I64:
    """Rows of the tasks of the trace that are kernels; collectives are not among them."""
    return _chosen(trace, strings, is_kernel)


def kernels_of_ops(ops: list[CommunicationOp], strings: Strings) -> Kernels:
    """The collectives of communication.json as device tasks, for a capture that has no other device tasks."""
    start = np.array([op.start_ns for op in ops], dtype=np.int64)
    elapse = np.array([max(op.elapse_ns, 0) for op in ops], dtype=np.int64)
    steps = np.array([MISSING if op.step is None else op.step for op in ops], dtype=np.int64)
    names = np.array([strings.code(op.name) for op in ops], dtype=np.int32)
    kind = np.full(len(ops), DeviceKind.COMMUNICATION, dtype=np.int8)
    core = np.full(len(ops), strings.code(COLLECTIVE_CORE), dtype=np.int32)
    columns = {"start_ns": start, "end_ns": start + elapse, "name": names, "kind": kind, "step": steps}
    return _plain_kernels({**columns, "core_type": core})


def is_kernel(task_type: str, name: str) -> bool:
    """True for tasks of the hardware that compute.

    >>> is_kernel("AI_CORE", "Conv2D1"), is_kernel("Other", "aclnnMuls_Muls"), is_kernel("Other", "EVENT_WAIT")
    (True, True, False)
    """
    if _KERNEL_TYPES.fullmatch(task_type):
        return True
    return task_type.lower() == "other" and _NO_WORK.fullmatch(name) is None


def is_copy(task_type: str, name: str) -> bool:
    """True for tasks of the hardware that copy memory.

    >>> is_copy("SDMA_SQE", "MEMCPY_ASYNC"), is_copy("other", "MemcopyAsync"), is_copy("SDMA", "SDMA")
    (True, True, False)
    """
    return task_type in _COPY_TYPES or name in _COPY_NAMES


def _chosen(trace: TraceTasks, strings: Strings, wanted: Callable[[str, str], bool]) -> I64:
    names, types = trace.tasks["name"].tolist(), trace.tasks["type"].tolist()
    known: dict[tuple[int, int], bool] = {}
    for pair in zip(types, names, strict=True):
        if pair not in known:
            known[pair] = wanted(strings[pair[0]], strings[pair[1]])
    return np.flatnonzero([known[pair] for pair in zip(types, names, strict=True)])


def _kernels_of_trace(trace: TraceTasks, strings: Strings) -> tuple[Kernels, I64]:
    """Kernels and collectives of the trace, in the order of their start."""
    tasks, calls = trace.tasks, trace.collectives
    rows = kernel_tasks(trace, strings)
    kind = [DeviceKind.KERNEL] * len(rows) + [DeviceKind.COMMUNICATION] * len(calls["name"])
    columns = {
        name: np.concatenate((tasks[name][rows], calls[name])) for name in ("start_ns", "end_ns", "name", "connection")
    }
    columns["stream"] = np.concatenate((tasks["stream"][rows], _streams_of_calls(trace)))
    columns["task"] = np.concatenate((tasks["task"][rows], np.full(len(calls["name"]), MISSING)))
    core = np.full(len(calls["name"]), strings.code(COLLECTIVE_CORE), dtype=np.int32)
    columns["core_type"] = np.concatenate((tasks["type"][rows], core))
    columns["kind"] = np.array(kind, dtype=np.int8)
    order = np.argsort(columns["start_ns"], kind="stable")
    connection = columns.pop("connection")[order]
    return _plain_kernels({name: column[order] for name, column in columns.items()}), connection


def _calls_of_trace(trace: TraceTasks, strings: Strings) -> Kernels:
    """The collectives of the trace, in its order."""
    calls, count = trace.collectives, len(trace.collectives["name"])
    columns = {name: calls[name] for name in ("start_ns", "end_ns", "name")}
    columns["stream"] = _streams_of_calls(trace)
    columns["kind"] = np.full(count, DeviceKind.COMMUNICATION, dtype=np.int8)
    columns["core_type"] = np.full(count, strings.code(COLLECTIVE_CORE), dtype=np.int32)
    return _plain_kernels(columns)


def _copies(trace: TraceTasks, kernels: Kernels, strings: Strings) -> tuple[Kernels, I64]:
    """Copies of the trace, without those that are tasks of a collective."""
    tasks = trace.tasks
    rows = _chosen(trace, strings, is_copy)
    rows = rows[~_of_collective(rows, trace, kernels, strings)]
    columns = {name: tasks[name][rows] for name in ("start_ns", "end_ns", "stream", "task")}
    columns["name"] = np.full(len(rows), strings.code(COPY_NAME), dtype=np.int32)
    columns["kind"] = np.full(len(rows), DeviceKind.COPY, dtype=np.int8)
    return _plain_kernels(columns), tasks["connection"][rows]


def _of_collective(rows: I64, trace: TraceTasks, kernels: Kernels, strings: Strings) -> NDArray[np.bool_]:
    """Which tasks belong to a collective: they share its connection, or run during it on a stream without kernels, but
    for those of HCCL.
    """
    tasks, is_call = trace.tasks, kernels.kind == DeviceKind.COMMUNICATION
    connection = tasks["connection"][rows]
    shares = (connection >= 0) & np.isin(connection, trace.collectives["connection"])
    order = np.argsort(kernels.start_ns[is_call], kind="stable")
    starts, ends = kernels.start_ns[is_call][order], kernels.end_ns[is_call][order]
    if not len(starts):
        return shares
    at = np.searchsorted(starts, tasks["start_ns"][rows], side="right") - 1
    during = (at >= 0) & (tasks["start_ns"][rows] < np.maximum.accumulate(ends)[at])
    of_hccl = [code for code in np.unique(kernels.name).tolist() if is_hccl_kernel(strings[code])]
    computes = ~is_call & ~np.isin(kernels.name, of_hccl)
    return shares | (during & ~np.isin(tasks["stream"][rows], kernels.stream[computes]))


def _plain_kernels(columns: Mapping[str, Array]) -> Kernels:
    """Device tasks of which only `columns` are known."""
    count = len(columns["start_ns"])
    missing: I64 = np.full(count, MISSING, dtype=np.int64)
    nothing: I32 = np.zeros(count, dtype=np.int32)
    return Kernels(
        start_ns=columns["start_ns"].astype(np.int64),
        end_ns=columns["end_ns"].astype(np.int64),
        stream=columns.get("stream", np.full(count, -1)).astype(np.int64),
        task=columns.get("task", missing),
        step=columns.get("step", missing),
        name=columns["name"].astype(np.int32),
        kind=columns["kind"].astype(np.int8),
        type=nothing,
        core_type=columns.get("core_type", nothing).astype(np.int32),
        input_shapes=nothing,
        input_types=nothing,
        input_formats=nothing,
        wait_ns=missing,
        block_num=missing,
    )


def _completed(kernels: Kernels, trace: TraceTasks) -> tuple[Kernels, I64, I64]:
    """`kernels` with the streams that their table does not say, and the connection and the start of each task, all by
    the trace; the start of the table where that has no such task.
    """
    tasks, calls = trace.tasks, trace.collectives
    both = {name: np.concatenate((tasks[name], calls[name])) for name in ("start_ns", "name", "connection")}
    streams = np.concatenate((tasks["stream"], _streams_of_calls(trace)))
    row = same_events(kernels.name, kernels.start_ns, both["name"], both["start_ns"])
    row = np.where(row >= 0, row, _same_task(kernels, tasks))
    found = row >= 0
    stream, connection = kernels.stream.copy(), np.full(len(kernels), -1, dtype=np.int64)
    unsaid = found & (stream < 0)
    stream[unsaid] = streams[row[unsaid]]
    connection[found] = both["connection"][row[found]]
    columns = {name: getattr(kernels, name) for name in Kernels.__struct_fields__}
    start_ns = np.where(found, np.append(both["start_ns"], 0)[row], kernels.start_ns)
    return Kernels(**{**columns, "stream": stream}), connection, start_ns


def _streams_of_calls(trace: TraceTasks) -> I64:
    """The stream on which most tasks of each collective of the trace run, -1 where the trace shows none."""
    votes: dict[int, Counter[int]] = {}
    wanted = np.isin(trace.tasks["connection"], trace.collectives["connection"]) & (trace.tasks["connection"] >= 0)
    pairs = zip(trace.tasks["connection"][wanted].tolist(), trace.tasks["stream"][wanted].tolist(), strict=True)
    for connection, stream in pairs:
        votes.setdefault(connection, Counter())[stream] += 1
    most = {connection: counts.most_common(1)[0][0] for connection, counts in votes.items()}
    return np.array([most.get(number, -1) for number in trace.collectives["connection"].tolist()], dtype=np.int64)


def _trace_calls(events: DeviceEvents, trace: TraceTasks) -> I32:
    found = np.full(len(events), -1, dtype=np.int32)
    rows = np.flatnonzero(events.kind == DeviceKind.COMMUNICATION)
    calls = trace.collectives
    found[rows] = same_events(events.name[rows], events.start_ns[rows], calls["name"], calls["start_ns"])
    return found


def same_events(names: Array, times: Array, other_names: Array, other_times: Array) -> I64:
    """For each (name, time) the row of the other list with that name and time, within 1 ns, or -1.

    Files of one capture round the same time up or down.
    """
    known = {
        key: row for row, key in reversed(list(enumerate(zip(other_names.tolist(), other_times.tolist(), strict=True))))
    }
    found = [
        next((known[name, near] for near in (time, time - 1, time + 1) if (name, near) in known), -1)
        for name, time in zip(names.tolist(), times.tolist(), strict=True)
    ]
    return np.array(found, dtype=np.int64)


def _same_task(kernels: Kernels, tasks: Table) -> I64:
    """For each kernel the task of its stream and number during which it starts or that starts during it, or -1.

    CANN corrects the times of op_summary by those of the cores; those of the trace differ by some microseconds.
    """
    found = np.full(len(kernels), -1, dtype=np.int64)
    order = np.argsort(tasks["start_ns"], kind="stable")
    keys = list(zip(tasks["stream"][order].tolist(), tasks["task"][order].tolist(), strict=True))
    rows_of: dict[tuple[int, int], list[int]] = {}
    for row, key in zip(order.tolist(), keys, strict=True):
        rows_of.setdefault(key, []).append(row)
    starts = {key: tasks["start_ns"][rows] for key, rows in rows_of.items()}
    for index, key in enumerate(zip(kernels.stream.tolist(), kernels.task.tolist(), strict=True)):
        if key not in rows_of or MISSING in key or -1 in key:
            continue
        start, end = int(kernels.start_ns[index]), int(kernels.end_ns[index])
        place = int(np.searchsorted(starts[key], start, side="right"))
        for row in rows_of[key][max(place - 1, 0) : place + 1]:
            if tasks["start_ns"][row] < end and start < tasks["end_ns"][row]:
                found[index] = row
                break
    return found


def _arrows(device: Table, trace: TraceTasks) -> tuple[I64, I64]:
    """Correlation of each device event with an arrow (its place in the second value plus 1, else -1); the arrows."""
    arrows = trace.arrows
    starts = np.flatnonzero(arrows["is_end"] == 0)
    ids = find_arrows(arrows, trace.lane_stream, device["stream"], device["start_ns"])
    start = first_rows(arrows["id"][starts], ids)
    linked = np.flatnonzero(start >= 0)
    used, first, number = np.unique(start[linked], return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(1, len(order) + 1)
    correlation = np.full(len(start), -1, dtype=np.int64)
    correlation[linked] = place[number]
    return correlation, starts[used[order]]


def find_arrows(arrows: Table, lane_stream: I64, streams: I64, start_ns: I64) -> I64:
    """Return the id of the arrow that ends where each device event starts, within 1 ns; -1 for none. Of several it is
    the one that ends on the stream of the event.
    """
    ends = np.flatnonzero(arrows["is_end"] == 1)
    found = np.full(len(start_ns), -1, dtype=np.int64)
    if not len(ends):
        return found
    times_ns, ids = arrows["time_ns"][ends], np.append(arrows["id"][ends], -1)
    end_streams = lane_stream[arrows["lane"][ends]]
    for near in (0, -1, 1):
        for is_any in (False, True):
            lacks = np.flatnonzero(found < 0)
            known, wanted = (end_streams * 0, streams * 0) if is_any else (end_streams, streams)
            found[lacks] = ids[_rows_of_pairs(known, times_ns, wanted[lacks], start_ns[lacks] + near)]
    return found


def _rows_of_pairs(streams: I64, times_ns: I64, of_stream: I64, of_time_ns: I64) -> I64:
    """Return the first row with each pair of stream and time, -1 for none."""
    moments, moment = np.unique(times_ns, return_inverse=True)
    lanes, lane = np.unique(streams, return_inverse=True)
    pairs, first = np.unique(lane * len(moments) + moment, return_index=True)
    own_moment = np.minimum(np.searchsorted(moments, of_time_ns), len(moments) - 1)
    own_lane = np.minimum(np.searchsorted(lanes, of_stream), len(lanes) - 1)
    place = np.minimum(np.searchsorted(pairs, own_lane * len(moments) + own_moment), len(pairs) - 1)
    row = first[place]
    return np.where((streams[row] == of_stream) & (times_ns[row] == of_time_ns), row, -1)
