"""Calling contexts: the paths of op keys in which ops ran."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from tracker.limits.rows import check_rows
from tracker.profile import I64, MISSING, Table
from tracker.table import group_rows, match_rows, sum_by_number
from tracker.timeline import deep_trees
from tracker.timeline.joined import Joined
from tracker.timeline.tree import rows_by_depth, summed_up

NO_PARENT = -1
_CONTEXTS = "calling contexts of steps"


class Slots(Struct, frozen=True):
    """Rows of a table that has one per step and code: the pairs that occur, ordered by step, then code."""

    step: I64
    code: I64

    def __len__(self) -> int:
        return len(self.step)

    def at(self, step: I64, code: I64) -> I64:
        """Return the slot of each pair; the pair must have one."""
        return match_rows([self.step, self.code], [step, code])

    def sums(self, slot: I64, values: I64) -> I64:
        """Return the exact sum of `values` in each slot, 0 where none is."""
        return sum_by_number(slot, values, len(self))

    def counts(self, slot: I64) -> I64:
        """Return how often each slot occurs."""
        return np.bincount(slot, minlength=len(self)).astype(np.int64)


def slots_of(pairs: Sequence[tuple[I64, I64]]) -> Slots:
    """Return the slots of all these (step, code) pairs."""
    step = np.concatenate([steps for steps, _ in pairs])
    code = np.concatenate([codes for _, codes in pairs])
    first = group_rows(step, code).first
    return Slots(step[first], code[first])


class Contexts(Struct, frozen=True):
    """Distinct paths of op keys. A context keeps its number in every step; a parent has a smaller one.

    `of_op`: the context of each op. `depth`: 0 for roots. `no_op`, `unlinked`: those of the pseudo-ops, which are
    always there.
    """

    of_op: I64
    parent: I64
    op_key: I64
    depth: I64
    no_op: int
    unlinked: int


class ContextWork(Struct, frozen=True):
    """Device work per step and context, as it rises through the contexts around a launch.

    `slots`: those in which an op starts or a device event runs, and in each step those of the contexts around them.
    Per slot, `own_ns`: of what the op itself launched; `total_ns`, `count`: of all that was launched in it or below.
    """

    contexts: Contexts
    slots: Slots
    own_ns: I64
    total_ns: I64
    count: I64


def context_work(joined: Joined) -> ContextWork:
    """The device work of all contexts; time and memory go with the slots, however deep ops nest."""
    contexts = contexts_of(joined)
    launched = joined.op >= 0
    of_event = np.where(joined.launch >= 0, contexts.no_op, contexts.unlinked)
    of_event[launched] = contexts.of_op[joined.op[launched]]
    slots = _with_parents(
        slots_of([(joined.op_step, contexts.of_op), (joined.step, of_event)]),
        contexts,
        len(joined.events.ops) + len(joined.events.device),
    )
    slot = slots.at(joined.step, of_event)
    own = slots.sums(slot, joined.events.device.end_ns - joined.events.device.start_ns)
    around = contexts.parent[slots.code]
    has_parent = around >= 0
    parent = np.full(len(slots), NO_PARENT, dtype=np.int64)
    parent[has_parent] = slots.at(slots.step[has_parent], around[has_parent])
    levels = _levels(slots, contexts)
    return ContextWork(
        contexts, slots, own, summed_up(own, parent, levels), summed_up(slots.counts(slot), parent, levels)
    )


def op_tree_table(joined: Joined, work: ContextWork) -> Table:
    """One row per step and calling context; in each step a context's parent has a row too, roots have parent -1.

    Equal paths on different threads are one context. A backward op is the root of its own thread. Device time and
    device events count all that was launched anywhere below. The pseudo-ops are roots without calls.
    """
    contexts, slots = work.contexts, work.slots
    slot = slots.at(joined.op_step, contexts.of_op)
    calls = slots.counts(slot)
    host = slots.sums(slot, joined.tree.end_ns - joined.tree.start_ns)
    unknown = (calls == 0) & np.isin(slots.code, [contexts.no_op, contexts.unlinked])
    unknown |= not joined.events.host_is_primary
    kept = work.count > 0 if not joined.events.host_is_primary else np.ones(len(slots), dtype=bool)
    return {
        "step": slots.step[kept],
        "node": slots.code[kept],
        "parent": contexts.parent[slots.code[kept]],
        "op_key": contexts.op_key[slots.code[kept]],
        "calls": calls[kept] if joined.events.host_is_primary else np.full(int(kept.sum()), MISSING, dtype=np.int64),
        "host_total_ns": np.where(unknown, MISSING, host)[kept],
        "device_total_ns": work.total_ns[kept],
        "device_self_ns": work.own_ns[kept],
        "kernel_count": work.count[kept],
    }


def contexts_of(joined: Joined) -> Contexts:
    """The calling contexts of all ops, and a root for each pseudo-op."""
    paths = joined.tree.paths(joined.keys.of_op)
    count = len(paths.parent)
    return Contexts(
        paths.of_row,
        np.concatenate((paths.parent, [NO_PARENT, NO_PARENT])),
        np.concatenate((paths.key, [joined.keys.no_op, joined.keys.unlinked])),
        np.concatenate((paths.depth, [0, 0])),
        no_op=count,
        unlinked=count + 1,
    )


def _with_parents(slots: Slots, contexts: Contexts, events: int) -> Slots:
    """The slots, and in each step those of the contexts around them, which may have begun in another step.

    events: of the capture; TooManyRowsError where that many cannot have so many slots.
    """
    levels = _levels(slots, contexts)
    if deep_trees.are_narrow(levels):
        return _with_parents_one_by_one(slots, contexts, events)
    pairs = [(slots.step, slots.code)]
    around = (slots.step[:0], slots.code[:0])
    count = len(slots)
    for rows in reversed(levels):
        pairs.append(around)
        count += len(around[0])
        check_rows(count, events, _CONTEXTS)
        level = slots_of([(slots.step[rows], slots.code[rows]), around])
        around = (level.step, contexts.parent[level.code])
    return slots_of(pairs)


def _with_parents_one_by_one(slots: Slots, contexts: Contexts, events: int) -> Slots:
    """The same for contexts that nest so deep that there are about as many levels as contexts."""
    parent = contexts.parent.tolist()
    pairs = set(zip(slots.step.tolist(), slots.code.tolist(), strict=True))
    for step, code in list(pairs):
        around = (step, parent[code])
        while around[1] >= 0 and around not in pairs:
            pairs.add(around)
            around = (step, parent[around[1]])
        check_rows(len(pairs), events, _CONTEXTS)
    steps, codes = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    return slots_of([(steps, codes)])


def _levels(slots: Slots, contexts: Contexts) -> tuple[I64, ...]:
    return rows_by_depth(np.arange(len(slots)), contexts.depth[slots.code])
