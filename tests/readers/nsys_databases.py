"""Small Nsight Systems exports, written table by table after the published schema, with ids that no real export has."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

UTC = 1_700_000_000_000_000_000
RUNTIME, DRIVER = 0, 1
PUSH_POP, START_END, DOMAIN = 59, 60, 75

Tables = dict[str, list[dict[str, Any]]]


class T(str):
    """A text that the export keeps in StringIds."""


def pid(process: int) -> int:
    """globalPid of a process."""
    return 1 << 48 | process << 24


def tid(process: int, thread: int | None = None) -> int:
    """globalTid of a thread; the main thread has the number of its process."""
    return pid(process) | (process if thread is None else thread)


def call(name: str, start: int, end: int, correlation: int = 0, process: int = 7) -> dict[str, Any]:
    """A row of CUPTI_ACTIVITY_KIND_RUNTIME."""
    level = RUNTIME if name.startswith("cuda") else DRIVER
    times = {"start": start, "end": end, "eventClass": level, "globalTid": tid(process)}
    return {**times, "correlationId": correlation, "nameId": T(name), "returnValue": 0}


def kernel(
    name: str, start: int, end: int, correlation: int = 0, process: int = 7, device: int = 0, **columns: Any
) -> dict[str, Any]:
    """A row of CUPTI_ACTIVITY_KIND_KERNEL."""
    place = {"deviceId": device, "streamId": 7, "correlationId": correlation, "globalPid": pid(process)}
    return {"start": start, "end": end, **place, "demangledName": T(name), "shortName": T(name[:4]), **columns}


def copy(
    start: int, end: int, correlation: int, size: int, kind: int = 1, process: int = 7, device: int = 0
) -> dict[str, Any]:
    """A row of CUPTI_ACTIVITY_KIND_MEMCPY, from pageable to device memory."""
    place = {"deviceId": device, "streamId": 7, "correlationId": correlation, "globalPid": pid(process)}
    return {"start": start, "end": end, **place, "bytes": size, "copyKind": kind, "srcKind": 0, "dstKind": 2}


def memset(start: int, end: int, correlation: int, size: int, process: int = 7) -> dict[str, Any]:
    """A row of CUPTI_ACTIVITY_KIND_MEMSET of device memory."""
    place = {"deviceId": 0, "streamId": 7, "correlationId": correlation, "globalPid": pid(process)}
    return {"start": start, "end": end, **place, "value": 0, "bytes": size, "memKind": 2}


def span(name: str, start: int, end: int | None, process: int = 7, **columns: Any) -> dict[str, Any]:
    """A row of NVTX_EVENTS: a push/pop range of the main thread, its text in StringIds."""
    row = {"start": start, "end": end, "eventType": PUSH_POP, "text": None, "textId": T(name), "domainId": 0}
    return {**row, "globalTid": tid(process), "endGlobalTid": None, **columns}


def one_step() -> Tables:
    """One process, one device, one step: a copy and a kernel in the forward pass, a kernel and a memset behind it."""
    return {
        "META_DATA_EXPORT": [
            {"name": "EXPORT_PRODUCT_VERSION", "value": "2025.1.0"},
            {"name": "EXPORT_SCHEMA_VERSION", "value": "3.18.0"},
            {"name": "EXPORT_USER", "value": "somebody"},
        ],
        "META_DATA_CAPTURE": [
            {"name": "PROCESS_0:ENVIRONMENT_VARIABLE", "value": 'ACCESS_TOKEN="secret"'},
            {"name": "PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE", "value": "Node"},
        ],
        "TARGET_INFO_SYSTEM_ENV": [
            {"name": "Hostname", "value": "node-3"},
            {"name": "CudaDriverVersion", "value": "12080"},
            {"name": "NvDriverVersion", "value": "570.172.08"},
            {"name": "DeviceEnvironment", "value": "ACCESS_TOKEN=secret"},
        ],
        "TARGET_INFO_GPU": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "cuDevice": 0}],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": UTC, "utcTime": "", "localTime": ""}],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            call("cudaMemcpyAsync_v3020", 130, 140, 11),
            call("cudaLaunchKernel_v7000", 150, 160, 12),
            call("cuLaunchKernelEx", 320, 330, 13),
            call("cudaMemsetAsync_v3020", 410, 420, 14),
        ],
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            kernel("ampere_sgemm_128x64_tn", 200, 260, 12),
            kernel("void relu<(int)4>(float *)", 340, 360, 13),
        ],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [copy(180, 190, 11, 4096)],
        "CUPTI_ACTIVITY_KIND_MEMSET": [memset(430, 432, 14, 64)],
        "NVTX_EVENTS": [
            span("iteration 17", 100, 400),
            span("forward", 110, 310),
            span("layer_0", 120, 200),
            span("attention", 125, 170),
        ],
    }


def write(path: Path, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Path:
    """The tables as an export. The columns of a table are those of its first row; a table without rows has one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ids: dict[str, int] = {}

    def stored(value: Any) -> Any:
        return ids.setdefault(value, 500 + 3 * len(ids)) if isinstance(value, T) else value

    with closing(sqlite3.connect(path)) as db, db:
        for name, rows in tables.items():
            columns = list(rows[0]) if rows else ["start"]
            db.execute(f'CREATE TABLE "{name}" ({", ".join(f"[{column}]" for column in columns)})')
            wanted = f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(columns))})'
            db.executemany(wanted, [[stored(row.get(column)) for column in columns] for row in rows])
        db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)")
        db.executemany("INSERT INTO StringIds VALUES (?, ?)", [(number, text) for text, number in ids.items()])
    return path
