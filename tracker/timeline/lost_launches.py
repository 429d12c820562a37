"""Launches of the host that have no kernel: the profiler lost it, or the capture ended first."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

import numpy as np

from tracker.columns import I64, Flags
from tracker.profile import NO_STEP, Events, Launches, each_once
from tracker.timeline.defects import Lost, list_names, make_defect, words_of_steps
from tracker.timeline.joined import Joined
from tracker.timeline.links import are_calls, find_calls, graph_launches
from tracker.timeline.steps import steps_at

_FEW: Final = 0.01
"""Share of the launches of a capture without steps that its end cuts off: of 4 real ones up to 0.9 %."""
_LAUNCHES_KERNEL: Final = re.compile(r"\w*(?:Launch|Enqueue)\w*Kernel")
_LAUNCHES_NONE: Final = re.compile(r"Graph|HostFunc|Mem(?:cpy|set)|Copy|Fill")
"""Calls that may have a device event of the kind of a kernel and need not: graphs, calls of the host, copies (those of
no bytes have none).
"""
_BEGINS_CAPTURE: Final = re.compile(r"\w*StreamBeginCapture")
_ENDS_CAPTURE: Final = re.compile(r"\w*StreamEndCapture")


def check_launches(joined: Joined, timeless: I64) -> Lost:
    """Check that each launch of a kernel has its kernel, and each launch of a graph a kernel, where others have some.

    Where only the last launches of threads have none, the capture ended first: their steps are left out, and the others
    are whole. `timeless`: correlations of device events that have no time. CANN's launches have a check of their own.
    """
    events = joined.events
    if joined.is_npu or events.extras.no_kernels:
        return Lost((), ())
    starts_kernel = launching_calls(joined)
    of_kernels = _check_calls(joined, starts_kernel, timeless, "lost kernels") if starts_kernel.any() else Lost((), ())
    starts_graph = graph_launches(events)
    has_kernels = np.isin(np.flatnonzero(starts_graph), joined.launch[joined.launch >= 0])
    # a profiler that names the kernels of no graph launch has lost none of them
    if not has_kernels.any() or (joined.is_kernel & (joined.launch < 0)).any():
        return of_kernels
    of_graphs = _check_calls(joined, starts_graph, timeless, "lost graph launches")
    return Lost((*of_kernels.defects, *of_graphs.defects), (*of_kernels.steps, *of_graphs.steps))


def _check_calls(joined: Joined, launching: Flags, timeless: I64, check: str) -> Lost:
    """Check that these calls have their kernels; `check`: what it is called where the profiler lost some."""
    events, launches = joined.events, joined.events.launches
    unserved, total = _unserved_launches(joined, launching, timeless)
    if not len(unserved):
        return Lost((), ())
    nameless = surplus = 0
    if check == "lost kernels":
        surplus = _surplus_kernels(joined, launching)
        # kernels that name no launch (ROCm writes correlation 0) are those of as many launches
        nameless = int(((joined.launch < 0) & (events.device.correlation <= 0) & joined.is_kernel).sum())
    lost = len(unserved) - nameless - surplus
    defects = []
    if surplus:
        defects.append(make_defect("shared launches", lost=surplus, launches=len(unserved)))
    if lost <= 0:
        return Lost(tuple(defects), ())
    is_certain = lost == len(unserved)
    steps = _unfinished_steps(joined, launching, unserved) if is_certain else None
    if steps is None and _ended_first(joined, unserved):
        defects.append(make_defect("launches behind the end", lost=lost, launches=total))
        return Lost(tuple(defects), ())
    if steps is None:
        operators = _operators_of(joined, unserved) if is_certain else ""
        defects.append(make_defect(check, lost=lost, launches=total, operators=operators))
        return Lost(tuple(defects), ())
    if steps:
        in_steps = np.isin(steps_at(events.markers, launches.start_ns[launching]), steps)
        words = words_of_steps(steps)
        defects.append(make_defect("unfinished steps", steps=words, lost=lost, launches=int(in_steps.sum())))
    return Lost(tuple(defects), steps)


def _unfinished_steps(joined: Joined, launching: Flags, unserved: I64) -> tuple[int, ...] | None:
    """Return the steps that the capture ended before, where that is why these launches have no kernels; else None."""
    markers, launches = joined.events.markers, joined.events.launches
    if not _are_tail(launches, launching, unserved).all():
        return None
    if not len(markers):
        # a capture without steps is a window, which always cuts off a few
        return () if len(unserved) <= _FEW * int(launching.sum()) else None
    start_ns = launches.start_ns[unserved]
    step = steps_at(markers, start_ns)
    is_between = (step == NO_STEP) & (start_ns < int(markers.end_ns.max()))
    steps = tuple(sorted(set(step[step != NO_STEP].tolist())))
    if is_between.any() or set(steps) >= set(joined.steps):
        return None
    return steps


def _ended_first(joined: Joined, unserved: I64) -> bool:
    """Return whether a capture without steps ended before these launches had their kernels: behind the last that has.

    A profiler that waits for the device at its end has all of them.
    """
    events = joined.events
    if not events.extras.ends_at_once or len(events.markers):
        return False
    served = joined.launch[joined.is_kernel & (joined.launch >= 0)]
    last_ns = int(events.launches.start_ns[served].max(initial=np.iinfo(np.int64).min))
    return len(served) > 0 and bool((events.launches.start_ns[unserved] > last_ns).all())


def launching_calls(joined: Joined) -> Flags:
    """Return which calls of the runtime and the driver launch one kernel: those named so, and those of a name by whose
    correlation this capture has kernels, of whatever maker.
    """
    launches, texts = joined.events.launches, joined.events.strings.texts
    is_named = find_calls(joined.events, _LAUNCHES_KERNEL)
    with_kernels = np.zeros(len(texts), dtype=bool)
    with_kernels[launches.name[joined.launch[joined.is_kernel & (joined.launch >= 0)]]] = True
    launching = is_named | (are_calls(joined.events) & with_kernels[launches.name])
    launches_none = np.zeros(len(texts), dtype=bool)
    for code in each_once(launches.name[launching]).tolist():
        launches_none[code] = bool(_LAUNCHES_NONE.search(texts[code]))
    return launching & ~launches_none[launches.name]


def _unserved_launches(joined: Joined, launching: Flags, timeless: I64) -> tuple[I64, int]:
    """Return the rows of the launches that have no device event, and of which none can be expected to be missing; and
    how many launches there are. A call of the runtime and the one of the driver in it are one launch: one of the two
    has the kernel.
    """
    events, launches = joined.events, joined.events.launches
    has_event = np.zeros(len(launches), dtype=bool)
    has_event[joined.launch[joined.launch >= 0]] = True
    rows = np.flatnonzero(launching)
    outer = _find_outer_calls(launches, rows)
    served = np.zeros(len(launches), dtype=bool)
    np.logical_or.at(served, outer, has_event[rows] | _is_excused(events, rows, timeless))
    outermost = each_once(outer)
    return outermost[~served[outermost]], len(outermost)


def _is_excused(events: Events, rows: I64, timeless: I64) -> Flags:
    """Return which launches need no device event here: another process has it, it has no time, or nothing was run."""
    launches = events.launches
    is_elsewhere = np.isin(launches.correlation[rows], events.extras.served_elsewhere)
    is_timeless = np.isin(launches.correlation[rows], timeless)
    return np.asarray(is_elsewhere | is_timeless | _under_capture(events, launches.start_ns[rows]))


def _find_outer_calls(launches: Launches, rows: I64) -> I64:
    """Return for each of these calls the outermost one of them on its thread that it lies in, itself where none is."""
    outer = rows.copy()
    for thread in each_once(launches.thread[rows]).tolist():
        places = np.flatnonzero(launches.thread[rows] == thread)
        own = rows[places]
        order = np.lexsort((-launches.end_ns[own], launches.start_ns[own]))
        end_ns = launches.end_ns[own][order]
        is_outermost = np.ones(len(own), dtype=bool)
        is_outermost[1:] = end_ns[1:] > np.maximum.accumulate(end_ns)[:-1]
        outer[places[order]] = own[order][is_outermost][np.cumsum(is_outermost) - 1]
    return outer


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
    return f" ({list_names([f'{count:,} of {name}' for name, count in ordered])})"
