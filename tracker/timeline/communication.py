"""Collective calls: which there were, how long, how much of it was exposed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracker.profile import I64, MISSING, Table
from tracker.timeline.aggregate import Groups, group_by
from tracker.timeline.breakdown import device_unions, host_collectives, host_unions
from tracker.timeline.intervals import subtract, union
from tracker.timeline.joined import Joined, Work
from tracker.timeline.names import canonical_name
from tracker.timeline.steps import steps_at

_KINDS = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "allgatherbase": "all_gather",
    "allgatherintotensor": "all_gather",
    "reducescatter": "reduce_scatter",
    "reducescatterbase": "reduce_scatter",
    "reducescattertensor": "reduce_scatter",
    "alltoall": "all_to_all",
    "alltoallv": "all_to_all",
    "alltoallbase": "all_to_all",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "sendrecv": "send_recv",
    "send": "send",
    "recv": "recv",
    "barrier": "barrier",
    "gather": "gather",
    "scatter": "scatter",
}
# ncclKernel_AllReduce_RING_LL_Sum_float (NCCL to 2.17), ncclDevKernel_AllReduce_Sum_f32_RING_LL (since)
_KERNEL_KIND = re.compile(r"(?:nccl|rccl)\w*?(?:dev)?kernel_([a-z]+)", re.IGNORECASE)
_TYPES = {
    "f32": "float", "float": "float", "float32": "float", "f64": "double", "double": "double", "float64": "double",
    "f16": "half", "half": "half", "float16": "half", "bf16": "bfloat16", "bfloat16": "bfloat16",
    "i8": "int8", "int8_t": "int8", "int8": "int8", "char": "int8", "u8": "uint8", "uint8_t": "uint8", "byte": "uint8",
    "i32": "int", "int32_t": "int", "int": "int", "i64": "long", "int64_t": "long", "long": "long", "long int": "long",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """What tells one kind of collective call from another."""

    kind: str
    group_role: str
    group_size: int
    data_type: str
    bytes: int

    @property
    def size_class_bytes(self) -> int:
        """Bytes per call, rounded up to a power of two; -1 where the source does not say."""
        if self.bytes == MISSING:
            return -1
        return 1 << (self.bytes - 1).bit_length() if self.bytes > 0 else 0


@dataclass(frozen=True, slots=True)
class Tasks:
    """The spans that make up the collective calls, and to which step, call and kind of call (index into `calls`) each belongs.

    `call` numbers the calls; a call whose tasks are several kernels or copies is one call, its elapse the sum of their times.
    """

    start_ns: I64
    end_ns: I64
    step: I64
    name: list[str]
    call: I64
    of_kind: I64
    calls: Sequence[Call]


def collective_kind(text: str) -> str:
    """The one spelling of a kind of collective.

    >>> collective_kind("_allgather_base"), collective_kind("AllReduce"), collective_kind("nccl:all_to_all")
    ('all_gather', 'all_reduce', 'all_to_all')
    """
    plain = re.sub(r"[^a-z]", "", text.rsplit(":", 1)[-1].lower())
    return _KINDS.get(plain, text)


def data_type(text: str) -> str:
    """The one spelling of an element type.

    >>> data_type("c10::BFloat16"), data_type("f32"), data_type("Float")
    ('bfloat16', 'float', 'float')
    """
    plain = text.rsplit("::", 1)[-1].lower()
    return _TYPES.get(plain, plain)


def call_of_kernel_name(name: str) -> Call:
    """What the name of a collective kernel says, where nothing else does.

    >>> call_of_kernel_name("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)").data_type
    'float'
    """
    plain = canonical_name(name)
    match = _KERNEL_KIND.search(plain)
    kind = collective_kind(match.group(1)) if match else ""
    known_kind = kind if kind in _KINDS.values() else ""
    words = [word for word in re.split(r"_(?!t\b)", plain) if word.lower() in _TYPES]
    if not known_kind and plain.startswith("hcom_"):
        known_kind = collective_kind(plain.removeprefix("hcom_"))
    return Call(known_kind, "", MISSING, data_type(words[-1]) if words else "", MISSING)


def communication_tables(joined: Joined) -> dict[str, Table]:
    """Tables `communication` and `communication_task`, and `collective_calls` (see `tracker.profile.Rows`)."""
    tasks = _device_tasks(joined) if joined.on_device else _host_tasks(joined)
    columns = _kind_columns(tasks)
    of_task = group_by(tasks.step, *(column[tasks.of_kind] for column in columns))
    of_call = group_by(of_task.group, tasks.call)
    elapse = of_call.sums(tasks.end_ns - tasks.start_ns)
    row_of_call = of_task.group[of_call.first]
    rows = group_by(row_of_call)
    size_bytes = np.array([call.bytes for call in tasks.calls], dtype=np.int64)[tasks.of_kind[of_call.first]]
    first = tasks.of_kind[of_task.first].tolist()
    calls = [tasks.calls[index] for index in first]
    missing = np.full(len(of_task), MISSING, dtype=np.int64)
    communication: Table = {
        "step": tasks.step[of_task.first],
        "kind": [call.kind for call in calls],
        "group_role": [call.group_role for call in calls],
        "group_size": np.array([call.group_size for call in calls], dtype=np.int64),
        "data_type": [call.data_type for call in calls],
        "size_class_bytes": np.array([call.size_class_bytes for call in calls], dtype=np.int64),
        "calls": rows.counts,
        "bytes": rows.known_sums(size_bytes),
        "total_ns": rows.sums(elapse),
        "min_ns": rows.smallest(elapse),
        "max_ns": rows.largest(elapse),
        "sum_squares_ns2": rows.sums_of_squares(elapse),
        "transit_ns": missing,
        "wait_ns": missing.copy(),
        "synchronization_ns": missing.copy(),
        "idle_ns": missing.copy(),
        "exposed_ns": _exposed_ns(joined, tasks, of_task),
    }
    started = of_call.smallest(tasks.start_ns)
    order = np.lexsort((row_of_call, started))
    return {
        "communication": communication,
        "communication_task": _task_table(tasks, of_task),
        "collective_calls": {
            "communication": row_of_call[order],
            "start_ns": started[order],
            "elapse_ns": elapse[order],
        },
    }


def _kind_columns(tasks: Tasks) -> list[I64]:
    """The distinguishing columns of each call kind as integers that sort like their texts."""
    texts = sorted({text for call in tasks.calls for text in (call.kind, call.group_role, call.data_type)})
    place = {text: index for index, text in enumerate(texts)}
    rows = [
        (place[c.kind], place[c.group_role], c.group_size, place[c.data_type], c.size_class_bytes) for c in tasks.calls
    ]
    table = np.array(rows, dtype=np.int64).reshape(len(rows), 5)
    return [table[:, index] for index in range(5)]


def _task_table(tasks: Tasks, of_task: Groups) -> Table:
    names = [canonical_name(name) for name in tasks.name]
    place = {name: index for index, name in enumerate(sorted(set(names)))}
    groups = group_by(of_task.group, np.array([place[name] for name in names], dtype=np.int64))
    duration = tasks.end_ns - tasks.start_ns
    return {
        "communication": of_task.group[groups.first],
        "name": [names[row] for row in groups.first.tolist()],
        "plane": [""] * len(groups),
        "calls": groups.counts,
        "total_ns": groups.sums(duration),
        "min_ns": groups.smallest(duration),
        "max_ns": groups.largest(duration),
    }


def _exposed_ns(joined: Joined, tasks: Tasks, of_task: Groups) -> I64:
    """Per row the time in which its calls run and no compute of the same step does."""
    exposed = np.zeros(len(of_task), dtype=np.int64)
    steps = tasks.step[of_task.first]
    for step in np.unique(steps).tolist():
        compute = (
            device_unions(joined, joined.step == step).compute if joined.on_device else host_unions(joined).compute
        )
        for row in np.flatnonzero(steps == step).tolist():
            own = of_task.group == row
            exposed[row] = subtract(union(tasks.start_ns[own], tasks.end_ns[own]), compute).total_ns
    return exposed


def _device_tasks(joined: Joined) -> Tasks:
    """Device events of class communication.

    A kernel that carries its own collective is a call; others of one collective op (copies among them) are one call.
    """
    events, device = joined.events, joined.events.device
    rows = np.flatnonzero(joined.work == Work.COMMUNICATION)
    op = joined.op[rows]
    around = np.where(op >= 0, joined.collective_op[np.maximum(op, 0)], -1) if len(events.ops) else op
    own = device.collective[rows].astype(np.int64)
    around_collective = (
        np.where(around >= 0, events.ops.collective[np.maximum(around, 0)], -1) if len(events.ops) else around
    )
    collective = np.where(own >= 0, own, around_collective)
    by_op = (own < 0) & (around >= 0)
    call = np.where(by_op, around, len(events.ops) + np.arange(len(rows)))
    pairs = group_by(collective, device.name[rows].astype(np.int64))
    calls = [
        _call(joined, int(collective[row]), events.strings[int(device.name[rows[row]])]) for row in pairs.first.tolist()
    ]
    names = [events.strings[code] for code in device.name[rows].tolist()]
    of_kind = _one_kind_per_call(call, pairs.group, joined.is_kernel[rows])
    return Tasks(device.start_ns[rows], device.end_ns[rows], joined.step[rows], names, call, of_kind, calls)


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
    collective = ops.collective[rows].astype(np.int64)
    kinds = group_by(collective, ops.name[rows].astype(np.int64))
    calls = [
        _call(joined, int(collective[row]), events.strings[int(ops.name[rows[row]])]) for row in kinds.first.tolist()
    ]
    names = [events.strings[code] for code in ops.name[rows].tolist()]
    step = steps_at(events.markers, ops.start_ns[rows])
    return Tasks(ops.start_ns[rows], ops.end_ns[rows], step, names, np.arange(len(rows)), kinds.group, calls)


def _call(joined: Joined, collective: int, name: str) -> Call:
    """The call's description: what the source says of it, gaps filled from the kernel's name."""
    named = call_of_kernel_name(name)
    if collective < 0:
        return named
    collectives, strings = joined.events.collectives, joined.events.strings
    kind = strings[int(collectives.kind[collective])]
    element = strings[int(collectives.data_type[collective])]
    return Call(
        collective_kind(kind) if kind else named.kind,
        strings[int(collectives.group_role[collective])],
        int(collectives.group_size[collective]),
        data_type(element) if element else named.data_type,
        int(collectives.bytes[collective]),
    )
