"""A small capture of torch_npu as text whose operators launch kernels on cube and vector cores, written after the
published layout.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

START_US = 1_780_000_000_000_000
STEP_US = 1_000
_HOST, _HARDWARE = 70, 71
_HEADER = (
    "Step Id,Device_id,Task ID,Stream ID,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),"
    "Block Dim,Input Shapes,Input Data Types,Input Formats"
)


class Kernel(Struct, frozen=True):
    """A kernel that each step launches. `launch`, `start`: us from the start of the step; `us`: how long it takes."""

    name: str
    type: str
    core: str
    launch: int
    start: int
    us: int
    shapes: str = "64,64"


HOST_OPS = (("aten::linear", 10, 50), ("aten::mm", 15, 10), ("aten::add_", 30, 10), ("aten::gelu", 70, 10))
"""Operators of a step: name, start and duration in us; aten::linear calls aten::mm and aten::add_."""
KERNELS = (
    Kernel("aclnnMm_MatMulV3", "MatMulV3", "AI_CORE", 17, 100, 300, "64,64;64,32"),
    Kernel("aclnnInplaceAdd_Add", "Add", "AI_VECTOR_CORE", 32, 410, 50, "64,32;32"),
    Kernel("aclnnGelu_Gelu", "Gelu", "AI_VECTOR_CORE", 72, 470, 100, "64,32"),
)
"""Kernels of a step: 300 us on cube cores and 150 us on vector cores; the device idles for 10 us between them."""


def write(
    folder: Path, kernels: Sequence[Kernel] = KERNELS, *, steps: int = 2, first_task: int = 1, run: int = 0
) -> Path:
    """Write the capture of rank 0. The tasks of its kernels are numbered from `first_task` on, in order; `run` says
    when it began, by which two captures are two runs.
    """
    home = folder / "node-1_100_20260601000000000_ascend_pt"
    output = home / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    info = {"rank_id": 0, "config": {"experimental_config": {"_profiler_level": "Level1"}}}
    (home / "profiler_info_0.json").write_text(json.dumps(info), encoding="utf-8")
    events, rows = _names_of_processes(), []
    task = first_task
    for step in range(steps):
        start = START_US + 10_000_000 * run + step * STEP_US
        events.append(_span(f"ProfilerStep#{step}", start, STEP_US, cat="cpu_op"))
        for name, at, us in HOST_OPS:
            events.append(_span(name, start + at, us, cat="cpu_op"))
        for kernel in kernels:
            events += _launch(kernel, start, task)
            rows.append(
                f"{step},0,{task},2,{kernel.name},{kernel.type},{kernel.core},{start + kernel.start}.000,"
                f'{kernel.us}.000,0,24,"""{kernel.shapes}""",DT_BF16,ND'
            )
            task += 1
    (output / "trace_view.json").write_text(json.dumps(events), encoding="utf-8")
    (output / "kernel_details.csv").write_text("\n".join([_HEADER, *rows]) + "\n", encoding="utf-8")
    return home


def _names_of_processes() -> list[dict[str, Any]]:
    named: list[dict[str, Any]] = []
    for pid, name in {_HOST: "Python", _HARDWARE: "Ascend Hardware"}.items():
        named.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}})
    named.append({"ph": "M", "name": "thread_name", "pid": _HARDWARE, "tid": 2, "args": {"name": "Stream 2"}})
    return named


def _span(name: str, start: int, us: int, **more: Any) -> dict[str, Any]:
    span = {"ph": "X", "name": name, "pid": _HOST, "tid": 1, "ts": f"{start}.000", "dur": float(us), "args": {}}
    return {**span, **more}


def _launch(kernel: Kernel, start: int, task: int) -> list[dict[str, Any]]:
    at = start + kernel.start
    args = {"Task Type": kernel.core, "Task Id": task, "connection_id": task}
    arrow = {"name": "async_npu", "cat": "async_npu", "id": str(at), "bp": "e"}
    return [
        _span(kernel.name, at, kernel.us, pid=_HARDWARE, tid=2, args=args),
        {**arrow, "ph": "s", "pid": _HOST, "tid": 1, "ts": f"{start + kernel.launch}.000"},
        {**arrow, "ph": "f", "pid": _HARDWARE, "tid": 2, "ts": f"{at}.000"},
    ]
