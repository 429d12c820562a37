"""Ops summed per step and key: host time, device time, spread per call."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import F64, I64, MISSING, ROW_COLUMNS, Table
from tracker.schema.series import BY_CALLS
from tracker.table import group_rows, look_up_texts, sort_within
from tracker.timeline.contexts import ContextWork, Slots, slots_of
from tracker.timeline.joined import Joined
from tracker.timeline.stacks import OpStacks, most_frequent_stacks

_QUANTILES: Final = (0.25, 0.5)
"""The quantile of the calls that each column of BY_CALLS takes."""


def op_table(joined: Joined, work: ContextWork, stacks: OpStacks) -> Table:
    """Return a row per step and op key: calls, host and device time, spread per call, device events that it launched.

    Totals, min, max and squares count the outermost of nested instances of one key; calls and self count all. Host time
    counts in the step in which the op starts, device time in that of the device event, so that it agrees with the
    kernels. min, max, squares: device total per call, or host total where the capture has no device. The second and
    further devices of a process leave calls and host time to the first.
    """
    keys = joined.keys
    outermost = ~joined.tree.lies_in_equal(keys.of_op)
    code = work.contexts.op_key[work.slots.code]
    worked = work.count > 0
    slots = slots_of([(joined.op_step, keys.of_op), (work.slots.step[worked], code[worked])])
    # all ops of a context lie in one of the same key, or none does
    counted = np.ones(len(work.contexts.parent), dtype=bool)
    counted[work.contexts.of_op] = outermost
    device = _sum_device_work(joined, work, slots, np.flatnonzero(worked & counted[work.slots.code]))
    slot = slots.at(joined.op_step, keys.of_op)
    numbers: dict[str, I64 | F64] = {
        "step": slots.step,
        "op_key": slots.code,
        **_host_columns(joined, slots, slot, outermost),
        "device_total_ns": device.total_ns,
        "device_self_ns": device.self_ns,
        **_spread(joined, slots, slot, outermost),
        "kernel_count": device.kernel_count,
        # only sums of a profiler state them beside a device: in a trace they cost 7 % of a database, unread
        **{name: np.full(len(slots), MISSING, dtype=np.int64) for name in ("host_min_ns", "host_max_ns")},
        **_times_by_calls(joined, slots, slot),
    }
    op_key, raw_name = slots.code, _raw_names(joined, slots, slot)
    if not joined.events.host_is_primary:
        kept = device.events_below > 0
        numbers = {name: column[kept] for name, column in numbers.items()}
        op_key, raw_name = op_key[kept], raw_name[kept]
    best = most_frequent_stacks(joined.events, keys, stacks)
    columns: Table = {
        **numbers,
        "raw_name": look_up_texts(raw_name, joined.events.strings.texts),
        "call_stack": [best[key] for key in op_key.tolist()],
    }
    return {name: columns[name] for name in ROW_COLUMNS["op"]}


def _raw_names(joined: Joined, slots: Slots, slot: I64) -> I64:
    """Return the code of the name as it was written per slot, of several the first in time; 0 where it is the key's.

    slot: that of each op.
    """
    codes = np.zeros(len(slots), dtype=np.int64)
    if not len(joined.raw_name):
        return codes
    rows = np.flatnonzero(joined.raw_name)
    # of several values for one place the last one is kept
    rows = rows[np.argsort(-joined.events.ops.start_ns[rows], kind="stable")]
    codes[slot[rows]] = joined.raw_name[rows]
    return codes


def _host_columns(joined: Joined, slots: Slots, slot: I64, outermost: NDArray[np.bool_]) -> dict[str, I64]:
    """Return calls and times of the host per slot. slot: that of each op."""
    calls = slots.counts(slot)
    duration = joined.tree.end_ns - joined.tree.start_ns
    total = slots.sums(slot[outermost], duration[outermost])
    own = slots.sums(slot, joined.tree.self_ns())
    unknown = (calls == 0) & np.isin(slots.code, [joined.keys.unlinked, joined.keys.no_op])
    unknown |= not joined.events.host_is_primary
    return {
        "calls": calls if joined.events.host_is_primary else np.full_like(calls, MISSING),
        "host_total_ns": np.where(unknown, MISSING, total),
        "host_self_ns": np.where(unknown, MISSING, own),
    }


class _DeviceWork(Struct, frozen=True, eq=False):
    """What the device does per slot. `self_ns`, `kernel_count`: what the ops launched themselves; `total_ns`,
    `events_below`: with what was launched below them.
    """

    total_ns: I64
    self_ns: I64
    kernel_count: I64
    events_below: I64


def _sum_device_work(joined: Joined, work: ContextWork, slots: Slots, counted: I64) -> _DeviceWork:
    """Return what the device does per slot. `counted`: those of `work` that count to totals of an op key."""
    device = joined.events.device
    own = slots.at(joined.step, joined.op_key)
    slot = slots.at(work.slots.step[counted], work.contexts.op_key[work.slots.code[counted]])
    return _DeviceWork(
        total_ns=slots.sums(slot, work.total_ns[counted]),
        self_ns=slots.sums(own, device.end_ns - device.start_ns),
        kernel_count=slots.counts(own),
        events_below=slots.sums(slot, work.count[counted]),
    )


def _spread(joined: Joined, slots: Slots, slot: I64, outermost: NDArray[np.bool_]) -> dict[str, I64 | F64]:
    """Return the smallest, the largest and the sum of squares per call. slot: that of each op."""
    if joined.on_device:
        device = joined.events.device
        launched = joined.op >= 0
        own = np.zeros(len(joined.tree), dtype=np.int64)
        np.add.at(own, joined.op[launched], (device.end_ns - device.start_ns)[launched])
        per_call = joined.tree.summed_up(own)[outermost]
    else:
        per_call = (joined.tree.end_ns - joined.tree.start_ns)[outermost]
    slot = slot[outermost]
    groups = group_rows(slot)
    at = slot[groups.first]
    smallest, largest = (np.full(len(slots), MISSING, dtype=np.int64) for _ in range(2))
    squares = np.full(len(slots), np.nan)
    smallest[at], largest[at] = groups.smallest(per_call), groups.largest(per_call)
    squares[at] = groups.sums_of_squares(per_call)
    return {"min_ns": smallest, "max_ns": largest, "sum_squares_ns2": squares}


def _times_by_calls(joined: Joined, slots: Slots, slot: I64) -> dict[str, I64]:
    """Return the own time of the host per slot, had each call taken the lower quartile, or the median, of its calls.

    Time that a few calls lose to the machine is in neither. slot: that of each op. MISSING beside a device, and where
    a slot has no call.
    """
    times = {name: np.full(len(slots), MISSING, dtype=np.int64) for name in BY_CALLS}
    if joined.on_device:
        return times
    calls = slots.counts(slot)
    # the calls of a slot lie side by side, the shortest first
    self_ns = sort_within(slot, joined.tree.self_ns())
    first = np.cumsum(calls) - calls
    called = np.flatnonzero(calls)
    calls, first = calls[called], first[called]
    for name, quantile in zip(BY_CALLS, _QUANTILES, strict=True):
        # linear between neighbours, as everywhere
        position = quantile * (calls - 1)
        low = np.floor(position).astype(np.int64)
        high = np.minimum(low + 1, calls - 1)
        below, above = self_ns[first + low], self_ns[first + high]
        time_per_call = below + (above - below) * (position - low)
        times[name][called] = np.rint(calls * time_per_call)
    return times
