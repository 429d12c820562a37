"""analysis.db (MindSpore: communication_analyzer.db) -> where the time of collectives and steps went.

It says what communication.json, communication_matrix.json and step_trace_time.csv say in a text export.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

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
from tracker.readers._sqlite import Database
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
    "free_ns": "free",
}
"""Column of StepTimes -> that of StepTraceTime."""


@dataclass(frozen=True, slots=True)
class Analysis:
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
    known = [(call, op) for op in communication_ops(db) if (call := find.call(op)) >= 0]
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
    optional = ("group_name", "step")
    times = ("elapse_time", "transit_time", "wait_time", "synchronization_time", "idle_time")
    ops = []
    for said in _records(db, "CommAnalyzerTime", ("hccl_op_name", "start_timestamp", *times), optional):
        name, group, step = said["hccl_op_name"], said["group_name"], _step_number(said["step"])
        op = CommunicationOp(
            step=None if step == NO_STEP else step,
            name=str(name).partition("@")[0],
            group=str(group or ""),
            start_ns=_whole(said["start_timestamp"], NS_PER_US),
            elapse_ns=_whole(said["elapse_time"], NS_PER_MS),
            transit_ns=_whole(said["transit_time"], NS_PER_MS),
            wait_ns=_whole(said["wait_time"], NS_PER_MS),
            synchronization_ns=_whole(said["synchronization_time"], NS_PER_MS),
            idle_ns=_whole(said["idle_time"], NS_PER_MS),
            links=tuple(links.get((name, group, step), ())),
        )
        ops.append(op)
    return ops


def matrix_totals(db: Database) -> list[MatrixTotal]:
    """The totals of CommAnalyzerMatrix; its best, middle and worst single operations are left out."""
    required = ("hccl_op_name", "group_name", "src_rank", "dst_rank", "transport_type", "transit_size", "transit_time")
    rows = list(_records(db, "CommAnalyzerMatrix", required, ("step", "op_name")))
    kinds: dict[tuple[str, str], str] = {}
    totals = []
    for said in rows:
        # the matrix calls a reduceScatter `reduce`; the operations that it names tell
        if said["op_name"]:
            kinds[_word(said), str(said["group_name"])] = kind_in_name(str(said["op_name"]))
    for said in rows:
        if not str(said["hccl_op_name"]).partition("@")[0].endswith("-total"):
            continue
        group, step = str(said["group_name"]), _step_number(said["step"])
        link = Link(
            transport=str(said["transport_type"]),
            source=int(said["src_rank"]),
            target=int(said["dst_rank"]),
            packet_bytes=-1,
            packets=MISSING,
            bytes=_whole(said["transit_size"], _BYTES_PER_MB),
            transit_ns=_whole(said["transit_time"], NS_PER_MS),
            large_packet_ratio=float("nan"),
        )
        kind = kinds.get((_word(said), group)) or kind_of(_word(said))
        totals.append(MatrixTotal(None if step == NO_STEP else step, kind, group, link))
    return totals


def steps_of(db: Database, device: int | None) -> tuple[StepTimes, tuple[Sample, ...]]:
    """StepTraceTime as counters in us, named and spelled as in step_trace_time.csv, and what events do not show."""
    optional = ("deviceId", *_STEP_COLUMNS)
    rows = list(_records(db, "StepTraceTime", ("step",), optional))
    if device is not None:
        rows = [said for said in rows if said["deviceId"] in (None, device)]
    samples = [
        Sample(STEP_TRACE, str(said["step"] or ""), _STEP_COLUMNS[name], float(said[name]), _step_number(said["step"]))
        for said in rows
        for name in _STEP_COLUMNS
        if said[name] is not None
    ]
    rows = [said for said in rows if _step_number(said["step"]) != NO_STEP]
    ready = [said["preparing"] for said in rows]
    steps = StepTimes(
        step=np.array([_step_number(said["step"]) for said in rows], dtype=np.int64),
        bubble_ns=_ns_column((said["bubble"] for said in rows), NS_PER_US),
        preparing_ns=_ns_column((t if t is not None and t < _ABSOLUTE_US else None for t in ready), NS_PER_US),
        **{name: _ns_column((said[column] for said in rows), NS_PER_US) for name, column in _STEP_TIMES.items()},
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


def _records(db: Database, table: str, required: Sequence[str], optional: Sequence[str]) -> Iterable[Mapping[str, Any]]:
    """Each row by column; optional columns that are not there are None."""
    there = [name for name in optional if db.has_column(table, name)]
    nothing = dict.fromkeys(optional)
    for row in db.rows(table, *required, *there):
        yield nothing | dict(zip((*required, *there), row, strict=True))


def _bandwidth(db: Database) -> dict[tuple[object, object, int], list[Link]]:
    """By name, group and step: per transport that moved anything the whole, and what went in packets of each size."""
    required = ("hccl_op_name", "transport_type", "transit_size", "transit_time", "large_packet_ratio")
    sizes = ("package_size", "count", "total_duration")
    found: dict[tuple[object, object, int], dict[str, list[Link]]] = {}
    for said in _records(db, "CommAnalyzerBandwidth", (*required, *sizes), ("group_name", "step")):
        whole = _whole(said["transit_size"], _BYTES_PER_MB), _whole(said["transit_time"], NS_PER_MS)
        if not any(whole):
            continue
        key = said["hccl_op_name"], said["group_name"], _step_number(said["step"])
        transport = str(said["transport_type"])
        # the whole stands again in the row of each packet size
        links = found.setdefault(key, {}).setdefault(transport, [])
        if not links:
            links.append(Link(transport, -1, -1, -1, MISSING, *whole, _ratio(said["large_packet_ratio"])))
        if said["package_size"] and said["count"]:
            packet, count = _whole(said["package_size"], _BYTES_PER_MB), int(said["count"])
            duration = _whole(said["total_duration"], NS_PER_MS)
            links.append(Link(transport, -1, -1, packet, count, packet * count, duration, float("nan")))
            counted = count if links[0].packets == MISSING else links[0].packets + count
            links[0] = replace(links[0], packets=counted)
    return {key: [link for links in by.values() for link in links] for key, by in found.items()}


def _word(said: Mapping[str, Any]) -> str:
    return str(said["hccl_op_name"]).partition("@")[0].rpartition("-")[0]


def _step_number(text: object) -> int:
    """`step12` and `12` -> 12; NO_STEP where there was no schedule."""
    digits = re.search(r"\d{1,18}", str(text if text is not None else ""))
    return int(digits.group()) if digits else NO_STEP


def _whole(value: float | None, unit: int) -> int:
    return MISSING if value is None else round(value * unit)


def _ns_column(values: Iterable[float | None], unit: int) -> I64:
    return np.array([_whole(value, unit) for value in values], dtype=np.int64)


def _ratio(value: float | None) -> float:
    return float("nan") if value is None else float(value)
