"""Host lanes of a trace -> threads, ops, Python frames, calls of CANN, step markers.

torch_npu gives the framework and CANN a process each, but their lanes of one thread id are one thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from tracker.profile import I32, I64, Frames, HostOps, Launches, LaunchLevel, Markers, Strings, empty
from tracker.readers._growing import Array
from tracker.readers.ascend_text.trace import Trace

CONNECTIONS: Final = 1 << 40
"""Correlations above this are connection ids of CANN, those below are arrows."""

FLOW: Final = "async_npu"
Table = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Host:
    """What happened on the host. `queue`: Enqueue and Dequeue slices, which only place allocations."""

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
    queue = dict.fromkeys(("start_ns", "end_ns", "thread", "correlation", "is_end"), nothing)
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


def launches_of(host: Host, arrows: Table, used: I64, strings: Strings) -> Launches:
    """The calls of CANN, and a FLOW row for each arrow in `used` (rows of `arrows`), with its place there plus 1."""
    flow = {
        "start_ns": arrows["time_ns"][used],
        "end_ns": arrows["time_ns"][used],
        "thread": host.thread_of[arrows["lane"][used]] if len(used) else np.zeros(0, dtype=np.int32),
        "name": np.full(len(used), strings.code(FLOW), dtype=np.int32),
        "level": np.full(len(used), LaunchLevel.FLOW, dtype=np.int8),
        "correlation": np.arange(1, len(used) + 1, dtype=np.int64),
    }
    return Launches(**{name: np.concatenate((getattr(host.calls, name), column)) for name, column in flow.items()})


def _threads(trace: Trace, host_lanes: set[int]) -> tuple[I32, tuple[str, ...]]:
    """Thread of each lane, -1 for lanes of the device; lanes of one thread id are one thread."""
    thread_of = np.full(len(trace.lanes), -1, dtype=np.int32)
    numbers: dict[str, int] = {}
    names: list[str] = []
    for (_, tid), lane in trace.lanes.items():
        if lane in host_lanes:
            number = thread_of[lane] = numbers.setdefault(str(tid), len(numbers))
            if number == len(names):
                names.append(trace.lane_names.get(lane) or f"Thread {tid}")
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
