"""What the events of one rank cannot say: records that were lost, times and durations that cannot be.

CHECKS declares each check: what it counts, its sentence, and which measures may not be judged where it finds something.
`check_times` takes out of the events what is no time; `check_join` looks at the joined events. What they find goes with
the capture (`quality_reason`, and the setting INCOMPLETE_SETTING), so that every report can say it and no verdict rests
on it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.profile import (
    I64,
    INCOMPLETE_SETTING,
    MISSING,
    NO_STEP,
    Capture,
    DeviceEvents,
    EventColumns,
    Events,
    HostOps,
    Incomplete,
    Launches,
    LaunchLevel,
    each_once,
)
from tracker.schema.series import LOST_DEVICE, LOST_HOST, LOST_OWNERS, LOST_PARTS, LOST_STEPS
from tracker.timeline.intervals import union
from tracker.timeline.joined import Joined, Work
from tracker.timeline.names import canonical_name
from tracker.timeline.steps import steps_at
from tracker.units import ranges

Flags = NDArray[np.bool_]


class Check(Struct, frozen=True):
    """One check. `counts`: what it counts; `sources`: which of them it can speak of; `sentence`: with the names of the
    numbers in it; `forbids`: what may not be judged where it finds something (words of `tracker.profile.words`);
    `remedy`: what to record instead.
    """

    counts: str
    sources: str
    sentence: str
    forbids: tuple[str, ...]
    remedy: str


CHECKS: Final[Mapping[str, Check]] = {
    "lost kernels": Check(
        "calls that launch a kernel and have none, graph launches, failed calls and stream captures aside",
        "PyTorch traces and Nsight exports, by their launch calls",
        "{lost} of {launches} launches have no kernel: the profiler lost them{operators}",
        (LOST_DEVICE,),
        "a shorter capture, or larger buffers of the profiler",
    ),
    "unfinished steps": Check(
        "steps at the end of a thread whose last launches have no kernel",
        "PyTorch traces and Nsight exports, by their launch calls",
        "{steps} left out: {lost} of {launches} launches in it have no kernel, for the capture ended first",
        (),
        "one more step, with a synchronisation behind the last one",
    ),
    "steps without records": Check(
        "operators without device work at the edges of a capture, or in a step without any, of those that always have "
        "it elsewhere",
        "sources with operators and without launch calls (Ascend)",
        "{steps} left out: {lost} of {launches} operators that launch have no device work: the profiler lost its "
        "records",
        (LOST_DEVICE,),
        "more warm-up steps in the schedule of the profiler",
    ),
    "cut tables": Check(
        "steps of which the table of kernels holds less compute time than the profiler's table of steps states",
        "Ascend tables (kernel_details.csv beside step_trace_time.csv)",
        "{steps} left out: the kernels take {found} where the table of steps states {stated}: the table of kernels was "
        "cut",
        (LOST_DEVICE,),
        "the whole folder of the profiler, exported again",
    ),
    "device events without a time": Check(
        "device events whose start and end are 0, or lie days away from all others",
        "all",
        "{lost} of {launches} device events have no time (0, or days away from all others) and are left out",
        (LOST_DEVICE,),
        "a shorter capture, or larger buffers of the profiler",
    ),
    "host events without a time": Check(
        "operators, calls, markers and allocations whose start and end are 0, or lie days away from all others",
        "all",
        "{lost} of {launches} events of the host have no time (0, or days away from all others) and are left out",
        (LOST_DEVICE, LOST_HOST),
        "another export of the profile",
    ),
    "impossible durations": Check(
        "device events that end more than 50 us behind the end of the next event of their stream",
        "all with streams",
        "{lost} of {launches} device events ({operators}) end behind the next one of their stream, which cannot be: "
        "they are cut at its start",
        (),
        "another version of the profiler",
    ),
    "events before their launch": Check(
        "device events that start more than 50 us before the call that launched them",
        "all with launch calls",
        "{lost} of {launches} device events start before the calls that launched them, which cannot be: the clocks of "
        "host and device may differ",
        (LOST_STEPS,),
        "another export of the profile, with the clocks of host and device matched",
    ),
    "repeated records": Check(
        "device events that stand twice: of one stream, name, launch, start and end",
        "all with streams",
        "{lost} of {launches} device events stand twice in the file: they count once",
        (),
        "another export of the profile",
    ),
    "shared launches": Check(
        "kernels with the launch of another kernel, while other launches have none",
        "PyTorch traces and Nsight exports, by their launch calls",
        "{lost} kernels share the launch of another kernel, and {launches} launches have none: which operator ran them "
        "is not known",
        (LOST_OWNERS,),
        "another version of the profiler",
    ),
}
"""Every check by its name, in the order in which they are said."""

NEAR_NS: Final = 24 * 3600 * 10**9
"""No capture lasts a day: what starts further from the middle event has no time."""

FROM_ZERO_NS: Final = 1_000_000
"""Start and end are 0 where a buffer of the profiler ran full; on a clock that begins at 0 others are nearer to it."""

OVERRUN_NS: Final = 50_000
"""Kernels of one stream run one after another. Real clocks let one end up to 13 us behind the next (40 captures)."""

_FEW: Final = 0.01
"""Share of the launches of a capture without steps that its end cuts off: of 4 real ones up to 0.9 %."""
_WORTH_SAYING: Final = 0.01
"""Share of the device time that cut events may take before no part of a step is judged."""
_AGREES: Final = 0.9
"""Share of the stated compute time of a step that the kernels of a whole table take at least."""
_MOST_NAMES: Final = 3
_LAUNCHES: Final = re.compile(r"(?:cuda|cu|hip)\w*Launch(?!HostFunc)")
_BEGINS_CAPTURE: Final = re.compile(r"(?:cuda|cu|hip)StreamBeginCapture")
_ENDS_CAPTURE: Final = re.compile(r"(?:cuda|cu|hip)StreamEndCapture")


class Defect(Struct, frozen=True):
    """What a check found: its name in CHECKS, the sentence, what of it is not judged, and the names (of operators,
    kernels and modules) whose times are not judged.
    """

    check: str
    sentence: str
    forbids: tuple[str, ...]
    names: tuple[str, ...] = ()


class Checked(Struct, frozen=True):
    """Events whose times are possible. `timeless`: correlations of device events that were left out; `cut`: which
    device events were cut at the start of the next one.
    """

    events: Events
    defects: tuple[Defect, ...]
    timeless: I64
    cut: Flags


def describe(capture: Capture, defects: Sequence[Defect]) -> Capture:
    """Return the capture with what the checks found: partial, with the reason and what may not be judged."""
    if not defects:
        return capture
    ordered = sorted(defects, key=lambda defect: list(CHECKS).index(defect.check))
    forbids = dict.fromkeys(word for defect in ordered for word in defect.forbids)
    names = dict.fromkeys(name for defect in ordered for name in defect.names)
    content = Incomplete(tuple(forbids), tuple(names))
    reasons = [capture.quality_reason, *(defect.sentence for defect in ordered)]
    return replace(
        capture,
        quality="partial",
        quality_reason="; ".join(filter(None, reasons)),
        settings={**capture.settings, INCOMPLETE_SETTING: msgspec.json.encode(content).decode()},
    )


def _defect(check: str, forbids: tuple[str, ...] = (), names: Iterable[str] = (), **numbers: Any) -> Defect:
    declared = CHECKS[check]
    words = {name: f"{number:,}" if isinstance(number, int) else number for name, number in numbers.items()}
    return Defect(check, declared.sentence.format(**words), declared.forbids + forbids, tuple(names))


# -- times


def check_times(events: Events) -> Checked:
    """Return the events without those that have no time, and with durations that their streams allow."""
    events, timeless, defects = _leave_out_timeless(events)
    order = _order_in_streams(events.device)
    repeated = _find_repeats(events.device, order)
    if repeated.any():
        defects.append(_defect("repeated records", lost=int(repeated.sum()), launches=len(repeated)))
        events = _take_device_events(events, ~repeated)
        order = _order_in_streams(events.device)
    ends_ns = possible_ends(events.device, order)
    cut = ends_ns < events.device.end_ns
    if cut.any():
        events = replace(events, device=replace(events.device, end_ns=ends_ns))
    return Checked(events, tuple(defects), timeless, cut)


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
        defects.append(_defect("device events without a time", lost=lost, launches=len(device)))
    lost = sum(int((~rows).sum()) for rows in host)
    if lost:
        defects.append(_defect("host events without a time", lost=lost, launches=sum(map(len, host))))
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
    columns = {"block_num": device, "device_external": device, "op_phase": ops, "op_external": ops}
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


def _take_device_events(events: Events, device: Flags) -> Events:
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


class Lost(Struct, frozen=True):
    """What `check_join` found, and the steps that it leaves out."""

    defects: tuple[Defect, ...]
    steps: tuple[int, ...]


def check_join(joined: Joined, checked: Checked) -> Lost:
    """Check the joined events for records that were lost."""
    defects: list[Defect] = []
    if checked.cut.any():
        defects.append(_cut_durations(joined, checked.cut))
    defects += _check_order_of_launches(joined)
    steps: set[int] = set()
    for part in (_check_launches(joined, checked.timeless), _check_operators(joined), _check_tables(joined)):
        defects += part.defects
        steps |= set(part.steps)
    return Lost(tuple(defects), tuple(sorted(steps)))


def _check_order_of_launches(joined: Joined) -> list[Defect]:
    """Check that nothing runs before it was launched. In 40 real captures an event starts at most 10 us before it."""
    linked = np.flatnonzero(joined.launch >= 0)
    launched_ns = joined.events.launches.start_ns[joined.launch[linked]]
    early = int((joined.events.device.start_ns[linked] < launched_ns - OVERRUN_NS).sum())
    if not early:
        return []
    return [_defect("events before their launch", lost=early, launches=len(joined.launch))]


def leave_out_steps(events: Events, steps: Sequence[int]) -> Events:
    """Return the events with the times of these steps belonging to no step; as they are where no step would be left."""
    markers = events.markers
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
    words = _listed(list(ops))
    forbids = (LOST_PARTS,) if is_much else ()
    return _defect("impossible durations", forbids, names, lost=int(cut.sum()), launches=len(device), operators=words)


def _listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    return ", ".join([*names[:_MOST_NAMES], *more])


def _check_launches(joined: Joined, timeless: I64) -> Lost:
    """Check that each launch of a kernel has its kernel. Where only the last launches of threads have none, the capture
    ended first: their steps are left out, and the others are whole.
    """
    events, launches = joined.events, joined.events.launches
    starts_kernel = launching_calls(events)
    if not starts_kernel.any() or events.extras.no_kernels:
        return Lost((), ())
    unserved = _unserved_launches(joined, starts_kernel, timeless)
    if not len(unserved):
        return Lost((), ())
    total = int(starts_kernel.sum())
    surplus = _surplus_kernels(joined, starts_kernel)
    # kernels that name no launch (ROCm writes correlation 0) are those of as many launches
    nameless = int(((joined.launch < 0) & (events.device.correlation <= 0) & joined.is_kernel).sum())
    lost = len(unserved) - nameless - surplus
    defects = []
    if surplus:
        defects.append(_defect("shared launches", lost=surplus, launches=len(unserved)))
    if lost <= 0:
        return Lost(tuple(defects), ())
    is_certain = lost == len(unserved)
    steps = _unfinished_steps(joined, starts_kernel, unserved) if is_certain else None
    if steps is None:
        operators = _operators_of(joined, unserved) if is_certain else ""
        defects.append(_defect("lost kernels", lost=lost, launches=total, operators=operators))
        return Lost(tuple(defects), ())
    if steps:
        in_steps = np.isin(steps_at(events.markers, launches.start_ns[starts_kernel]), steps)
        words = _step_words(steps)
        defects.append(_defect("unfinished steps", steps=words, lost=lost, launches=int(in_steps.sum())))
    return Lost(tuple(defects), steps)


def _unfinished_steps(joined: Joined, starts_kernel: Flags, unserved: I64) -> tuple[int, ...] | None:
    """Return the steps that the capture ended before, where that is why these launches have no kernels; else None."""
    markers, launches = joined.events.markers, joined.events.launches
    if not _are_tail(launches, starts_kernel, unserved).all():
        return None
    if not len(markers):
        # a capture without steps is a window, which always cuts off a few
        return () if len(unserved) <= _FEW * int(starts_kernel.sum()) else None
    start_ns = launches.start_ns[unserved]
    step = steps_at(markers, start_ns)
    is_between = (step == NO_STEP) & (start_ns < int(markers.end_ns.max()))
    steps = tuple(sorted(set(step[step != NO_STEP].tolist())))
    if is_between.any() or set(steps) >= set(joined.steps):
        return None
    return steps


def launching_calls(events: Events) -> Flags:
    """Return which calls of the runtime and the driver launch one kernel, by their names."""
    launches, texts = events.launches, events.strings.texts
    is_call = np.isin(launches.level, (LaunchLevel.RUNTIME, LaunchLevel.DRIVER)) & (launches.correlation > 0)
    launching = np.zeros(len(texts), dtype=bool)
    for code in each_once(launches.name[is_call]).tolist():
        launching[code] = bool(_LAUNCHES.match(texts[code])) and "Graph" not in texts[code]
    found: Flags = is_call & launching[launches.name]
    return found


def _unserved_launches(joined: Joined, starts_kernel: Flags, timeless: I64) -> I64:
    """Return the rows of the launches that have no device event, and of which none can be expected to be missing."""
    events, launches = joined.events, joined.events.launches
    served = np.zeros(len(launches), dtype=bool)
    served[joined.launch[joined.launch >= 0]] = True
    rows = np.flatnonzero(starts_kernel & ~served)
    if not len(rows):
        return rows
    elsewhere = np.isin(launches.correlation[rows], events.extras.served_elsewhere)
    rows = rows[~elsewhere & ~np.isin(launches.correlation[rows], timeless)]
    rows = rows[~_under_capture(events, launches.start_ns[rows])]
    # a call of the runtime makes one of the driver: one of the two has the kernel
    nested = np.zeros(len(rows), dtype=bool)
    for thread in each_once(launches.thread[rows]).tolist():
        own = np.flatnonzero(launches.thread[rows] == thread)
        others = np.flatnonzero(served & starts_kernel & (launches.thread == thread))
        others = others[np.argsort(launches.start_ns[others], kind="stable")]
        if not len(others):
            continue
        starts_ns, ends_ns = launches.start_ns[others], launches.end_ns[others]
        start_ns, end_ns = launches.start_ns[rows[own]], launches.end_ns[rows[own]]
        after = np.searchsorted(starts_ns, start_ns, side="left")
        inside = (after < len(others)) & (ends_ns[np.minimum(after, len(others) - 1)] <= end_ns)
        before = np.searchsorted(starts_ns, start_ns, side="right") - 1
        around = (before >= 0) & (ends_ns[np.maximum(before, 0)] >= end_ns)
        nested[own] = inside | around
    return rows[~nested]


def _under_capture(events: Events, time_ns: I64) -> Flags:
    """Return which times lie in a stream capture, which records launches and runs none."""
    launches, texts = events.launches, events.strings.texts
    begins = [code for code in each_once(launches.name).tolist() if _BEGINS_CAPTURE.match(texts[code])]
    ends = [code for code in each_once(launches.name).tolist() if _ENDS_CAPTURE.match(texts[code])]
    begun = np.sort(launches.start_ns[np.isin(launches.name, begins)])
    ended = np.sort(launches.end_ns[np.isin(launches.name, ends)])
    before = np.searchsorted(begun, time_ns, side="right")
    done = np.searchsorted(ended, time_ns, side="right")
    # one that began before the capture has an end alone
    open_at_start = int(len(ended) > 0 and (len(begun) == 0 or ended[0] < begun[0]))
    found: Flags = before + open_at_start > done
    return found


def _surplus_kernels(joined: Joined, starts_kernel: Flags) -> int:
    """Return how many kernels share the launch of another one."""
    linked = joined.launch[joined.is_kernel & (joined.launch >= 0)]
    kernels = np.bincount(linked, minlength=len(starts_kernel))[starts_kernel]
    return int(np.maximum(kernels - 1, 0).sum())


def _are_tail(launches: Launches, starts_kernel: Flags, unserved: I64) -> Flags:
    """Return which of the unserved launches come after the last launch of their thread that has its kernel."""
    is_unserved = np.zeros(len(launches), dtype=bool)
    is_unserved[unserved] = True
    served = np.flatnonzero(starts_kernel & ~is_unserved)
    last_ns = np.full(int(launches.thread.max(initial=0)) + 1, np.iinfo(np.int64).min)
    np.maximum.at(last_ns, launches.thread[served], launches.start_ns[served])
    found: Flags = launches.start_ns[unserved] > last_ns[launches.thread[unserved]]
    return found


def _operators_of(joined: Joined, rows: I64) -> str:
    """Return which operators made these launches, the most first, in words."""
    launches, texts = joined.events.launches, joined.events.strings.texts
    ops = joined.tree.innermost(launches.thread[rows], launches.start_ns[rows])
    counts = Counter(texts[int(joined.events.ops.name[op])] for op in ops.tolist() if op >= 0)
    if not counts:
        return ""
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return f" ({_listed([f'{count:,} of {name}' for name, count in ordered])})"


def _step_words(steps: Sequence[int]) -> str:
    """Return the steps in words.

    >>> _step_words([3]), _step_words([3, 4, 5, 9])
    ('step 3 is', 'steps 3-5, 9 are')
    """
    words = ranges(sorted(steps))
    return f"step {words} is" if len(steps) == 1 else f"steps {words} are"


def _check_operators(joined: Joined) -> Lost:
    """Check sources without launch calls: operators that launch elsewhere, without device work at the edges of the
    capture or in a step without any.
    """
    events, ops = joined.events, joined.events.ops
    linked = joined.op[joined.op >= 0]
    if not len(linked) or not len(events.markers) or launching_calls(events).any():
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
    defect = _defect("steps without records", steps=_step_words(lost_steps), lost=lost, launches=total)
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
    computes = joined.work == Work.COMPUTE
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
    defect = _defect(
        "cut tables", steps=_step_words(steps), found=f"{found_ns / 1e3:,.2f} us", stated=f"{stated_ns / 1e3:,.2f} us"
    )
    return Lost((defect,), steps)
