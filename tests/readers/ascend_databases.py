"""Small profiler databases, written table by table after the published layout, with ids that no real export has."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any

START = 1_700_000_000_000_000_000
MAIN = 7 << 32 | 70
ACL = 7 << 32 | 71
NONE = 0xFFFFFFFF
OP, QUEUE, TRACE, MSTX, LAYER_ACL, LAYER_NODE = 1, 2, 3, 4, 5, 6

Tables = dict[str, list[dict[str, Any]]]


class T(str):
    """A text that the database keeps in STRING_IDS."""


def api(kind: int, name: str, start: int, end: int, tid: int = MAIN, **columns: Any) -> dict[str, Any]:
    """A row of PYTORCH_API; times count from START and are text, as in real exports."""
    row = dict.fromkeys(("connectionId", "sequenceNumber", "fwdThreadId", "inputDtypes", "inputShapes", "callchainId"))
    times = {"startNs": str(START + start), "endNs": str(START + end)}
    return {**times, "globalTid": tid, "name": T(name), "type": kind, **row, **columns}


def cann(level: int, name: str, start: int, end: int, connection: int, tid: int = ACL) -> dict[str, Any]:
    """A row of CANN_API."""
    times = {"startNs": START + start, "endNs": START + end}
    return {**times, "type": level, "globalTid": tid, "connectionId": connection, "name": T(name)}


def task(number: int, kind: str, start: int, end: int, connection: int = NONE, **columns: Any) -> dict[str, Any]:
    """A row of TASK."""
    row = {"startNs": START + start, "endNs": START + end, "deviceId": 0, "connectionId": connection}
    return {**row, "globalTaskId": number, "globalPid": 7, "taskType": T(kind), "streamId": 2, **columns}


def kernel(number: int, name: str, **columns: Any) -> dict[str, Any]:
    """A row of COMPUTE_TASK_INFO."""
    row = {"name": T(name), "globalTaskId": number, "blockDim": 24, "taskType": T("AI_CORE"), "opType": T("MatMulV2")}
    return row | {
        "inputFormats": T("ND;ND"), "inputDataTypes": T("DT_BF16;FLOAT"), "inputShapes": T('"8,96;96,4"'), **columns,
    }  # fmt: skip


def hccl_task(number: int, kind: str) -> dict[str, Any]:
    """A row of COMMUNICATION_TASK_INFO of the one collective."""
    return {"name": T("hcom_allReduce__097_0_1"), "globalTaskId": number, "taskType": T(kind), "planeId": 1, "opId": 40}


def tables() -> Tables:
    """One step: a matmul, a copy that went through the task queue, a collective of two tasks, and waits."""
    return {
        "ENUM_API_TYPE": words({OP: "op", QUEUE: "queue", TRACE: "trace", MSTX: "mstx", LAYER_ACL: "acl",
                                LAYER_NODE: "node"}),
        "ENUM_HCCL_DATA_TYPE": words({77: "FP16"}),
        "ENUM_MEMCPY_OPERATION": words({3: "host to device"}),
        "ENUM_MODULE": words({5: "HCCL"}),
        "PYTORCH_API": [
            api(QUEUE, "Enqueue", 310, 320, connectionId=2),
            api(OP, "ProfilerStep#3", 0, 1000),
            api(OP, "aten::mm", 100, 200, connectionId=1, sequenceNumber=9, fwdThreadId=0, callchainId=0,
                inputShapes=T("8,96;\r\n96,4;\r\n"), inputDtypes=T("float;\r\nfloat;\r\nScalar")),
            api(OP, "MmBackward0", 210, 290, sequenceNumber=9, fwdThreadId=1),
            api(OP, "aten::copy_", 300, 340),
            api(QUEUE, "Dequeue@acl_memcpy", 400, 440, ACL, connectionId=3),
            api(TRACE, "nn.Module: Linear_0", 90, 205),
            api(TRACE, "train.py(3): step", 80, 208),
            api(MSTX, "forward", 50, 250),
        ],
        "PYTORCH_CALLCHAINS": [{"id": 0, "stack": T("train.py(9): main"), "stackDepth": 1},
                               {"id": 0, "stack": T("train.py(3): step"), "stackDepth": 0}],
        "CONNECTION_IDS": [{"id": 1, "connectionId": 501}, {"id": 1, "connectionId": 8001},
                           {"id": 2, "connectionId": 9001}, {"id": 3, "connectionId": 9001}],
        "CANN_API": [cann(LAYER_NODE, "launch", 150, 160, 501), cann(LAYER_ACL, "aclrtMemcpyAsync", 410, 420, 502),
                     cann(LAYER_ACL, "hcom_allReduce_", 450, 460, 503)],
        "TASK": [
            task(12, "EVENT_WAIT", 650, 690),
            task(10, "KERNEL_AICORE", 500, 600, 501),
            task(11, "MEMCPY_ASYNC", 620, 650, 502),
            task(13, "Notify Wait", 700, 760, 503, streamId=6),
            task(14, "SDMA", 760, 800, 503, streamId=6),
        ],
        "COMPUTE_TASK_INFO": [kernel(10, "MatMulV2_1")],
        "MEMCPY_INFO": [{"globalTaskId": 11, "size": 4096, "memcpyOperation": 3}],
        "COMMUNICATION_OP": [{"opName": T("hcom_allReduce__097_0_1"), "startNs": START + 700, "endNs": START + 820,
                              "connectionId": 503, "groupName": T("group_name_5"), "opId": 40, "dataType": 77,
                              "count": 100, "opType": T("hcom_allReduce_")}],
        "COMMUNICATION_TASK_INFO": [hccl_task(13, "Notify_Wait"), hccl_task(14, "Memcpy")],
        "TASK_PMU_INFO": [{"globalTaskId": 10, "name": T("aic_mac_time"), "value": 62.5},
                          {"globalTaskId": 10, "name": T("aic_total_time"), "value": 90},
                          {"globalTaskId": 10, "name": T("aic_mac_ratio"), "value": 0.625}],
        "OP_MEMORY": [memory("aten::mm", 512, 120, 230, stream=1), memory("MatMulV2_1", 64, 150, None, stream=None)],
        "NPU_OP_MEM": [{"timestampNs": START + 150, "globalTid": ACL}],
        "MEMORY_RECORD": [{"component": T("PTA"), "timestamp": START + 120, "totalAllocated": 512,
                           "totalReserved": 2048, "deviceId": 0}],
        "NPU_MODULE_MEM": [{"moduleId": 5, "timestampNs": START, "totalReserved": 3 << 20, "deviceId": 0}],
        "AICORE_FREQ": [{"deviceId": 0, "timestampNs": START, "freq": 1800}],
        "RANK_DEVICE_MAP": [{"rankId": 4, "deviceId": 0}],
        "HOST_INFO": [{"hostUid": "1", "hostName": "node-7"}],
        "NPU_INFO": [{"id": 0, "name": "Ascend910B"}],
        "META_DATA": [{"name": "SCHEMA_VERSION", "value": "1.0.0"},
                      {"name": "ENV_VARIABLES", "value": '{"HCCL_ALGO": "ring", "HUB_TOKEN": "secret"}'},
                      {"name": "parallel_group_info", "value": json.dumps({"group_name_5": {
                          "group_name": "dp", "group_rank": 0, "global_ranks": [4, 6]}})}],
    }  # fmt: skip


def analysis_tables() -> Tables:
    """What analysis.db says of the collective and the step."""
    call = {"hccl_op_name": "hcom_allReduce__097_0_1", "group_name": "5862276114690318097", "step": "step3"}
    moved = {"transit_size": 0.0002, "transit_time": 0.00004, "large_packet_ratio": 0.5}
    packets = ({"package_size": 0.00005, "count": 3, "total_duration": 0.00003},
               {"package_size": 0.00002, "count": 2, "total_duration": 0.00001})  # fmt: skip
    edge = {**call, "src_rank": "0", "dst_rank": "1", "transport_type": "HCCS", "transit_size": 0.0002,
            "transit_time": 0.00004}  # fmt: skip
    return {
        "CommAnalyzerTime": [{**call, "start_timestamp": (START + 700) / 1e3, "elapse_time": 0.00012,
                              "transit_time": 0.00004, "wait_time": 0.00006, "synchronization_time": 0.00005,
                              "idle_time": 0.00002}],
        "CommAnalyzerBandwidth": [{**call, "transport_type": "HCCS", **moved, **packet} for packet in packets],
        "CommAnalyzerMatrix": [
            {**edge, "hccl_op_name": "allreduce-top1", "op_name": "hcom_allReduce__097_0_1"},
            {**edge, "hccl_op_name": "allreduce-total", "op_name": ""},
        ],
        "StepTraceTime": [{"step": "3", "computing": 0.1, "bubble": 0.002, "preparing": 1.5e15}],
    }  # fmt: skip


def memory(name: str, size: int, allocated: int, released: int | None, stream: int | None) -> dict[str, Any]:
    """A row of OP_MEMORY."""
    row = {"name": T(name), "size": size, "allocationTime": START + allocated,
           "releaseTime": None if released is None else START + released}  # fmt: skip
    totals = {"allocationTotalAllocated": size, "allocationTotalReserved": 2048,
              "releaseTotalAllocated": None if released is None else 0,
              "releaseTotalReserved": None if released is None else 2048}  # fmt: skip
    return {**row, **totals, "streamPtr": stream, "deviceId": 0}


def words(by_id: Mapping[int, str]) -> list[dict[str, Any]]:
    """The rows of an ENUM table."""
    return [{"id": number, "name": name} for number, name in by_id.items()]


def write(path: Path, content: Mapping[str, Sequence[Mapping[str, Any]]]) -> Path:
    """A database of these tables, and STRING_IDS where one of them holds a `T`; columns as in the first row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts: dict[str, int] = {}
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA page_size = 512")
        for table, rows in content.items():
            columns = list(rows[0]) if rows else ["globalTaskId"]
            db.execute(f'CREATE TABLE "{table}" ({", ".join(columns)})')
            values = [
                [1000 + texts.setdefault(str(v), len(texts)) if isinstance(v, T) else v for v in map(row.get, columns)]
                for row in rows
            ]
            db.executemany(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(columns))})', values)
        if texts:
            db.execute("CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT)")
            db.executemany("INSERT INTO STRING_IDS VALUES (?, ?)", [(1000 + n, text) for text, n in texts.items()])
        db.commit()
    return path


def changed(**new: list[dict[str, Any]] | None) -> Tables:
    """`tables()` with some of them replaced; None leaves one out."""
    content = deepcopy(tables()) | new
    return {name: rows for name, rows in content.items() if rows is not None}


def write_capture(folder: Path, content: Tables | None = None) -> Path:
    """A whole capture folder: database, analysis.db, profiler_info."""
    output = folder / "ASCEND_PROFILER_OUTPUT"
    write(output / "ascend_pytorch_profiler_4.db", tables() if content is None else content)
    write(output / "analysis.db", analysis_tables())
    info = {"config": {"experimental_config": {"_profiler_level": "Level1"}}, "rank_id": 4, "cann_version": "8.0.RC1"}
    (folder / "profiler_info_4.json").write_text(json.dumps(info), encoding="utf-8")
    return folder


def span(table: Any, row: int = 0) -> tuple[int, int]:
    """Start and end of a row of a table of events, in ns since START."""
    return int(table.start_ns[row]) - START, int(table.end_ns[row]) - START
