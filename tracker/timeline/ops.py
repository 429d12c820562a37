"""Ops summed per step and key: host time, device time, spread per call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.profile import F64, I64, MISSING, Table
from tracker.timeline.aggregate import group_by
from tracker.timeline.joined import Joined
from tracker.timeline.stacks import most_frequent_stacks


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """Per op instance: time and number of the device events that it launched itself, and of all launched below it too."""

    self_ns: I64
    total_ns: I64
    self_count: I64
    total_count: I64


@dataclass(frozen=True, slots=True)
class Slots:
    """One slot per (step, op key) that gets a row, in order; `of_op`: the slot of each op instance."""

    step: I64
    op_key: I64
    of_op: I64
    ids: I64
    key_count: int
    first_step: int

    def at(self, step: I64, op_key: I64) -> I64:
        """The slot of each (step, key); it must have one."""
        return np.searchsorted(self.ids, (step - self.first_step) * self.key_count + op_key)

    def zeros(self) -> I64:
        """A sum to be, per slot."""
        return np.zeros(len(self.ids), dtype=np.int64)

    def missing(self) -> I64:
        """A column in which nothing is known yet."""
        return np.full(len(self.ids), MISSING, dtype=np.int64)


def device_time(joined: Joined) -> DeviceTime:
    """The device time of each op instance. Below means in the calling tree: a backward op is not below its forward op."""
    count = len(joined.events.ops)
    rows = np.flatnonzero(joined.op >= 0)
    device = joined.events.device
    self_ns = np.zeros(count, dtype=np.int64)
    np.add.at(self_ns, joined.op[rows], (device.end_ns - device.start_ns)[rows])
    self_count = np.bincount(joined.op[rows], minlength=count).astype(np.int64)
    return DeviceTime(self_ns, joined.tree.summed_up(self_ns), self_count, joined.tree.summed_up(self_count))


def op_table(joined: Joined, instances: DeviceTime) -> Table:
    """Per step and op key: calls, host and device time, spread per call, number of device events launched by the op itself.

    Totals, min, max and squares count the outermost of nested instances of one key; calls and self count all. Host time
    counts in the step in which the op starts, device time in that of the device event, so that it agrees with the kernels.
    min, max, squares: device total per call, or host total where the capture has no device.
    """
    outermost = ~joined.tree.lies_in_equal(joined.keys.of_op)
    slots = _slots(joined)
    device_columns = _device_columns(joined, slots, outermost)
    columns: dict[str, Any] = {"step": slots.step, "op_key": slots.op_key, **_host_columns(joined, slots, outermost)}
    columns |= {name: device_columns[name] for name in ("device_total_ns", "device_self_ns", "kernel_count")}
    per_call = instances.total_ns if joined.on_device else joined.tree.end_ns - joined.tree.start_ns
    columns |= _spread(slots, outermost, per_call)
    if not joined.events.host_is_primary:
        kept = device_columns["events_below"] > 0
        columns = {name: column[kept] for name, column in columns.items()}
    stacks = most_frequent_stacks(joined)
    columns["call_stack"] = [stacks[key] for key in columns["op_key"].tolist()]
    return columns


def _slots(joined: Joined) -> Slots:
    """The (step, key) pairs of all ops, of all device events' ops, and of all ops around those."""
    key_count = len(joined.keys)
    first_step = min(int(joined.op_step.min(initial=0)), int(joined.step.min(initial=0)))
    of_op = (joined.op_step - first_step) * key_count + joined.keys.of_op
    ids = [of_op, (joined.step - first_step) * key_count + joined.op_key]
    for events, op in _chains(joined):
        elsewhere = joined.op_step[op] != joined.step[events]
        ids.append((joined.step[events] - first_step)[elsewhere] * key_count + joined.keys.of_op[op[elsewhere]])
    distinct = np.unique(np.concatenate(ids))
    return Slots(
        distinct // key_count + first_step,
        distinct % key_count,
        np.searchsorted(distinct, of_op),
        distinct,
        key_count,
        first_step,
    )


def _chains(joined: Joined) -> Iterator[tuple[I64, I64]]:
    """(device events, ops): first the op that launched each event, then the op around that, and so on up to the roots."""
    events = np.flatnonzero(joined.op >= 0)
    op = joined.op[events]
    while len(events):
        yield events, op
        op = joined.tree.parent[op]
        events, op = events[op >= 0], op[op >= 0]


def _host_columns(joined: Joined, slots: Slots, outermost: NDArray[np.bool_]) -> dict[str, I64]:
    calls, total, own = slots.zeros(), slots.zeros(), slots.zeros()
    np.add.at(calls, slots.of_op, 1)
    duration = joined.tree.end_ns - joined.tree.start_ns
    np.add.at(total, slots.of_op[outermost], duration[outermost])
    np.add.at(own, slots.of_op, joined.tree.self_ns())
    pseudo = (calls == 0) & np.isin(slots.op_key, [joined.keys.unlinked, joined.keys.no_op])
    if not joined.events.host_is_primary:
        pseudo[:] = True
    return {
        "calls": calls,
        "host_total_ns": np.where(pseudo, MISSING, total),
        "host_self_ns": np.where(pseudo, MISSING, own),
    }


def _device_columns(joined: Joined, slots: Slots, outermost: NDArray[np.bool_]) -> dict[str, I64]:
    device = joined.events.device
    duration = device.end_ns - device.start_ns
    own, total, count, below = slots.zeros(), slots.zeros(), slots.zeros(), slots.zeros()
    slot = slots.at(joined.step, joined.op_key)
    np.add.at(own, slot, duration)
    np.add.at(count, slot, 1)
    without_op = joined.op < 0
    np.add.at(total, slot[without_op], duration[without_op])
    np.add.at(below, slot[without_op], 1)
    for events, op in _chains(joined):
        counted = outermost[op]
        place = slots.at(joined.step[events[counted]], joined.keys.of_op[op[counted]])
        np.add.at(total, place, duration[events[counted]])
        np.add.at(below, place, 1)
    return {"device_self_ns": own, "device_total_ns": total, "kernel_count": count, "events_below": below}


def _spread(slots: Slots, outermost: NDArray[np.bool_], per_call: I64) -> dict[str, I64 | F64]:
    groups = group_by(slots.of_op[outermost])
    at = slots.of_op[outermost][groups.first]
    values = per_call[outermost]
    smallest, largest = slots.missing(), slots.missing()
    squares = np.full(len(slots.ids), np.nan)
    smallest[at], largest[at] = groups.smallest(values), groups.largest(values)
    squares[at] = groups.sums_of_squares(values)
    return {"min_ns": smallest, "max_ns": largest, "sum_squares_ns2": squares}
