"""Calling contexts: the paths of op keys in which ops ran."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from tracker.profile import I64, MISSING, Table
from tracker.timeline.joined import Joined
from tracker.timeline.slots import Slots, launching_chains, slots_of, slots_with_device_work

NO_PARENT = -1


class Contexts(Struct, frozen=True):
    """Distinct paths of op keys. A context keeps its number in every step; a parent has a smaller one.

    `of_op`: the context of each op. `no_op`, `unlinked`: those of the pseudo-ops, which are always there.
    """

    of_op: I64
    parent: I64
    op_key: I64
    no_op: int
    unlinked: int


def op_tree_table(joined: Joined) -> Table:
    """One row per step and calling context; in each step a context's parent has a row too, roots have parent -1.

    Equal paths on different threads are one context. A backward op is the root of its own thread. Device time and
    device events count all that was launched anywhere below. The pseudo-ops are roots without calls.
    """
    contexts = contexts_of(joined)
    launched = joined.op >= 0
    of_event = np.where(joined.launch >= 0, contexts.no_op, contexts.unlinked)
    of_event[launched] = contexts.of_op[joined.op[launched]]
    slots = _with_parents(slots_with_device_work(joined, contexts.of_op, of_event, len(contexts.parent)), contexts)
    slot = slots.at(joined.op_step, contexts.of_op)
    calls = slots.counted(slot)
    host = slots.summed(slot, joined.tree.end_ns - joined.tree.start_ns)
    total, own, count = _device_columns(joined, contexts, slots, of_event)
    unknown = (calls == 0) & np.isin(slots.code, [contexts.no_op, contexts.unlinked])
    unknown |= not joined.events.host_is_primary
    kept = count > 0 if not joined.events.host_is_primary else np.ones(len(slots), dtype=bool)
    return {
        "step": slots.step[kept],
        "node": slots.code[kept],
        "parent": contexts.parent[slots.code[kept]],
        "op_key": contexts.op_key[slots.code[kept]],
        "calls": calls[kept] if joined.events.host_is_primary else np.full(int(kept.sum()), MISSING, dtype=np.int64),
        "host_total_ns": np.where(unknown, MISSING, host)[kept],
        "device_total_ns": total[kept],
        "device_self_ns": own[kept],
        "kernel_count": count[kept],
    }


def contexts_of(joined: Joined) -> Contexts:
    """The calling contexts of all ops, and a root for each pseudo-op."""
    paths = joined.tree.paths(joined.keys.of_op)
    count = len(paths.parent)
    return Contexts(
        paths.of_row,
        np.concatenate((paths.parent, [NO_PARENT, NO_PARENT])),
        np.concatenate((paths.key, [joined.keys.no_op, joined.keys.unlinked])),
        no_op=count,
        unlinked=count + 1,
    )


def _with_parents(slots: Slots, contexts: Contexts) -> Slots:
    """The slots, and in each step those of the contexts around them, which may have begun in another step."""
    pairs = [(slots.step, slots.code)]
    step, code = slots.step, contexts.parent[slots.code]
    while len(step := step[code >= 0]):
        code = code[code >= 0]
        pairs.append((step, code))
        code = contexts.parent[code]
    return slots_of(pairs, len(contexts.parent))


def _device_columns(joined: Joined, contexts: Contexts, slots: Slots, of_event: I64) -> tuple[I64, I64, I64]:
    """Device time below, own device time, and device events below, per slot."""
    device = joined.events.device
    duration = device.end_ns - device.start_ns
    slot = slots.at(joined.step, of_event)
    own = slots.summed(slot, duration)
    without_op = joined.op < 0
    total = slots.summed(slot[without_op], duration[without_op])
    count = slots.counted(slot[without_op])
    for events, op in launching_chains(joined):
        place = slots.at(joined.step[events], contexts.of_op[op])
        total += slots.summed(place, duration[events])
        count += slots.counted(place)
    return total, own, count
