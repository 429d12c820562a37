"""Kernels by which HCCL itself runs a collective, beside the row that the profiler writes of the collective.

Of the two the row of the collective counts (`hcom_allReduce__501_0_1`). A kernel of HCCL without such a row, as a
profiler at a low level writes it, is the collective.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.profile import I64, MISSING, DeviceEvents, DeviceKind, Events, each_once, is_hccl_kernel
from tracker.timeline.collective_names import is_compute_kernel

Flags = NDArray[np.bool_]

SAME_TIME_NS: Final = 1_000
"""Two records of one kernel: their tables round times up or down, at most to whole microseconds."""

SAME_SHARE: Final = 0.9
"""Share of the time of a collective in which a kernel of the same time runs."""

_CORES: Final = re.compile(r"(?:KERNEL_)?(?:AI_?VEC\w*|MIX_AIV|AI_?CPU)", re.IGNORECASE)
"""Where HCCL's kernels run, as types of cores and of tasks say it: a cube core computes."""


def find_collectives(events: Events) -> I64:
    """Return for each device event the row of the collective of which it is a second record, or -1."""
    device = events.device
    found = np.full(len(device), -1, dtype=np.int64)
    named = are_hccl_kernels(events)
    collectives = np.flatnonzero((device.kind == DeviceKind.COMMUNICATION) & ~named)
    if not len(collectives):
        return found
    collectives = collectives[np.argsort(device.start_ns[collectives], kind="stable")]
    _find_around_named(device, np.flatnonzero(named), collectives, found)
    _find_of_same_time(events, collectives, found)
    return found


def hand_over_launches(events: Events, collective_of: I64) -> Events:
    """Return the events in which a collective without a launch of its own has that of its kernel, and one that was
    handed over at an unknown time the time of its kernel.

    collective_of: see `find_collectives`.
    """
    extras, correlation = events.extras, events.device.correlation.copy()
    handover_ns, handover_thread = extras.handover_ns.copy(), extras.handover_thread.copy()
    for kernel in np.flatnonzero(collective_of >= 0).tolist():
        collective = int(collective_of[kernel])
        if correlation[collective] <= 0:
            correlation[collective] = correlation[kernel]
        if len(handover_ns) and handover_ns[collective] == MISSING:
            handover_ns[collective] = handover_ns[kernel]
            handover_thread[collective] = handover_thread[kernel]
    return replace(
        events,
        device=replace(events.device, correlation=correlation),
        extras=replace(extras, handover_ns=handover_ns, handover_thread=handover_thread),
    )


def are_hccl_kernels(events: Events) -> Flags:
    """Return which device events are kernels of HCCL by their name, or by the type that the profiler gives them."""
    device, texts = events.device, events.strings.texts
    by_code = np.zeros(len(texts), dtype=bool)
    for code in each_once(np.concatenate((device.name, device.type))).tolist():
        by_code[code] = is_hccl_kernel(texts[code])
    found: Flags = by_code[device.name] | by_code[device.type]
    return found


def _find_around_named(device: DeviceEvents, kernels: I64, collectives: I64, found: I64) -> None:
    """Fill in the collective of each named kernel: the one with which it shares most time, where that is the larger
    part of one of the two.

    A kernel of the AI CPU begins before its collective, and waits until it has ended.
    """
    starts_ns, ends_ns = device.start_ns[collectives], device.end_ns[collectives]
    latest_ns = np.maximum.accumulate(ends_ns)
    for kernel in kernels.tolist():
        start_ns, end_ns = int(device.start_ns[kernel]), int(device.end_ns[kernel])
        first = int(np.searchsorted(latest_ns, start_ns, side="left"))
        last = int(np.searchsorted(starts_ns, end_ns, side="right"))
        if first >= last:
            continue
        near = slice(first, last)
        shared_ns = np.minimum(ends_ns[near], end_ns) - np.maximum(starts_ns[near], start_ns)
        shorter_ns = np.minimum(ends_ns[near] - starts_ns[near], end_ns - start_ns)
        is_same = (shared_ns >= 0) & (2 * shared_ns >= shorter_ns)
        if is_same.any():
            found[kernel] = collectives[first + int(np.argmax(np.where(is_same, shared_ns, -1)))]


def _find_of_same_time(events: Events, collectives: I64, found: I64) -> None:
    """Fill in the collective of each other kernel of a vector core or AI CPU that starts and ends with it."""
    device, texts = events.device, events.strings.texts
    may_run = np.zeros(len(texts), dtype=bool)
    for code in each_once(np.concatenate((device.core_type, device.name))).tolist():
        may_run[code] = _CORES.fullmatch(texts[code]) is not None
    computes = np.zeros(len(texts), dtype=bool)
    # a database without the table of kernels has no more of a kernel than the type of its task
    of_cores = (device.kind == DeviceKind.KERNEL) & (may_run[device.core_type] | may_run[device.name]) & (found < 0)
    for code in each_once(device.name[of_cores]).tolist():
        computes[code] = is_compute_kernel(texts[code])
    kernels = np.flatnonzero(of_cores & ~computes[device.name])
    kernels = kernels[np.argsort(device.start_ns[kernels], kind="stable")]
    starts_ns = device.start_ns[kernels]
    first = np.searchsorted(starts_ns, device.start_ns[collectives] - SAME_TIME_NS, side="left")
    last = np.searchsorted(starts_ns, device.start_ns[collectives] + SAME_TIME_NS, side="right")
    for place in np.flatnonzero(last > first).tolist():
        collective = int(collectives[place])
        start_ns, end_ns = int(device.start_ns[collective]), int(device.end_ns[collective])
        near = kernels[first[place] : last[place]]
        shared_ns = np.minimum(device.end_ns[near], end_ns) - np.maximum(device.start_ns[near], start_ns)
        # kernels of some microseconds begin and end near each other without being the same
        is_same = (np.abs(device.end_ns[near] - end_ns) <= SAME_TIME_NS) & (
            shared_ns >= SAME_SHARE * (end_ns - start_ns)
        )
        found[near[is_same & (shared_ns > 0)]] = collective
