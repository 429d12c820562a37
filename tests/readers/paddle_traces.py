"""Small Paddle traces made by hand. Times are whole ns from the start of the capture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

BASE_US = 1_795_197_512_000_000
"""UTC of the start of the capture, whole us."""


def _float_us(ns: int) -> str:
    """ns as Paddle writes it: through a single-precision float."""
    return f"{np.float32(ns) / np.float32(1000):.3f}"


def event(
    category: str, name: str, start_ns: int, duration_ns: int, *, lane: str = "C++", **args: Any
) -> dict[str, Any]:
    """A host event of thread 7, in its Python or C++ lane."""
    took = f"{duration_ns / 1000:.3f}"
    said = {"start_time": f"{_float_us(start_ns)} us", "end_time": f"{_float_us(start_ns + duration_ns)} us"}
    return {
        "name": f"{name}[{took} us]", "pid": 7, "tid": f"7({lane})", "ts": BASE_US + start_ns // 1000,
        "dur": float(took), "ph": "X", "cat": category, "cname": "thread_state_runnable", "args": {**said, **args},
    }  # fmt: skip


def step(number: int, start_ns: int, duration_ns: int) -> dict[str, Any]:
    """The marker of a step."""
    return event("ProfileStep", f"ProfileStep#{number}", start_ns, duration_ns, lane="Python")


def kernel(name: str, start_ns: int, duration_ns: int, *, correlation: int, category: str = "Kernel") -> dict[str, Any]:
    """A kernel, copy or memset on stream 13 of device 0; `tid` is a number there."""
    made = event(category, name, start_ns, duration_ns, **{"correlation id": correlation, "stream": 13})
    return {**made, "pid": 0, "tid": 13}


def memory(
    kind: str, size: int, start_ns: int, *, allocated: int, place: str = "cpu", address: int = 64, peak: int = 9999
) -> dict[str, Any]:
    """An event of the allocator; it stands behind the event in which it happened."""
    args = {"place": f"Place({place})", "addr": str(address), "increase_bytes": size, "current_allocated": allocated,
            "current_reserved": 1024, "peak_allocated": 9999, "peak_reserved": peak}  # fmt: skip
    return {"name": "[memory]", "pid": 7, "tid": "7(C++)", "ts": BASE_US + start_ns // 1000, "ph": "i", "cat": kind,
            "args": args}  # fmt: skip


def write(
    folder: Path, *events: dict[str, Any], name: str = "host_vmpid_7_time_1.paddle_trace.json", **top: Any
) -> Path:
    """A trace file, with the empty object that Paddle writes behind the last event."""
    path = folder / name
    extra = {"7": "MainThread", "Process Cpu Utilization": "1.250000", "System Cpu Utilization": "0.5"}
    trace = {"displayTimeUnit": "ms", "schemaVersion": "1.0.2", "span_index": "0", **top}
    path.write_text(json.dumps({**trace, "traceEvents": [*events, {}], "ExtraInfo": extra}, indent=2))
    return path
