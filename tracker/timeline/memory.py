"""Allocator events: who allocated how much, how long it was held, and the curve of memory over time."""

from __future__ import annotations

import numpy as np

from tracker.profile import I64, MISSING, Table
from tracker.timeline.aggregate import group_by, rank_of_texts, texts_of
from tracker.timeline.joined import Joined
from tracker.timeline.steps import steps_at

MAX_CURVE_POINTS = 500


def memory_table(joined: Joined) -> Table:
    """Per step, innermost op on the allocating thread and component: what was allocated, and how long it was held.

    `held_ns` sums what was also freed in the capture (MISSING where nothing was); the rest is `unreleased_bytes`. Both
    are MISSING where the source names no addresses.
    """
    allocations = joined.events.allocations
    rows = np.flatnonzero(allocations.bytes > 0)
    held, unreleased = _releases(joined)
    op = joined.tree.innermost(allocations.thread[rows], allocations.time_ns[rows])
    op_key = np.full(len(rows), joined.keys.no_op, dtype=np.int64)
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


def memory_curve(joined: Joined) -> Table:
    """Allocated and reserved bytes over time (ns from the first event): at most 500 points per component.

    Maxima are kept."""
    allocations = joined.events.allocations
    known = allocations.total_allocated_bytes != MISSING
    texts = joined.events.strings.texts
    kept: list[I64] = []
    for code in sorted(np.unique(allocations.component[known]).tolist(), key=lambda code: texts[code]):
        rows = np.flatnonzero(known & (allocations.component == code))
        # events of one instant by size: their order in the file is no order in time
        reserved, allocated = allocations.total_reserved_bytes[rows], allocations.total_allocated_bytes[rows]
        kept.append(_thinned(joined, rows[np.lexsort((reserved, allocated, allocations.time_ns[rows]))]))
    points = np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)
    return {
        "component": texts_of(allocations.component[points], texts),
        "time_ns": allocations.time_ns[points] - joined.first_ns,
        "allocated_bytes": allocations.total_allocated_bytes[points],
        "reserved_bytes": allocations.total_reserved_bytes[points],
    }


def _thinned(joined: Joined, rows: I64) -> I64:
    """Of `rows`, in order of time, the two of each of 250 equal parts where allocated and reserved are largest."""
    if len(rows) <= MAX_CURVE_POINTS:
        return rows
    allocations = joined.events.allocations
    kept: set[int] = set()
    for part in np.array_split(rows, MAX_CURVE_POINTS // 2):
        kept.add(int(part[np.argmax(allocations.total_allocated_bytes[part])]))
        kept.add(int(part[np.argmax(allocations.total_reserved_bytes[part])]))
    return rows[np.isin(rows, np.array(sorted(kept), dtype=np.int64))]


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
