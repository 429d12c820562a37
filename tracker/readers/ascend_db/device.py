"""TASK and what explains it -> device events: compute kernels, collective calls, copies; their PMU measurements."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import F64, I32, I64, MISSING, DeviceEvents, DeviceKind, KernelMetrics, is_hccl_kernel
from tracker.readers._ascend.kernels import COLLECTIVE_CORE, COPY_NAME
from tracker.readers._ascend.shapes import formats_text, shapes_text, types_text
from tracker.readers._device import device_events
from tracker.readers._spans import check_range
from tracker.readers._sqlite import Database, first_rows, picked
from tracker.readers.ascend_db import standins
from tracker.readers.ascend_db.communication import Calls
from tracker.readers.ascend_db.tasks import NO_CONNECTION, Tasks
from tracker.readers.ascend_db.texts import Texts

# the driver's words for a copy on its own; those of a collective stand in COMMUNICATION_TASK_INFO as well
_COPIES: Final = frozenset(("MEMCPY_ASYNC", "MEMCOPYASYNC", "SDMA", "SDMA_SQE", "PCIE_DMA_SQE"))
_INTS: Final = ("start_ns", "end_ns", "stream", "connection", "pid", "bytes", "wait_ns", "block_num", "task")
_CODES: Final = ("name", "type", "core_type", "input_shapes", "input_types", "input_formats")


class Work(Struct, frozen=True):
    """The device events of one device. `connection` is -1 for none; `pid`: the host process that launched."""

    events: DeviceEvents
    block_num: I64
    task: I64
    metrics: KernelMetrics
    connection: I64
    pid: I64


def work_of(db: Database, texts: Texts, tasks: Tasks, calls: Calls) -> Work:
    """All work of one device: its kernels, the collective calls `calls`, its copies, in this order.

    Waits, records of events and notifications, and markers of the profiler are no work and are left out.
    """
    kernels = _kernels(db, texts, tasks)
    collectives = _collectives(texts, calls)
    of_hccl = [code for code in np.unique(kernels["name"]).tolist() if is_hccl_kernel(texts.strings[code])]
    # a stream on which HCCL alone runs kernels is one of collectives
    copies = _copies(db, texts, tasks, kernels["stream"][~np.isin(kernels["name"], of_hccl)], calls)
    parts = (kernels, collectives, copies)
    names = (*_INTS, *_CODES, "kind", "collective")
    columns = {name: np.concatenate([part[name] for part in parts]) for name in names}
    events = device_events({**columns, "correlation": columns["connection"]})
    metrics = _metrics(db, texts, kernels["id"])
    return Work(events, columns["block_num"], columns["task"], metrics, columns["connection"], columns["pid"])


def _table(count: int, kind: DeviceKind, **columns: Any) -> dict[str, Any]:
    """A part of the events; columns that are not given say nothing."""
    table: dict[str, Any] = {name: np.full(count, MISSING, dtype=np.int64) for name in _INTS}
    table |= {name: np.zeros(count, dtype=np.int32) for name in _CODES}
    table["kind"] = np.full(count, kind, dtype=np.int8)
    table["collective"] = np.full(count, -1, dtype=np.int32)
    return table | columns


def _of_tasks(tasks: Tasks, rows: I64) -> dict[str, I64]:
    return {
        "start_ns": tasks.start_ns[rows],
        "end_ns": tasks.end_ns[rows],
        "stream": tasks.stream[rows],
        "connection": tasks.connection[rows],
        "pid": tasks.pid[rows],
        "task": tasks.number[rows],
    }


def _kernels(db: Database, texts: Texts, tasks: Tasks) -> dict[str, Any]:
    optional = ("opType", "taskType", "inputShapes", "inputDataTypes", "inputFormats", "blockNum|blockDim", "waitNs")
    info: dict[str, Any] = db.ints("COMPUTE_TASK_INFO", ("name", "globalTaskId"), optional)
    check_range(db, "COMPUTE_TASK_INFO", info, "waitNs")
    if not len(info["name"]):
        return _kernels_of_tasks(texts, tasks, standins.kernel_rows(db, texts, tasks))
    rows = tasks.row_of(info["globalTaskId"])
    info, rows = picked(info, rows >= 0), rows[rows >= 0]
    return _table(
        len(rows),
        DeviceKind.KERNEL,
        **_of_tasks(tasks, rows),
        id=info["globalTaskId"],
        name=texts.codes(info["name"]),
        type=texts.codes(info["opType"]),
        core_type=texts.codes(info["taskType"]),
        input_shapes=texts.codes(info["inputShapes"], shapes_text),
        input_types=texts.codes(info["inputDataTypes"], types_text),
        input_formats=texts.codes(info["inputFormats"], formats_text),
        block_num=info["blockNum"],
        wait_ns=info["waitNs"],
    )


def _kernels_of_tasks(texts: Texts, tasks: Tasks, rows: I64) -> dict[str, Any]:
    """Kernels that nothing explains: their type is all of a name that they have."""
    return _table(
        len(rows), DeviceKind.KERNEL, **_of_tasks(tasks, rows), id=tasks.id[rows], name=texts.codes(tasks.type[rows])
    )


def _collectives(texts: Texts, calls: Calls) -> dict[str, Any]:
    count = len(calls.table)
    return _table(
        count,
        DeviceKind.COMMUNICATION,
        start_ns=calls.start_ns,
        end_ns=calls.end_ns,
        stream=calls.stream,
        connection=np.where(np.isin(calls.connection, NO_CONNECTION), -1, calls.connection),
        pid=calls.pid,
        name=calls.name,
        type=calls.type,
        core_type=np.full(count, texts.strings.code(COLLECTIVE_CORE), dtype=np.int32),
        bytes=calls.table.bytes,
        collective=np.arange(count, dtype=np.int32),
        wait_ns=calls.wait_ns,
    )


def _copies(db: Database, texts: Texts, tasks: Tasks, kernel_streams: I64, calls: Calls) -> dict[str, Any]:
    """Copies that belong to no kernel and no collective, with the direction of MEMCPY_INFO as their type."""
    info = db.ints("MEMCPY_INFO", ("globalTaskId", "size"), ("memcpyOperation",))
    check_range(db, "MEMCPY_INFO", info, "size")
    is_copy = np.isin(tasks.type, texts.ids_of(lambda text: text.upper() in _COPIES))
    is_copy |= np.isin(tasks.id, info["globalTaskId"])
    is_copy &= ~np.isin(tasks.id, db.ints("COMPUTE_TASK_INFO", ("globalTaskId",))["globalTaskId"])
    is_copy &= ~standins.of_collectives(db, tasks) & ~_of_collectives(tasks, kernel_streams, calls)
    if not len(calls.table):
        is_copy &= ~np.isin(tasks.stream, standins.notify_streams(texts, tasks))
    rows = np.flatnonzero(is_copy)
    told = first_rows(info["globalTaskId"], tasks.id[rows])
    words = db.words("ENUM_MEMCPY_OPERATION")
    operations = np.append(info["memcpyOperation"], MISSING)[told].tolist()
    return _table(
        len(rows),
        DeviceKind.COPY,
        **_of_tasks(tasks, rows),
        name=np.full(len(rows), texts.strings.code(COPY_NAME), dtype=np.int32),
        type=np.array([texts.strings.code(words.get(word, "")) for word in operations], dtype=np.int32),
        bytes=np.append(info["size"], MISSING)[told],
    )


def _of_collectives(tasks: Tasks, kernel_streams: I64, calls: Calls) -> NDArray[np.bool_]:
    """Which tasks nothing on the host launched, that run inside a collective call on a stream without any kernel.

    At Level0 the profiler tells the tasks of a collective's main stream only; its other streams have no more than this.
    """
    order = np.argsort(calls.start_ns, kind="stable")
    latest_end = np.maximum.accumulate(np.append(MISSING, calls.end_ns[order]))
    inside = latest_end[np.searchsorted(calls.start_ns[order], tasks.start_ns, side="right")] >= tasks.end_ns
    found: NDArray[np.bool_] = inside & (tasks.connection < 0) & ~np.isin(tasks.stream, kernel_streams)
    return found


def _metrics(db: Database, texts: Texts, kernel_ids: I64) -> KernelMetrics:
    """The rows of TASK_PMU_INFO, under the names that kernel_details.csv gives the same measurements."""
    pmu = db.ints("TASK_PMU_INFO", ("globalTaskId", "name"))
    value = db.floats("TASK_PMU_INFO", ("value",))["value"]
    event = first_rows(kernel_ids, pmu["globalTaskId"])
    known = (event >= 0) & np.isfinite(value)
    names, back = np.unique(pmu["name"][known], return_inverse=True)
    spelled = [_pmu_name(texts.text(name)) for name in names.tolist()]
    codes: I32 = np.array([texts.strings.code(name) for name, _ in spelled], dtype=np.int32)
    scale: F64 = np.array([factor for _, factor in spelled], dtype=np.float64)
    return KernelMetrics(event[known].astype(np.int32), codes[back], value[known] / scale[back])


def _pmu_name(name: str) -> tuple[str, float]:
    """Name in kernel_details.csv, and what the value is divided by: the database has times in ns, the text in us."""
    if name.endswith("_time"):
        # the whole time of a core has a name of its own in the text
        spelled = {"aic_total_time": "aicore_time", "aiv_total_time": "aiv_time", "total_time": "aicore_time"}
        return f"{spelled.get(name, name)}(us)", 1e3
    return name, 1.0
