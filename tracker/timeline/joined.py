"""The events of one rank with everything that relates them: nesting, launches, steps, keys, kinds of work."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import (
    I64,
    MISSING,
    NO_STEP,
    DeviceEvents,
    DeviceKind,
    Events,
    HostOps,
    LaunchLevel,
    Markers,
    each_once,
)
from tracker.table import group_rows, list_codes
from tracker.timeline.categories import category_of_op
from tracker.timeline.collective_names import OpSays, is_communication, op_says
from tracker.timeline.keys import OpKeys, op_keys, phases_of
from tracker.timeline.links import (
    has_whole_microseconds,
    launches_of,
    launching_ops,
    ops_by_external_id,
    ops_of_graphs,
    working_ops,
)
from tracker.timeline.loading import find_loaders
from tracker.timeline.modules import modules_of
from tracker.timeline.nesting import NONE
from tracker.timeline.operator_names import name_operators
from tracker.timeline.other_threads import WaitingRanges, with_waiting
from tracker.timeline.steps import ONLY_STEP, steps_at, steps_of_device
from tracker.timeline.tree import Tree, grow
from tracker.timeline.windows import Windows, cut_windows, launch_times

_CANN: Final = (LaunchLevel.ACL, LaunchLevel.NODE, LaunchLevel.MODEL, LaunchLevel.HCCL)
_ONE_US: Final = 1_000
_MOST_CHAINED: Final = 4
"""Ops in each other that each outlast the one around them."""
_MOST_THREADS: Final = 8
"""So many of the threads that launch are looked at, those with most launches first."""


class Work(IntEnum):
    """The three classes of device time that the breakdown tells apart."""

    COMPUTE = 0
    COMMUNICATION = 1
    COPY = 2


class Joined(Struct, frozen=True):
    """Per op: `op_step`, `phase`, `collective_op` (innermost op around it, or itself, that is a collective; -1),
    `library_op` (innermost op around it, or itself, of a communication library, unless one that decides by name comes
    first; -1). `raw_name`: the code of its name as it was written, where its key has another one, else 0; empty where
    all are alike.

    Per device event: `launch` (row of its launch, -1), `op` (op at work around the launch, -1), `op_key` (pseudo-ops
    included), `step` (which launched it), `work`. `windows`: when each step runs. `steps`: the step numbers of the
    capture, in order of time. `first_ns`, `last_ns`: first start and last end of all that happened, Python frames
    aside. `other_threads_ns`: as in `Rows`.
    """

    events: Events
    tree: Tree
    keys: OpKeys
    phase: I64
    loads: NDArray[np.bool_]
    op_step: I64
    raw_name: I64
    collective_op: I64
    library_op: I64
    launch: I64
    op: I64
    op_key: I64
    step: I64
    work: NDArray[np.int64]
    windows: Windows
    first_ns: int
    last_ns: int
    other_threads_ns: int

    @property
    def steps(self) -> list[int]:
        """Numbers of the steps that get a row of their own."""
        markers = self.events.markers
        if not len(markers):
            return [ONLY_STEP]
        return [step for step in dict.fromkeys(markers.step.tolist()) if step != NO_STEP]

    @property
    def on_device(self) -> bool:
        """Whether there is device activity; without it the host timeline stands in."""
        return len(self.events.device) > 0

    @property
    def is_npu(self) -> bool:
        """Whether the device is an NPU: CANN names its kernels' types, or its layers that call the device."""
        device, texts = self.events.device, self.events.strings.texts
        is_typed = any(texts[code] for code in (*list_codes(device.type), *list_codes(device.core_type)))
        return is_typed or bool(np.isin(self.events.launches.level, _CANN).any())

    @property
    def has_host(self) -> bool:
        """Whether anything is known of the host: operators, calls of the runtime or Python frames."""
        events = self.events
        return len(events.ops) > 0 or len(events.launches) > 0 or len(events.frames) > 0

    @property
    def launching_threads(self) -> I64:
        """The threads that launched kernels, or whose operators did, those with most launches first; of a capture
        without kernels those that launched anything. One that only copies batches ahead is none.
        """
        rows = np.flatnonzero(self.is_kernel) if self.is_kernel.any() else np.arange(len(self.launch))
        of_operators = self.events.ops.thread[self.op[rows[self.op[rows] >= 0]]]
        threads: I64 = np.concatenate((self.launch_thread[rows], of_operators)).astype(np.int64)
        counts = np.bincount(threads[threads >= 0], minlength=1)
        order = np.argsort(-counts, kind="stable")[:_MOST_THREADS]
        return order[counts[order] > 0].astype(np.int64)

    @property
    def is_kernel(self) -> NDArray[np.bool_]:
        """Per device event: a kernel, no copy and no memset."""
        return _are_kernels(self.events.device)

    @property
    def handed_over_ns(self) -> I64:
        """Return per device event when the host had handed it over to the device, MISSING where that is not known: what
        the source says, else the end of the launch call.
        """
        handover_ns = self.events.extras.handover_ns
        if len(handover_ns):
            return handover_ns
        return np.append(self.events.launches.end_ns, MISSING)[self.launch]

    @property
    def launch_thread(self) -> I64:
        """Return per device event the thread that handed it over to the device: what the source says, else that of the
        launch; -1 for none.
        """
        of_launch = np.append(self.events.launches.thread.astype(np.int64), NONE)[self.launch]
        handover_thread = self.events.extras.handover_thread
        if not len(handover_thread):
            return of_launch
        return np.where(handover_thread >= 0, handover_thread, of_launch)


def _are_kernels(device: DeviceEvents) -> NDArray[np.bool_]:
    return np.isin(device.kind, (DeviceKind.KERNEL, DeviceKind.COMMUNICATION))


def join(events: Events, loader_names: Sequence[str] = ()) -> Joined:
    """Relates the events of one rank to each other. `loader_names`: of a team's own data loaders, see `is_loader`."""
    ops, device = events.ops, events.device
    tree = grow(ops.thread, ops.start_ns, nesting_ends(events))
    op_step = steps_at(events.markers, ops.start_ns)
    events, raw_name = name_operators(events, tree, op_step)
    ops = events.ops
    module, module_texts = modules_of(events, tree)
    launch = launches_of(events)
    waiting = WaitingRanges(events, launch)
    loads = find_loaders(events, tree, loader_names)
    phase = phases_of(events, tree, module, waiting.around(ops.thread, ops.start_ns), loads)
    keys = op_keys(events, module, module_texts, phase)
    linked = launch >= 0
    op = launching_ops(tree, events.launches, launch)
    op = ops_by_external_id(events, tree, launch, op)
    op = working_ops(events, tree, op)
    op = with_waiting(op, events, launch, waiting)
    op = ops_of_graphs(events, tree, launch, op)
    op_key = np.where(linked, keys.no_op, keys.unlinked)
    op_key[op >= 0] = keys.of_op[op[op >= 0]]
    call_ns = np.zeros(len(device), dtype=np.int64)
    call_ns[linked] = events.launches.start_ns[launch[linked]]
    # an op that a device event names by an id launched it, whenever that was
    is_placed = linked | (op >= 0)
    call_ns[is_placed & ~linked] = ops.start_ns[op[is_placed & ~linked]]
    collective_op = tree.passed_down(np.where(ops.collective >= 0, np.arange(len(ops)), NONE), unset=NONE)
    library_op = _library_ops(events, tree)
    work = _work(events, op, collective_op, library_op)
    launched_ns = launch_times(events.markers, device, call_ns, is_placed)
    communicates = work == Work.COMMUNICATION
    windows = cut_windows(events.markers, device, launched_ns, _are_kernels(device), communicates)
    first_ns, last_ns = bounds_of(events)
    return Joined(
        events=events,
        tree=tree,
        keys=keys,
        phase=phase,
        loads=loads,
        op_step=op_step,
        raw_name=raw_name,
        collective_op=collective_op,
        library_op=library_op,
        launch=launch,
        op=op,
        op_key=op_key,
        step=steps_of_device(events.markers, device, call_ns, is_placed),
        work=work,
        windows=windows,
        first_ns=first_ns,
        last_ns=last_ns,
        other_threads_ns=waiting.launched_beside(op, events, launch),
    )


def nesting_ends(events: Events) -> I64:
    """Return the end of each op by which it nests: that of the op around it, where it ends 1 us behind that.

    A clock of whole microseconds cuts off start and duration each for itself, so that a child may outlast its parent.
    """
    ops = events.ops
    if len(ops) < 2 or not has_whole_microseconds(events):
        return ops.end_ns
    end_ns = ops.end_ns.copy()
    for _ in range(_MOST_CHAINED):
        order = np.lexsort((ops.start_ns, end_ns, ops.thread))
        # one number per thread and end; equal ones in order of their start
        low, span = int(end_ns.min()) - _ONE_US, int(np.ptp(end_ns)) + 2 * _ONE_US
        key = ops.thread.astype(np.int64) * span + (end_ns - low)
        place = np.searchsorted(key[order], key - _ONE_US)
        around = order[np.minimum(place, len(order) - 1)]
        begins_before = ops.start_ns[around] < ops.start_ns
        lies_in = ops.start_ns + _ONE_US < end_ns[around]
        outlasts = (key[around] == key - _ONE_US) & begins_before & lies_in
        if not outlasts.any():
            break
        end_ns[outlasts] -= _ONE_US
    return end_ns


def _library_ops(events: Events, tree: Tree) -> I64:
    """`Joined.library_op`. An operator that is none of a communication library decides by name."""
    ops, texts = events.ops, events.strings.texts
    names = list_codes(ops.name)
    says = np.full(len(texts), OpSays.NOTHING, dtype=np.int64)
    for code in names:
        said = op_says(texts[code])
        own = said is OpSays.NOTHING and bool(category_of_op(texts[code]) is not None)
        says[code] = OpSays.BY_NAME if own else said
    of_op = says[ops.name]
    by_name = len(ops)  # no row: stops the search outwards
    place = np.where(of_op == OpSays.COMMUNICATES, np.arange(len(ops)), by_name)
    found = tree.passed_down(np.where(of_op == OpSays.NOTHING, NONE, place), unset=NONE)
    return np.where(found == by_name, NONE, found)


def _work(events: Events, op: I64, collective_op: I64, library_op: I64) -> NDArray[np.int64]:
    """The class of each device event.

    A copy inside a collective, on a stream that collectives use, belongs to the collective.
    """
    device = events.device
    is_copy = (device.kind == DeviceKind.COPY) | (device.kind == DeviceKind.MEMSET)
    communicates = (device.kind == DeviceKind.COMMUNICATION) | (device.collective >= 0)
    communicates |= _says_communication(events, op, library_op)
    kernels = communicates & ~is_copy
    inside = device.collective >= 0
    launched = op >= 0
    inside[launched] |= collective_op[op[launched]] >= 0
    copies = is_copy & inside & np.isin(device.stream, each_once(device.stream[kernels]))
    return np.where(kernels | copies, Work.COMMUNICATION, np.where(is_copy, Work.COPY, Work.COMPUTE)).astype(np.int64)


def _says_communication(events: Events, op: I64, library_op: I64) -> NDArray[np.bool_]:
    """Per device event: the launching op or the kernel's name says that it is communication.

    Kernels with a type or a core type are an NPU's, whose profiler itself tells its collectives apart: there the name
    alone counts.
    """
    device, texts = events.device, events.strings.texts
    by_op = np.zeros(len(device), dtype=np.int64)
    by_op[op >= 0] = library_op[op[op >= 0]] >= 0
    typed = np.array([bool(text) for text in texts], dtype=bool)
    by_op[typed[device.type] | typed[device.core_type]] = 0
    groups = group_rows(device.name, by_op)
    says = (OpSays.NOTHING, OpSays.COMMUNICATES)
    said = [is_communication(texts[int(device.name[row])], says=says[int(by_op[row])]) for row in groups.first.tolist()]
    found: NDArray[np.bool_] = np.array(said, dtype=bool)[groups.number]
    return found


def bounds_of(events: Events) -> tuple[int, int]:
    """First start and last end; (0, 0) for a capture in which nothing happened.

    Python frames are left out: they reach back to the start of the process, with or without work. So do calls of the
    operating system, and what the profiler does for itself.
    """
    spans: tuple[HostOps | DeviceEvents | Markers, ...] = (events.ops, events.device, events.markers)
    launches, others = events.launches, ~np.isin(events.launches.level, (LaunchLevel.OS, LaunchLevel.PROFILER))
    starts = [*(table.start_ns for table in spans), launches.start_ns[others], events.allocations.time_ns]
    ends = [*(table.end_ns for table in spans), launches.end_ns[others], events.allocations.time_ns]
    all_starts, all_ends = np.concatenate(starts), np.concatenate(ends)
    if len(all_starts) == 0:
        return 0, 0
    return int(all_starts.min()), int(all_ends.max())
