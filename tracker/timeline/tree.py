"""Which span of a host thread lies in which: the exact stack rule, and look-ups in the tree it gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tracker.profile import I32, I64
from tracker.timeline.aggregate import group_by

NONE = -1


@dataclass(frozen=True, slots=True)
class Paths:
    """Distinct paths in a tree.

    `of_row`: the path of each span. Per path: `parent`, the path without its last step (a smaller number, -1 for a
    root), and `key`, that of its last step.
    """

    of_row: I64
    parent: I64
    key: I64


@dataclass(frozen=True, slots=True)
class Tree:
    """Nested spans of all threads. `parent[i]` is the row of the span that span i lies in, or -1.

    `order`: rows sorted by (thread, start, longest first); a parent stands before what lies in it.
    `levels`: rows per depth, roots first; so a value passes down or up the tree in one NumPy step per level.
    """

    thread: I32
    start_ns: I64
    end_ns: I64
    parent: I64
    order: I64
    levels: tuple[I64, ...]

    def __len__(self) -> int:
        return len(self.parent)

    def innermost(self, thread: NDArray[np.integer], time_ns: I64) -> I64:
        """For each (thread, time) the row of the innermost span that contains it, or -1; ends are excluded.

        The last span that starts at or before the time is the answer, or one of its ancestors is: the stack rule
        closes a span that a later one outlives, and until it ends that later one is further in.
        """
        rows, queries = len(self), len(time_ns)
        all_threads = np.concatenate((self.thread[self.order].astype(np.int64), thread.astype(np.int64)))
        all_times = np.concatenate((self.start_ns[self.order], time_ns))
        is_query = np.concatenate((np.zeros(rows, dtype=np.int64), np.ones(queries, dtype=np.int64)))
        place = np.concatenate((np.arange(rows), np.arange(queries)))
        merged = np.lexsort((place, is_query, all_times, all_threads))
        last = np.maximum.accumulate(np.where(is_query[merged] == 0, place[merged], NONE)) if len(merged) else merged
        found = np.full(queries, NONE, dtype=np.int64)
        asks = is_query[merged] == 1
        found[place[merged][asks]] = last[asks]
        found = np.where(found >= 0, self._rows_at(found), NONE)
        found[(found >= 0) & (self._take(self.thread, found) != thread)] = NONE
        return self._climb_until_open(found, time_ns)

    def ancestors(self, row: int) -> Iterator[int]:
        """The spans around `row`, innermost first, without `row` itself."""
        row = int(self.parent[row])
        while row >= 0:
            yield row
            row = int(self.parent[row])

    def passed_down(self, values: I64, *, unset: int) -> I64:
        """`values`, where those that are `unset` take the value of the nearest ancestor that has one."""
        passed = values.copy()
        for rows in self.levels[1:]:
            empty_rows = rows[passed[rows] == unset]
            passed[empty_rows] = passed[self.parent[empty_rows]]
        return passed

    def summed_up(self, values: I64) -> I64:
        """For each row the sum of `values` over it and all that lies below it."""
        total = values.copy()
        for rows in reversed(self.levels[1:]):
            np.add.at(total, self.parent[rows], total[rows])
        return total

    def lies_in_equal(self, key: I64) -> NDArray[np.bool_]:
        """Whether some ancestor of the row has the same `key`."""
        found = np.zeros(len(self), dtype=bool)
        rows = np.flatnonzero(self.parent >= 0)
        above = self.parent[rows]
        while len(rows):
            found[rows] |= key[above] == key[rows]
            above = self.parent[above]
            open_rows = (above >= 0) & ~found[rows]
            rows, above = rows[open_rows], above[open_rows]
        return found

    def paths(self, key: I64) -> Paths:
        """The distinct paths of `key` values from the roots down to each span, threads put together."""
        of_row = np.zeros(len(self), dtype=np.int64)
        parents = [np.zeros(0, dtype=np.int64)]
        keys = [np.zeros(0, dtype=np.int64)]
        known = 0
        for depth, rows in enumerate(self.levels):
            above = of_row[self.parent[rows]] if depth else np.full(len(rows), NONE, dtype=np.int64)
            groups = group_by(above, key[rows])
            of_row[rows] = known + groups.group
            parents.append(above[groups.first])
            keys.append(key[rows][groups.first].astype(np.int64))
            known += len(groups)
        return Paths(of_row, np.concatenate(parents), np.concatenate(keys))

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

    def _rows_at(self, places: I64) -> I64:
        return self.order[places] if len(self) else places

    def _take(self, column: NDArray[np.integer], rows: I64) -> NDArray[np.integer]:
        return column[rows] if len(column) else rows

    def _climb_until_open(self, found: I64, time_ns: I64) -> I64:
        asking = np.flatnonzero(found >= 0)
        while len(asking):
            asking = asking[self.end_ns[found[asking]] <= time_ns[asking]]
            found[asking] = self.parent[found[asking]]
            asking = asking[found[asking] >= 0]
        return found


def grow(thread: I32, start_ns: I64, end_ns: I64) -> Tree:
    """The tree of the given spans, thread by thread, by the exact stack rule.

    Spans of a thread are walked by (start, longest first); the stack drops its top while that ends at or before the new
    start, or before the new end. Real spans cross, so methods that assume perfect nesting give wrong parents. Of equal
    spans the earlier row is the outer one: sources list a parent before its children.
    """
    order = np.lexsort((-end_ns, start_ns, thread))
    parent = np.full(len(order), NONE, dtype=np.int64)
    depth = np.zeros(len(order), dtype=np.int64)
    parents, depths = _walk(order.tolist(), thread[order].tolist(), start_ns[order].tolist(), end_ns[order].tolist())
    parent[order], depth[order] = parents, depths
    return Tree(thread, start_ns, end_ns, parent, order, _levels(depth))


def _walk(rows: list[int], threads: list[int], starts: list[int], ends: list[int]) -> tuple[list[int], list[int]]:
    """The parent row and the depth of each row, in the given order; the hot loop, so plain lists and locals."""
    parents: list[int] = []
    depths: list[int] = []
    stack: list[int] = []
    stack_ends: list[int] = []
    current = None
    for row, thread, start, end in zip(rows, threads, starts, ends, strict=True):
        if thread != current:
            current = thread
            stack.clear()
            stack_ends.clear()
        while stack_ends and (stack_ends[-1] <= start or stack_ends[-1] < end):
            stack.pop()
            stack_ends.pop()
        parents.append(stack[-1] if stack else NONE)
        depths.append(len(stack))
        stack.append(row)
        stack_ends.append(end)
    return parents, depths


def _levels(depth: I64) -> tuple[I64, ...]:
    by_depth = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[by_depth], np.arange(int(depth.max(initial=-1)) + 2))
    return tuple(by_depth[low:high] for low, high in pairwise(bounds))
