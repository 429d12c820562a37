"""A second, slow and obvious reader of Kineto traces: `json` and `Decimal`, one dictionary per event."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

OPS = {"cpu_op", "Operator", "user_annotation"}
KERNELS = {"kernel", "Kernel"}
COPIES = {"gpu_memcpy", "Memcpy", "gpu_memset", "Memset"}
# what the profiler itself did is listed among the calls of the host
LAUNCHES = {"cuda_runtime", "Runtime", "cuda_driver", "overhead"}
MARKER = re.compile(r"ProfilerStep#(\d+)")


@dataclass
class Totals:
    """What a trace adds up to; spans are counted as (kind, start_ns, end_ns, name)."""

    spans: Counter = field(default_factory=Counter)
    steps: set[int] = field(default_factory=set)
    allocations: Counter = field(default_factory=Counter)

    def count(self, kind: str) -> int:
        return sum(n for key, n in self.spans.items() if key[0] == kind)

    def total_ns(self, kind: str) -> int:
        return sum((key[2] - key[1]) * n for key, n in self.spans.items() if key[0] == kind)


def content(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()


def to_ns(value: Any) -> int:
    return int((Decimal(value) * 1000).to_integral_value())


def counters(events: list[dict]) -> list[dict]:
    """Calls of processes that run nothing and in which no call takes time, beside processes that run and have events of
    their own.

    A marker of a step is no such event: it belongs to whichever process has some.
    """
    slices = [event for event in events if event.get("ph") == "X"]
    running = {event["pid"] for event in slices if event.get("cat") in OPS | {"python_function"}}
    of_processes = [
        event for event in slices if event.get("cat") in OPS | LAUNCHES and not MARKER.fullmatch(event["name"])
    ]
    if not running & {event["pid"] for event in of_processes}:
        return []
    calls = [event for event in slices if event.get("cat") in LAUNCHES and event["pid"] not in running]
    timed = {event["pid"] for event in calls if to_ns(event["dur"]) > 0}
    return [event for event in calls if event["pid"] not in timed]


def totals(text: str) -> Totals:
    trace = json.loads(text, parse_float=Decimal)
    result = Totals()
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    left_out = counters(events)
    for event in events:
        if any(event is other for other in left_out):
            continue
        if event.get("ph") == "X":
            _add_slice(result, event)
        elif event.get("ph") == "i" and event.get("name") == "[memory]":
            result.allocations[(to_ns(event["ts"]), event["args"]["Bytes"])] += 1
    return result


def _add_slice(result: Totals, event: dict) -> None:
    category, name = event.get("cat"), event["name"]
    kinds = {"op": OPS, "kernel": KERNELS, "copy": COPIES, "launch": LAUNCHES, "frame": {"python_function"}}
    kind = next((kind for kind, categories in kinds.items() if category in categories), None)
    marker = MARKER.fullmatch(name)
    if kind == "op" and marker:
        result.steps.add(int(marker.group(1)))
    elif kind:
        start = to_ns(event["ts"])
        result.spans[(kind, start, start + to_ns(event["dur"]), name.removeprefix("nn.Module: "))] += 1


def totals_of_captures(captures: Any) -> Totals:
    """The same totals out of what the reader made of the trace; host time counts once per process."""
    result = Totals()
    for capture in captures:
        events = capture.events
        tables = [("device", events.device)]
        if events.host_is_primary:
            tables += [("op", events.ops), ("frame", events.frames), ("launch", events.launches)]
            result.steps |= set(events.markers.step.tolist())
        for kind, table in tables:
            kinds = (
                ["kernel" if k < 2 else "copy" for k in table.kind.tolist()]
                if kind == "device"
                else [kind] * len(table)
            )
            names = [events.strings[code] for code in table.name.tolist()]
            result.spans.update(zip(kinds, table.start_ns.tolist(), table.end_ns.tolist(), names, strict=True))
        result.allocations.update(
            zip(events.allocations.time_ns.tolist(), events.allocations.bytes.tolist(), strict=True)
        )
    return result
