"""Two files of one capture on two clocks: a trace relative to its start beside tables with dates."""

from __future__ import annotations

from typing import Final

import numpy as np

from tracker.profile import I64, MISSING
from tracker.readers._ascend.kernels import Kernels
from tracker.readers._ascend.trace.device import TraceTasks

APART_NS: Final = 24 * 3600 * 10**9
"""Clocks that are further apart than a capture lasts are two clocks."""
_JITTER_NS: Final = 1_000_000
"""So much the distance of equal tasks may differ: both files round their times."""


def clock_ahead_ns(kernels: Kernels, trace: TraceTasks) -> int:
    """Return how far the clock of the table of kernels is ahead of that of the trace; 0 where they have one clock, or
    where the tasks of both do not say it.

    Tasks are the same where stream and task agree, once in either file.
    """
    in_table = _rows_by_task(kernels.stream, kernels.task)
    in_trace = _rows_by_task(trace.tasks["stream"], trace.tasks["task"])
    both = sorted(in_table.keys() & in_trace.keys())
    if not both:
        return 0
    starts = (np.array([in_table[key] for key in both]), np.array([in_trace[key] for key in both]))
    ahead_ns = kernels.start_ns[starts[0]] - trace.tasks["start_ns"][starts[1]]
    if np.abs(ahead_ns).min() < APART_NS or np.ptp(ahead_ns) > _JITTER_NS:
        return 0
    return int(np.sort(ahead_ns)[len(ahead_ns) // 2])


def _rows_by_task(stream: I64, task: I64) -> dict[tuple[int, int], int]:
    """Return (stream, task) -> row of the tasks that a file has once."""
    rows: dict[tuple[int, int], int] = {}
    repeated = set()
    for row, key in enumerate(zip(stream.tolist(), task.tolist(), strict=True)):
        if MISSING in key or -1 in key:
            continue
        if key in rows:
            repeated.add(key)
        rows[key] = row
    return {key: row for key, row in rows.items() if key not in repeated}
