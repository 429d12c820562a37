"""Allocator events: who allocated how much, how long it was held, and the largest single blocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from tracker.profile import I64, MAX_BLOCKS, MISSING, Allocations, Table
from tracker.table import Groups, group_rows, look_up_texts, rank_codes, split_rows_by_value
from tracker.timeline.joined import Joined
from tracker.timeline.nesting import NONE
from tracker.timeline.owners import Owners, owners_of
from tracker.timeline.stacks import OpStacks, stacks_at
from tracker.timeline.steps import steps_at


class Blocks(Struct, frozen=True):
    """The allocations of a capture, each with its owner. `rows`: in `events.allocations`.

    `end`: the row of the event that ends it: its release, or the next allocation at its address, whose release was not
    recorded; -1: none in the capture, or without an address. `held_ns`: until the release, MISSING without;
    `unreleased_bytes`: its bytes where nothing ended it, else 0, MISSING without an address.
    """

    rows: I64
    owners: Owners
    step: I64
    end: I64
    held_ns: I64
    unreleased_bytes: I64


def blocks_of(joined: Joined) -> Blocks:
    """The allocations of a capture."""
    allocations = joined.events.allocations
    rows = np.flatnonzero(allocations.bytes > 0)
    end = _ends(allocations)[rows]
    ended = end >= 0
    released = ended.copy()
    released[ended] = allocations.bytes[end[ended]] < 0
    held = np.full(len(rows), MISSING, dtype=np.int64)
    held[released] = (allocations.time_ns[end] - allocations.time_ns[rows])[released]
    unreleased = np.where(ended, 0, allocations.bytes[rows])
    unreleased[allocations.address[rows] == MISSING] = MISSING
    step = steps_at(joined.events.markers, allocations.time_ns[rows])
    return Blocks(rows, owners_of(joined, rows), step, end, held, unreleased)


def memory_tables(joined: Joined, blocks: Blocks) -> dict[str, Table]:
    """`memory`: what was allocated per step, owner (see `owners`) and component, and how long it was held.
    `memory_allocator`: the same per allocator of each of them, so that its rows sum up to those of `memory`.

    `held_ns` sums what was also freed in the capture (MISSING where nothing was); the rest is `unreleased_bytes`. Both
    are MISSING where the source names no addresses.
    """
    rows, texts = blocks.rows, joined.events.strings.texts
    component, allocator = _by_text(joined, "component", blocks), rank_codes(blocks.owners.allocator, texts)
    owner = (blocks.step, blocks.owners.op_key, component)
    tables: dict[str, Table] = {}
    for name, groups in (("memory", group_rows(*owner)), ("memory_allocator", group_rows(*owner, allocator))):
        first = groups.first
        own = {"allocator": look_up_texts(blocks.owners.allocator[first], texts)} if name == "memory_allocator" else {}
        tables[name] = {
            "step": blocks.step[first],
            "op_key": blocks.owners.op_key[first],
            "component": look_up_texts(joined.events.allocations.component[rows[first]], texts),
            **own,
            **_sums(joined, blocks, groups),
        }
    return tables


def _by_text(joined: Joined, column: str, blocks: Blocks) -> I64:
    """The place of the text of each block among all texts: an order that does not depend on that of the input."""
    codes = getattr(joined.events.allocations, column)[blocks.rows]
    return rank_codes(codes, joined.events.strings.texts)


def _sums(joined: Joined, blocks: Blocks, groups: Groups) -> dict[str, I64]:
    return {
        "calls": groups.counts,
        "bytes": groups.sums(joined.events.allocations.bytes[blocks.rows]),
        "held_ns": groups.add_up_marked(blocks.held_ns, MISSING, "known"),
        "unreleased_bytes": groups.add_up_marked(blocks.unreleased_bytes, MISSING, "known"),
    }


def largest_table(joined: Joined, blocks: Blocks, stacks: OpStacks) -> Table:
    """The largest allocations one by one, at most MAX_BLOCKS of each component, the largest first, then the earliest.

    `time_ns` counts from the first event. `held_ns`: MISSING where it was not released in the capture, or nobody says;
    `is_released`: 1, 0, or MISSING where nobody says.
    """
    allocations, texts = joined.events.allocations, joined.events.strings.texts
    chosen = np.concatenate([np.zeros(0, dtype=np.int64), *_largest(joined, blocks)])
    rows = blocks.rows[chosen]
    released = np.where(blocks.held_ns[chosen] != MISSING, 1, MISSING)
    released[blocks.unreleased_bytes[chosen] > 0] = 0
    return {
        "step": blocks.step[chosen],
        "op_key": blocks.owners.op_key[chosen],
        "component": look_up_texts(allocations.component[rows], texts),
        "allocator": look_up_texts(blocks.owners.allocator[chosen], texts),
        "call_stack": stacks_at(joined.events, stacks, blocks.owners.op[chosen]),
        "bytes": allocations.bytes[rows],
        "time_ns": allocations.time_ns[rows] - joined.first_ns,
        "held_ns": blocks.held_ns[chosen],
        "is_released": released,
    }


def _largest(joined: Joined, blocks: Blocks) -> Iterator[I64]:
    """The chosen blocks of each component, component by component in the order of their names."""
    allocations = joined.events.allocations
    for _, every in sorted(split_rows_by_value(_by_text(joined, "component", blocks)).items()):
        sizes = allocations.bytes[blocks.rows[every]]
        least = 0
        if len(every) > MAX_BLOCKS:
            least = np.partition(sizes, len(every) - MAX_BLOCKS)[len(every) - MAX_BLOCKS]
        own, size = every[sizes >= least], sizes[sizes >= least]
        rows = blocks.rows[own]
        order = np.lexsort((allocations.address[rows], blocks.owners.op_key[own], allocations.time_ns[rows], -size))
        yield own[order[:MAX_BLOCKS]]


def _ends(allocations: Allocations) -> I64:
    """Per allocator event the next one at the same address of the same component, or -1; -1 without an address.

    Of events of one instant releases come first: what is handed out again was given back before.
    """
    order = np.lexsort((allocations.bytes, allocations.time_ns, allocations.address, allocations.component))
    component, address = allocations.component[order], allocations.address[order]
    follows = (component[1:] == component[:-1]) & (address[1:] == address[:-1]) & (address[1:] != MISSING)
    end = np.full(len(order), NONE, dtype=np.int64)
    end[order[:-1][follows]] = order[1:][follows]
    return end
