"""What cannot be: a device that does two things at once on one stream, a host that waits for nothing, steps without
most of the work.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracker.columns import I64, Flags
from tracker.profile import NO_STEP, DeviceKind, Events, LaunchLevel, each_once
from tracker.timeline.defects import Defect, Lost, make_defect
from tracker.timeline.idle_gaps import find_gaps
from tracker.timeline.intervals import Spans, outside_ns, union
from tracker.timeline.joined import Joined
from tracker.timeline.links import launches_of
from tracker.timeline.steps import steps_at
from tracker.timeline.windows import first_linked_start
from tracker.units import format_ns, time_unit

_MOST_DOUBLED: Final = 0.02
"""Share of the time of kernels that counts twice. In 56 real captures at most 0.02 %, in one more 0.64 %."""
_MOST_WAITED: Final = 0.05
"""Share of the steps in which the host waits for a device that does nothing. In 56 real captures at most 2.1 %."""
_MOST_OUTSIDE: Final = 0.5
"""Share of the work of the device in no step. In 56 real captures at most 32 %."""
_LAUNCHES_AHEAD: Final = re.compile(r"\w*(?:GraphLaunch|LaunchKernelEx)")
"""Calls whose kernels may begin before the one before them on their stream has ended: branches of a graph, programmatic
dependent launch.
"""
_WAITS: Final = re.compile(r"\w*(?:Device|Stream|Event|Ctx|Context|Queue|Host)Synchronize|urQueueFinish|urEventWait")
_CALLS: Final = (LaunchLevel.RUNTIME, LaunchLevel.DRIVER)
_NO_SPANS: Final = Spans(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def check_streams(events: Events, order: I64) -> tuple[I64, tuple[Defect, ...]]:
    """Return the end of each device event, and what was found where kernels of one stream overlap.

    Kernels of one stream run one after another. Where launches ahead alone overlap, each kernel counts to the start of
    the next one. `order`: the rows by stream, start and end.
    """
    device = events.device
    # a collective of HCCL and the kernel that runs it are one thing on one stream
    kernels = order[device.kind[order] == DeviceKind.KERNEL]
    doubled = _share_counted_twice(device.stream, device.start_ns, device.end_ns, kernels)
    if doubled <= _MOST_DOUBLED:
        return device.end_ns, ()
    others = kernels[~_are_launched_ahead(events)[kernels]]
    of_others = _share_counted_twice(device.stream, device.start_ns, device.end_ns, others)
    if of_others > _MOST_DOUBLED:
        return device.end_ns, (make_defect("time counted twice", share=_percent(of_others)),)
    ends_ns = device.end_ns.copy()
    before, after = kernels[:-1], kernels[1:]
    same_stream = device.stream[before] == device.stream[after]
    ends_ns[before[same_stream]] = np.minimum(device.end_ns[before], device.start_ns[after])[same_stream]
    return ends_ns, (make_defect("early launches", share=_percent(doubled)),)


def _share_counted_twice(stream: NDArray[np.int64], start_ns: I64, end_ns: I64, rows: I64) -> float:
    """Return by how much the times of these events, by stream and start, add up to more than the time in which their
    streams are busy, as a share of the sum.
    """
    if len(rows) < 2:
        return 0.0
    all_ns = int((end_ns[rows] - start_ns[rows]).sum())
    is_next = stream[rows[1:]] == stream[rows[:-1]]
    # the usual capture needs no more than this look
    overlap_ns = (end_ns[rows[:-1]] - start_ns[rows[1:]])[is_next]
    if not all_ns or not (overlap_ns > 0).any():
        return 0.0
    busy_ns = 0
    for one in each_once(stream[rows]).tolist():
        own = rows[stream[rows] == one]
        busy_ns += union(start_ns[own], end_ns[own]).total_ns
    return (all_ns - busy_ns) / all_ns


def _are_launched_ahead(events: Events) -> Flags:
    """Return which device events may begin before the one before them has ended, by the call that launched them."""
    texts, launch = events.strings.texts, launches_of(events)
    is_ahead = np.zeros(len(texts), dtype=bool)
    for code in each_once(events.launches.name).tolist():
        is_ahead[code] = bool(_LAUNCHES_AHEAD.match(texts[code]))
    found = np.zeros(len(launch), dtype=bool)
    found[launch >= 0] = is_ahead[events.launches.name[launch[launch >= 0]]]
    return found


def check_waits(joined: Joined) -> list[Defect]:
    """Check that something runs while the host waits for the device.

    Not on Ascend, where whole captures have up to 5.4 %; nor where a part of the work, or of the devices, is not in
    these events.
    """
    events, markers = joined.events, joined.events.markers
    if joined.is_npu or not joined.on_device or len(events.extras.served_elsewhere):
        return []
    # a call of the runtime and the one of the driver in it are one wait, and so are those of several threads at once
    waits = union(*_spans_of_waits(events))
    if len(markers):
        is_in_step = steps_at(markers, waits.start_ns) != NO_STEP
        waits = Spans(waits.start_ns[is_in_step], waits.end_ns[is_in_step])
    all_ns = joined.last_ns - joined.first_ns
    if len(markers):
        all_ns = sum(joined.windows.spans_of(step).total_ns for step in joined.steps)
    idle_ns = outside_ns(waits.start_ns, waits.end_ns, union(events.device.start_ns, events.device.end_ns))
    # the usual capture needs no more than this look
    if idle_ns.sum() <= _MOST_WAITED * all_ns:
        return []
    gaps = find_gaps(joined, _NO_SPANS)
    if gaps is None:
        return []
    in_vain_ns = int(np.maximum(idle_ns - gaps.latency_ns, 0).sum())
    if in_vain_ns <= _MOST_WAITED * all_ns:
        return []
    what = "the steps" if len(markers) else "the capture"
    return [make_defect("waits without work", share=_percent(in_vain_ns / all_ns), what=what)]


def waits_in_each_step(joined: Joined) -> bool:
    """Return whether the host waits for the device within each marker of a step, so that the step is as long as it."""
    events = joined.events
    if not len(events.markers) or not joined.windows.are_of_device:
        return False
    start_ns, _ = _spans_of_waits(events)
    return set(joined.steps) <= set(steps_at(events.markers, start_ns).tolist())


def _spans_of_waits(events: Events) -> tuple[I64, I64]:
    """Return when calls that wait for the device begin and end."""
    launches, texts = events.launches, events.strings.texts
    waits = np.zeros(len(texts), dtype=bool)
    for code in each_once(launches.name).tolist():
        waits[code] = bool(_WAITS.match(texts[code]))
    rows = np.flatnonzero(waits[launches.name] & np.isin(launches.level, _CALLS))
    return launches.start_ns[rows], launches.end_ns[rows]


def check_work_in_steps(joined: Joined) -> Lost:
    """Check that the steps hold at least half of the work of the device that came after the start of the first one.
    What was launched before it is warm-up.
    """
    device, markers = joined.events.device, joined.events.markers
    is_marked = markers.step != NO_STEP
    if not len(device) or not is_marked.any():
        return Lost(())
    first_ns = int(markers.start_ns[is_marked].min())
    is_linked = joined.launch >= 0
    begun_ns = device.start_ns.copy()
    begun_ns[is_linked] = joined.events.launches.start_ns[joined.launch[is_linked]]
    # what a stream runs before its first launch of the capture was queued before that
    is_queued = ~is_linked & (device.start_ns < first_linked_start(device, is_linked))
    is_after = (begun_ns >= first_ns) & ~is_queued
    duration_ns = device.end_ns - device.start_ns
    is_outside = is_after & (joined.step == NO_STEP)
    work_ns, stray_ns = int(duration_ns[is_after].sum()), int(duration_ns[is_outside].sum())
    if stray_ns <= _MOST_OUTSIDE * work_ns:
        return Lost(())
    outside, work = (format_ns(time_ns, time_unit(work_ns)) for time_ns in (stray_ns, work_ns))
    share = _percent(stray_ns / work_ns)
    found = make_defect("work outside of the steps", share=share, outside=outside, work=work)
    return Lost((found,), is_whole=True)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
