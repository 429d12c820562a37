"""Links device events to the host by the flow arrows of a trace, where launch calls cannot."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tracker.profile import I32, I64, LaunchLevel, each_once
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
    if len(wanted) and category is not None:
        chosen = flows["category"] == category
        flows = {name: column[chosen] for name, column in flows.items()}
    if not len(wanted) or not len(flows["id"]):
        return launches, correlation
    is_start = (flows["is_end"] == 0) & (process_of[flows["thread"]] >= 0)
    arrow = _arrows(device["thread"][wanted], device["start_ns"][wanted], flows)
    start = _first_with(flows["id"], np.flatnonzero(is_start), flows["id"][arrow])
    reached = (arrow >= 0) & (start >= 0)
    highest = max([int(launches["correlation"].max(initial=-1)), int(correlation.max(initial=-1))])
    used: dict[int, int] = {}
    numbers = [used.setdefault(row, len(used)) for row in start[reached].tolist()]
    correlation[wanted[reached]] = highest + 1 + np.array(numbers, dtype=np.int64)
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


def _arrows(thread: I32, time_ns: I64, flows: Mapping[str, Array]) -> I64:
    """The row of the arrow that ends on each lane at the time, or else 1 ns before, or 1 ns after; -1 where none does.

    Of several the last.
    """
    found = np.full(len(thread), -1, dtype=np.int64)
    is_end = flows["is_end"] == 1
    for lane in each_once(thread).tolist():
        asks = np.flatnonzero(thread == lane)
        ends = np.flatnonzero(is_end & (flows["thread"] == lane))
        if not len(ends):
            continue
        ends = ends[np.argsort(flows["time_ns"][ends], kind="stable")]
        times = flows["time_ns"][ends]
        for shift in (0, -1, 1):
            asks = asks[found[asks] < 0]
            last = np.searchsorted(times, time_ns[asks] + shift, side="right") - 1
            hit = (last >= 0) & (times[last] == time_ns[asks] + shift)
            found[asks[hit]] = ends[last[hit]]
    return found


def _first_with(column: I64, rows: I64, wanted: I64) -> I64:
    """The first of `rows` at which `column` holds each wanted value, or -1."""
    if not len(rows):
        return np.full(len(wanted), -1, dtype=np.int64)
    rows = rows[np.argsort(column[rows], kind="stable")]
    place = np.minimum(np.searchsorted(column[rows], wanted), len(rows) - 1)
    found: I64 = np.where(column[rows[place]] == wanted, rows[place], -1)
    return found
