"""Who owns the memory at its peak: what was allocated and not yet released when the allocator held most."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import I64, MISSING, NO_STEP, Allocations, Column, Table
from tracker.table import group_rows, rank_codes, split_rows_by_value
from tracker.timeline.joined import Joined
from tracker.timeline.memory import Blocks
from tracker.timeline.stacks import OpStacks, texts_of_stacks
from tracker.timeline.steps import steps_at

_KINDS = {
    "component": "text", "op_key": "int", "allocator": "text", "call_stack": "text", "calls": "int", "bytes": "int",
    "largest_bytes": "int", "first_ns": "int", "first_step": "int", "peak_ns": "int", "peak_step": "int",
}  # fmt: skip


class Peak(Struct, frozen=True):
    """The moment at which a component held most. `total_bytes`: what the source says of it, None where it does not.

    `done`: of the rows of `events.allocations`, in which order they stand there, those that had happened by then.
    """

    time_ns: int
    total_bytes: int | None
    done: NDArray[np.bool_]


def peak_table(joined: Joined, blocks: Blocks, stacks: OpStacks) -> Table:
    """Per component what was held at its peak, per owner (with shapes and module), allocator and line of code.

    `bytes`, `calls`: of the blocks that were held; `largest_bytes`: the largest of them; `first_ns`, `first_step`: when
    the oldest was allocated. The rows of a component sum to the peak that the source states: BEFORE_CAPTURE stands for
    what was allocated before the capture (of its numbers only `bytes` are known, MISSING where the source states no
    total). Below 0 it is what the source had released by then, and stated only later. `peak_ns`, `peak_step`: the
    moment, times from the first event.
    """
    texts = joined.events.strings.texts
    component = joined.events.allocations.component
    table: dict[str, list[Column]] = {name: [] for name in _KINDS}
    for _, rows in sorted(split_rows_by_value(rank_codes(component, texts)).items()):
        code = int(component[rows[0]])
        peak = _peak(joined, code, rows)
        for name, values in _held(joined, blocks, stacks, peak, code).items():
            table[name].append(values)
    return {name: _joined(kind, table[name]) for name, kind in _KINDS.items()}


def _held(joined: Joined, blocks: Blocks, stacks: OpStacks, peak: Peak, component: int) -> dict[str, Column]:
    """The rows of one component, the most bytes first; what was allocated before the capture last."""
    allocations, texts = joined.events.allocations, joined.events.strings.texts
    own = (allocations.component[blocks.rows] == component) & (allocations.address[blocks.rows] != MISSING)
    ended = (blocks.end >= 0) & peak.done[blocks.end]
    held = np.flatnonzero(own & peak.done[blocks.rows] & ~ended)
    rows, op, key = blocks.rows[held], blocks.owners.op[held], blocks.owners.op_key[held]
    stack = np.zeros(len(held), dtype=np.int64)
    stack[op >= 0] = stacks.of_op[op[op >= 0]]
    allocator = blocks.owners.allocator[held]
    groups = group_rows(key, allocator, stack)
    size, first = groups.sums(allocations.bytes[rows]), groups.smallest(happened_ns(joined)[rows])
    lines = texts_of_stacks(joined.events, stacks, stack[groups.first])
    names = [texts[code] for code in allocator[groups.first].tolist()]
    order = sorted(range(len(groups)), key=lambda at: (-size[at], key[groups.first[at]], names[at], lines[at]))
    rest = MISSING if peak.total_bytes is None else peak.total_bytes - int(size.sum())
    more = [] if rest == 0 or (rest == MISSING and not order) else [rest]
    count = len(order) + len(more)
    return {
        "component": [texts[component]] * count,
        "op_key": np.append(key[groups.first][order], [joined.keys.before_capture] * len(more)),
        "allocator": [*(names[at] for at in order), *("" for _ in more)],
        "call_stack": [*(lines[at] for at in order), *("" for _ in more)],
        "calls": np.append(groups.counts[order], [MISSING] * len(more)),
        "bytes": np.append(size[order], more),
        "largest_bytes": np.append(groups.largest(allocations.bytes[rows])[order], [MISSING] * len(more)),
        "first_ns": np.append(first[order] - joined.first_ns, [MISSING] * len(more)),
        "first_step": np.append(steps_at(joined.events.markers, first[order]), [NO_STEP] * len(more)),
        "peak_ns": np.full(count, peak.time_ns - joined.first_ns),
        "peak_step": np.repeat(steps_at(joined.events.markers, np.array([peak.time_ns])), count),
    }


def _joined(kind: str, parts: list[Column]) -> Column:
    if kind == "text":
        return [text for part in parts for text in part]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts]).astype(np.int64)


def _peak(joined: Joined, component: int, rows: I64) -> Peak:
    """The first moment at which a component held most: by the counters after its events and by its samples, else by the
    sum of what its events allocate and release. `rows`: those of its allocator events.
    """
    allocations = joined.events.allocations
    time, total = happened_ns(joined), allocations.total_allocated_bytes
    done = np.zeros(len(allocations), dtype=bool)
    known = rows[total[rows] != MISSING]
    points = joined.events.extras.memory_points
    sampled = np.flatnonzero((points.component == component) & (points.allocated_bytes != MISSING))
    if not len(known) and not len(sampled):
        order = rows[np.lexsort((allocations.address[rows], allocations.bytes[rows], time[rows]))]
        last = int(np.argmax(np.cumsum(allocations.bytes[order])))
        done[order[: last + 1]] = True
        return Peak(int(time[order[last]]), None, done)
    largest = int(total[known].max(initial=MISSING))
    most = int(points.allocated_bytes[sampled].max(initial=MISSING))
    if most > largest:
        time_ns = int(points.time_ns[sampled[points.allocated_bytes[sampled] == most]].min())
        done[rows[time[rows] <= time_ns]] = True
        return Peak(time_ns, most, done)
    at_most = known[total[known] == largest]
    place = np.lexsort((allocations.address[at_most], allocations.bytes[at_most], time[at_most]))[0]
    event = int(at_most[place])
    time_ns = int(time[event])
    done[rows[time[rows] < time_ns]] = True
    done[_before(allocations, rows[time[rows] == time_ns], event)] = True
    return Peak(time_ns, largest, done)


def happened_ns(joined: Joined) -> I64:
    """When each allocator event happened, which is later than what asked for it where a queue lies between."""
    really = joined.events.extras.allocation_ns
    return really if len(really) else joined.events.allocations.time_ns


def _before(allocations: Allocations, instant: I64, event: int) -> list[int]:
    """Of the events of one instant, `event` and those that came before it.

    Their counters say it: each event leads from one total to the next. Where a counter is missing, all came before.
    """
    if len(instant) == 1:
        return [event]
    total = allocations.total_allocated_bytes
    if (total[instant] == MISSING).any():
        return [int(row) for row in instant]
    order = instant[np.lexsort((allocations.address[instant], allocations.bytes[instant]))]
    waiting: dict[int, list[int]] = {}
    for row in order[order != event].tolist():
        waiting.setdefault(int(total[row]), []).append(row)
    found = [event]
    before = int(total[event] - allocations.bytes[event])
    while waiting.get(before):
        row = waiting[before].pop()
        found.append(row)
        before = int(total[row] - allocations.bytes[row])
    return found
