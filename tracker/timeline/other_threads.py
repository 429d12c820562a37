"""Ranges whose thread waits while another one works: `loss.backward()`, whose kernels autograd's thread launches.

NVTX ranges nest per thread, and what a worker thread launches lies in no range of its own. It belongs to the range that
is open on the only other thread that has one open, provided that thread waits: inside of the range it launches less
than the workers do. A thread that copies batches ahead while the main thread launches a forward pass is no worker.
"""

from __future__ import annotations

import numpy as np

from tracker.profile import I64, Events, are_among, each_once
from tracker.timeline.nesting import NONE
from tracker.timeline.tree import Tree, grow


class WaitingRanges:
    """The ranges of `events` whose thread waits for others, as far as `Extras.waiting_threads` allows to look."""

    def __init__(self, events: Events, launch: I64) -> None:
        """`launch`: per device event the row of its launch, or -1."""
        ops, launches = events.ops, events.launches
        rows = np.flatnonzero(ops.is_annotation == 1) if events.extras.waiting_threads else np.zeros(0, dtype=np.int64)
        self._ranges: Tree | None = grow(ops.thread, ops.start_ns, ops.end_ns, rows) if len(rows) else None
        self._threads = each_once(ops.thread[rows]).tolist()
        self._waits = np.zeros(len(ops), dtype=bool)
        if self._ranges is not None:
            used = np.unique(launch[launch >= 0])
            thread, time_ns = launches.thread[used], launches.start_ns[used]
            own = self._ranges.innermost(thread, time_ns)
            by_others = self._only_open(thread, time_ns)
            self._waits = _counts(by_others, len(ops)) > _counts(own, len(ops))

    def around(self, thread: np.ndarray, time_ns: I64) -> I64:
        """For each (thread, time) the row of the range of a waiting thread in which it lies, or -1.

        -1 where the thread itself has a range open, and where several other threads have one.
        """
        found = self._only_open(thread, time_ns)
        return np.where((found >= 0) & self._waits[np.maximum(found, 0)], found, NONE) if len(self._waits) else found

    def launched_beside(self, op: I64, events: Events, launch: I64) -> int:
        """Device time in no op (`op` per device event, or -1) that a thread which opens no range launched while others
        had one open.
        """
        rows = np.flatnonzero((op < 0) & (launch >= 0))
        launches, device = events.launches, events.device
        thread, time_ns = launches.thread[launch[rows]], launches.start_ns[launch[rows]]
        beside = ~are_among(thread, self._threads) & (self._open(thread, time_ns)[1] > 0)
        return int((device.end_ns - device.start_ns)[rows[beside]].sum())

    def _only_open(self, thread: np.ndarray, time_ns: I64) -> I64:
        found, count = self._open(thread, time_ns)
        return np.where(count == 1, found, NONE)

    def _open(self, thread: np.ndarray, time_ns: I64) -> tuple[I64, I64]:
        """For each (thread, time) the innermost range of another thread, of several the last, or -1; and how many
        threads have one open, itself among them.
        """
        found = np.full(len(time_ns), NONE, dtype=np.int64)
        count = np.zeros(len(time_ns), dtype=np.int64)
        if self._ranges is None:
            return found, count
        for lane in self._threads:
            inner = self._ranges.innermost(np.full(len(time_ns), lane, dtype=thread.dtype), time_ns)
            is_open = inner >= 0
            count += is_open
            found = np.where(is_open & (thread != lane), inner, found)
        return found, count


def _counts(rows: I64, size: int) -> I64:
    counts: I64 = np.bincount(rows[rows >= 0], minlength=size)
    return counts


def with_waiting(op: I64, events: Events, launch: I64, waiting: WaitingRanges) -> I64:
    """`op` per device event, where a launch in no op of its thread belongs to the range that waits for it."""
    lonely = np.flatnonzero((op < 0) & (launch >= 0))
    found = op.copy()
    launches = events.launches
    found[lonely] = waiting.around(launches.thread[launch[lonely]], launches.start_ns[launch[lonely]])
    return found
