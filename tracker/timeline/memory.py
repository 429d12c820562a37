"""Allocator events: who allocated how much, and how long it was held."""

from __future__ import annotations

import numpy as np

from tracker.profile import I64, MISSING, Table
from tracker.timeline.aggregate import group_by, rank_of_texts, texts_of
from tracker.timeline.joined import Joined
from tracker.timeline.steps import steps_at


def memory_table(joined: Joined) -> Table:
    """Per step, innermost op on the allocating thread and component: what was allocated, and how long it was held.
    Where there is no such op, it is the one that the source itself names.

    `held_ns` sums what was also freed in the capture (MISSING where nothing was); the rest is `unreleased_bytes`. Both
    are MISSING where the source names no addresses.
    """
    allocations = joined.events.allocations
    rows = np.flatnonzero(allocations.bytes > 0)
    held, unreleased = _releases(joined)
    op = joined.tree.innermost(allocations.thread[rows], allocations.time_ns[rows])
    said = joined.keys.of_allocation
    op_key = said[rows] if len(said) else np.full(len(rows), joined.keys.no_op, dtype=np.int64)
    op_key[op >= 0] = joined.keys.of_op[op[op >= 0]]
    texts = joined.events.strings.texts
    component = rank_of_texts(texts)[allocations.component[rows]]
    groups = group_by(steps_at(joined.events.markers, allocations.time_ns[rows]), op_key, component)
    step = steps_at(joined.events.markers, allocations.time_ns[rows[groups.first]])
    return {
        "step": step,
        "op_key": op_key[groups.first],
        "component": texts_of(allocations.component[rows[groups.first]], texts),
        "calls": groups.counts,
        "bytes": groups.sums(allocations.bytes[rows]),
        "held_ns": groups.known_sums(held[rows]),
        "unreleased_bytes": groups.known_sums(unreleased[rows]),
    }


def _releases(joined: Joined) -> tuple[I64, I64]:
    """Per allocator event the time until its block was freed (or MISSING), and its bytes if it never was.

    A block is known by component and address; without an address both are MISSING. Where an address is handed out
    again without a free in between, the free was not recorded: neither held time nor unreleased.
    """
    allocations = joined.events.allocations
    order = np.lexsort((allocations.bytes, allocations.time_ns, allocations.address, allocations.component))
    component, address = allocations.component[order], allocations.address[order]
    size, time = allocations.bytes[order], allocations.time_ns[order]
    follows = np.zeros(len(order), dtype=bool)
    follows[:-1] = (component[1:] == component[:-1]) & (address[1:] == address[:-1])
    next_size, next_time = np.append(size[1:], 0), np.append(time[1:], 0)
    released = (size > 0) & follows & (next_size < 0)
    held = np.full(len(order), MISSING, dtype=np.int64)
    unreleased = np.zeros(len(order), dtype=np.int64)
    held[order] = np.where(released, next_time - time, MISSING)
    unreleased[order] = np.where((size > 0) & ~follows, size, 0)
    unreleased[allocations.address == MISSING] = held[allocations.address == MISSING] = MISSING
    return held, unreleased
