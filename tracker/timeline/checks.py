"""What the events of one rank cannot say: records that were lost, times and durations that cannot be.

CHECKS declares each check: what it counts, its sentence, and which measures may not be judged where it finds something.
`check_times` takes out of the events what is no time; `check_join` looks at the joined events. What they find goes with
the capture (`quality_reason`, and the setting INCOMPLETE_SETTING), so that every report can say it and no verdict rests
on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import I64, Flags
from tracker.profile import (
    INCOMPLETE_SETTING,
    MISSING,
    NO_STEP,
    Capture,
    DeviceEvents,
    EventColumns,
    Events,
    Extras,
    HostOps,
    Incomplete,
    Launches,
)
from tracker.schema.series import LOST_DEVICE, LOST_HOST, LOST_PARTS, LOST_STEPS
from tracker.timeline.defects import CHECKS, Defect, Lost, list_names, make_defect, words_of_steps
from tracker.timeline.hccl_kernels import are_hccl_kernels
from tracker.timeline.impossible import check_streams, check_waits, check_work_in_steps, waits_in_each_step
from tracker.timeline.intervals import union
from tracker.timeline.joined import Joined, Work
from tracker.timeline.lost_launches import check_launches, launching_calls
from tracker.timeline.names import canonical_name

NEAR_NS: Final = 24 * 3600 * 10**9
"""No capture lasts a day: what starts further from the middle event has no time."""

FROM_ZERO_NS: Final = 1_000_000
"""Start and end are 0 where a buffer of the profiler ran full; on a clock that begins at 0 others are nearer to it."""

OVERRUN_NS: Final = 50_000
"""Kernels of one stream run one after another. Real clocks let one end up to 13 us behind the next (40 captures)."""

_WORTH_SAYING: Final = 0.01
"""Share of the device time that cut events may take before no part of a step is judged."""
_AGREES: Final = 0.9
"""Share of the stated compute time of a step that the kernels of a whole table take at least."""


class Checked(Struct, frozen=True):
    """Events whose times are possible. `timeless`: correlations of device events that were left out; `cut`: which
    device events were cut at the start of the next one.
    """

    events: Events
    defects: tuple[Defect, ...]
    timeless: I64
    cut: Flags


def describe(capture: Capture, defects: Sequence[Defect], *, has_markers: bool = False) -> Capture:
    """Return the capture with what the checks found: the reason and what may not be judged; partial, unless all that
    they found are notes. `has_markers`: as of `Incomplete`.
    """
    if not defects:
        return capture
    ordered = sorted(defects, key=lambda defect: list(CHECKS).index(defect.check))
    forbids = dict.fromkeys(word for defect in ordered for word in defect.forbids)
    names = dict.fromkeys(name for defect in ordered for name in defect.names)
    content = Incomplete(tuple(forbids), tuple(names), has_markers)
    reasons = [capture.quality_reason, *(defect.sentence for defect in ordered)]
    return replace(
        capture,
        quality=capture.quality if all(CHECKS[defect.check].is_note for defect in defects) else "partial",
        quality_reason="; ".join(filter(None, reasons)),
        settings={**capture.settings, INCOMPLETE_SETTING: msgspec.json.encode(content).decode()},
    )


def add_defect(capture: Capture, defect: Defect) -> Capture:
    """Return the capture with one more thing that was found, beside what the checks of its own events found."""
    if defect.sentence in capture.quality_reason:
        return capture
    known = Incomplete()
    if INCOMPLETE_SETTING in capture.settings:
        known = msgspec.json.decode(capture.settings[INCOMPLETE_SETTING], type=Incomplete)
    described = describe(capture, [defect])
    content = Incomplete(tuple(dict.fromkeys((*known.forbids, *defect.forbids))), known.names)
    settings = {**described.settings, INCOMPLETE_SETTING: msgspec.json.encode(content).decode()}
    return replace(described, settings=settings)


# -- times


def check_times(events: Events) -> Checked:
    """Return the events without those that have no time, and with durations that their streams allow."""
    events, timeless, defects = _leave_out_timeless(events)
    order = _order_in_streams(events.device)
    repeated = _find_repeats(events.device, order)
    if repeated.any():
        defects.append(make_defect("repeated records", lost=int(repeated.sum()), launches=len(repeated)))
        events = take_device_events(events, ~repeated)
        order = _order_in_streams(events.device)
    ends_ns = possible_ends(events.device, order)
    cut = ends_ns < events.device.end_ns
    if cut.any():
        events = replace(events, device=replace(events.device, end_ns=ends_ns))
    ends_ns, found = check_streams(events, order)
    if found:
        events = replace(events, device=replace(events.device, end_ns=ends_ns))
    return Checked(events, (*defects, *found), timeless, cut)


def _leave_out_timeless(events: Events) -> tuple[Events, I64, list[Defect]]:
    starts = [table.start_ns for table in (events.device, events.ops, events.launches, events.markers)]
    starts.append(events.allocations.time_ns)
    present = [column for column in starts if len(column)]
    if not present:
        return events, np.zeros(0, dtype=np.int64), []
    low, high = min(int(column.min()) for column in present), max(int(column.max()) for column in present)
    # the usual capture needs no more than this look
    if high - low < NEAR_NS and low != 0:
        return events, np.zeros(0, dtype=np.int64), []
    every = np.concatenate(present)
    middle = int(np.median(every))
    near = [np.abs(column - middle) < NEAR_NS for column in starts]
    if int(every[every != 0].min(initial=middle)) > FROM_ZERO_NS:
        spans: tuple[DeviceEvents | HostOps | Launches, ...] = (events.device, events.ops, events.launches)
        for at, table in enumerate(spans):
            near[at] &= (table.start_ns != 0) | (table.end_ns != 0)
    device, *host = near
    if all(rows.all() for rows in near):
        return events, np.zeros(0, dtype=np.int64), []
    defects = []
    if not device.all():
        lost = int((~device).sum())
        defects.append(make_defect("device events without a time", lost=lost, launches=len(device)))
    lost = sum(int((~rows).sum()) for rows in host)
    if lost:
        defects.append(make_defect("host events without a time", lost=lost, launches=sum(map(len, host))))
    timeless = events.device.correlation[~device]
    return _take_events(events, *near), timeless, defects


def _take_events(events: Events, device: Flags, ops: Flags, launches: Flags, markers: Flags, memory: Flags) -> Events:
    """Return the events of which the tables keep these rows; what refers to rows follows."""
    extras = events.extras
    metrics = extras.kernel_metrics
    place = np.cumsum(device) - 1
    measured = device[metrics.event]
    kept_metrics = _take_rows(metrics, measured)
    changed: dict[str, Any] = {
        "kernel_metrics": replace(kept_metrics, event=place[kept_metrics.event].astype(np.int32)),
    }
    columns = {"block_num": device, "task": device, "device_external": device, "op_phase": ops, "op_external": ops}
    columns |= {"handover_ns": device, "handover_thread": device}
    columns |= {"allocation_op": memory, "allocation_ns": memory}
    for name, rows in columns.items():
        column = getattr(extras, name)
        changed[name] = column[rows] if len(column) else column
    return replace(
        events,
        device=_take_rows(events.device, device),
        ops=_take_rows(events.ops, ops),
        launches=_take_rows(events.launches, launches),
        markers=_take_rows(events.markers, markers),
        allocations=_take_rows(events.allocations, memory),
        extras=replace(extras, **changed),
    )


def _take_rows(table: Any, rows: Flags) -> Any:
    assert isinstance(table, EventColumns)
    return type(table)(**{name: getattr(table, name)[rows] for name in table.__struct_fields__})


def take_device_events(events: Events, device: Flags) -> Events:
    """Return the events with these device events, and all of the host."""
    tables = (events.ops, events.launches, events.markers, events.allocations)
    every_ops, every_launches, every_markers, every_allocations = (np.ones(len(table), dtype=bool) for table in tables)
    return _take_events(events, device, every_ops, every_launches, every_markers, every_allocations)


def _order_in_streams(device: DeviceEvents) -> I64:
    """Return the rows of the device events by stream, start and end."""
    return np.lexsort((device.end_ns, device.start_ns, device.stream))


def _find_repeats(device: DeviceEvents, order: I64) -> Flags:
    """Return which device events are in the file already: a stream runs one thing at a time."""
    repeated = np.zeros(len(device), dtype=bool)
    start_ns, later = device.start_ns[order], order[1:]
    is_equal = (start_ns[1:] == start_ns[:-1]) & (device.end_ns[later] > start_ns[1:])
    if not is_equal.any():
        # the usual capture needs no more than this look
        return repeated
    for column in (device.stream, device.end_ns, device.correlation, device.name, device.kind, device.process):
        is_equal &= column[later] == column[order[:-1]]
    repeated[later[is_equal]] = True
    return repeated


def possible_ends(device: DeviceEvents, order: I64) -> I64:
    """Return the end of each device event, at most the start of the next event of its stream where it lies more than
    OVERRUN_NS behind the end of that one. order: the rows by stream, start and end.
    """
    if len(device) < 2:
        return device.end_ns
    stream, start_ns, end_ns = device.stream[order], device.start_ns[order], device.end_ns[order]
    correlation = device.correlation[order]
    # the next one was launched later: a stream runs in the order of launches, and kernels of one graph may overlap
    is_next = (stream[1:] == stream[:-1]) & ((correlation[1:] > correlation[:-1]) | (correlation[1:] <= 0))
    is_cut = False
    # one that is cut may end before what runs ahead of it
    while (overruns := is_next & (end_ns[:-1] > end_ns[1:] + OVERRUN_NS)).any():
        end_ns[:-1][overruns] = start_ns[1:][overruns]
        is_cut = True
    if not is_cut:
        return device.end_ns
    ends_ns = np.empty_like(end_ns)
    ends_ns[order] = end_ns
    return ends_ns


# -- what the joined events lack


def check_join(joined: Joined, checked: Checked) -> Lost:
    """Check the joined events for records that were lost."""
    defects: list[Defect] = []
    if joined.events.extras.no_device:
        defects.append(make_defect("no device data"))
    if checked.cut.any():
        defects.append(_cut_durations(joined, checked.cut))
    defects += _check_order_of_launches(joined)
    defects += _check_stated_count(joined.events.extras)
    of_launches = check_launches(joined, checked.timeless)
    of_work = check_work_in_steps(joined)
    steps: set[int] = set()
    for part in (of_launches, of_work, _check_operators(joined), _check_tables(joined)):
        defects += part.defects
        steps |= set(part.steps)
    if not any(LOST_DEVICE in defect.forbids for defect in of_launches.defects):
        # where launches have no kernel it is known why nothing runs
        defects += check_waits(joined)
    forbidden = {word for defect in (*checked.defects, *defects) for word in defect.forbids}
    are_whole = not of_work.is_whole and not forbidden & {LOST_STEPS, LOST_HOST}
    has_markers = LOST_DEVICE in forbidden and are_whole and waits_in_each_step(joined)
    return Lost(tuple(defects), tuple(sorted(steps)), of_work.is_whole, has_markers)


def _check_order_of_launches(joined: Joined) -> list[Defect]:
    """Check that nothing runs before it was launched. In 40 real captures an event starts at most 10 us before it."""
    linked = np.flatnonzero(joined.launch >= 0)
    launched_ns = joined.events.launches.start_ns[joined.launch[linked]]
    early = int((joined.events.device.start_ns[linked] < launched_ns - OVERRUN_NS).sum())
    if not early:
        return []
    return [make_defect("events before their launch", lost=early, launches=len(joined.launch))]


def _check_stated_count(extras: Extras) -> list[Defect]:
    """Check that all events are here that the profiler says it collected. In 14 real exports it is exactly so."""
    if extras.collected_events <= extras.exported_events:
        return []
    return [make_defect("collected events", lost=extras.exported_events, launches=extras.collected_events)]


def leave_out_steps(events: Events, lost: Lost) -> Events:
    """Return the events with the times of the steps that were lost belonging to no step; as they are where no step
    would be left. Without any step where these hold too little of the work.
    """
    markers, steps = events.markers, lost.steps
    if lost.is_whole:
        return replace(events, markers=_take_rows(markers, np.zeros(len(markers), dtype=bool)))
    left_out = np.isin(markers.step, np.array(steps, dtype=np.int64))
    if not steps or (left_out | (markers.step == NO_STEP)).all():
        return events
    return replace(events, markers=replace(markers, step=np.where(left_out, NO_STEP, markers.step)))


def _cut_durations(joined: Joined, cut: Flags) -> Defect:
    device, texts = joined.events.device, joined.events.strings.texts
    names: dict[str, None] = {}
    for row in np.flatnonzero(cut).tolist():
        key = int(joined.op_key[row])
        kernel = texts[int(device.name[row])]
        for text in (joined.keys.name[key], joined.keys.module[key], kernel, canonical_name(kernel)):
            if text:
                names[text] = None
    duration_ns = device.end_ns - device.start_ns
    is_much = int(duration_ns[cut].sum()) > _WORTH_SAYING * int(duration_ns.sum())
    ops = dict.fromkeys(joined.keys.name[int(key)] for key in joined.op_key[cut].tolist())
    words = list_names(list(ops))
    forbids = (LOST_PARTS,) if is_much else ()
    return make_defect(
        "impossible durations", forbids, names, lost=int(cut.sum()), launches=len(device), operators=words
    )


def _check_operators(joined: Joined) -> Lost:
    """Check sources without launch calls: operators that launch elsewhere, without device work at the edges of the
    capture or in a step without any.
    """
    events, ops = joined.events, joined.events.ops
    linked = joined.op[joined.op >= 0]
    if not len(linked) or not len(events.markers) or (not joined.is_npu and launching_calls(joined).any()):
        return Lost((), ())
    works = np.zeros(len(ops), dtype=bool)
    works[linked] = True
    steps = np.array(joined.steps, dtype=np.int64)
    empty_steps = steps[~np.isin(steps, joined.op_step[works])]
    first_ns, last_ns = int(ops.start_ns[works].min()), int(ops.start_ns[works].max())
    at_edge = (ops.start_ns < first_ns) | (ops.start_ns > last_ns) | np.isin(joined.op_step, empty_steps)
    counts = np.bincount(ops.name[~at_edge], minlength=len(events.strings.texts))
    working = np.bincount(ops.name[~at_edge & works], minlength=len(counts))
    always = (working > 0) & (working == counts)
    suspects = always[ops.name] & ~works & at_edge & np.isin(joined.op_step, steps)
    if not suspects.any():
        return Lost((), ())
    lost_steps = tuple(sorted(set(joined.op_step[suspects].tolist())))
    total = int((always[ops.name] & np.isin(joined.op_step, lost_steps)).sum())
    lost = int(suspects.sum())
    defect = make_defect("steps without records", steps=words_of_steps(lost_steps), lost=lost, launches=total)
    return Lost((defect,), lost_steps)


def _check_tables(joined: Joined) -> Lost:
    """Check the kernels of each step against the compute time that the profiler states of it."""
    times = joined.events.extras.step_times
    extras = joined.events.extras
    is_stated = (times.compute_ns != MISSING) & (times.compute_ns > 0)
    if not is_stated.any() or not joined.on_device or extras.only_collectives or extras.no_kernels:
        return Lost((), ())
    if not np.isin(times.step[is_stated], joined.steps).any():
        # the events do not say in which step they are
        return Lost((), ())
    device = joined.events.device
    # the profiler may count kernels by which HCCL communicates
    computes = (joined.work == Work.COMPUTE) | are_hccl_kernels(joined.events)
    short: dict[int, tuple[int, int]] = {}
    for step, stated_ns in zip(times.step[is_stated].tolist(), times.compute_ns[is_stated].tolist(), strict=True):
        own = computes & (joined.step == step)
        found_ns = union(device.start_ns[own], device.end_ns[own]).total_ns
        if found_ns < _AGREES * stated_ns:
            short[step] = (found_ns, stated_ns)
    missing_ns = sum(stated_ns - found_ns for found_ns, stated_ns in short.values())
    all_ns = union(device.start_ns[computes], device.end_ns[computes]).total_ns
    # kernels that another step names are not lost
    if not short or all_ns + missing_ns // 2 > int(times.compute_ns[is_stated].sum()):
        return Lost((), ())
    found_ns, stated_ns = (sum(column) for column in zip(*short.values(), strict=True))
    steps = tuple(sorted(short))
    found, stated = (f"{time_ns / 1e3:,.2f} us" for time_ns in (found_ns, stated_ns))
    return Lost((make_defect("cut tables", steps=words_of_steps(steps), found=found, stated=stated),), steps)
