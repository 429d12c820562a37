"""analysis.db (MindSpore: communication_analyzer.db) -> where the time of collectives and steps went.

It says what communication.json, communication_matrix.json and step_trace_time.csv say in a text export.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import Final

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from tracker.errors import SourceError
from tracker.profile import I64, MISSING, NO_STEP, CollectiveLinks, CollectiveTimes, StepTimes, Strings, empty
from tracker.readers._ascend.communication import (
    CommunicationOp,
    Link,
    MatrixTotal,
    global_link,
    kind_in_name,
    links_table,
    times_table,
)
from tracker.readers._ascend.metadata import Metadata, double_hash
from tracker.readers._collectives import kind_of
from tracker.readers._sqlite import EXPORT_AGAIN, Database
from tracker.readers._times import MAX_NS, MAX_OF_ONE
from tracker.readers.ascend_db.communication import Calls
from tracker.readers.ascend_db.counters import Sample
from tracker.units import NS_PER_MS, NS_PER_US

_BYTES_PER_MB: Final = 1_000_000
"""Sizes of the communication analysis are in decimal MB: a packet of 2064384 bytes is 2.064384."""

_ABSOLUTE_US: Final = 10**15
"""Old versions write the time of day for the preparing time; no preparation lasts for thirty years."""

STEP_TRACE: Final = "step_trace_time"
_STEP_COLUMNS: Final = {
    "computing": "Computing",
    "communication_not_overlapped": "Communication(Not Overlapped)",
    "overlapped": "Overlapped",
    "communication": "Communication",
    "free": "Free",
    "stage": "Stage",
    "bubble": "Bubble",
    "communication_not_overlapped_and_exclude_receive": "Communication(Not Overlapped and Exclude Receive)",
    "preparing": "Preparing",
}
"""Column -> its name in step_trace_time.csv, both in us."""

_STEP_TIMES: Final = {
    "compute_ns": "computing",
    "communication_ns": "communication",
    "overlap_ns": "overlapped",
    "exposed_communication_ns": "communication_not_overlapped",
    "idle_ns": "free",
}
"""Column of StepTimes -> that of StepTraceTime."""


_RANKS: Final = ("src_rank", "dst_rank")


class Analysis(Struct, frozen=True):
    """What the profiler's own analysis says; empty where there is no such file."""

    times: CollectiveTimes = field(default_factory=lambda: empty(CollectiveTimes))
    links: CollectiveLinks = field(default_factory=lambda: empty(CollectiveLinks))
    steps: StepTimes = field(default_factory=lambda: empty(StepTimes))
    samples: tuple[Sample, ...] = ()


def analysis_of(db: Database, calls: Calls, strings: Strings, metadata: Metadata, *, device: int | None) -> Analysis:
    """What `db` says of the collective calls `calls` and of the steps of `device`; None where it knows one device.

    The matrix stands in where the tasks of the calls do not say what they moved.
    """
    find = _CallFinder(calls, strings)
    known = [(number, op) for op in communication_ops(db) if (number := find.call(op)) >= 0]
    links = [(call, link) for call, op in known for link in op.links]
    for total in () if calls.moved else matrix_totals(db):
        call = find.call_of_kind(total.kind, metadata.group(total.group).id)
        if call >= 0:
            links.append((call, global_link(total.link, total.group, metadata)))
    steps, samples = steps_of(db, device)
    return Analysis(times_table(known), links_table([*links, *calls.moved], strings), steps, samples)


def communication_ops(db: Database) -> list[CommunicationOp]:
    """The collectives of CommAnalyzerTime, each with what CommAnalyzerBandwidth says of it."""
    links = _bandwidth(db)
    times = ("start_timestamp", "elapse_time", "transit_time", "wait_time", "synchronization_time", "idle_time")
    ops = []
    for said in _records(db, "CommAnalyzerTime", ("hccl_op_name",), times, ("group_name", "step")):
        name, group, step = said.text("hccl_op_name"), said.text("group_name"), _step_number(said.text("step"))
        op = CommunicationOp(
            step=None if step == NO_STEP else step,
            name=name.partition("@")[0],
            group=group,
            start_ns=said.whole("start_timestamp", NS_PER_US, largest=MAX_NS),
            elapse_ns=said.whole("elapse_time", NS_PER_MS),
            transit_ns=said.whole("transit_time", NS_PER_MS),
            wait_ns=said.whole("wait_time", NS_PER_MS),
            synchronization_ns=said.whole("synchronization_time", NS_PER_MS),
            idle_ns=said.whole("idle_time", NS_PER_MS),
            links=tuple(links.get((name, group, step), ())),
        )
        ops.append(op)
    return ops


def matrix_totals(db: Database) -> list[MatrixTotal]:
    """The totals of CommAnalyzerMatrix; its best, middle and worst single operations are left out."""
    texts, numbers = ("hccl_op_name", "group_name", "transport_type"), ("transit_size", "transit_time", *_RANKS)
    rows = _records(db, "CommAnalyzerMatrix", texts, numbers, ("step", "op_name"))
    kinds: dict[tuple[str, str], str] = {}
    totals = []
    for said in rows:
        # the matrix calls a reduceScatter `reduce`; the operations that it names tell
        if said.text("op_name"):
            kinds[_word(said), said.text("group_name")] = kind_in_name(said.text("op_name"))
    for said in rows:
        if not said.text("hccl_op_name").partition("@")[0].endswith("-total"):
            continue
        group, step = said.text("group_name"), _step_number(said.text("step"))
        source, target = (said.whole(rank) for rank in _RANKS)
        if MISSING in (source, target):
            raise said.error("a link without its ranks")
        link = Link(
            transport=said.text("transport_type"),
            source=source,
            target=target,
            packet_bytes=-1,
            packets=MISSING,
            bytes=said.whole("transit_size", _BYTES_PER_MB),
            transit_ns=said.whole("transit_time", NS_PER_MS),
            large_packet_ratio=float("nan"),
        )
        kind = kinds.get((_word(said), group)) or kind_of(_word(said))
        totals.append(MatrixTotal(None if step == NO_STEP else step, kind, group, link))
    return totals


def steps_of(db: Database, device: int | None) -> tuple[StepTimes, tuple[Sample, ...]]:
    """StepTraceTime as counters in us, named and spelled as in step_trace_time.csv, and what events do not show."""
    rows = _records(db, "StepTraceTime", ("step",), (), more_numbers=("deviceId", *_STEP_COLUMNS))
    if device is not None:
        rows = [said for said in rows if said.number("deviceId") in (None, device)]
    samples = [
        Sample(STEP_TRACE, said.text("step"), _STEP_COLUMNS[name], value, _step_number(said.text("step")))
        for said in rows
        for name in _STEP_COLUMNS
        if (value := said.number(name)) is not None
    ]
    rows = [said for said in rows if _step_number(said.text("step")) != NO_STEP]
    columns = {name: _ns_column(said.whole(column, NS_PER_US) for said in rows) for name, column in _STEP_TIMES.items()}
    ready = [said if (said.number("preparing") or 0) < _ABSOLUTE_US else None for said in rows]
    steps = StepTimes(
        step=np.array([_step_number(said.text("step")) for said in rows], dtype=np.int64),
        bubble_ns=_ns_column(said.whole("bubble", NS_PER_US) for said in rows),
        preparing_ns=_ns_column(MISSING if said is None else said.whole("preparing", NS_PER_US) for said in ready),
        **columns,
    )
    return steps, tuple(samples)


class _CallFinder:
    """Finds the collective call that the analysis is about: by name, and by time where a name comes again."""

    def __init__(self, calls: Calls, strings: Strings) -> None:
        self._start_ns = calls.start_ns
        self._named: dict[str, list[int]] = {}
        self._first: dict[tuple[str, str], int] = {}
        for row, code in enumerate(calls.name.tolist()):
            self._named.setdefault(strings[code], []).append(row)
            kind, group = (strings[int(column[row])] for column in (calls.table.kind, calls.table.group))
            for name in (group, double_hash(group)):
                self._first.setdefault((kind, name), row)

    def call(self, op: CommunicationOp) -> int:
        """The row of the call, -1 where none has this name."""
        rows = self._named.get(op.name, [])
        return min(rows, key=lambda row: abs(int(self._start_ns[row]) - op.start_ns), default=-1)

    def call_of_kind(self, kind: str, group: str) -> int:
        """The first call of a kind in a group, which carries what all of them moved; -1 without one."""
        return self._first.get((kind, group), -1)


class _Row(Struct, frozen=True):
    """One row of a table: its texts, and its numbers, NaN where there is none."""

    db: Database
    table: str
    texts: Mapping[str, object]
    numbers: Mapping[str, float]

    def text(self, column: str) -> str:
        """A text; '' for NULL and for a column that is not there."""
        said = self.texts.get(column)
        return "" if said is None else str(said)

    def number(self, column: str) -> float | None:
        """A number; None for NULL and for a column that is not there."""
        said = self.numbers[column]
        return None if isnan(said) else said

    def whole(self, column: str, unit: int = 1, *, largest: int = MAX_OF_ONE) -> int:
        """A number of `unit`, rounded; MISSING for none, a SourceError for one beyond `largest`."""
        said = self.number(column)
        if said is None:
            return MISSING
        if abs(said * unit) > largest:
            raise self.error(f"{column} is {said:g}, beyond the range of times and sizes")
        return round(said * unit)

    def error(self, problem: str) -> SourceError:
        """What is wrong with this row."""
        return SourceError(self.db.path, f"table {self.table}", problem, remedy=EXPORT_AGAIN)


def _records(
    db: Database,
    table: str,
    texts: Sequence[str],
    numbers: Sequence[str],
    more_texts: Sequence[str] = (),
    more_numbers: Sequence[str] = (),
) -> list[_Row]:
    """All rows of a small table. The columns `more_*` need not be there."""
    there = [*texts, *(name for name in more_texts if db.has_column(table, name))]
    said = [dict(zip(there, row, strict=True)) for row in db.rows(table, *there)]
    columns = db.floats(table, numbers, more_numbers)
    measured = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [
        _Row(db, table, of_texts, dict(zip(columns, values, strict=True)))
        for of_texts, values in zip(said, measured, strict=True)
    ]


def _bandwidth(db: Database) -> dict[tuple[str, str, int], list[Link]]:
    """By name, group and step: per transport that moved anything the whole, and what went in packets of each size."""
    numbers = ("transit_size", "transit_time", "large_packet_ratio", "package_size", "count", "total_duration")
    texts, more = ("hccl_op_name", "transport_type"), ("group_name", "step")
    found: dict[tuple[str, str, int], dict[str, list[Link]]] = {}
    for said in _records(db, "CommAnalyzerBandwidth", texts, numbers, more):
        whole = said.whole("transit_size", _BYTES_PER_MB), said.whole("transit_time", NS_PER_MS)
        if not any(whole):
            continue
        key = said.text("hccl_op_name"), said.text("group_name"), _step_number(said.text("step"))
        transport = said.text("transport_type")
        # the whole stands again in the row of each packet size
        links = found.setdefault(key, {}).setdefault(transport, [])
        if not links:
            links.append(Link(transport, -1, -1, -1, MISSING, *whole, said.numbers["large_packet_ratio"]))
        if said.number("package_size") and said.number("count"):
            packet, count = said.whole("package_size", _BYTES_PER_MB), said.whole("count")
            if abs(packet * count) > MAX_OF_ONE:
                raise said.error(f"{count} packets of {packet} bytes are beyond the range of sizes")
            duration = said.whole("total_duration", NS_PER_MS)
            links.append(Link(transport, -1, -1, packet, count, packet * count, duration, float("nan")))
            counted = count if links[0].packets == MISSING else links[0].packets + count
            links[0] = replace(links[0], packets=counted)
    return {key: [link for links in by.values() for link in links] for key, by in found.items()}


def _word(said: _Row) -> str:
    return said.text("hccl_op_name").partition("@")[0].rpartition("-")[0]


def _step_number(text: str) -> int:
    """`step12` and `12` -> 12; NO_STEP where there was no schedule."""
    digits = re.search(r"\d{1,18}", text)
    return int(digits.group()) if digits else NO_STEP


def _ns_column(values: Iterable[int]) -> I64:
    return np.array(list(values), dtype=np.int64)
