"""How far ahead of the device the host launches: the lead of each launch, and whether the device was still busy."""

from __future__ import annotations

import numpy as np

from tracker.profile import MISSING, Table
from tracker.table import group_rows
from tracker.timeline.joined import Joined


def queue_table(joined: Joined) -> Table:
    """Return per step and stream of the kernels of which it is known when they were handed over: how many, `lead_ns`
    (from then to the start of the kernel, all together), `max_lead_ns`, and how many were handed over before the event
    ahead of them on the stream ended (`queued`; the first of a stream never is).
    """
    device, handed_over_ns = joined.events.device, joined.handed_over_ns
    order = np.lexsort((device.end_ns, device.start_ns, device.stream))
    previous_end_ns = np.empty(len(order), dtype=np.int64)
    ends_ns, streams = device.end_ns[order], device.stream[order]
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = streams[1:] != streams[:-1]
    previous_end_ns[order] = np.where(is_first, np.iinfo(np.int64).min, np.roll(ends_ns, 1))
    rows = np.flatnonzero(joined.is_kernel & (handed_over_ns != MISSING))
    launched_ns = handed_over_ns[rows]
    # clocks that differ by some us let a kernel begin before its call ends
    lead_ns = np.maximum(device.start_ns[rows] - launched_ns, 0)
    is_queued = (launched_ns < previous_end_ns[rows]).astype(np.int64)
    groups = group_rows(joined.step[rows], device.stream[rows])
    first = rows[groups.first]
    return {
        "step": joined.step[first],
        "stream": device.stream[first],
        "kernels": groups.counts,
        "lead_ns": groups.sums(lead_ns),
        "max_lead_ns": groups.largest(lead_ns),
        "queued": groups.sums(is_queued),
    }
