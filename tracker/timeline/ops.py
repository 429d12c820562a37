"""Ops summed per step and key: host time, device time, spread per call."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.profile import F64, I64, MISSING, Table
from tracker.timeline.aggregate import group_by
from tracker.timeline.joined import Joined
from tracker.timeline.slots import Slots, launching_chains, slots_with_device_work
from tracker.timeline.stacks import OpStacks, most_frequent_stacks


def op_table(joined: Joined, stacks: OpStacks) -> Table:
    """Per step and op key: calls, host and device time, spread per call, device events launched by the op itself.

    Totals, min, max and squares count the outermost of nested instances of one key; calls and self count all. Host time
    counts in the step in which the op starts, device time in that of the device event, so that it agrees with the
    kernels. min, max, squares: device total per call, or host total where the capture has no device. The second and
    further devices of a process leave calls and host time to the first.
    """
    keys = joined.keys
    outermost = ~joined.tree.lies_in_equal(keys.of_op)
    slots = slots_with_device_work(joined, keys.of_op, joined.op_key, len(keys))
    device = _device_columns(joined, slots, outermost)
    spread = _spread(joined, slots, outermost)
    columns: dict[str, Any] = {
        "step": slots.step,
        "op_key": slots.code,
        **_host_columns(joined, slots, outermost),
        "device_total_ns": device["device_total_ns"],
        "device_self_ns": device["device_self_ns"],
        **spread,
        "kernel_count": device["kernel_count"],
    }
    if not joined.events.host_is_primary:
        kept = device["events_below"] > 0
        columns = {name: column[kept] for name, column in columns.items()}
    best = most_frequent_stacks(joined.events, keys, stacks)
    columns["call_stack"] = [best[key] for key in columns["op_key"].tolist()]
    return columns


def _host_columns(joined: Joined, slots: Slots, outermost: NDArray[np.bool_]) -> dict[str, I64]:
    slot = slots.at(joined.op_step, joined.keys.of_op)
    calls = slots.counted(slot)
    duration = joined.tree.end_ns - joined.tree.start_ns
    total = slots.summed(slot[outermost], duration[outermost])
    own = slots.summed(slot, joined.tree.self_ns())
    unknown = (calls == 0) & np.isin(slots.code, [joined.keys.unlinked, joined.keys.no_op])
    unknown |= not joined.events.host_is_primary
    return {
        "calls": calls if joined.events.host_is_primary else np.full_like(calls, MISSING),
        "host_total_ns": np.where(unknown, MISSING, total),
        "host_self_ns": np.where(unknown, MISSING, own),
    }


def _device_columns(joined: Joined, slots: Slots, outermost: NDArray[np.bool_]) -> dict[str, I64]:
    device = joined.events.device
    duration = device.end_ns - device.start_ns
    slot = slots.at(joined.step, joined.op_key)
    without_op = joined.op < 0
    total = slots.summed(slot[without_op], duration[without_op])
    below = slots.counted(slot[without_op])
    for events, op in launching_chains(joined):
        counted = outermost[op]
        place = slots.at(joined.step[events[counted]], joined.keys.of_op[op[counted]])
        total += slots.summed(place, duration[events[counted]])
        below += slots.counted(place)
    return {
        "device_total_ns": total,
        "device_self_ns": slots.summed(slot, duration),
        "kernel_count": slots.counted(slot),
        "events_below": below,
    }


def _spread(joined: Joined, slots: Slots, outermost: NDArray[np.bool_]) -> dict[str, I64 | F64]:
    """Smallest, largest and sum of squares per call."""
    if joined.on_device:
        device = joined.events.device
        launched = joined.op >= 0
        own = np.zeros(len(joined.tree), dtype=np.int64)
        np.add.at(own, joined.op[launched], (device.end_ns - device.start_ns)[launched])
        per_call = joined.tree.summed_up(own)[outermost]
    else:
        per_call = (joined.tree.end_ns - joined.tree.start_ns)[outermost]
    slot = slots.at(joined.op_step, joined.keys.of_op)[outermost]
    groups = group_by(slot)
    at = slot[groups.first]
    smallest, largest = (np.full(len(slots), MISSING, dtype=np.int64) for _ in range(2))
    squares = np.full(len(slots), np.nan)
    smallest[at], largest[at] = groups.smallest(per_call), groups.largest(per_call)
    squares[at] = groups.sums_of_squares(per_call)
    return {"min_ns": smallest, "max_ns": largest, "sum_squares_ns2": squares}
