"""What cannot be: a device that does two things at once on one stream, a host that waits for nothing, steps without
most of the work.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from tracker.columns import I64, Flags
from tracker.profile import NO_STEP, DeviceKind, Events, LaunchLevel, each_once
from tracker.timeline.defects import Defect, Lost, make_defect
from tracker.timeline.idle_gaps import find_gaps
from tracker.timeline.intervals import NO_SPANS, Spans, outside_ns, union
from tracker.timeline.joined import Joined
from tracker.timeline.links import graph_launches, launches_of
from tracker.timeline.lost_launches import launching_calls
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


def check_streams(events: Events, order: I64) -> tuple[I64, tuple[Defect, ...]]:
    """Return the end of each device event, and what was found where kernels of one stream overlap.

    Kernels of one stream run one after another. Where launches ahead alone overlap, each kernel counts to the start of
    the next one that outlasts it. `order`: the rows by stream, start and end.
    """
    device = events.device
    # a collective of HCCL and the kernel that runs it are one thing on one stream
    kernels = order[device.kind[order] == DeviceKind.KERNEL]
    doubled_ns, all_ns = _time_counted_twice(events, kernels)
    if doubled_ns <= _MOST_DOUBLED * all_ns:
        return device.end_ns, ()
    doubled = doubled_ns / all_ns
    others = kernels[~_are_launched_ahead(events)[kernels]]
    doubled_ns, _ = _time_counted_twice(events, others)
    if doubled_ns > _MOST_DOUBLED * all_ns:
        return device.end_ns, (make_defect("time counted twice", share=_percent(doubled_ns / all_ns)),)
    ends_ns = device.end_ns.copy()
    before, after = kernels[:-1], kernels[1:]
    # one within another is a branch of a graph: to cut the outer one would take time away in which the device works
    is_cut = (device.stream[before] == device.stream[after]) & (device.end_ns[before] <= device.end_ns[after])
    ends_ns[before[is_cut]] = np.minimum(device.end_ns[before], device.start_ns[after])[is_cut]
    return ends_ns, (make_defect("early launches", share=_percent(doubled)),)


def _time_counted_twice(events: Events, rows: I64) -> tuple[int, int]:
    """Return by how much the times of these device events, by stream and start, add up to more than the time in which
    their streams are busy, and what they add up to, in ns.
    """
    device = events.device
    start_ns, end_ns = device.start_ns[rows], device.end_ns[rows]
    all_ns = int((end_ns - start_ns).sum())
    stream = device.stream[rows]
    # the usual capture needs no more than this look
    overlaps = (stream[1:] == stream[:-1]) & (end_ns[:-1] > start_ns[1:])
    if not overlaps.any():
        return 0, all_ns
    busy_ns = 0
    for one in each_once(stream).tolist():
        own = stream == one
        busy_ns += union(start_ns[own], end_ns[own]).total_ns
    return all_ns - busy_ns, all_ns


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
    gaps = find_gaps(joined, NO_SPANS)
    if gaps is None:
        return []
    in_vain_ns = int(np.maximum(idle_ns - gaps.latency_ns, 0).sum())
    if in_vain_ns <= _MOST_WAITED * all_ns:
        return []
    what = "the steps" if len(markers) else "the capture"
    return [make_defect("waits without work", share=_percent(in_vain_ns / all_ns), what=what)]


def waits_in_each_step(joined: Joined) -> bool:
    """Return whether the host waits for the device behind the last launch of each step, within its marker, so that the
    step is as long as it.
    """
    events, launches = joined.events, joined.events.launches
    if not len(events.markers) or not joined.windows.are_of_device:
        return False
    waits_ns, _ = _spans_of_waits(events)
    calls_ns = launches.start_ns[launching_calls(joined) | graph_launches(events)]
    last_wait_ns, last_call_ns = (_last_of_steps(events, times_ns) for times_ns in (waits_ns, calls_ns))
    return all(last_wait_ns.get(step, -1) > last_call_ns.get(step, -1) for step in joined.steps)


def _last_of_steps(events: Events, times_ns: I64) -> dict[int, int]:
    """Return step -> the last of these times within its markers."""
    last_ns: dict[int, int] = {}
    ordered = np.sort(times_ns)
    for step, time_ns in zip(steps_at(events.markers, ordered).tolist(), ordered.tolist(), strict=True):
        last_ns[step] = time_ns
    return last_ns


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
