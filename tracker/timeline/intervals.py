"""Sets of spans on one clock, exact to the ns: union, intersection, subtraction, length.

Spans are half open. A `Spans` is always merged: sorted, disjoint, without empty spans; so its length is the time that
at least one of its members runs.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from tracker.profile import I64


class Spans(Struct, frozen=True):
    """Disjoint spans in order of time; build them with `union`."""

    start_ns: I64
    end_ns: I64

    @property
    def total_ns(self) -> int:
        """Time covered, in ns."""
        return int((self.end_ns - self.start_ns).sum())

    def __len__(self) -> int:
        return len(self.start_ns)


NO_SPANS: Final = Spans(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def union(start_ns: I64, end_ns: I64) -> Spans:
    """The time during which at least one of the given spans runs.

    Spans come in any order, may overlap, touch or be empty. Raises ValueError when an end precedes its start.

    >>> union(np.array([0, 4, 20]), np.array([5, 10, 20])).end_ns.tolist()
    [10]
    """
    if len(start_ns) == 0:
        return NO_SPANS
    if bool(np.any(end_ns < start_ns)):
        raise ValueError("a span ends before it starts")
    kept = end_ns > start_ns
    order = np.argsort(start_ns[kept], kind="stable")
    start, end = start_ns[kept][order], end_ns[kept][order]
    if len(start) == 0:
        return NO_SPANS
    reach = np.maximum.accumulate(end)
    opens = np.concatenate(([True], start[1:] > reach[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return Spans(start[opens], reach[closes])


def join(a: Spans, b: Spans) -> Spans:
    """What lies in `a`, in `b` or in both."""
    if len(a) == 0 or len(b) == 0:
        return a if len(a) else b
    return union(np.concatenate((a.start_ns, b.start_ns)), np.concatenate((a.end_ns, b.end_ns)))


def intersect(a: Spans, b: Spans) -> Spans:
    """What lies in both `a` and `b`.

    >>> intersect(union(np.array([0]), np.array([10])), union(np.array([4, 8]), np.array([6, 12]))).total_ns
    4
    """
    if len(a) == 0 or len(b) == 0:
        return NO_SPANS
    # each span of `a` meets the spans of `b` numbered first .. stop - 1
    first = np.searchsorted(b.end_ns, a.start_ns, side="right")
    stop = np.searchsorted(b.start_ns, a.end_ns, side="left")
    count = np.maximum(stop - first, 0)
    own = np.repeat(np.arange(len(a)), count)
    other = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first, count)
    return Spans(
        np.maximum(a.start_ns[own], b.start_ns[other]),
        np.minimum(a.end_ns[own], b.end_ns[other]),
    )


def subtract(a: Spans, b: Spans) -> Spans:
    """What lies in `a` but not in `b`.

    >>> subtract(union(np.array([0]), np.array([10])), union(np.array([4]), np.array([6]))).start_ns.tolist()
    [0, 6]
    """
    if len(a) == 0 or len(b) == 0:
        return a
    low = min(int(a.start_ns[0]), int(b.start_ns[0]))
    high = max(int(a.end_ns[-1]), int(b.end_ns[-1]))
    gap_start = np.concatenate((np.array([low], dtype=np.int64), b.end_ns))
    gap_end = np.concatenate((b.start_ns, np.array([high], dtype=np.int64)))
    return intersect(a, union(gap_start, gap_end))


def outside_ns(start_ns: I64, end_ns: I64, spans: Spans) -> I64:
    """For each span from start to end, the part of it that lies in none of `spans`.

    >>> outside_ns(np.array([0, 5]), np.array([10, 6]), union(np.array([4]), np.array([6]))).tolist()
    [8, 0]
    """
    if not len(spans):
        return end_ns - start_ns
    before = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(spans.end_ns - spans.start_ns)))

    def covered(time_ns: I64) -> I64:
        """What of `spans` lies before each moment."""
        begun = np.searchsorted(spans.start_ns, time_ns, side="right")
        beyond = np.where(begun > 0, np.maximum(spans.end_ns[begun - 1] - time_ns, 0), 0)
        found: I64 = before[begun] - beyond
        return found

    return end_ns - start_ns - (covered(end_ns) - covered(start_ns))


def clip(spans: Spans, start_ns: int, end_ns: int) -> Spans:
    """The part of `spans` inside [start_ns, end_ns)."""
    window = np.array([start_ns], dtype=np.int64), np.array([max(start_ns, end_ns)], dtype=np.int64)
    return intersect(spans, union(*window))


def overlap_ns(a: Spans, b: Spans) -> int:
    """Time during which a span of `a` and a span of `b` run, in ns."""
    return intersect(a, b).total_ns
