"""Small captures of torch_npu as text, written row by row after the published layout."""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any

from msgspec import Struct

START_US = 1_780_000_000_000_000
STEP_US = 1_000
HOST, HARDWARE, HCCL = 70, 71, 72
_HEADER = (
    "Step Id,Device_id,Task ID,Stream ID,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),"
    "Block Dim,Input Shapes,Input Data Types,Input Formats"
)


class Written(Struct, frozen=True):
    """A training of `steps` steps of 1 ms: aten::mm works on the device for 600 us, an all-reduce for 250 us.

    own_kernel: name of the kernel by which HCCL runs the collective, "" for none. has_rows: whether the profiler writes
    rows of collectives. lost: steps without device records. has_device: whether there are any. has_table: whether there
    is a kernel_details.csv, which without device records has a header alone. mm_us: of aten::mm. calls: whether the
    trace has calls of the runtime that launch, with correlations.
    """

    steps: int = 4
    own_kernel: str = ""
    has_rows: bool = True
    lost: Set[int] = frozenset()
    has_device: bool = True
    has_table: bool = True
    mm_us: int = 600
    calls: bool = False


def write(folder: Path, run: int, training: Written) -> Path:
    """Write the capture of one run, whose number stands in all that two runs differ in."""
    home = folder / f"node-1_{100 + run}_2026060100000000{run}_ascend_pt"
    output = home / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    info = {"rank_id": 0, "config": {"experimental_config": {"_profiler_level": "Level1"}}}
    (home / "profiler_info_0.json").write_text(json.dumps(info), encoding="utf-8")
    events, rows = _names_of_processes(), []
    for step in range(training.steps):
        start = START_US + 10_000_000 * run + step * STEP_US
        events += _host_events(start, step)
        if not training.has_device or step in training.lost:
            continue
        events += _device_events(start, step, training)
        rows += _table_rows(start, step, training)
    (output / "trace_view.json").write_text(json.dumps(events), encoding="utf-8")
    if training.has_table:
        (output / "kernel_details.csv").write_text("\n".join([_HEADER, *rows]) + "\n", encoding="utf-8")
    # what runs without a device record differ in: their host
    (output / "memory_record.csv").write_text(
        "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Device Type\n"
        f"PTA,{START_US + 10_000_000 * run}.000,1.5,2.0,NPU:0\n",
        encoding="utf-8",
    )
    return home


def write_versions(folder: Path, versions: Sequence[tuple[Written, int]]) -> list[Path]:
    """Write so many runs of each training, and return the folder of each version."""
    places = []
    run = 0
    for number, (training, runs) in enumerate(versions, start=1):
        place = folder / f"v{number}"
        for _ in range(runs):
            write(place, run, training)
            run += 1
        places.append(place)
    return places


def _names_of_processes() -> list[dict[str, Any]]:
    names = {HOST: "Python", HARDWARE: "Ascend Hardware", HCCL: "HCCL"}
    named: list[dict[str, Any]] = []
    for pid, name in names.items():
        named.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}})
    streams = {(HARDWARE, 2): "Stream 2", (HARDWARE, 9): "Stream 9", (HCCL, 0): "Group 0 Communication"}
    for (pid, lane), name in streams.items():
        named.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": lane, "args": {"name": name}})
    return named


def _span(name: str, pid: int, lane: int, start: int, duration: int, **more: Any) -> dict[str, Any]:
    span = {"ph": "X", "name": name, "pid": pid, "tid": lane, "ts": f"{start}.000", "dur": float(duration), "args": {}}
    return {**span, **more}


def _host_events(start: int, step: int) -> list[dict[str, Any]]:
    return [
        _span(f"ProfilerStep#{step}", HOST, 1, start, STEP_US, cat="cpu_op"),
        _span("aten::mm", HOST, 1, start + 5, 10, cat="cpu_op"),
        _span("HcclAllreduce", HOST, 1, start + 20, 10, cat="cpu_op"),
    ]


def _device_events(start: int, step: int, training: Written) -> list[dict[str, Any]]:
    collective_at = start + 60 + training.mm_us
    task = {"Task Type": "AI_CORE", "Task Id": 1 + 2 * step, "connection_id": 1 + 2 * step}
    events = [_span("aclnnMm_MatMulV2", HARDWARE, 2, start + 50, training.mm_us, args=task)]
    events += _arrow(start + 7, start + 50, HARDWARE, 2)
    pid, lane = (HCCL, 0) if training.has_rows else (HARDWARE, 9)
    events += _arrow(start + 22, collective_at, pid, lane)
    if training.has_rows:
        said = {"connection_id": 2 + 2 * step, "data_type": "FP16", "count": 100}
        events.append(_span(f"hcom_allReduce__777_{step}_1", HCCL, 0, collective_at, 250, args=said))
    if training.own_kernel:
        task = {"Task Type": "AI_VECTOR_CORE", "Task Id": 900 + step, "connection_id": 2 + 2 * step}
        events.append(_span(training.own_kernel, HARDWARE, 9, collective_at, 250, args=task))
    if training.calls:
        for place, connection in ((7, 1 + 2 * step), (22, 2 + 2 * step)):
            events.append(_span("aclrtLaunchKernel", HOST, 1, start + place, 2, args={"connection_id": connection}))
    return events


def _arrow(begins: int, ends: int, pid: int, lane: int) -> list[dict[str, Any]]:
    same = {"name": "async_npu", "cat": "async_npu", "id": str(ends), "bp": "e"}
    return [
        {**same, "ph": "s", "pid": HOST, "tid": 1, "ts": f"{begins}.000"},
        {**same, "ph": "f", "pid": pid, "tid": lane, "ts": f"{ends}.000"},
    ]


def _table_rows(start: int, step: int, training: Written) -> list[str]:
    collective_at = start + 60 + training.mm_us
    rows = [
        f"{step},0,{1 + 2 * step},2,aclnnMm_MatMulV2,MatMulV2,AI_CORE,{start + 50}.000,{training.mm_us}.000,0,24,"
        '"""64,64""",DT_BF16,ND'
    ]
    if training.has_rows:
        rows.append(
            f"{step},0,N/A,N/A,hcom_allReduce__777_{step}_1,hcom_allReduce_,COMMUNICATION,{collective_at}.000,250.000,"
            "0,0,N/A,N/A,N/A"
        )
    if training.own_kernel:
        rows.append(
            f"{step},0,{900 + step},9,{training.own_kernel},{training.own_kernel},AI_VECTOR_CORE,{collective_at}.000,"
            "250.000,0,24,N/A,N/A,N/A"
        )
    return rows
