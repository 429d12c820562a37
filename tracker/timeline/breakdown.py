"""Where the time of a rank went: compute, communication, copies and idle time, for the capture and for each step."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.profile import I64, MISSING, PHASES, Breakdown, StepRow, each_once
from tracker.timeline.aggregate import distinct, rows_by_value
from tracker.timeline.intervals import Spans, clip, intersect, join, subtract, union
from tracker.timeline.joined import Joined, Work
from tracker.timeline.keys import own_phases
from tracker.timeline.memory_course import Course, framework_course

# torch.distributed's dispatcher ops, its record of a call, and the backends' own events
_HANDS_OVER = re.compile(r"c10d::|record_param_comms$|(?:nccl|rccl|gloo|mpi|ucc|xccl|hccl):")

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

_OF_KERNELS: Final = (*_OF_COLLECTIVES, "compute_ns", "exposed_copy_ns", "compute_total_ns")
"""What no event tells of a rank whose kernels the source does not have: collectives on a device are kernels as well."""

_OF_COPIES: Final = ("e2e_ns", "copy_ns", "exposed_copy_ns", "idle_ns", "copy_total_ns")
"""What no event tells of a rank whose copies the source does not have: a copy may be the first or the last thing that
the device did, and is no idle time.
"""

_OF_STEPS: Final = ("compute_ns", "communication_ns", "overlap_ns", "exposed_communication_ns", "idle_ns")
"""What the profiler says of a step itself."""


class Unions(Struct, frozen=True):
    """Merged spans of the three classes of work."""

    compute: Spans
    communication: Spans
    copy: Spans


class Chosen(Struct, frozen=True):
    """What one breakdown is about: rows of device events, of moments of the allocator and of what the profiler says of
    steps, and the window on the host's clock.
    """

    device: I64
    moments: I64
    said: I64
    window: tuple[int, int]


class Whole(Struct, frozen=True):
    """Made once per capture: the unions that stand in without a device, the waits for the data loader, the part of them
    in which the device did nothing (None where its work is not known), and the course of the framework's memory.
    """

    unions: Unions | None
    data_loading: Spans | None
    idle_loading: Spans | None
    memory: Course


def breakdowns(joined: Joined) -> tuple[Breakdown, tuple[StepRow, ...]]:
    """The breakdown of the whole capture, with all that lies outside of the steps, and one row per step.

    A capture without markers is one step.
    """
    markers, said = joined.events.markers, joined.events.extras.step_times
    course = framework_course(joined.events)
    loading = _data_loading(joined)
    host = None if joined.on_device else host_unions(joined)
    whole = Whole(host, loading, _idle_loading(joined, loading), course)
    window = joined.first_ns, joined.last_ns
    everything = Chosen(np.arange(len(joined.step)), np.arange(len(course.step)), np.arange(len(said)), window)
    device_rows, moments = rows_by_value(joined.step), rows_by_value(course.step)
    none = np.zeros(0, dtype=np.int64)
    rows = []
    for step in joined.steps:
        window = window_of(joined, step)
        own_said = np.flatnonzero(said.step == step) if len(markers) else everything.said
        chosen = Chosen(device_rows.get(step, none), moments.get(step, none), own_said, window)
        rows.append(StepRow(step, window[0] - joined.first_ns, _breakdown(joined, whole, chosen)))
    return _breakdown(joined, whole, everything), tuple(rows)


def window_of(joined: Joined, step: int) -> tuple[int, int]:
    """When a step runs on the host's clock: from the start of its markers to their end; the whole capture outside all
    steps, and where there are no markers.
    """
    markers = joined.events.markers
    own = markers.step == step
    if not own.any():
        return joined.first_ns, joined.last_ns
    return int(markers.start_ns[own].min()), int(markers.end_ns[own].max())


def device_unions(joined: Joined, rows: I64) -> Unions:
    """The unions over the given device events, on all streams."""
    device = joined.events.device
    return Unions(
        *(
            union(device.start_ns[own], device.end_ns[own])
            for own in (rows[joined.work[rows] == work] for work in (Work.COMPUTE, Work.COMMUNICATION, Work.COPY))
        )
    )


def host_unions(joined: Joined) -> Unions:
    """What stands in without a device: real ops outside collectives, and the collectives' annotations on any thread.

    Annotations alone are no compute (a wrapper around a step contains waiting). An op that only hands a collective to
    its backend (`c10d::`, `record_param_comms`) is left out with the collective itself. While a thread is in a
    collective, an op around it on that thread does not compute.
    """
    events, ops = joined.events, joined.events.ops
    texts = events.strings.texts
    hands_over = [code for code in distinct(ops.name) if _HANDS_OVER.match(texts[code])]
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
    call.
    """
    ops = joined.events.ops
    is_collective = ops.collective >= 0
    annotated = is_collective & (ops.is_annotation == 1)
    if annotated.any():
        is_collective = annotated
    return np.flatnonzero(is_collective & ~joined.tree.lies_in_equal(is_collective.astype(np.int64)))


def _unions_and_e2e(joined: Joined, whole: Whole, chosen: Chosen) -> tuple[Unions, int]:
    """The unions of the chosen device events and their end-to-end time; of the host's window where it stands in."""
    device, rows, window = joined.events.device, chosen.device, chosen.window
    if whole.unions is None:
        e2e_ns = int(device.end_ns[rows].max() - device.start_ns[rows].min()) if len(rows) else 0
        return device_unions(joined, rows), e2e_ns
    compute, communication = clip(whole.unions.compute, *window), clip(whole.unions.communication, *window)
    return Unions(compute, communication, whole.unions.copy), window[1] - window[0]


def _breakdown(joined: Joined, whole: Whole, chosen: Chosen) -> Breakdown:
    device, rows, window = joined.events.device, chosen.device, chosen.window
    duration = device.end_ns[rows] - device.start_ns[rows]
    unions, e2e_ns = _unions_and_e2e(joined, whole, chosen)
    busy = join(unions.compute, unions.communication)
    overlap_ns = intersect(unions.compute, unions.communication).total_ns
    exposed_copy_ns = subtract(unions.copy, busy).total_ns
    kernels = joined.is_kernel[rows]
    unlinked = kernels & (joined.launch[rows] < 0)
    totals = {work: int(duration[joined.work[rows] == work].sum()) for work in Work}
    found = Breakdown(
        timeline="device" if joined.on_device else "host",
        duration_ns=window[1] - window[0],
        e2e_ns=e2e_ns,
        compute_ns=unions.compute.total_ns,
        communication_ns=unions.communication.total_ns,
        overlap_ns=overlap_ns,
        exposed_communication_ns=unions.communication.total_ns - overlap_ns,
        copy_ns=unions.copy.total_ns,
        exposed_copy_ns=exposed_copy_ns,
        idle_ns=e2e_ns - busy.total_ns - exposed_copy_ns,
        kernel_count=int(kernels.sum()),
        kernel_total_ns=int(duration[kernels].sum()),
        compute_total_ns=totals[Work.COMPUTE],
        communication_total_ns=totals[Work.COMMUNICATION],
        copy_total_ns=totals[Work.COPY],
        unlinked_kernel_count=int(unlinked.sum()),
        unlinked_kernel_total_ns=int(duration[unlinked].sum()),
        peak_allocated_bytes=_largest(whole.memory.allocated_bytes[chosen.moments]),
        peak_reserved_bytes=_largest(whole.memory.reserved_bytes[chosen.moments]),
        data_loading_ns=None if whole.data_loading is None else clip(whole.data_loading, *window).total_ns,
        data_loading_idle_ns=None if whole.idle_loading is None else clip(whole.idle_loading, *window).total_ns,
        bubble_ns=_sum(joined.events.extras.step_times.bubble_ns[chosen.said]),
        preparing_ns=_sum(joined.events.extras.step_times.preparing_ns[chosen.said]),
    )
    return replace(found, **_instead(joined, chosen, found))


def _instead(joined: Joined, chosen: Chosen, found: Breakdown) -> dict[str, Any]:
    """What takes the place of the sums over events that the source does not have: None, or what the profiler itself
    says of the steps `chosen.said`, summed.

    End-to-end time is then the sum of the steps', compute + exposed communication + idle time, and so is the duration
    where kernels are unknown.
    """
    extras, said = joined.events.extras, chosen.said
    if extras.no_kernels and joined.on_device:
        return dict.fromkeys(_OF_KERNELS)
    if extras.no_collectives:
        return dict.fromkeys(_OF_COLLECTIVES)
    if not extras.only_collectives:
        return _without_copies(joined, chosen, found) if extras.no_copies and joined.on_device else {}
    unknown: dict[str, Any] = dict.fromkeys(_NOT_OF_COLLECTIVES)
    if not joined.on_device:
        unknown |= {"timeline": "device", "communication_ns": None, "communication_total_ns": None}
    told = {name: _whole_sum(getattr(extras.step_times, name)[said]) for name in _OF_STEPS}
    parts = [told[name] for name in ("compute_ns", "exposed_communication_ns", "idle_ns")]
    known = [part for part in parts if part is not None]
    e2e_ns = sum(known) if len(known) == len(parts) else None
    told = {name: value for name, value in told.items() if value is not None}
    return {**unknown, **told, "e2e_ns": e2e_ns, "duration_ns": e2e_ns}


def _without_copies(joined: Joined, chosen: Chosen, found: Breakdown) -> dict[str, Any]:
    """What takes the place of sums that need copies. The free time that the profiler says of all steps in which there
    are events stands in for that of the events, and with it the end-to-end time.
    """
    times = joined.events.extras.step_times
    all_said = bool(np.isin(joined.step[chosen.device], times.step[chosen.said]).all())
    idle_ns = _whole_sum(times.idle_ns[chosen.said]) if all_said else None
    if idle_ns is None:
        return dict.fromkeys(_OF_COPIES)
    e2e_ns = (found.compute_ns or 0) + (found.exposed_communication_ns or 0) + idle_ns
    return dict.fromkeys(_OF_COPIES) | {"idle_ns": idle_ns, "e2e_ns": e2e_ns}


def _whole_sum(values: I64) -> int | None:
    """The sum of `values`, None where any is unknown or there are none."""
    return int(values.sum()) if len(values) and (values != MISSING).all() else None


def _largest(values: I64) -> int | None:
    known = values[values != MISSING]
    return int(known.max()) if len(known) else None


def _sum(values: I64) -> int | None:
    known = values[values != MISSING]
    return int(known.sum()) if len(known) else None


def _data_loading(joined: Joined) -> Spans | None:
    """When the training loop waits for its data loader; None where the source never says."""
    ops = joined.events.ops
    loads = own_phases(joined.events) == PHASES.index("dataloader")
    if not loads.any() or not joined.events.host_is_primary:
        return None
    return union(ops.start_ns[loads], ops.end_ns[loads])


def _idle_loading(joined: Joined, loading: Spans | None) -> Spans | None:
    """Of the waits for the data loader those in which no stream of the device works for want of a launch.

    A gap counts up to the launch of what ends it: kernels that were launched before the loading have short gaps between
    them, which a faster loader does not close. The first gap begins with the first step, not with the first work; after
    the last work of the capture it is not known.
    """
    extras, device = joined.events.extras, joined.events.device
    unknown = extras.no_kernels or extras.no_copies or extras.no_collectives or extras.only_collectives
    if loading is None or unknown or not joined.on_device:
        return None
    busy = union(device.start_ns, device.end_ns)
    launched_ns = device.start_ns.copy()
    linked = joined.launch >= 0
    launched_ns[linked] = joined.events.launches.start_ns[joined.launch[linked]]
    works = device.end_ns > device.start_ns
    order = np.lexsort((launched_ns[works], device.start_ns[works]))
    markers = joined.events.markers
    begun_ns = markers.start_ns.min() if len(markers) else joined.first_ns
    opened_ns = np.concatenate([np.minimum(busy.start_ns[:1], begun_ns), busy.end_ns[:-1]])
    first = np.searchsorted(device.start_ns[works][order], busy.start_ns, side="left")
    return intersect(loading, union(opened_ns, np.clip(launched_ns[works][order][first], opened_ns, busy.start_ns)))
