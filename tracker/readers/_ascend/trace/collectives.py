"""Collective calls of one capture: what each was, where its time went, its tasks, and what it moved over which link.

Kernels name them, the trace knows their data type and tasks, communication.json their group and times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.profile import (
    I32,
    I64,
    MISSING,
    CollectiveLinks,
    Collectives,
    CollectiveTasks,
    CollectiveTimes,
    DeviceEvents,
    DeviceKind,
    Strings,
    empty,
)
from tracker.readers._ascend.communication import (
    CommunicationOp,
    Link,
    MatrixTotal,
    global_link,
    global_peers,
    group_in_name,
    index_in_name,
    kind_in_name,
    links_table,
    other_ends,
    times_table,
)
from tracker.readers._ascend.metadata import Metadata
from tracker.readers._ascend.shapes import data_type
from tracker.readers._ascend.trace.device import DeviceRows
from tracker.readers._ascend.trace.events import Trace
from tracker.readers._growing import Array

Table = Mapping[str, Array]
_SAME_CALL_NS: Final = 1_000_000
"""communication.json has its starts as doubles of us; within a ms no second call of one name can start."""

_ON_CHIP: Final = "ON_CHIP"
_LOCAL: Final = "LOCAL"


class Calls(Struct, frozen=True):
    """The collective calls. `events`: DeviceEvents with their index; `unused`: records that no device event has."""

    events: DeviceEvents
    table: Collectives
    times: CollectiveTimes
    tasks: CollectiveTasks
    links: CollectiveLinks
    unused: int


class Told(Struct, frozen=True):
    """What other files tell of the calls: communication.json, communication_matrix.json, and who forms which group."""

    ops: Sequence[CommunicationOp]
    totals: Sequence[MatrixTotal]
    metadata: Metadata


class _Call(Struct):
    kind: str
    group: str
    data_type: str = ""
    bytes: int = MISSING
    op: CommunicationOp | None = None
    source_index: int = MISSING


def calls_of(device: DeviceRows, trace: Trace | None, collectives: Table, told: Told, strings: Strings) -> Calls:
    """One call per communication event of the device. `collectives`: those of `trace`."""
    events, trace_call, metadata = device.events, device.trace_call, told.metadata
    rows = np.flatnonzero(events.kind == DeviceKind.COMMUNICATION)
    records = _records(events, rows, told.ops, strings)
    calls = [
        _call(strings[int(events.name[row])], records.get(row), trace_call[row], collectives, strings)
        for row in rows.tolist()
    ]
    index = np.full(len(events), -1, dtype=np.int32)
    index[rows] = np.arange(len(rows), dtype=np.int32)
    tasks, links = _of_planes(trace, trace_call[rows], collectives, strings)
    tasks = replace(tasks, peer=global_peers(tasks.peer, tasks.collective, [call.group for call in calls], metadata))
    if not len(links):
        links = _of_matrix(told.totals, calls, events.start_ns[rows])
    links = [
        *((call, link) for call, one in enumerate(calls) if one.op is not None for link in one.op.links),
        *((call, global_link(link, calls[call].group, metadata)) for call, link in links),
    ]
    return Calls(
        events=replace(events, collective=index),
        table=_table(calls, metadata, strings),
        times=times_table([(index, call.op) for index, call in enumerate(calls) if call.op is not None]),
        tasks=tasks,
        links=links_table(links, strings),
        unused=len(told.ops) - len(records),
    )


def _records(
    events: DeviceEvents, rows: I64, ops: Sequence[CommunicationOp], strings: Strings
) -> dict[int, CommunicationOp]:
    """The record of communication.json for each device event that has one: same name, nearest start, each used once."""
    by_name: dict[str, list[CommunicationOp]] = {}
    for op in ops:
        by_name.setdefault(op.name, []).append(op)
    found = {}
    for row in rows.tolist():
        waiting = by_name.get(strings[int(events.name[row])])
        if waiting:
            start = int(events.start_ns[row])
            nearest = min(waiting, key=lambda op: abs(op.start_ns - start))
            if abs(nearest.start_ns - start) < _SAME_CALL_NS:
                found[row] = nearest
                waiting.remove(nearest)
    return found


def _call(name: str, op: CommunicationOp | None, row: int, collectives: Table, strings: Strings) -> _Call:
    group = op.group if op and op.group else group_in_name(name)
    call = _Call(kind_in_name(name), group, op=op, source_index=index_in_name(name))
    if row >= 0:
        call.data_type, size = data_type(strings[int(collectives["data_type"][row])])
        count = int(collectives["count"][row])
        # HCCL counts elements
        call.bytes = count * size if count >= 0 and size else MISSING
    return call


def _table(calls: Sequence[_Call], metadata: Metadata, strings: Strings) -> Collectives:
    groups = [metadata.group(call.group) for call in calls]

    def codes(texts: Sequence[str]) -> I32:
        return np.array([strings.code(text) for text in texts], dtype=np.int32)

    return Collectives(
        kind=codes([call.kind for call in calls]),
        group=codes([group.id for group in groups]),
        group_role=codes([group.role for group in groups]),
        group_size=np.array([group.size for group in groups], dtype=np.int64),
        data_type=codes([call.data_type for call in calls]),
        bytes=np.array([call.bytes for call in calls], dtype=np.int64),
        group_ranks=codes([group.members for group in groups]),
        peer=np.full(len(calls), -1, dtype=np.int64),
        source_index=np.array([call.source_index for call in calls], dtype=np.int64),
    )


def _of_planes(
    trace: Trace | None, trace_call: I32, collectives: Table, strings: Strings
) -> tuple[CollectiveTasks, list[tuple[int, Link]]]:
    """Tasks on the planes of the trace, and per call what they moved from rank to rank."""
    if trace is None:
        return empty(CollectiveTasks), []
    planes = trace.plane_tasks.done()
    call = _call_of_tasks(planes, trace, trace_call, collectives)
    kept = np.flatnonzero(call >= 0)
    lanes = planes["lane"][kept].tolist()
    names = {lane: strings.code(_plane(trace.lane_names.get(lane, ""))) for lane in set(lanes)}
    tasks = CollectiveTasks(
        collective=call[kept].astype(np.int32),
        name=planes["name"][kept].astype(np.int32),
        plane=np.array([names[lane] for lane in lanes], dtype=np.int32),
        start_ns=planes["start_ns"][kept].astype(np.int64),
        end_ns=planes["end_ns"][kept].astype(np.int64),
        peer=other_ends(planes["source"][kept], planes["target"][kept]),
    )
    return tasks, _moved(planes, kept, call, strings)


def _moved(planes: Table, rows: I64, call: I64, strings: Strings) -> list[tuple[int, Link]]:
    """Per call, transport, source and target the sum of what the tasks in `rows` moved; a task without target stays."""
    sums: dict[tuple[int, str, int, int], list[int]] = {}
    for row in rows[planes["bytes"][rows] > 0].tolist():
        kind = strings[int(planes["link_type"][row])]
        source, target = int(planes["source"][row]), int(planes["target"][row])
        ends = (source, source if target < 0 else target)
        moved = sums.setdefault((int(call[row]), _LOCAL if kind == _ON_CHIP else kind, *ends), [0, 0])
        moved[0] += int(planes["bytes"][row])
        moved[1] += int(planes["end_ns"][row] - planes["start_ns"][row])
    return [
        (index, Link(transport, source, target, -1, MISSING, moved, transit, float("nan")))
        for (index, transport, source, target), (moved, transit) in sums.items()
    ]


def _plane(lane_name: str) -> str:
    return lane_name.removeprefix("Plane ").strip()


def _call_of_tasks(planes: Table, trace: Trace, trace_call: I32, collectives: Table) -> I64:
    """The call of each task on a plane, -1 for none: the one of the plane's group around the start of the task.

    Planes follow their group in the order of the lanes.
    """
    group_of = _group_lanes(trace)
    index_of = {row: index for index, row in enumerate(trace_call.tolist()) if row >= 0}
    found = np.full(len(planes["lane"]), -1, dtype=np.int64)
    task_group = np.array([group_of.get(lane, -1) for lane in planes["lane"].tolist()], dtype=np.int64)
    for group in set(group_of.values()):
        rows = np.flatnonzero(collectives["lane"] == group)
        rows = rows[np.argsort(collectives["start_ns"][rows], kind="stable")]
        tasks = np.flatnonzero(task_group == group)
        at = np.searchsorted(collectives["start_ns"][rows], planes["start_ns"][tasks], side="right") - 1
        inside = at >= 0
        call, tasks = rows[at[inside]], tasks[inside]
        ends = collectives["end_ns"][call]
        within = planes["start_ns"][tasks] <= ends
        found[tasks[within]] = [index_of.get(row, -1) for row in call[within].tolist()]
    return found


def _group_lanes(trace: Trace) -> dict[int, int]:
    """Lane of a plane -> lane of its group, within the process that shows communication."""
    lanes: dict[Any, list[tuple[int, int]]] = {}
    for (pid, tid), lane in trace.lanes.items():
        if "Communication" in trace.lane_names.get(lane, "") or lane in trace.plane_lanes:
            order = trace.lane_order.get(lane, tid if isinstance(tid, int) else 0)
            lanes.setdefault(pid, []).append((order, lane))
    group_of: dict[int, int] = {}
    for ordered in lanes.values():
        group = -1
        for _, lane in sorted(ordered):
            if lane not in trace.plane_lanes:
                group = lane
            elif group >= 0:
                group_of[lane] = group
    return group_of


def _of_matrix(totals: Sequence[MatrixTotal], calls: Sequence[_Call], start_ns: I64) -> list[tuple[int, Link]]:
    """The totals of each kind and group, given to the first call of that kind and group in their step.

    The matrix only has single calls for the fastest and slowest; its totals are whole.
    """
    first: dict[tuple[int | None, str, str], int] = {}
    for index in np.argsort(start_ns, kind="stable").tolist():
        call = calls[index]
        first.setdefault((call.op.step if call.op else None, call.kind, call.group), index)
    owned = [(first.get((total.step, total.kind, total.group)), total.link) for total in totals]
    return [(index, link) for index, link in owned if index is not None]
