"""Collective calls: which there were, how long, how much of it was exposed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import I64, MISSING, Table, each_once
from tracker.schema.column_names import START_NS
from tracker.table import group_rows
from tracker.timeline.breakdown import host_collectives
from tracker.timeline.collective_names import kind_of_name
from tracker.timeline.collective_parts import (
    Kernels,
    link_table,
    rows_of_collectives,
    task_table,
    time_columns,
)
from tracker.timeline.exposure import CallSpans, exposure_of
from tracker.timeline.hccl_kernels import are_hccl_kernels
from tracker.timeline.joined import Joined, Work
from tracker.timeline.members import Call, groups_of
from tracker.timeline.names import canonical_name
from tracker.timeline.steps import steps_at
from tracker.timeline.wait_tasks import wait_table, waits_of

# element types as NCCL writes them into kernel names, C++ before 2.18 and short since
_TYPES = {
    **dict.fromkeys(("f32", "float"), "float32"),
    **dict.fromkeys(("f64", "double"), "float64"),
    **dict.fromkeys(("f16", "half"), "float16"),
    **dict.fromkeys(("bf16", "bfloat16"), "bfloat16"),
    **dict.fromkeys(("i8", "int8_t"), "int8"),
    **dict.fromkeys(("u8", "uint8_t"), "uint8"),
    **dict.fromkeys(("i32", "int32_t"), "int32"),
    **dict.fromkeys(("u32", "uint32_t"), "uint32"),
    **dict.fromkeys(("i64", "int64_t"), "int64"),
    **dict.fromkeys(("u64", "uint64_t"), "uint64"),
}
_UNKNOWN = -1


class Tasks(Struct, frozen=True):
    """The spans that make up the collective calls; to which step, call and kind of call each belongs.

    `event`: the device event that a span is, -1 for one of the host. `of_kind` is an index into `calls`. `call` numbers
    the calls; a call whose tasks are several kernels or copies is one call, its elapse the sum of their times.
    `collective`: the row of `Collectives` that tells of it, or -1.
    """

    start_ns: I64
    end_ns: I64
    step: I64
    event: I64
    name: list[str]
    call: I64
    of_kind: I64
    calls: Sequence[Call]
    collective: I64


def call_of_kernel_name(name: str) -> Call:
    """What the name of a collective kernel says, where nothing else does.

    >>> call = call_of_kernel_name("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
    >>> call.kind, call.data_type
    ('all_reduce', 'float32')
    """
    plain = canonical_name(name)
    types = [_TYPES[word] for word in re.split(r"_(?!t\b)", plain.lower()) if word in _TYPES]
    return Call(kind_of_name(plain), "", MISSING, types[-1] if types else "", MISSING)


def communication_tables(joined: Joined) -> dict[str, Table]:
    """Tables `communication`, `communication_task`, `communication_wait` and `communication_link`; `collective_calls`
    and `groups` (see `Rows`), with the times of calls on the source's clock.
    """
    tasks = list_tasks(joined)
    columns = _kind_columns(tasks)
    of_task = group_rows(tasks.step, *(column[tasks.of_kind] for column in columns))
    of_call = group_rows(of_task.number, tasks.call)
    elapse = of_call.sums(tasks.end_ns - tasks.start_ns)
    row_of_call = of_task.number[of_call.first]
    rows = group_rows(row_of_call)
    size_bytes = np.array([call.bytes for call in tasks.calls], dtype=np.int64)[tasks.of_kind[of_call.first]]
    first = tasks.of_kind[of_task.first].tolist()
    calls = [tasks.calls[index] for index in first]
    row_of_collective = rows_of_collectives(joined.events, tasks.collective, of_task.number, tasks.start_ns)
    spans = CallSpans(of_task.number, tasks.start_ns, tasks.end_ns, tasks.collective)
    waits = waits_of(joined.events)
    exposure = exposure_of(joined, spans, waits, tasks.step[of_task.first])
    communication: Table = {
        "step": tasks.step[of_task.first],
        "kind": [call.kind for call in calls],
        "group_role": [call.group_role for call in calls],
        "group_size": np.array([call.group_size for call in calls], dtype=np.int64),
        "data_type": [call.data_type for call in calls],
        "size_class_bytes": np.array([call.size_class_bytes for call in calls], dtype=np.int64),
        "calls": rows.counts,
        "bytes": rows.add_up_marked(size_bytes, MISSING, "known"),
        "total_ns": rows.sums(elapse),
        "min_ns": rows.smallest(elapse),
        "max_ns": rows.largest(elapse),
        "sum_squares_ns2": rows.sums_of_squares(elapse),
        **time_columns(joined.events, row_of_collective, spans, waits),
        **exposure.columns,
    }
    group, groups = groups_of(joined.events, tasks.calls, tasks.of_kind[of_call.first], tasks.start_ns[of_call.first])
    collective_calls = {
        "communication": row_of_call,
        "group": group,
        "step": tasks.step[of_call.first],
        "start_ns": of_call.smallest(tasks.start_ns),
        "elapse_ns": elapse,
        "exposed_ns": of_call.add_up_marked(exposure.of_spans, MISSING, "sum"),
        "bytes": size_bytes,
        "peer": _of_calls(tasks, "peer")[of_call.first],
        "source_index": _of_calls(tasks, "source_index")[of_call.first],
    }
    kernels = Kernels(of_task.number, tasks.name, tasks.end_ns - tasks.start_ns, tasks.collective)
    return {
        "communication": communication,
        "communication_task": task_table(joined.events, row_of_collective, kernels),
        "communication_wait": wait_table(joined.events, row_of_collective, waits),
        "communication_link": link_table(joined.events, row_of_collective),
        "collective_calls": _in_order(collective_calls),
        "groups": groups,
    }


def list_tasks(joined: Joined) -> Tasks:
    """Return the spans of all collective calls, those of the device first."""
    of_host = _host_tasks(joined)
    return _one_behind_the_other(_device_tasks(joined), of_host) if joined.on_device else of_host


def _of_calls(tasks: Tasks, name: str) -> I64:
    """What the call of each task says under this name."""
    return np.array([getattr(call, name) for call in tasks.calls], dtype=np.int64)[tasks.of_kind]


def _in_order(table: Mapping[str, I64]) -> Table:
    """By start; equal ones by all that tells them apart, so that the order of the events never matters."""
    order = np.lexsort([*list(table.values())[::-1], table[START_NS]])
    return {name: column[order] for name, column in table.items()}


def _kind_columns(tasks: Tasks) -> list[I64]:
    """The distinguishing columns of each call kind as integers that sort like their texts."""
    texts = sorted({text for call in tasks.calls for text in (call.kind, call.group_role, call.data_type)})
    place = {text: index for index, text in enumerate(texts)}
    rows = [
        (place[c.kind], place[c.group_role], c.group_size, place[c.data_type], c.size_class_bytes) for c in tasks.calls
    ]
    table = np.array(rows, dtype=np.int64).reshape(len(rows), 5)
    return [table[:, index] for index in range(5)]


def _device_tasks(joined: Joined) -> Tasks:
    """Device events of class communication.

    A kernel that carries its own collective is a call; others of one collective op (copies among them) are one call,
    and so are those of one op of a communication library, but for kernels whose own name is that of a collective.
    """
    events, device = joined.events, joined.events.device
    rows = np.flatnonzero(joined.work == Work.COMMUNICATION)
    own = device.collective[rows].astype(np.int64)
    around, inner, outer = _collectives_around(joined, joined.op[rows])
    library = _library_op_names(joined, rows)
    said_by = np.where(library >= 0, library, _hccl_op_names(joined, rows))
    op = joined.op[rows]
    call = np.where((own < 0) & (around >= 0), around, len(events.ops) + np.arange(len(rows)))
    alone = (own < 0) & (around < 0) & (library >= 0)
    call[alone] = joined.library_op[op[alone]]
    said = group_rows(own, inner, outer, device.name[rows], said_by)
    texts = [*events.strings.texts, ""]
    calls = [
        _call(
            joined,
            (int(own[row]), int(inner[row]), int(outer[row])),
            texts[int(device.name[rows[row]])],
            texts[int(said_by[row])],
        )
        for row in said.first.tolist()
    ]
    names = [events.strings[code] for code in device.name[rows].tolist()]
    of_kind = _one_kind_per_call(call, said.number, joined.is_kernel[rows])
    told = np.where(own >= 0, own, np.where(inner >= 0, inner, outer))
    return Tasks(device.start_ns[rows], device.end_ns[rows], joined.step[rows], rows, names, call, of_kind, calls, told)


def _library_op_names(joined: Joined, rows: I64) -> I64:
    """For each device event the name of the op of a communication library that launched it, whose kind is its own.

    -1 where there is none, or where the kernel says its kind itself and the op is one of torch.distributed, under
    which several collectives can run (a coalesced group).
    """
    events, device, op = joined.events, joined.events.device, joined.op[rows]
    place = np.full(len(rows), _UNKNOWN, dtype=np.int64)
    place[op >= 0] = joined.library_op[op[op >= 0]]
    found = np.full(len(rows), _UNKNOWN, dtype=np.int64)
    found[place >= 0] = events.ops.name[place[place >= 0]]
    texts = events.strings.texts
    of_torch = [
        code for code in each_once(found[found >= 0]).tolist() if texts[code].lower().startswith(("c10d", "_c10d"))
    ]
    candidates = np.isin(found, np.array(of_torch, dtype=np.int64))
    named = [code for code in each_once(device.name[rows][candidates]).tolist() if kind_of_name(texts[code])]
    candidates &= np.isin(device.name[rows], np.array(named, dtype=np.int64))
    return np.where(candidates, _UNKNOWN, found)


def _hccl_op_names(joined: Joined, rows: I64) -> I64:
    """For each device event the name of the op that launched it, where it is a kernel of HCCL whose own name says no
    kind (`AivKernel`); else -1.
    """
    events, op = joined.events, joined.op[rows]
    texts = events.strings.texts
    is_asked = are_hccl_kernels(events)[rows] & (op >= 0)
    found = np.full(len(rows), _UNKNOWN, dtype=np.int64)
    for place in np.flatnonzero(is_asked).tolist():
        if not kind_of_name(texts[int(events.device.name[rows[place]])]):
            found[place] = events.ops.name[op[place]]
    return found


def _collectives_around(joined: Joined, op: I64) -> tuple[I64, I64, I64]:
    """For each op: the innermost collective op around it (or itself), its collective, and that of the next one out."""
    unknown = np.full(len(op), _UNKNOWN, dtype=np.int64)
    around, inner, outer = unknown, unknown.copy(), unknown.copy()
    inside = np.flatnonzero(op >= 0)
    around[inside] = joined.collective_op[op[inside]]
    found = np.flatnonzero(around >= 0)
    inner[found] = joined.events.ops.collective[around[found]]
    above = joined.tree.parent[around[found]]
    found, above = found[above >= 0], above[above >= 0]
    further = joined.collective_op[above]
    found, further = found[further >= 0], further[further >= 0]
    outer[found] = joined.events.ops.collective[further]
    return around, inner, outer


def _one_kind_per_call(call: I64, of_kind: I64, is_kernel: NDArray[np.bool_]) -> I64:
    """All tasks of a call take the kind of its first kernel: a copy's name says nothing about the collective."""
    order = np.lexsort((of_kind, ~is_kernel, call))
    _, first, back = np.unique(call[order], return_index=True, return_inverse=True)
    result = np.empty_like(of_kind)
    result[order] = of_kind[order][first][back]
    return result


def _host_tasks(joined: Joined) -> Tasks:
    events, ops = joined.events, joined.events.ops
    rows = host_collectives(joined)
    _, inner, outer = _collectives_around(joined, rows)
    said = group_rows(inner, outer, ops.name[rows])
    calls = [
        _call(joined, (int(inner[row]), int(outer[row])), events.strings[int(ops.name[rows[row]])])
        for row in said.first.tolist()
    ]
    names = [events.strings[code] for code in ops.name[rows].tolist()]
    step = steps_at(events.markers, ops.start_ns[rows])
    told = np.where(inner >= 0, inner, outer)
    none = np.full(len(rows), _UNKNOWN, dtype=np.int64)
    call = np.arange(len(rows))
    return Tasks(ops.start_ns[rows], ops.end_ns[rows], step, none, names, call, said.number, calls, told)


def _one_behind_the_other(first: Tasks, second: Tasks) -> Tasks:
    if not len(second.call):
        return first
    return Tasks(
        start_ns=np.append(first.start_ns, second.start_ns),
        end_ns=np.append(first.end_ns, second.end_ns),
        step=np.append(first.step, second.step),
        event=np.append(first.event, second.event),
        name=[*first.name, *second.name],
        call=np.append(first.call, second.call + first.call.max(initial=-1) + 1),
        of_kind=np.append(first.of_kind, second.of_kind + len(first.calls)),
        calls=[*first.calls, *second.calls],
        collective=np.append(first.collective, second.collective),
    )


def _call(joined: Joined, sources: tuple[int, ...], name: str, library_op: str = "") -> Call:
    """The call's description: what the sources (rows of `Collectives`, best first, -1 for none) say, then the kind that
    the `library_op` around it says, then the name.

    A later source fills what the earlier ones leave open: an annotation knows the tensors, the call around it
    the group.
    """
    collectives, strings = joined.events.collectives, joined.events.strings
    calls = [
        Call(
            strings[int(collectives.kind[row])],
            strings[int(collectives.group_role[row])],
            int(collectives.group_size[row]),
            strings[int(collectives.data_type[row])],
            int(collectives.bytes[row]),
            strings[int(collectives.group_ranks[row])],
            int(collectives.peer[row]),
            int(collectives.source_index[row]),
            strings[int(collectives.group[row])],
        )
        for row in sources
        if row != _UNKNOWN
    ]
    calls.append(Call(kind_of_name(library_op), "", MISSING, "", MISSING))
    calls.append(call_of_kernel_name(name))
    return Call(
        next((call.kind for call in calls if call.kind), ""),
        next((call.group_role for call in calls if call.group_role), ""),
        next((call.group_size for call in calls if call.group_size != MISSING), MISSING),
        next((call.data_type for call in calls if call.data_type), ""),
        next((call.bytes for call in calls if call.bytes != MISSING), MISSING),
        next((call.ranks for call in calls if call.ranks), ""),
        next((call.peer for call in calls if call.peer >= 0), _UNKNOWN),
        next((call.source_index for call in calls if call.source_index != MISSING), MISSING),
        next((call.group for call in calls if call.group), ""),
    )
