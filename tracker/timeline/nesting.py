"""The parents of sorted spans by the exact stack rule, in NumPy steps instead of one step per span.

A span is a twig when the next one pops it from the stack at once: nothing lies in it. Leaving a twig out changes no
other parent, because whatever it pops the next span pops as well. So twigs are set aside, then the twigs of what is
left, until few spans remain; those are walked with a stack. Then every layer of twigs is put back: the parent of a twig
is the last span before it that was no twig, or the first around that which the rule does not pop.

Where it is compiled, `native` walks all spans with a stack instead.
"""

from __future__ import annotations

from typing import Final, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import I32, I64

NONE: Final = -1
FEW: Final = 4096
"""So many spans are walked as fast as they are peeled."""

ROUNDS: Final = 48
"""Climbs of all twigs at once; the few that must climb further are walked, lest deep stacks take quadratic time."""


_Rows = TypeVar("_Rows", I32, I64)


class _Spans(Struct, frozen=True):
    """Sorted spans, and of those that were placed their parents and depths, which are written as they come."""

    thread: I32
    start_ns: I64
    end_ns: I64
    parent: I32
    depth: I32


def nested(thread: I32, start_ns: I64, end_ns: I64, *, few: int = FEW, rounds: int = ROUNDS) -> tuple[I32, I32]:
    """Place of the parent of each span, or -1, and its depth; spans sorted by (thread, start, longest first).

    Up to 2**31 spans: places are kept in 32 bits, since this is where reading a large trace takes most memory.

    The rule: the stack drops its top while that ends at or before the start of the new span, or before its end.

    >>> thread = np.zeros(4, dtype=np.int32)
    >>> nested(thread, np.array([0, 0, 2, 9]), np.array([9, 5, 3, 12]))
    (array([-1,  0,  1, -1], dtype=int32), array([0, 1, 2, 0], dtype=int32))
    """
    parent = np.full(len(thread), NONE, dtype=np.int32)
    depth = np.zeros(len(thread), dtype=np.int32)
    spans = _Spans(thread, start_ns, end_ns, parent, depth)
    left = np.arange(len(thread), dtype=np.int32)
    layers: list[tuple[I32, I32]] = []  # twigs, and the last span before each that is none
    while len(left) > few:
        is_twig = _twigs(thread[left], start_ns[left], end_ns[left])
        twigs, kept = left[is_twig], left[~is_twig]
        if len(twigs) * 16 < len(left):
            break
        layers.append((twigs, _before(is_twig, kept)))
        left = kept
    _walk(left, spans)
    while layers:
        twigs, before = layers.pop()
        before[(before >= 0) & (thread[before] != thread[twigs])] = NONE
        above = climb(before, (start_ns[twigs], end_ns[twigs]), end_ns, parent, rounds=rounds)
        parent[twigs] = above
        depth[twigs] = np.where(above == NONE, 0, depth[above] + 1)
    return parent, depth


def _twigs(thread: I32, start_ns: I64, end_ns: I64) -> NDArray[np.bool_]:
    is_twig = np.ones(len(thread), dtype=bool)
    is_twig[:-1] = (thread[1:] != thread[:-1]) | (start_ns[1:] >= end_ns[:-1]) | (end_ns[1:] > end_ns[:-1])
    return is_twig


def _before(is_twig: NDArray[np.bool_], kept: I32) -> I32:
    """For each twig the last span before it that is kept, or -1."""
    place = np.cumsum(~is_twig, dtype=np.int32)[is_twig] - 1
    if not len(kept):
        return place
    before = kept[place]
    before[place < 0] = NONE
    return before


def climb(before: _Rows, twigs: tuple[I64, I64], end_ns: I64, parent: I32, *, rounds: int = ROUNDS) -> _Rows:
    """For each twig (its start and end) the innermost span that it lies in, or -1: the last span `before` it, or the
    first around that which the rule does not pop. Spans have ends and parents.
    """
    starts, ends = twigs
    above = before.copy()
    climbing = np.flatnonzero(above >= 0)
    for _ in range(rounds):
        if not len(climbing):
            return above
        end = end_ns[above[climbing]]
        climbing = climbing[(end <= starts[climbing]) | (end < ends[climbing])]
        above[climbing] = parent[above[climbing]]
        climbing = climbing[above[climbing] >= 0]
    # twig by twig; what one of them drops from the stack is gone for those behind the same span as well
    last, reached = NONE, NONE
    for i in climbing[np.lexsort((starts[climbing], before[climbing]))].tolist():
        at = reached if int(before[i]) == last else int(above[i])
        start, end = starts[i], ends[i]
        while at >= 0 and (end_ns[at] <= start or end_ns[at] < end):
            at = int(parent[at])
        above[i] = at
        last, reached = int(before[i]), at
    return above


def _walk(rows: I32, spans: _Spans) -> None:
    """Sets parent and depth of `rows` as if there were no others; block by block, in plain lists and locals."""
    stack: list[int] = []
    stack_ends: list[int] = []
    current = None
    for low in range(0, len(rows), FEW):
        block = rows[low : low + FEW]
        parents: list[int] = []
        depths: list[int] = []
        columns = (column[block].tolist() for column in (spans.thread, spans.start_ns, spans.end_ns))
        for row, lane, start, end in zip(block.tolist(), *columns, strict=True):
            if lane != current:
                current = lane
                stack.clear()
                stack_ends.clear()
            while stack_ends and (stack_ends[-1] <= start or stack_ends[-1] < end):
                stack.pop()
                stack_ends.pop()
            parents.append(stack[-1] if stack else NONE)
            depths.append(len(stack))
            stack.append(row)
            stack_ends.append(end)
        spans.parent[block], spans.depth[block] = parents, depths
