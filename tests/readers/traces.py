"""Small hand-written Kineto traces: one function per kind of event, times in us as they stand in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HOST = 100


def op(name: str, ts: Any, dur: Any, *, cat: str = "cpu_op", pid: Any = HOST, tid: Any = HOST, **args: Any) -> dict:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def launch(correlation: int, ts: Any, dur: Any = 1, *, name: str = "cudaLaunchKernel", **where: Any) -> dict:
    return op(name, ts, dur, **{"cat": "cuda_runtime", **where}, correlation=correlation)


def kernel(name: str, ts: Any, dur: Any, correlation: int | None = None, *, device: int = 0, stream: int = 7, **more):
    args = {"device": device, "stream": stream, **({} if correlation is None else {"correlation": correlation}), **more}
    cat = args.pop("cat", "kernel")
    return {"ph": "X", "cat": cat, "name": name, "pid": device, "tid": stream, "ts": ts, "dur": dur, "args": args}


def step(number: int, ts: Any, dur: Any, **where: Any) -> dict:
    return op(f"ProfilerStep#{number}", ts, dur, **{"cat": "user_annotation", **where})


def memory(ts: Any, size: int, device_type: int = 1, **args: Any) -> dict:
    args = {"Bytes": size, "Addr": 4096, "Device Type": device_type, "Device Id": 0, **args}
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": HOST, "tid": HOST, "ts": ts} | {
        "args": args
    }


def flow(phase: str, number: int, ts: Any, *, pid: Any = HOST, tid: Any = HOST, cat: str = "ac2g") -> dict:
    return {"ph": phase, "id": number, "pid": pid, "tid": tid, "ts": ts, "cat": cat, "name": cat}


def write(folder: Path, events: list[dict] | str, *, name: str = "a.pt.trace.json", indent: int | None = None, **top):
    path = folder / name
    body = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}], "traceEvents": events}
    path.write_text(json.dumps({**body, **top}, indent=indent))
    return path
