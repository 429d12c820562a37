"""Which host call launched which device event, and which op made that call."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from tracker.columns import Flags
from tracker.profile import I64, Events, Launches, LaunchLevel, each_once
from tracker.timeline.nesting import NONE
from tracker.timeline.tree import Tree

_LAUNCHES_GRAPH: Final = re.compile(r"\w*GraphLaunch")
# CANN's layers call on threads of their own, in no op; an arrow knows the op
_LEVELS = (
    ((LaunchLevel.RUNTIME, LaunchLevel.DRIVER), 1),
    ((LaunchLevel.FLOW,), 0),
    ((LaunchLevel.NODE, LaunchLevel.HCCL, LaunchLevel.ACL, LaunchLevel.MODEL), 0),
)
"""Levels of launches, those that go before the others first, and the smallest correlation of each. Of calls 0 is none:
ROCm writes it where it knows no launch. Arrows and the calls of CANN are numbered by readers.
"""


def launches_of(events: Events) -> I64:
    """For each device event the row of its launch in `events.launches`, or -1.

    Event and launch agree in process and correlation; runtime and driver calls count alike, a flow arrow only where no
    call matches, a call of a layer above the runtime only where no arrow does. A graph launch serves many events. Where
    a correlation occurs again (ids wrap, captures are joined), the launch that starts latest before the event is meant,
    or the first of all when none starts before it.
    """
    launches = events.launches
    if len(launches) == 0:
        return np.full(len(events.device), NONE, dtype=np.int64)
    found = np.full(len(events.device), NONE, dtype=np.int64)
    for levels, smallest in _LEVELS:
        is_candidate = np.isin(launches.level, levels) & (launches.correlation >= smallest)
        matching = _match(events, np.flatnonzero(is_candidate))
        found = np.where(found >= 0, found, matching)
    return found


def launching_ops(tree: Tree, launches: Launches, launch: I64) -> I64:
    """For each device event the innermost op of its launch's thread around the start of the launch, or -1."""
    op = np.full(len(launch), NONE, dtype=np.int64)
    linked = np.flatnonzero(launch >= 0)
    used, back = np.unique(launch[linked], return_inverse=True)
    op[linked] = tree.innermost(launches.thread[used], launches.start_ns[used])[back]
    return op


def ops_by_external_id(events: Events, tree: Tree, launch: I64, op: I64) -> I64:
    """Return `op`, where a device event without a launch has the op that it names by its external id, and a launch at
    the edge of an op that op which it names: on clocks of whole microseconds both may be meant.
    """
    extras, ops, launches = events.extras, events.ops, events.launches
    if not len(extras.device_external) or not len(ops):
        return op
    named = extras.device_external >= 0
    linked = launch >= 0
    call_ns = np.zeros(len(op), dtype=np.int64)
    call_ns[linked] = launches.start_ns[launch[linked]]
    at_start = linked & (op >= 0) & (ops.start_ns[np.maximum(op, 0)] == call_ns)
    # only such clocks let calls and ops end in one moment
    at_end = linked if has_whole_microseconds(events) else np.zeros(len(op), dtype=bool)
    rows = np.flatnonzero(named & (~linked | at_start | at_end))
    ids, op_of_id = _ops_by_id(events)
    if not len(rows) or not len(ids):
        return op
    place = np.minimum(np.searchsorted(ids, extras.device_external[rows]), len(ids) - 1)
    is_known = ids[place] == extras.device_external[rows]
    rows, by_id = rows[is_known], op_of_id[place[is_known]]
    time_ns, is_linked = call_ns[rows], linked[rows]
    same_thread = ops.thread[by_id] == launches.thread[np.maximum(launch[rows], 0)] if len(launches) else ~is_linked
    around = same_thread & (ops.start_ns[by_id] <= time_ns) & (time_ns <= ops.end_ns[by_id])
    is_tie = around & (at_start[rows] | (time_ns == ops.end_ns[by_id]))
    chosen = ~is_linked | is_tie
    found = op.copy()
    found[rows[chosen]] = by_id[chosen]
    return found


def _ops_by_id(events: Events) -> tuple[I64, I64]:
    """Return the external ids that one op has, ascending, and that op; an annotation only where no operator has it."""
    external, annotation = events.extras.op_external, events.ops.is_annotation
    rows = np.flatnonzero(external >= 0)
    rows = rows[np.lexsort((annotation[rows], external[rows]))]
    ids, kind = external[rows], annotation[rows]
    is_first = np.ones(len(rows), dtype=bool)
    is_first[1:] = ids[1:] != ids[:-1]
    is_alone = np.ones(len(rows), dtype=bool)
    is_alone[:-1] = (ids[1:] != ids[:-1]) | (kind[1:] != kind[:-1])
    chosen = is_first & is_alone
    return ids[chosen], rows[chosen]


def has_whole_microseconds(events: Events) -> bool:
    """Return whether the clock of the host counts whole microseconds."""
    ops = events.ops
    return bool((ops.start_ns % 1000 == 0).all() and (ops.end_ns % 1000 == 0).all())


def working_ops(events: Events, tree: Tree, op: I64) -> I64:
    """`op`, where a mere launch hands its device events to the op around it.

    An NPU framework records each launch as an op (`aclnnMm`, `MatMul`) inside the op that is at work (`aten::mm`),
    under a name that differs from chip to chip; a GPU framework makes that call without an op. A mere launch is an op
    without a namespace, without ops inside and without a collective, directly inside an op that has a namespace.
    """
    ops, texts = events.ops, events.strings.texts
    named = np.array(["::" in text for text in texts], dtype=bool)[ops.name]
    around = tree.parent
    is_leaf = np.ones(len(ops), dtype=bool)
    is_leaf[around[around >= 0]] = False
    mere = is_leaf & ~named & (ops.is_annotation == 0) & (ops.collective < 0) & (around >= 0)
    mere[mere] = named[around[mere]]
    found = op.copy()
    inside = np.flatnonzero(op >= 0)
    inside = inside[mere[op[inside]]]
    found[inside] = around[op[inside]]
    return found


def ops_of_graphs(events: Events, tree: Tree, launch: I64, op: I64) -> I64:
    """Return `op`, where the kernels of a graph launch in annotations belong to the operator around these, or to none.

    A graph holds the kernels of a whole step or model: an annotation around its launch says when, not what works. Where
    ranges are all that names work (`Extras.waiting_threads`, of Nsight) they keep theirs, with module and phase.
    """
    ops, linked = events.ops, launch >= 0
    if events.extras.waiting_threads or not linked.any() or not ops.is_annotation.any():
        return op
    is_graph = np.zeros(len(op), dtype=bool)
    is_graph[linked] = graph_launches(events)[launch[linked]]
    rows = np.flatnonzero(is_graph & (op >= 0))
    rows = rows[ops.is_annotation[op[rows]] == 1]
    if not len(rows):
        return op
    around = tree.passed_down(np.where(ops.is_annotation == 1, NONE, np.arange(len(ops))), unset=NONE)
    found = op.copy()
    found[rows] = around[op[rows]]
    return found


def graph_launches(events: Events) -> Flags:
    """Return which calls of the runtime and the driver launch a graph."""
    return find_calls(events, _LAUNCHES_GRAPH)


def find_calls(events: Events, pattern: re.Pattern[str]) -> Flags:
    """Return which calls of the runtime and the driver have a name that begins like this."""
    launches, texts = events.launches, events.strings.texts
    is_call = are_calls(events)
    is_meant = np.zeros(len(texts), dtype=bool)
    for code in each_once(launches.name[is_call]).tolist():
        is_meant[code] = bool(pattern.match(texts[code]))
    found: Flags = is_call & is_meant[launches.name]
    return found


def are_calls(events: Events) -> Flags:
    """Return which launches are calls of the runtime and the driver that may have device events."""
    launches = events.launches
    found: Flags = np.isin(launches.level, (LaunchLevel.RUNTIME, LaunchLevel.DRIVER)) & (launches.correlation > 0)
    return found


def _match(events: Events, candidates: I64) -> I64:
    """For each device event the row of the best of the launches `candidates`, or -1."""
    device, launches = events.device, events.launches
    found = np.full(len(device), NONE, dtype=np.int64)
    asking = np.flatnonzero(device.correlation >= 0)
    if len(candidates) == 0 or len(asking) == 0:
        return found
    process = np.array(events.thread_process, dtype=np.int64)[launches.thread[candidates]]
    order = np.lexsort((launches.start_ns[candidates], launches.correlation[candidates], process))
    candidates, process = candidates[order], process[order]
    pair = _pair_ids(
        process, launches.correlation[candidates], device.process[asking].astype(np.int64), device.correlation[asking]
    )
    known, wanted = pair[: len(candidates)], pair[len(candidates) :]
    first = np.searchsorted(known, wanted, side="left")
    exists = first < np.searchsorted(known, wanted, side="right")
    # `known` is sorted, so (pair, start) is too: the last launch of the pair that starts no later than the event
    place = np.lexsort(
        (
            np.concatenate((np.zeros(len(candidates), dtype=np.int64), np.ones(len(asking), dtype=np.int64))),
            np.concatenate((launches.start_ns[candidates], device.start_ns[asking])),
            pair,
        )
    )
    is_launch = place < len(candidates)
    before = np.empty(len(place), dtype=np.int64)
    before[place] = np.cumsum(is_launch) - 1
    latest = np.maximum(before[len(candidates) :], first)
    found[asking[exists]] = candidates[latest[exists]]
    return found


def _pair_ids(process: I64, correlation: I64, other_process: I64, other_correlation: I64) -> I64:
    """One integer per (process, correlation), ordered alike, for both lists one after the other."""
    all_processes = np.concatenate((process, other_process))
    all_correlations = np.concatenate((correlation, other_correlation))
    ids, codes = np.unique(all_correlations, return_inverse=True)
    pairs: I64 = all_processes * len(ids) + codes
    return pairs
