"""The course of memory over time: its curve per component, and the peak of the framework's allocator."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from tracker.profile import I32, I64, MISSING, Events, Table, are_among, each_once
from tracker.profile.words import FRAMEWORK_ALLOCATORS
from tracker.table import list_codes, look_up_texts, split_rows_by_value
from tracker.timeline.joined import Joined
from tracker.timeline.steps import steps_at

MAX_CURVE_POINTS = 500

# components of Ascend profiles: the frameworks' allocators; what is part of them, or more than them. APP is the whole
# process as the driver sees it.
_NO_FRAMEWORK = frozenset(("APP", "GE", "WORKSPACE", *(f"{name}+GE" for name in FRAMEWORK_ALLOCATORS)))


class Course(Struct, frozen=True):
    """Counters at moments, in any order; each counter or MISSING. `step`: in which step the moment lies."""

    time_ns: I64
    step: I64
    component: I32
    allocated_bytes: I64
    reserved_bytes: I64


def memory_curve(joined: Joined) -> Table:
    """Allocated and reserved bytes over time (ns from the first event): at most 500 points per component.

    Maxima are kept. Where the profiler sampled a component, its samples are the curve, else the counters after each
    allocator event.
    """
    texts = joined.events.strings.texts
    course = _sampled_first(joined.events)
    kept: list[I64] = [np.zeros(0, dtype=np.int64)]
    by_component = split_rows_by_value(course.component.astype(np.int64))
    for _, rows in sorted(by_component.items(), key=lambda item: texts[item[0]]):
        # events of one instant by size: their order in the file is no order in time
        reserved, allocated = course.reserved_bytes[rows], course.allocated_bytes[rows]
        kept.append(_thinned(course, rows[np.lexsort((reserved, allocated, course.time_ns[rows]))]))
    points = np.concatenate(kept)
    return {
        "component": look_up_texts(course.component[points], texts),
        "time_ns": course.time_ns[points] - joined.first_ns,
        "allocated_bytes": course.allocated_bytes[points],
        "reserved_bytes": course.reserved_bytes[points],
    }


def framework_course(events: Events) -> Course:
    """The counters of the framework's allocator, after its events and as sampled; never those of the whole process.

    The device's allocator where the capture knows it, else the host's.
    """
    allocations = events.allocations
    on_device = allocations.on_device == int((allocations.on_device == 1).any())
    course = _joined(_of_allocations(events, np.flatnonzero(on_device)), _of_points(events))
    names = {code: events.strings[code] for code in list_codes(course.component)}
    own = [code for code, name in names.items() if name in FRAMEWORK_ALLOCATORS]
    own = own or [code for code, name in names.items() if name not in _NO_FRAMEWORK]
    return _rows(course, np.flatnonzero(np.isin(course.component, np.array(own, dtype=np.int64))))


def _sampled_first(events: Events) -> Course:
    """All samples, and the allocator events of components that were not sampled; where a counter is known."""
    points, allocations = _of_points(events), events.allocations
    known = allocations.total_allocated_bytes != MISSING
    rows = np.flatnonzero(known & ~np.isin(allocations.component, each_once(points.component)))
    return _joined(_of_allocations(events, rows), points)


def _of_allocations(events: Events, rows: I64) -> Course:
    allocations = events.allocations
    return Course(
        allocations.time_ns[rows],
        steps_at(events.markers, allocations.time_ns[rows]),
        allocations.component[rows],
        allocations.total_allocated_bytes[rows],
        allocations.total_reserved_bytes[rows],
    )


def _of_points(events: Events) -> Course:
    points = events.extras.memory_points
    course = Course(
        points.time_ns,
        steps_at(events.markers, points.time_ns),
        points.component,
        points.allocated_bytes,
        points.reserved_bytes,
    )
    known = (points.allocated_bytes != MISSING) | (points.reserved_bytes != MISSING)
    return _rows(course, np.flatnonzero(known))


def _rows(course: Course, rows: I64) -> Course:
    return Course(
        course.time_ns[rows],
        course.step[rows],
        course.component[rows],
        course.allocated_bytes[rows],
        course.reserved_bytes[rows],
    )


def _joined(one: Course, other: Course) -> Course:
    return Course(
        np.concatenate((one.time_ns, other.time_ns)),
        np.concatenate((one.step, other.step)),
        np.concatenate((one.component, other.component)),
        np.concatenate((one.allocated_bytes, other.allocated_bytes)),
        np.concatenate((one.reserved_bytes, other.reserved_bytes)),
    )


def _thinned(course: Course, rows: I64) -> I64:
    """Of `rows`, in order of time, the two of each of 250 equal parts where allocated and reserved are largest."""
    if len(rows) <= MAX_CURVE_POINTS:
        return rows
    kept: set[int] = set()
    for part in np.array_split(rows, MAX_CURVE_POINTS // 2):
        kept.add(int(part[np.argmax(course.allocated_bytes[part])]))
        kept.add(int(part[np.argmax(course.reserved_bytes[part])]))
    return rows[are_among(rows, sorted(kept))]
