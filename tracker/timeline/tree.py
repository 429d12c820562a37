"""Which span of a host thread lies in which: the exact stack rule, and look-ups in the tree it gives."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import I32, I64, each_once
from tracker.table import group_rows, sort_rows
from tracker.timeline import deep_trees, native
from tracker.timeline.nesting import NONE, ROUNDS, climb, nested

_Rows = TypeVar("_Rows", I32, I64)

BLOCK_ROWS: Final = 1 << 18
"""Spans whose parents are sought at once: this bounds what is held beside the tree, whatever the length of a trace."""


class Paths(Struct, frozen=True):
    """Distinct paths in a tree.

    `of_row`: the path of each span. Per path: `parent`, the path without its last step (a smaller number, -1 for a
    root), `key`, that of its last step, and `depth`, 0 for a root.
    """

    of_row: I64
    parent: I64
    key: I64
    depth: I64


class Tree(Struct, frozen=True):
    """Nested spans of all threads. `parent[i]` is the row of the span that span i lies in, or -1.

    `order`: its rows (all those of the columns, or some) sorted by (thread, start, longest first); a parent stands
    before what lies in it.
    `levels`: rows per depth, roots first; so a value passes down or up the tree in one NumPy step per level.
    """

    thread: I32
    start_ns: I64
    end_ns: I64
    parent: I32
    order: I32
    levels: tuple[I32, ...]

    def __len__(self) -> int:
        return len(self.parent)

    def innermost(self, thread: NDArray[np.integer], time_ns: I64) -> I64:
        """For each (thread, time) the row of the innermost span that contains it, or -1; ends are excluded.

        The last span that starts at or before the time is the answer, or one of its ancestors is: the stack rule
        closes a span that a later one outlives, and until it ends that later one is further in.
        """
        found = np.full(len(time_ns), NONE, dtype=np.int64)
        if native.is_built():
            columns = _columns_for_c(self.thread, self.start_ns, self.end_ns)
            asked = np.ascontiguousarray(thread, dtype=np.int64), np.ascontiguousarray(time_ns, dtype=np.int64)
            unfinished = native.module.innermost(self.order, *columns, self.parent, *asked, found, ROUNDS)
            return climb(found, (time_ns, time_ns), self.end_ns, self.parent) if unfinished else found
        lanes, starts = self.thread[self.order], self.start_ns[self.order]
        for lane in each_once(thread).tolist():
            low, high = np.searchsorted(lanes, (lane, lane + 1)).tolist()
            asks = np.flatnonzero(thread == lane)
            last = np.searchsorted(starts[low:high], time_ns[asks], side="right") - 1
            found[asks] = np.where(last >= 0, self.order[low + np.maximum(last, 0)], NONE) if high > low else NONE
        return climb(found, (time_ns, time_ns), self.end_ns, self.parent)

    def passed_down(self, values: I64, *, unset: int) -> I64:
        """`values`, where those that are `unset` take the value of the nearest ancestor that has one."""
        if deep_trees.are_narrow(self.levels):
            return deep_trees.pass_down(values, self.parent, self.levels, unset=unset)
        passed = values.copy()
        for rows in self.levels[1:]:
            empty_rows = rows[passed[rows] == unset]
            passed[empty_rows] = passed[self.parent[empty_rows]]
        return passed

    def outermost(self, chosen: NDArray[np.bool_], *, beyond: NDArray[np.bool_]) -> I64:
        """For each row the outermost chosen one of itself and its ancestors, below any row `beyond`; or -1."""
        found = np.where(chosen, np.arange(len(self)), NONE)
        if deep_trees.are_narrow(self.levels):
            return deep_trees.find_outermost(found, beyond, self.parent, self.levels)
        for rows in self.levels[1:]:
            above = found[self.parent[rows]]
            found[rows] = np.where(above >= 0, above, found[rows])
            found[rows[beyond[rows]]] = NONE
        return found

    def summed_up(self, values: I64) -> I64:
        """For each row the sum of `values` over it and all that lies below it."""
        return summed_up(values, self.parent, self.levels)

    def lies_in_equal(self, key: I64) -> NDArray[np.bool_]:
        """Whether some ancestor of the row has the same `key`; all spans are in the tree."""
        # in `order` all below a row stand right behind it: from `first` to `behind`
        first = np.empty(len(self), dtype=np.int64)
        first[self.order] = np.arange(len(self))
        behind = first + self.summed_up(np.ones(len(self), dtype=np.int64))
        by_key = np.lexsort((first, key))
        groups = np.concatenate(([0], np.cumsum(np.diff(key[by_key]) != 0))) * len(self) if len(self) else first
        reach = np.maximum.accumulate(groups + behind[by_key])
        found = np.zeros(len(self), dtype=bool)
        found[by_key[1:]] = reach[:-1] > (groups + first[by_key])[1:]
        return found

    def paths(self, key: NDArray[np.integer]) -> Paths:
        """The distinct paths of `key` values from the roots down to each span, threads put together."""
        if deep_trees.are_narrow(self.levels):
            of_row, columns = deep_trees.number_paths(key, self.parent, self.levels)
            return Paths(of_row, *(np.array(column, dtype=np.int64) for column in columns))
        of_row = np.zeros(len(self), dtype=np.int64)
        parents = [np.zeros(0, dtype=np.int64)]
        keys = [np.zeros(0, dtype=np.int64)]
        counts: list[int] = []
        known = 0
        for depth, rows in enumerate(self.levels):
            above = of_row[self.parent[rows]] if depth else np.full(len(rows), NONE, dtype=np.int64)
            groups = group_rows(above, key[rows])
            of_row[rows] = known + groups.number
            parents.append(above[groups.first])
            keys.append(key[rows][groups.first].astype(np.int64))
            counts.append(len(groups))
            known += len(groups)
        depths = np.repeat(np.arange(len(counts)), counts)
        return Paths(of_row, np.concatenate(parents), np.concatenate(keys), depths)

    def self_ns(self) -> I64:
        """Per row its duration without the time in which a direct child runs.

        Siblings overlap where spans cross; their common time counts once. By the stack rule the ends of siblings rise
        with their starts, so the overlap with all earlier siblings is that with the one before.
        """
        own = self.end_ns - self.start_ns
        children = self.order[self.parent[self.order] >= 0]
        children = children[np.argsort(self.parent[children], kind="stable")]
        if len(children) == 0:
            return own
        parent = self.parent[children]
        covered = self.end_ns[children] - self.start_ns[children]
        same = parent[1:] == parent[:-1]
        shared = np.maximum(self.end_ns[children[:-1]] - self.start_ns[children[1:]], 0)
        covered[1:] -= np.where(same, np.minimum(shared, covered[1:]), 0)
        np.subtract.at(own, parent, covered)
        return own


def grow(
    thread: I32, start_ns: I64, end_ns: I64, rows: NDArray[np.integer] | None = None, *, block_rows: int = BLOCK_ROWS
) -> Tree:
    """The tree of the given spans, or of some `rows` of them, thread by thread, by the exact stack rule.

    Spans of a thread are walked by (start, longest first); the stack drops its top while that ends at or before the new
    start, or before the new end. Real spans cross, so methods that assume perfect nesting give wrong parents. Of equal
    spans the earlier row is the outer one: sources list a parent before its children.
    """
    order = _sorted(thread, start_ns, end_ns, rows)
    parent = np.full(len(thread), NONE, dtype=np.int32)
    depth = np.zeros(len(order), dtype=np.int32)
    if native.is_built():
        native.module.nest(order, *_columns_for_c(thread, start_ns, end_ns), parent, depth)
    else:
        _nest_by_blocks(order, (thread, start_ns, end_ns), parent, depth, block_rows)
    return Tree(thread, start_ns, end_ns, parent, order, rows_by_depth(order, depth))


def _columns_for_c(thread: I32, start_ns: I64, end_ns: I64) -> tuple[I32, I64, I64]:
    """Return the columns of spans as compiled code takes them; most are so already."""
    starts_ns, ends_ns = np.ascontiguousarray(start_ns, dtype=np.int64), np.ascontiguousarray(end_ns, dtype=np.int64)
    return np.ascontiguousarray(thread, dtype=np.int32), starts_ns, ends_ns


def _nest_by_blocks(order: I32, columns: tuple[I32, I64, I64], parent: I32, depth: I32, block_rows: int) -> None:
    """Set parents and depths as compiled code does. columns: thread, start and end of each span."""
    thread, start_ns, end_ns = columns
    around = order[:0]
    for low in range(0, len(order), block_rows):
        # the spans that are open where the block starts stand in front of it, as if it began with them
        block = np.concatenate((around, order[low : low + block_rows]))
        above, depths = nested(thread[block], start_ns[block], end_ns[block])
        new = slice(len(around), None)
        depth[low : low + block_rows] = depths[new]
        parent[block[new]] = np.where(above[new] == NONE, NONE, block[above[new]])
        around = block[_chain(above)]


def summed_up(values: I64, parent: NDArray[np.integer], levels: Sequence[NDArray[np.integer]]) -> I64:
    """For each row the sum of `values` over it and all rows below it; `levels`: the rows per depth, roots first."""
    if deep_trees.are_narrow(levels):
        return deep_trees.sum_up(values, parent, levels)
    total = values.copy()
    for rows in reversed(levels[1:]):
        np.add.at(total, parent[rows], total[rows])
    return total


def rows_by_depth(rows: _Rows, depth: NDArray[np.integer]) -> tuple[_Rows, ...]:
    """`rows`, each with its depth, per depth from 0 on, in their order."""
    by_depth = np.argsort(depth, kind="stable")
    bounds: list[int] = np.cumsum(np.bincount(depth, minlength=1)).tolist()
    ordered = rows[by_depth]
    return tuple(ordered[low:high] for low, high in pairwise((0, *bounds))) if len(rows) else ()


def _sorted(thread: I32, start_ns: I64, end_ns: I64, rows: NDArray[np.integer] | None) -> I32:
    """Return all rows, or the given ones, by thread, start, longest first, and their place."""
    columns = (thread, start_ns) if rows is None else (thread[rows], start_ns[rows])
    if not len(columns[0]):
        return np.zeros(0, dtype=np.int32)
    order, opens = sort_rows(columns)
    # few spans begin at once, so that the third key is looked at for these alone
    is_tied = ~opens
    is_tied[:-1] |= ~opens[1:]
    places = np.flatnonzero(is_tied)
    tied = order[places]
    tied_ends_ns = end_ns[tied if rows is None else rows[tied]]
    order[places] = tied[np.lexsort((-tied_ends_ns, np.cumsum(opens)[places]))]
    return (order if rows is None else rows[order]).astype(np.int32)


def _chain(above: I32) -> list[int]:
    """The places of the last span and of those around it, outermost first."""
    chain = [len(above) - 1]
    while (place := int(above[chain[-1]])) >= 0:
        chain.append(place)
    return chain[::-1]
