"""Kernels, copies, memsets and whole CUDA graphs of all processes and devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tracker.profile import I32, I64, MISSING, DeviceKind, Strings
from tracker.readers._nvidia import copy_name, memset_name
from tracker.readers._spans import Spans, check_range
from tracker.readers._sqlite import picked
from tracker.readers.nsys_sqlite.tables import Arrays, Names, joined, process_of

KERNEL: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
MEMCPY: Final = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET: Final = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPH: Final = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
EVENTS: Final = (KERNEL, MEMCPY, MEMSET)
"""The tables of what CUPTI counts as events of a device."""
# 2019 exports say neither process nor device of a graph; old kernels have one name only
_PLACE: Final = ("deviceId", "streamId", "correlationId", "globalPid")
_CORRELATIONS: Final = 1 << 33
"""More than there are correlation ids, which have 32 bits."""

_NAMES: Final = "demangledName|shortName|name|mangledName"


def work_of(spans: Spans, names: Names, launches: Mapping[str, Any]) -> Arrays:
    """All device events: `start_ns`, `end_ns`, `process`, `ordinal`, `stream`, `correlation` (-1: none), `name`,
    `kind`, `bytes`, `is_graph` (a graph that was traced as a whole).

    `launches`: those of `launches_of`, which tell the process where the export does not.
    """
    parts = [_kernels(spans, names), _copies(spans, names.strings), _memsets(spans, names.strings)]
    work = _with_process(joined(parts), launches)
    graphs = _with_process(_graphs(spans, names.strings), launches)
    # with its nodes traced, a graph is the sum of its kernels
    return joined([work, picked(graphs, ~_same_launch(graphs, work))])


def _kernels(spans: Spans, names: Names) -> Arrays:
    table = spans.read(KERNEL, (), (_NAMES, *_PLACE))
    return _part(table, DeviceKind.KERNEL, names.codes(table["demangledName"]))


def _copies(spans: Spans, strings: Strings) -> Arrays:
    table = spans.read(MEMCPY, (), ("bytes", "copyKind", "srcKind", "dstKind", *_PLACE))
    check_range(spans.db, MEMCPY, table, "bytes")
    return _part(table, DeviceKind.COPY, _named(strings, copy_name, table, ("copyKind", "srcKind", "dstKind")))


def _memsets(spans: Spans, strings: Strings) -> Arrays:
    table = spans.read(MEMSET, (), ("bytes", "memKind", *_PLACE))
    check_range(spans.db, MEMSET, table, "bytes")
    return _part(table, DeviceKind.MEMSET, _named(strings, memset_name, table, ("memKind",)))


def _graphs(spans: Spans, strings: Strings) -> Arrays:
    """Graphs that were traced as a whole; numbered in order of their first run, since their ids differ in each run."""
    table = spans.read(GRAPH, (), ("graphExecId|graphId", *_PLACE))
    table = picked(table, np.argsort(table["start"], kind="stable"))
    keys = list(zip(process_of(table["globalPid"]).tolist(), table["graphExecId"].tolist(), strict=True))
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys), start=1)}
    codes = np.array([strings.code(f"CUDA graph {numbers[key]}") for key in keys], dtype=np.int32)
    return _part(table, DeviceKind.KERNEL, codes, is_graph=True)


def _part(table: Arrays, kind: DeviceKind, name: I32, *, is_graph: bool = False) -> Arrays:
    count = len(table["start"])
    known = table["correlationId"] > 0
    stream = table["streamId"]
    return {
        "start_ns": table["start"],
        "end_ns": table["end"],
        "process": np.where(table["globalPid"] == MISSING, -1, process_of(table["globalPid"])),
        "ordinal": np.where(table["deviceId"] == MISSING, 0, table["deviceId"]),
        "stream": np.where(stream == MISSING, 0, stream),
        "correlation": np.where(known, table["correlationId"], -1),
        "name": name,
        "kind": np.full(count, kind, dtype=np.int8),
        "is_graph": np.full(count, is_graph),
        "bytes": table["bytes"] if "bytes" in table else np.full(count, MISSING, dtype=np.int64),
    }


def _named(strings: Strings, spell: Any, table: Arrays, columns: tuple[str, ...]) -> I32:
    """The code of what `spell` makes of each row's numbers; -1 for a number that is not there."""
    numbers = [np.where(table[name] == MISSING, -1, table[name]).tolist() for name in columns]
    rows = list(zip(*numbers, strict=True))
    codes = {row: strings.code(spell(*row)) for row in dict.fromkeys(rows)}
    return np.array([codes[row] for row in rows], dtype=np.int32)


def _with_process(work: Arrays, launches: Mapping[str, Any]) -> Arrays:
    """Fills in the process where the export does not say it: that of the launch, else the one that launched most."""
    lost = np.flatnonzero(work["process"] < 0)
    if not len(lost) or not len(launches["process"]):
        return {**work, "process": np.maximum(work["process"], 0)}
    order = np.argsort(launches["correlation"], kind="stable")
    correlation = launches["correlation"][order]
    place = np.minimum(np.searchsorted(correlation, work["correlation"][lost]), len(order) - 1)
    found = correlation[place] == work["correlation"][lost]
    distinct, counts = np.unique(launches["process"], return_counts=True)
    process = work["process"].copy()
    process[lost] = np.where(found, launches["process"][order][place], distinct[np.argmax(counts)])
    return {**work, "process": process}


def _same_launch(work: Arrays, other: Arrays) -> Any:
    """Which rows of `work` share process and correlation with a row of `other`; none where they have none."""
    processes = np.unique(np.concatenate([work["process"], other["process"]]))
    keys = [
        np.searchsorted(processes, table["process"]) * _CORRELATIONS + table["correlation"] for table in (work, other)
    ]
    return np.isin(keys[0], keys[1]) & (work["correlation"] >= 0)


def lost_launches(launches: Mapping[str, Any], work: Arrays) -> tuple[int, int]:
    """(launches without any device work, all launches), of the calls that start a kernel or a graph."""
    starts: I64 = np.flatnonzero(launches["starts_work"] & (launches["correlation"] >= 0))
    rows = {name: launches[name][starts] for name in ("process", "correlation")}
    return len(starts) - int(_same_launch(rows, work).sum()), len(starts)
