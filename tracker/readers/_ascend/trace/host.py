"""Host lanes of a trace -> threads, ops, Python frames, calls of CANN, step markers.

torch_npu gives the framework and CANN a process each, but their lanes of one thread id are one thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.profile import I32, I64, Frames, HostOps, Launches, LaunchLevel, Markers, Strings, empty
from tracker.readers._ascend.trace.events import Trace
from tracker.readers._growing import Array

CONNECTIONS: Final = 1 << 40
"""Correlations above this are connection ids of CANN, those below are arrows."""

FLOW: Final = "async_npu"
QUEUE_FLOW: Final = "async_task_queue"
Table = Mapping[str, Array]


class Host(Struct, frozen=True):
    """What happened on the host. `queue`: Enqueue and Dequeue slices, which place allocations and lead to copies.

    `thread_of`: the thread of each lane of the trace, -1 for lanes of the device.
    """

    threads: tuple[str, ...]
    ops: HostOps
    frames: Frames
    calls: Launches
    markers: Markers
    queue: Table
    thread_of: I32


def no_host() -> Host:
    """The host of a capture without a trace: one thread, on which nothing is known to happen."""
    nothing = np.zeros(0, dtype=np.int64)
    queue = dict.fromkeys(("start_ns", "end_ns", "thread", "name", "correlation", "is_end"), nothing)
    return Host(
        ("host",), empty(HostOps), empty(Frames), empty(Launches), empty(Markers), queue, np.zeros(0, dtype=np.int32)
    )


def host_of(trace: Trace) -> Host:
    """The host side of `trace`; its tables are given up."""
    tables = {name: getattr(trace, name).done() for name in ("ops", "frames", "calls", "queue", "markers")}
    lanes = {lane for table in tables.values() for lane in np.unique(table["lane"]).tolist()}
    thread_of, names = _threads(trace, lanes)
    placed = {name: _placed(table, thread_of) for name, table in tables.items()}
    calls = placed["calls"]
    connection = calls.pop("connection")
    return Host(
        threads=names,
        ops=HostOps(**placed["ops"], collective=np.full(len(placed["ops"]["name"]), -1, dtype=np.int32)),
        frames=Frames(**placed["frames"]),
        calls=Launches(**calls, correlation=np.where(connection >= 0, CONNECTIONS + connection, -1)),
        markers=_markers(placed["markers"]),
        queue=placed["queue"],
        thread_of=thread_of,
    )


def launches_of(host: Host, device: I64, arrows: Table, used: I64, strings: Strings) -> Launches:
    """The calls of CANN, a FLOW row for each arrow in `used` (rows of `arrows`) with its place there plus 1, and one
    for each call that leads to `device` (correlations of device events) from the queue: where it was put in there.
    Then what the queue itself did.
    """
    calls = host.calls
    leads = np.flatnonzero((calls.correlation >= 0) & np.isin(calls.correlation, device))
    put = enqueues_at(host, calls.start_ns[leads])
    leads, put = leads[put >= 0], put[put >= 0]
    own = calls.correlation.copy()
    own[leads] = -1
    times = np.concatenate((arrows["time_ns"][used], host.queue["start_ns"][put]))
    lane_threads = host.thread_of[arrows["lane"][used]] if len(used) else np.zeros(0, dtype=np.int32)
    names = [strings.code(FLOW)] * len(used) + [strings.code(QUEUE_FLOW)] * len(put)
    flow = {
        "start_ns": times,
        "end_ns": times,
        "thread": np.concatenate((lane_threads, host.queue["thread"][put])).astype(np.int32),
        "name": np.array(names, dtype=np.int32),
        "level": np.full(len(times), LaunchLevel.FLOW, dtype=np.int8),
        "correlation": np.concatenate((np.arange(1, len(used) + 1, dtype=np.int64), calls.correlation[leads])),
    }
    linked, queue = replace(calls, correlation=own), _queue_calls(host.queue)
    return Launches(
        **{name: np.concatenate((getattr(linked, name), column, queue[name])) for name, column in flow.items()}
    )


def _queue_calls(queue: Table) -> dict[str, Array]:
    count = len(queue["start_ns"])
    return {
        **{name: queue[name].astype(np.int64) for name in ("start_ns", "end_ns")},
        **{name: queue[name].astype(np.int32) for name in ("thread", "name")},
        "level": np.full(count, LaunchLevel.QUEUE, dtype=np.int8),
        "correlation": np.full(count, -1, dtype=np.int64),
    }


def running_at(starts: I64, ends: I64, times: I64) -> I64:
    """For each time the place of the last span that started before it, -1 where that one has ended."""
    if not len(starts):
        return np.full(len(times), -1, dtype=np.int64)
    place = np.searchsorted(starts, times, side="right") - 1
    return np.where((place >= 0) & (times <= ends[place]), place, -1)


def enqueues_at(host: Host, times: I64) -> I64:
    """Row of the Enqueue whose Dequeue each time lies in, -1 for none."""
    queue = host.queue
    dequeues = np.flatnonzero(queue["is_end"] == 1)
    dequeues = dequeues[np.argsort(queue["start_ns"][dequeues], kind="stable")]
    enqueues = np.flatnonzero(queue["is_end"] == 0)
    row_of = dict(zip(queue["correlation"][enqueues].tolist(), enqueues.tolist(), strict=True))
    running = running_at(queue["start_ns"][dequeues], queue["end_ns"][dequeues], times)
    found = [row_of.get(int(queue["correlation"][dequeues[at]]), -1) if at >= 0 else -1 for at in running.tolist()]
    return np.array(found, dtype=np.int64)


def _threads(trace: Trace, host_lanes: set[int]) -> tuple[I32, tuple[str, ...]]:
    """Thread of each lane, -1 for lanes of the device; lanes of one thread id are one thread.

    A profiler that records no calls of CANN still has arrows that begin on lanes of CANN.
    """
    thread_of = np.full(len(trace.lanes), -1, dtype=np.int32)
    numbers: dict[str, int] = {}
    names: list[str] = []
    for (_, tid), lane in trace.lanes.items():
        if lane in host_lanes:
            number = thread_of[lane] = numbers.setdefault(str(tid), len(numbers))
            if number == len(names):
                names.append(trace.lane_names.get(lane) or f"Thread {tid}")
    for (_, tid), lane in trace.lanes.items():
        if lane not in host_lanes:
            thread_of[lane] = numbers.get(str(tid), -1)
    return thread_of, tuple(names) or ("host",)


def _placed(table: Mapping[str, Array], thread_of: I32) -> dict[str, Array]:
    columns = dict(table)
    lane = columns.pop("lane")
    return {**columns, "thread": thread_of[lane] if len(lane) else np.zeros(0, dtype=np.int32)}


def _markers(table: Mapping[str, Array]) -> Markers:
    """One marker per step, the longest of its number, in order of start."""
    duration = table["end_ns"] - table["start_ns"]
    order = np.lexsort((-duration, table["step"]))
    _, first = np.unique(table["step"][order], return_index=True)
    kept = order[first]
    kept = kept[np.argsort(table["start_ns"][kept], kind="stable")]
    return Markers(
        start_ns=table["start_ns"][kept],
        end_ns=table["end_ns"][kept],
        step=table["step"][kept],
        process=np.zeros(len(kept), dtype=np.int32),
    )
