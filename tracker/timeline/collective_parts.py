"""What only some profilers know of a collective call: where its time went, its tasks, what went over which link."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from tracker.profile import F64, I64, MISSING, CollectiveLinks, Events, Table
from tracker.schema.column_names import TRANSIT_NS, WAIT_NS
from tracker.table import Groups, group_rows, look_up_texts, rank_codes, rank_texts
from tracker.timeline.exposure import CallSpans
from tracker.timeline.names import canonical_name
from tracker.timeline.wait_tasks import Waits, told_ns

_TIMES = ("transit_ns", "wait_ns", "synchronization_ns", "idle_ns")


class Kernels(Struct, frozen=True):
    """The device events (or host spans) of the calls: row of `communication`, name, length, and collective or -1."""

    row: I64
    name: list[str]
    duration_ns: I64
    collective: I64


def rows_of_collectives(events: Events, collective: I64, row: I64, start_ns: I64) -> I64:
    """For each row of `Events.collectives` the row of `communication` that its call is in, -1 where it has none.

    `collective`, `row`, `start_ns`: of each device event of a call. A collective that stands for several calls goes to
    the row of the first.
    """
    found = np.full(len(events.collectives), -1, dtype=np.int64)
    latest_first = np.lexsort((row, start_ns))[::-1]
    known = latest_first[collective[latest_first] >= 0]
    found[collective[known]] = row[known]
    return found


def time_columns(events: Events, row_of_collective: I64, calls: CallSpans, waits: Waits) -> dict[str, I64]:
    """Columns transit, wait, synchronization and idle of `communication`: sums over the calls of a row.

    What the profiler says of each call; waiting where it does not say it, the time in the waiting tasks. Of a call
    whose tasks name the ranks that they wait for, the waiting is theirs and the rest transmits; synchronization and
    idle are the profiler's beside them, of its own split, and no parts of these two. MISSING where it is not known of
    every call of the row.
    """
    times, count = events.extras.collective_times, len(events.collectives)
    of_collective = {name: told_ns(times, getattr(times, name), count) for name in _TIMES}
    of_collective[WAIT_NS] = waits.wait_ns
    elapse_ns = np.zeros(count + 1, dtype=np.int64)
    np.add.at(elapse_ns, calls.collective, calls.end_ns - calls.start_ns)
    transit_ns = np.maximum(elapse_ns[:count] - waits.wait_ns, 0)
    of_collective[TRANSIT_NS] = np.where(waits.has_peers, transit_ns, of_collective[TRANSIT_NS])
    pairs = group_rows(calls.row, calls.collective)
    row, collective = calls.row[pairs.first], calls.collective[pairs.first]
    # the last element answers for the calls without a collective, whose index is -1, and for those of another row
    place = np.where(np.append(row_of_collective, -1)[collective] == row, collective, -1)
    groups = group_rows(row)
    sums = {}
    for name, column in of_collective.items():
        sums[name] = groups.add_up_marked(np.append(column, MISSING)[place], MISSING, "sum")
    return sums


def task_table(events: Events, row_of_collective: I64, kernels: Kernels) -> Table:
    """Table `communication_task`: the tasks that the profiler names, per plane; for a call without, its kernels."""
    given, texts = events.extras.collective_tasks, events.strings.texts
    kept = np.flatnonzero(row_of_collective[given.collective] >= 0)
    told = np.zeros(len(events.collectives) + 1, dtype=bool)
    told[given.collective[kept]] = True
    # the last element answers for the calls without a collective, whose index is -1
    rest = np.flatnonzero(~told[kernels.collective])
    names = [canonical_name(kernels.name[index]) for index in rest.tolist()] + look_up_texts(given.name[kept], texts)
    planes = [""] * len(rest) + look_up_texts(given.plane[kept], texts)
    row = np.concatenate((kernels.row[rest], row_of_collective[given.collective[kept]]))
    duration = np.concatenate((kernels.duration_ns[rest], (given.end_ns - given.start_ns)[kept]))
    groups = group_rows(row, rank_texts(names), rank_texts(planes))
    first = groups.first.tolist()
    return {
        "communication": row[groups.first],
        "name": [names[index] for index in first],
        "plane": [planes[index] for index in first],
        "calls": groups.counts,
        "total_ns": groups.sums(duration),
        "min_ns": groups.smallest(duration),
        "max_ns": groups.largest(duration),
    }


def link_table(events: Events, row_of_collective: I64) -> Table:
    """Table `communication_link`: sums per row of `communication`, transport, source, target and packet size; MISSING
    where a number is not known of every call: bytes of one and time of another make no bandwidth.
    """
    links, texts = events.extras.collective_links, events.strings.texts
    kept = np.flatnonzero(row_of_collective[links.collective] >= 0)
    row = row_of_collective[links.collective[kept]]
    transport = rank_codes(links.transport[kept], texts)
    groups = group_rows(row, transport, links.source[kept], links.target[kept], links.packet_bytes[kept])
    first = kept[groups.first]
    return {
        "communication": row[groups.first],
        "transport": look_up_texts(links.transport[first], texts),
        "source": links.source[first],
        "target": links.target[first],
        "packet_bytes": links.packet_bytes[first],
        "calls": groups.counts,
        "packets": groups.add_up_marked(links.packets[kept], MISSING, "sum"),
        "bytes": groups.add_up_marked(links.bytes[kept], MISSING, "sum"),
        "transit_ns": groups.add_up_marked(links.transit_ns[kept], MISSING, "sum"),
        "large_packet_ratio": _mean_ratio(links, kept, groups),
    }


def _mean_ratio(links: CollectiveLinks, kept: I64, groups: Groups) -> F64:
    """The share of large packets, weighted by bytes (plain where nothing moved); NaN where it is not said."""
    ratio, size = links.large_packet_ratio[kept], np.maximum(links.bytes[kept], 0)
    found = np.full(len(groups), np.nan)
    for group in range(len(groups)):
        rows = groups.rows_of(group)
        said = rows[np.isfinite(ratio[rows])]
        if len(said):
            said = said[np.lexsort((size[said], ratio[said]))]
            weights = size[said].astype(np.float64)
            found[group] = np.average(ratio[said], weights=weights if weights.sum() > 0 else None)
    return found
