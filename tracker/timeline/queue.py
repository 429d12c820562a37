"""How far ahead of the device the host launches: the lead of each launch, and whether the device was still busy."""

from __future__ import annotations

import numpy as np

from tracker.profile import Table
from tracker.table import group_rows
from tracker.timeline.joined import Joined


def queue_table(joined: Joined) -> Table:
    """Return per step and stream of the kernels with a launch: how many, `lead_ns` (from the end of the launch call to
    the start of the kernel, all together), `max_lead_ns`, and how many were launched before the event ahead of them on
    the stream ended (`queued`; the first of a stream never is).
    """
    device, launch = joined.events.device, joined.launch
    order = np.lexsort((device.end_ns, device.start_ns, device.stream))
    previous_end_ns = np.empty(len(order), dtype=np.int64)
    ends_ns, streams = device.end_ns[order], device.stream[order]
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = streams[1:] != streams[:-1]
    previous_end_ns[order] = np.where(is_first, np.iinfo(np.int64).min, np.roll(ends_ns, 1))
    rows = np.flatnonzero(joined.is_kernel & (launch >= 0))
    call_end_ns = joined.events.launches.end_ns[launch[rows]]
    # clocks that differ by some us let a kernel begin before its call ends
    lead_ns = np.maximum(device.start_ns[rows] - call_end_ns, 0)
    is_queued = (call_end_ns < previous_end_ns[rows]).astype(np.int64)
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
