"""CUDA_GPU_MEMORY_USAGE_EVENTS -> allocations; GPU_METRICS -> counters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tracker.profile import I64, MISSING, NO_STEP, Allocations, Counters, Strings, empty
from tracker.readers._spans import check_range
from tracker.readers._sqlite import Database, code_column, first_rows, picked
from tracker.readers._times import MAX_NS
from tracker.readers.nsys_sqlite.host import Threads
from tracker.readers.nsys_sqlite.tables import Arrays, process_of

USAGE: Final = "CUDA_GPU_MEMORY_USAGE_EVENTS"
COMPONENT: Final = "cuda"
"""What the CUDA driver hands out: blocks of a framework's allocator, and what lies outside of it."""

_ALLOCATES, _FREES = 0, 1  # ENUM_CUDA_DEV_MEM_EVENT_OPER
_HOST_MEMORY: Final = (0, 1)  # ENUM_CUDA_MEM_KIND: pageable, pinned
_GPU_NUMBER: Final = 0xFF
"""GPU_METRICS.typeId holds the number of the GPU in its low 8 bits."""


def usage_of(db: Database) -> Arrays:
    """The allocations and releases of all processes, as the columns of the table and `process`."""
    columns = ("bytes", "address", "memoryOperationType", "globalPid")
    table: Arrays = dict(db.ints(USAGE, ("start", *columns), ("deviceId", "memKind", "correlationId")))
    check_range(db, USAGE, table, "bytes")
    check_range(db, USAGE, table, "start", largest=MAX_NS)
    kinds = np.isin(table["memoryOperationType"], (_ALLOCATES, _FREES)) & (table["start"] != MISSING)
    return picked(table, kinds) | {"process": process_of(table["globalPid"][kinds])}


def allocations_of(usage: Arrays, launches: Mapping[str, Any], threads: Threads, strings: Strings) -> Allocations:
    """The events of one process and device. `launches`: of the process; they tell the thread of an allocation."""
    if not len(usage["start"]) or not len(threads.ids):
        nothing: Allocations = empty(Allocations)
        return nothing
    known = np.append(launches["correlation"], -1)
    thread = np.append(launches["thread"], threads.ids[0])
    call = first_rows(known[:-1], usage["correlationId"])
    sign = np.where(usage["memoryOperationType"] == _ALLOCATES, 1, -1)
    count = len(sign)
    unknown = np.full(count, MISSING, dtype=np.int64)
    return Allocations(
        time_ns=usage["start"],
        thread=threads.numbers(thread[call]),
        bytes=usage["bytes"] * sign,
        address=usage["address"],
        on_device=(~np.isin(usage["memKind"], _HOST_MEMORY)).astype(np.int8),
        component=np.full(count, strings.code(COMPONENT), dtype=np.int32),
        total_allocated_bytes=unknown,
        total_reserved_bytes=unknown,
    )


def metrics_of(db: Database, gpu: int, strings: Strings) -> Counters:
    """The samples of one GPU: utilisation, clock, throughput, as the export calls them; they belong to no step."""
    described = db.rows("TARGET_INFO_GPU_METRICS", "typeId", "metricId", "metricName")
    names = {(kind, metric): str(name) for kind, metric, name in described if name}
    if not names:
        nothing: Counters = empty(Counters)
        return nothing
    table = db.ints("GPU_METRICS", ("typeId", "metricId"))
    value = db.floats("GPU_METRICS", ("value",))["value"]
    mine = np.flatnonzero((table["typeId"] & _GPU_NUMBER) == gpu)
    pairs = list(zip(table["typeId"][mine].tolist(), table["metricId"][mine].tolist(), strict=True))
    count = len(mine)
    steps: I64 = np.full(count, NO_STEP, dtype=np.int64)
    return Counters(
        step=steps,
        source=np.full(count, strings.code("gpu_metrics"), dtype=np.int32),
        name=np.full(count, strings.code("GPU"), dtype=np.int32),
        attribute=code_column((names.get(pair, f"metric {pair[1]}") for pair in pairs), strings),
        value=value[mine],
    )
