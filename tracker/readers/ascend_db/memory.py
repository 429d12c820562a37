"""OP_MEMORY and MEMORY_RECORD -> allocator events, and the course of memory per component."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import I32, I64, MISSING, Allocations, MemoryPoints
from tracker.readers._spans import check_range
from tracker.readers._sqlite import Database, first_rows, picked
from tracker.readers._times import MAX_NS
from tracker.readers.ascend_db.host import Host, Threads
from tracker.readers.ascend_db.texts import Texts

FRAMEWORK: Final = "PTA"
GRAPH_ENGINE: Final = "GE"
_OF_CANN: Final = "cann::"
_TIMES: Final = ("allocationTime", "releaseTime")
_TOTALS: Final = (
    ("allocationTotalAllocated", "allocationTotalReserved"),
    ("releaseTotalAllocated", "releaseTotalReserved"),
)


class Blocks(Struct, frozen=True):
    """Allocator events; for each the op that the source names, and when it really happened."""

    events: Allocations
    op: I32
    time_ns: I64


def allocations_of(db: Database, texts: Texts, host: Host, *, device: int | None) -> Blocks:
    """Two events per row of OP_MEMORY, one where the memory was not released or not allocated in the capture.

    `device`: the one device whose rows are read, None for all. `address` is the number of the row: it pairs the events.
    """
    totals = [name for pair in _TOTALS for name in pair]
    table = db.ints("OP_MEMORY", ("name", "size"), (*_TIMES, *totals, "streamPtr", "deviceId"))
    check_range(db, "OP_MEMORY", table, "size", *totals)
    check_range(db, "OP_MEMORY", table, *_TIMES, largest=MAX_NS)
    if device is not None:
        table = picked(table, np.isin(table["deviceId"], (device, MISSING)))
    is_graph = _is_graph(db, texts, table)
    thread = _threads_of(db, texts, host, table, is_graph)
    really = {name: table[name].copy() for name in _TIMES}
    _place_at_enqueue(host, table, thread, is_graph)
    frees = table["size"] < 0
    parts = []
    for place, (time, (allocated, reserved)) in enumerate(zip(_TIMES, _TOTALS, strict=True)):
        # a row of negative size is a release alone: of what was allocated before the capture
        rows = np.flatnonzero((table[time] != MISSING) & ~(frees & (place == 1)))
        sign = np.where(frees[rows] | (place == 0), 1, -1)
        parts.append(
            {
                "time_ns": table[time][rows],
                "really_ns": really[time][rows],
                "bytes": table["size"][rows] * sign,
                "address": rows,
                "total_allocated_bytes": table[allocated][rows],
                "total_reserved_bytes": table[reserved][rows],
            }
        )
    joined: dict[str, I64] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    words = np.array([texts.strings.code(FRAMEWORK), texts.strings.code(GRAPH_ENGINE)], dtype=np.int32)
    really_ns = joined.pop("really_ns")
    names = texts.codes(table["name"])
    names[is_graph] = texts.codes(table["name"][is_graph], _of_cann)
    allocations = Allocations(
        thread=thread[joined["address"]],
        on_device=np.ones(len(joined["address"]), dtype=np.int8),
        component=words[is_graph[joined["address"]].astype(np.int64)],
        **joined,
    )
    return Blocks(allocations, names[joined["address"]], really_ns)


def _of_cann(name: str) -> str:
    """The name of a task of the graph engine as the text files of the profiler spell it."""
    return name if name.startswith(_OF_CANN) else f"{_OF_CANN}{name}"


def memory_points_of(db: Database, texts: Texts, *, device: int | None) -> MemoryPoints:
    """MEMORY_RECORD as it stands; `device`: the one device whose rows are read, None for all."""
    table = db.ints("MEMORY_RECORD", ("component", "timestamp"), ("totalAllocated", "totalReserved", "deviceId"))
    check_range(db, "MEMORY_RECORD", table, "totalAllocated", "totalReserved")
    check_range(db, "MEMORY_RECORD", table, "timestamp", largest=MAX_NS)
    table = picked(table, table["timestamp"] != MISSING)
    if device is not None:
        table = picked(table, np.isin(table["deviceId"], (device, MISSING)))
    return MemoryPoints(
        time_ns=table["timestamp"],
        component=texts.codes(table["component"]),
        allocated_bytes=table["totalAllocated"],
        reserved_bytes=table["totalReserved"],
    )


def _is_graph(db: Database, texts: Texts, table: Mapping[str, I64]) -> NDArray[np.bool_]:
    """Which rows are of CANN's graph engine: the allocator of the framework knows a stream, the engine's does not."""
    graph = texts.ids_of(lambda text: text.startswith(_OF_CANN))
    without_stream = (table["streamPtr"] == MISSING) & db.has_column("OP_MEMORY", "streamPtr")
    is_graph: NDArray[np.bool_] = np.isin(table["name"], graph) | without_stream
    return is_graph


def _place_at_enqueue(host: Host, table: dict[str, I64], thread: I32, is_graph: NDArray[np.bool_]) -> None:
    """What the graph engine allocates while a task is taken out of the queue belongs to the op that put it there."""
    rows = np.flatnonzero(is_graph & (table["allocationTime"] != MISSING))
    task = host.queue.task(thread[rows].astype(np.int64), table["allocationTime"][rows])
    rows, task = rows[task >= 0], task[task >= 0]
    table["allocationTime"][rows] = host.queue.put_ns[task]
    thread[rows] = host.queue.put_thread[task]


def _threads_of(
    db: Database,
    texts: Texts,
    host: Host,
    table: Mapping[str, I64],
    is_graph: NDArray[np.bool_],
) -> I32:
    """The thread that allocated each row.

    NPU_OP_MEM says it for the graph engine. Of the framework's rows it is the thread on which an op of the row's name
    is running, or the one with most ops.
    """
    threads: Threads = host.threads
    calls = db.ints("NPU_OP_MEM", ("timestampNs", "globalTid"))
    known = first_rows(calls["timestampNs"], table["allocationTime"])
    found = (known >= 0) & is_graph
    ops = host.ops
    main = int(np.bincount(ops.thread).argmax()) if len(ops) else 0
    thread = np.full(len(table["name"]), main, dtype=np.int32)
    if len(thread) and not threads.names:
        threads.numbers(np.zeros(1, dtype=np.int64))  # nothing else ran on the host
    thread[found] = threads.numbers(calls["globalTid"][known[found]])
    names = texts.codes(table["name"])
    for name in np.unique(names[~is_graph]).tolist():
        rows = np.flatnonzero((names == name) & ~is_graph)
        mine = np.flatnonzero(ops.name == name)
        mine = mine[np.argsort(ops.start_ns[mine], kind="stable")]
        at = np.searchsorted(ops.start_ns[mine], table["allocationTime"][rows], side="right") - 1
        running = at >= 0
        op = mine[at[running]]
        inside = table["allocationTime"][rows[running]] < ops.end_ns[op]
        thread[rows[running][inside]] = ops.thread[op[inside]]
    return thread
