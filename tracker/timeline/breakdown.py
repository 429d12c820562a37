"""Where the time of a rank went: compute, communication, copies and idle time, for the capture and for each step."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.profile import I64, MISSING, Breakdown, StepRow, each_once
from tracker.table import list_codes, split_rows_by_value
from tracker.timeline.idle_gaps import Gaps
from tracker.timeline.intervals import Spans, intersect, join, subtract, union
from tracker.timeline.joined import Joined, Work
from tracker.timeline.loading import find_loading
from tracker.timeline.memory_course import Course, framework_course
from tracker.timeline.step_kinds import kinds_of_steps
from tracker.timeline.steps import ONLY_STEP

# torch.distributed's dispatcher ops, its record of a call, and the backends' own events
_HANDS_OVER = re.compile(r"c10d::|record_param_comms$|(?:nccl|rccl|gloo|mpi|ucc|xccl|hccl):")

_HOST_LIBRARIES: Final = ("gloo:", "mpi:")

_NOT_OF_COLLECTIVES: Final = (
    "duration_ns", "e2e_ns", "compute_ns", "overlap_ns", "exposed_communication_ns", "copy_ns", "exposed_copy_ns",
    "idle_ns", "kernel_count", "kernel_total_ns", "compute_total_ns", "copy_total_ns", "unlinked_kernel_count",
    "unlinked_kernel_total_ns",
)  # fmt: skip
"""What no event tells of a rank of which the source has the collectives alone."""

_OF_COLLECTIVES: Final = (
    "e2e_ns", "communication_ns", "overlap_ns", "exposed_communication_ns", "idle_ns", "kernel_count",
    "kernel_total_ns", "communication_total_ns", "unlinked_kernel_count", "unlinked_kernel_total_ns",
)  # fmt: skip
"""What no event tells of a rank whose collectives are lost."""

_OF_DEVICE: Final = (
    "compute_ns", "communication_ns", "overlap_ns", "exposed_communication_ns", "copy_ns", "exposed_copy_ns", "idle_ns",
    "kernel_count", "kernel_total_ns", "compute_total_ns", "communication_total_ns", "copy_total_ns",
    "unlinked_kernel_count", "unlinked_kernel_total_ns",
)  # fmt: skip
"""What no event tells of a device of which the source has none: the host, which launches, does not stand in for it."""

_OF_KERNELS: Final = (*_OF_COLLECTIVES, "compute_ns", "exposed_copy_ns", "compute_total_ns")
"""What no event tells of a rank whose kernels the source does not have: collectives on a device are kernels as well."""

_OF_COPIES: Final = ("e2e_ns", "copy_ns", "exposed_copy_ns", "idle_ns", "copy_total_ns")
"""What no event tells of a rank whose copies the source does not have: a copy may be the first or the last thing that
the device did, and is no idle time.
"""

_OF_WINDOW: Final = (
    "duration_ns", "compute_ns", "communication_ns", "overlap_ns", "exposed_communication_ns", "copy_ns",
    "exposed_copy_ns", "idle_ns", "data_loading_ns", "data_loading_idle_ns", "host_idle_ns",
)  # fmt: skip
"""What is measured in the windows of a step."""

_OF_STEPS: Final = ("compute_ns", "communication_ns", "overlap_ns", "exposed_communication_ns", "idle_ns")
"""What the profiler says of a step itself."""


class Unions(Struct, frozen=True):
    """Merged spans of the three classes of work."""

    compute: Spans
    communication: Spans
    copy: Spans


class Chosen(Struct, frozen=True):
    """What one breakdown is about. `device`, `moments`, `stated`: rows of device events, of moments of the allocator
    and of `step_times`; `spans`: when it runs. `is_step`: a step with markers, whose parts add up to its windows; else
    the whole capture, whose parts add up to the time from the first to the last work of the device.
    """

    device: I64
    moments: I64
    stated: I64
    spans: Spans
    is_step: bool


class Whole(Struct, frozen=True):
    """Made once per capture: the work of the device, or what stands in for it on the host; the waits for the data
    loader, the part of them in which the device did nothing (None where its work is not known), when the device waits
    for the host (None where launches are not known), and the course of the framework's memory. `host_calls`: of
    collectives by the host beside a device.
    """

    unions: Unions
    data_loading: Spans | None
    idle_loading: Spans | None
    host_idle: Spans | None
    memory: Course
    host_calls: Spans


def breakdowns(joined: Joined, gaps: Gaps | None, idle_loading: Spans | None) -> tuple[Breakdown, tuple[StepRow, ...]]:
    """Return the breakdown of the whole capture, with all that lies outside of the steps, and one row per step.

    A capture without markers is one step. gaps: in the work of the device, None where they are not known, and so it is
    with `idle_loading`: when the device idles for want of data.
    """
    stated = joined.events.extras.step_times
    course = framework_course(joined.events)
    loading = find_loading(joined.events, joined.loads, joined.launching_threads)
    every_event = np.arange(len(joined.step))
    unions = device_unions(joined, every_event) if joined.on_device else host_unions(joined)
    whole = Whole(
        unions,
        loading,
        _idle_loading(joined, loading, gaps, idle_loading),
        _host_idle(joined, gaps),
        course,
        host_calls=host_calls(joined),
    )
    capture = _one_span(joined.first_ns, joined.last_ns)
    everything = Chosen(every_event, np.arange(len(course.step)), np.arange(len(stated)), capture, is_step=False)
    overall = _breakdown(joined, whole, everything)
    if not len(joined.events.markers):
        # the rows of the one step of a capture are all rows
        return overall, (StepRow(ONLY_STEP, 0, overall),)
    device_rows, moments = split_rows_by_value(joined.step), split_rows_by_value(course.step)
    none = np.zeros(0, dtype=np.int64)
    has_marker = joined.windows.are_of_device and joined.has_host
    kinds = kinds_of_steps(joined.events)
    rows = []
    for step in joined.steps:
        chosen = Chosen(
            device=device_rows.get(step, none),
            moments=moments.get(step, none),
            stated=np.flatnonzero(stated.step == step),
            spans=joined.windows.spans_of(step),
            is_step=True,
        )
        start_ns = joined.windows.start_of(step) - joined.first_ns
        marker_ns = joined.windows.marker_of(step) if has_marker else None
        kind = kinds.get(step, "")
        rows.append(StepRow(step, start_ns, _breakdown(joined, whole, chosen), marker_ns=marker_ns, kind=kind))
    return overall, tuple(rows)


def host_calls(joined: Joined) -> Spans:
    """Return the spans of collectives by the host where there is a device; each of them, not merged."""
    ops = joined.events.ops
    rows = host_collectives(joined) if joined.on_device else np.zeros(0, dtype=np.int64)
    return Spans(ops.start_ns[rows], ops.end_ns[rows])


def _one_span(start_ns: int, end_ns: int) -> Spans:
    return Spans(np.array([start_ns], dtype=np.int64), np.array([end_ns], dtype=np.int64))


def device_unions(joined: Joined, rows: I64) -> Unions:
    """The unions over the given device events, on all streams, with collectives by the host."""
    device = joined.events.device
    compute, communication, copy = (
        union(device.start_ns[own], device.end_ns[own])
        for own in (rows[joined.work[rows] == work] for work in (Work.COMPUTE, Work.COMMUNICATION, Work.COPY))
    )
    calls = host_calls(joined)
    if len(calls):
        communication = join(communication, union(calls.start_ns, calls.end_ns))
    return Unions(compute, communication, copy)


def host_unions(joined: Joined) -> Unions:
    """What stands in without a device: real ops outside collectives, and the collectives' annotations on any thread.

    Annotations alone are no compute (a wrapper around a step contains waiting). An op that only hands a collective to
    its backend (`c10d::`, `record_param_comms`) is left out with the collective itself. While a thread is in a
    collective, an op around it on that thread does not compute.
    """
    events, ops = joined.events, joined.events.ops
    texts = events.strings.texts
    hands_over = [code for code in list_codes(ops.name) if _HANDS_OVER.match(texts[code])]
    computes = (
        (ops.is_annotation == 0) & (joined.collective_op < 0) & ~np.isin(ops.name, np.array(hands_over, dtype=np.int64))
    )
    collectives = host_collectives(joined)
    nothing = union(ops.start_ns[:0], ops.end_ns[:0])
    in_collectives = np.isin(ops.thread, ops.thread[collectives])
    alone = computes & ~in_collectives
    compute = union(ops.start_ns[alone], ops.end_ns[alone])
    for thread in each_once(ops.thread[collectives]).tolist():
        own = computes & (ops.thread == thread)
        waits = collectives[ops.thread[collectives] == thread]
        busy = union(ops.start_ns[own], ops.end_ns[own])
        compute = join(compute, subtract(busy, union(ops.start_ns[waits], ops.end_ns[waits])))
    return Unions(compute, union(ops.start_ns[collectives], ops.end_ns[collectives]), nothing)


def host_collectives(joined: Joined) -> I64:
    """Rows of the ops that stand for a collective call on the host: annotations if any, the outermost of nested ones.

    The annotation spans the call on the backend's thread; the op that issued it on the caller's thread is the same
    call. Beside a device only those of libraries that communicate on the host: the others are device events.
    """
    ops = joined.events.ops
    is_collective = ops.collective >= 0
    if joined.on_device:
        is_collective &= _of_host_libraries(joined)
    annotated = is_collective & (ops.is_annotation == 1)
    if annotated.any():
        is_collective = annotated
    if not is_collective.any():
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(is_collective & ~joined.tree.lies_in_equal(is_collective.astype(np.int64)))


def _of_host_libraries(joined: Joined) -> NDArray[np.bool_]:
    """Return which ops are calls of a library that moves tensors by the host, by their names."""
    texts = joined.events.strings.texts
    by_code = np.zeros(len(texts), dtype=bool)
    for code in list_codes(joined.events.ops.name):
        by_code[code] = texts[code].startswith(_HOST_LIBRARIES)
    return by_code[joined.events.ops.name]


def _breakdown(joined: Joined, whole: Whole, chosen: Chosen) -> Breakdown:
    device, rows, spans = joined.events.device, chosen.device, chosen.spans
    duration = device.end_ns[rows] - device.start_ns[rows]
    unions = whole.unions
    # the few spans of a step come first: what they do not touch costs nothing
    compute, communication = intersect(spans, unions.compute), intersect(spans, unions.communication)
    copy = intersect(spans, unions.copy)
    busy = join(compute, communication)
    overlap_ns = intersect(compute, communication).total_ns
    exposed_copy_ns = subtract(copy, busy).total_ns
    e2e_ns = spans.total_ns
    if joined.on_device:
        e2e_ns = _span_of_work(joined, whole, chosen)
    of_parts_ns = spans.total_ns if chosen.is_step else e2e_ns
    kernels = joined.is_kernel[rows]
    unlinked = kernels & (joined.launch[rows] < 0)
    totals = dict.fromkeys(Work, 0)
    if len(rows):  # many a step of a trace of the host alone has none
        totals = {work: int(duration[joined.work[rows] == work].sum()) for work in Work}
    if len(whole.host_calls):
        totals[Work.COMMUNICATION] += _inside_ns(whole.host_calls, spans)
    found = Breakdown(
        timeline="device" if joined.on_device else "host",
        duration_ns=spans.total_ns,
        e2e_ns=e2e_ns,
        compute_ns=compute.total_ns,
        communication_ns=communication.total_ns,
        overlap_ns=overlap_ns,
        exposed_communication_ns=communication.total_ns - overlap_ns,
        copy_ns=copy.total_ns,
        exposed_copy_ns=exposed_copy_ns,
        idle_ns=of_parts_ns - busy.total_ns - exposed_copy_ns,
        kernel_count=int(kernels.sum()),
        kernel_total_ns=int(duration[kernels].sum()),
        compute_total_ns=totals[Work.COMPUTE],
        communication_total_ns=totals[Work.COMMUNICATION],
        copy_total_ns=totals[Work.COPY],
        unlinked_kernel_count=int(unlinked.sum()),
        unlinked_kernel_total_ns=int(duration[unlinked].sum()),
        peak_allocated_bytes=_largest(whole.memory.allocated_bytes[chosen.moments]),
        peak_reserved_bytes=_largest(whole.memory.reserved_bytes[chosen.moments]),
        data_loading_ns=None if whole.data_loading is None else intersect(spans, whole.data_loading).total_ns,
        data_loading_idle_ns=None if whole.idle_loading is None else intersect(spans, whole.idle_loading).total_ns,
        host_idle_ns=_host_idle_ns(joined, whole, chosen),
        bubble_ns=_sum(joined.events.extras.step_times.bubble_ns[chosen.stated]),
        preparing_ns=_sum(joined.events.extras.step_times.preparing_ns[chosen.stated]),
    )
    known = replace(found, **_instead(joined, chosen, found))
    if chosen.is_step and not len(spans):
        # the device ran past the whole marker with earlier work, and nothing here was launched on its main stream
        return replace(known, **dict.fromkeys(_OF_WINDOW))
    return known


def _host_idle_ns(joined: Joined, whole: Whole, chosen: Chosen) -> int | None:
    """Return the part of the idle time in which nothing that was launched waits; None where launches are not known."""
    if whole.host_idle is None:
        return None
    spans = chosen.spans
    if not chosen.is_step and len(chosen.device):
        # the idle time of a capture is that between the first and the last work, as its E2E
        spans = _one_span(*_bounds_of_work(joined, whole, chosen))
    return intersect(spans, whole.host_idle).total_ns


def _span_of_work(joined: Joined, whole: Whole, chosen: Chosen) -> int:
    """Return the time from the first to the last work that was launched."""
    first_ns, last_ns = _bounds_of_work(joined, whole, chosen)
    return last_ns - first_ns


def _bounds_of_work(joined: Joined, whole: Whole, chosen: Chosen) -> tuple[int, int]:
    """Return the start of the first and the end of the last work that was launched: of the device, and of a capture
    also of collectives by the host; (0, 0) without any.
    """
    device, calls = joined.events.device, whole.host_calls
    starts, ends = device.start_ns[chosen.device], device.end_ns[chosen.device]
    if len(calls) and not chosen.is_step:
        starts, ends = np.append(starts, calls.start_ns), np.append(ends, calls.end_ns)
    return (int(starts.min()), int(ends.max())) if len(starts) else (0, 0)


def _inside_ns(calls: Spans, spans: Spans) -> int:
    """Return how long the calls run inside of these spans, each call for itself."""
    return sum(
        intersect(spans, _one_span(start_ns, end_ns)).total_ns
        for start_ns, end_ns in zip(calls.start_ns.tolist(), calls.end_ns.tolist(), strict=True)
    )


def _instead(joined: Joined, chosen: Chosen, found: Breakdown) -> dict[str, Any]:
    """Return what takes the place of the sums over events that the source does not have: None, or what the profiler
    itself states of the steps `chosen.stated`, summed.

    Where it states a step, its time is the sum of compute, exposed communication and idle time.
    """
    extras = joined.events.extras
    if extras.no_kernels and joined.on_device:
        return dict.fromkeys(_OF_KERNELS)
    if extras.no_collectives:
        return dict.fromkeys(_OF_COLLECTIVES)
    if extras.only_collectives:
        unknown: dict[str, Any] = dict.fromkeys(_NOT_OF_COLLECTIVES)
        if not joined.on_device:
            unknown |= {"timeline": "device", "communication_ns": None, "communication_total_ns": None}
        return unknown | _stated_parts(joined, chosen)
    if extras.no_device:
        return dict.fromkeys(_OF_DEVICE)
    if extras.no_copies and joined.on_device:
        return _without_copies(joined, chosen, found)
    return {}


def _stated_parts(joined: Joined, chosen: Chosen) -> dict[str, Any]:
    """Return the parts that the profiler states of all chosen steps, and their sum as the time of the step."""
    times = joined.events.extras.step_times
    sums = {name: _whole_sum(getattr(times, name)[chosen.stated]) for name in _OF_STEPS}
    stated: dict[str, Any] = {name: value for name, value in sums.items() if value is not None}
    parts = [sums[name] for name in ("compute_ns", "exposed_communication_ns", "idle_ns")]
    known = [part for part in parts if part is not None]
    step_ns = sum(known) if len(known) == len(parts) else None
    return {**stated, "e2e_ns": step_ns, "duration_ns": step_ns}


def _without_copies(joined: Joined, chosen: Chosen, found: Breakdown) -> dict[str, Any]:
    """Return what takes the place of sums that need copies, which the source does not list.

    A source without a host has no markers of its own: where the profiler's table of steps has all of them, it is the
    one source of a step and its parts. Else idle time is what compute and communication leave of the window, where the
    profiler states free time in the same sense; else it is not known.
    """
    times = joined.events.extras.step_times
    all_stated = bool(np.isin(joined.step[chosen.device], times.step[chosen.stated]).all())
    idle_ns = _whole_sum(times.idle_ns[chosen.stated]) if all_stated else None
    unknown: dict[str, Any] = dict.fromkeys(_OF_COPIES)
    if idle_ns is None:
        return unknown
    busy_ns = (found.compute_ns or 0) + (found.exposed_communication_ns or 0)
    if not chosen.is_step:
        return unknown | {"idle_ns": idle_ns, "e2e_ns": busy_ns + idle_ns}
    if not joined.has_host and _states_all_steps(joined):
        return unknown | _stated_parts(joined, chosen)
    return unknown | {"idle_ns": chosen.spans.total_ns - busy_ns}


def _states_all_steps(joined: Joined) -> bool:
    """Return whether the profiler states compute, exposed communication and idle time of each step of the capture."""
    times = joined.events.extras.step_times
    whole = np.ones(len(times), dtype=bool)
    for name in ("compute_ns", "exposed_communication_ns", "idle_ns"):
        whole &= getattr(times, name) != MISSING
    return bool(np.isin(joined.steps, times.step[whole]).all())


def _whole_sum(values: I64) -> int | None:
    """The sum of `values`, None where any is unknown or there are none."""
    return int(values.sum()) if len(values) and (values != MISSING).all() else None


def _largest(values: I64) -> int | None:
    known = values[values != MISSING]
    return int(known.max()) if len(known) else None


def _sum(values: I64) -> int | None:
    known = values[values != MISSING]
    return int(known.sum()) if len(known) else None


def _idle_loading(joined: Joined, loading: Spans | None, gaps: Gaps | None, idle_loading: Spans | None) -> Spans | None:
    """Return when the device does nothing for want of a launch while the training loop waits for its data; None where
    the gaps in its work are not known.

    Where launches are known this is the idle time whose cause is data loading, else that in which a loader runs.
    """
    if loading is None or gaps is None or idle_loading is None or not joined.on_device:
        return None
    is_unknown = ~gaps.is_known
    unknown = union(gaps.start_ns[is_unknown], gaps.launched_ns[is_unknown])
    return join(idle_loading, intersect(loading, unknown))


def _host_idle(joined: Joined, gaps: Gaps | None) -> Spans | None:
    """Return when the device does nothing because nothing was launched; None where launches are not known."""
    if gaps is None or not (joined.handed_over_ns != MISSING).any():
        return None
    return gaps.waits_for_host()
