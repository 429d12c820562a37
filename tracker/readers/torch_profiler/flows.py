"""Links device events to the host by the flow arrows of a trace, where launch calls cannot."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tracker.profile import I32, I64, LaunchLevel
from tracker.readers._growing import Array

Table = dict[str, Array]


def link_by_flow(
    launches: Table, device: Mapping[str, Array], flows: Mapping[str, Array], process_of: I32, category: int | None
) -> tuple[Table, I64]:
    """Launches with a FLOW row for each arrow used, and the correlations of the device events.

    An arrow leads from a host thread and time to the start of a device event (same lane, within 1 ns). Used for device
    events without correlation; with a `category` (its code) for all that an arrow of this category reaches. The
    correlation of an arrow is a number that no call has.
    """
    correlation: I64 = device["correlation"].copy()
    wanted = np.flatnonzero((correlation < 0) | (category is not None))
    if not len(wanted) or not len(flows["id"]):
        return launches, correlation
    if category is not None:
        chosen = flows["category"] == category
        flows = {name: column[chosen] for name, column in flows.items()}
    is_start = (flows["is_end"] == 0) & (process_of[flows["thread"]] >= 0)
    starts = dict(zip(flows["id"][is_start][::-1].tolist(), np.flatnonzero(is_start)[::-1].tolist(), strict=True))
    is_end = flows["is_end"] == 1
    lanes = zip(flows["thread"][is_end].tolist(), flows["time_ns"][is_end].tolist(), strict=True)
    ends = dict(zip(lanes, flows["id"][is_end].tolist(), strict=True))
    highest = max([int(launches["correlation"].max(initial=-1)), int(correlation.max(initial=-1))])
    used: dict[int, int] = {}
    for row in wanted.tolist():
        lane, time = int(device["thread"][row]), int(device["start_ns"][row])
        arrow = next((ends[lane, t] for t in (time, time - 1, time + 1) if (lane, t) in ends), None)
        if arrow is not None and arrow in starts:
            correlation[row] = highest + 1 + used.setdefault(starts[arrow], len(used))
    rows = np.fromiter(used, dtype=np.int64, count=len(used))
    added = {
        "start_ns": flows["time_ns"][rows],
        "end_ns": flows["time_ns"][rows],
        "thread": flows["thread"][rows],
        "name": flows["category"][rows],
        "level": np.full(len(rows), LaunchLevel.FLOW, dtype=np.int8),
        "correlation": highest + 1 + np.arange(len(rows), dtype=np.int64),
    }
    return {name: np.concatenate([column, added[name]]) for name, column in launches.items()}, correlation
