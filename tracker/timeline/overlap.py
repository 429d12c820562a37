"""How long kernels run beside those of other operators, which hides their time."""

from __future__ import annotations

import numpy as np

from tracker.profile import I64, MISSING
from tracker.table import group_rows
from tracker.timeline.intervals import union
from tracker.timeline.joined import Joined, Work


def measure_beside(joined: Joined) -> I64:
    """Return per device event how long a compute kernel of another operator runs beside it; of kernels without an
    operator, one of another name. MISSING of what is no compute kernel.
    """
    device = joined.events.device
    beside = np.full(len(device), MISSING, dtype=np.int64)
    rows = np.flatnonzero((joined.work == Work.COMPUTE) & joined.is_kernel)
    if len(rows):
        owner = _number_owners(joined, rows)
        beside[rows] = _measure_time_of_others(device.start_ns[rows], device.end_ns[rows], owner)
    return beside


def _number_owners(joined: Joined, rows: I64) -> I64:
    """Return a number for each operator of these events, whatever its shapes, and for each kernel that has none."""
    op, name = joined.op[rows], joined.events.device.name[rows].astype(np.int64)
    has_op = op >= 0
    name[has_op] = joined.events.ops.name[op[has_op]]
    return group_rows(has_op.astype(np.int64), name).number


def _measure_time_of_others(start_ns: I64, end_ns: I64, owner: I64) -> I64:
    """Return of each span how much of it lies in a span of another owner.

    >>> one, other, spans = 0, 1, (np.array([0, 2, 20]), np.array([10, 5, 30]))
    >>> _measure_time_of_others(*spans, np.array([one, other, one])).tolist()
    [3, 3, 0]
    """
    order = np.argsort(start_ns, kind="stable")
    reach = np.maximum.accumulate(end_ns[order])
    if bool((start_ns[order][1:] >= reach[:-1]).all()):
        # one after the other, as on one stream
        return np.zeros(len(start_ns), dtype=np.int64)
    bounds = np.unique(np.concatenate((start_ns, end_ns)))
    first, last = np.searchsorted(bounds, start_ns), np.searchsorted(bounds, end_ns)
    # the spans of each owner are merged on a line of its own, all lines behind each other
    line = owner * len(bounds)
    merged = union(first + line, last + line)
    changes = np.bincount(merged.start_ns % len(bounds), minlength=len(bounds))
    changes -= np.bincount(merged.end_ns % len(bounds), minlength=len(bounds))
    are_several = np.cumsum(changes)[:-1] > 1
    passed_ns = np.concatenate(([0], np.cumsum(np.diff(bounds) * are_several)))
    return passed_ns[last] - passed_ns[first]
