"""What msprof-analyze takes from parts of a capture that our columns do not keep.

The slices of Overlap Analysis, and the tasks of the device that only schedule.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from tracker.profile import DeviceEvents, DeviceKind
from tracker.timeline.intervals import Spans
from tracker.units import us_to_ns

_PLAIN_TASKS: Final = (
    "KERNEL_AICORE", "KERNEL_AIVEC", "FFTS_PLUS", "KERNEL_MIX_AIC", "KERNEL_MIX_AIV", "PROFILING_ENABLE",
    "PROFILING_DISABLE",
)  # fmt: skip
_COPY_TASKS: Final = frozenset(("SDMA_SQE", "PCIE_DMA_SQE"))
_COMPUTE_TASKS: Final = frozenset(("AI_CORE", "MIX_AIC", "MIX_AIV", "AI_CPU", "AI_VECTOR_CORE", "FFTS_PLUS"))


@dataclass(frozen=True, slots=True)
class Totals:
    """The peer's totals, in ns. `slices`: how many slices of the trace, each rounded to a ns, the first two sum up; 0
    for a database.
    """

    compute_ns: int
    uncovered_ns: int
    e2e_ns: int
    sdma_ns: int
    slices: int = 0


def totals_of_trace(trace: Path) -> Totals:
    """Sums and span of the slices of Overlap Analysis; SDMA: copies by type, on streams that compute and wait."""
    events = msgspec.json.decode(trace.read_bytes())
    named = {e["pid"]: e["args"].get("name") for e in events if e.get("name") == "process_name"}
    tasks: list[tuple[str, str, int]] = []
    sums = {"Computing": 0, "Communication(Not Overlapped)": 0}
    spans, slices = [], 0
    for event in events:
        if event.get("ph") != "X":
            continue
        said, ns = event.get("args") or {}, us_to_ns(event["dur"])
        # newer traces call it `Physic Stream Id`: those tasks are not looked at, nor those of stream 0
        if said.get("Task Type") and said.get("Stream Id"):
            tasks.append((str(said["Task Type"]), str(said["Stream Id"]), ns))
        if named.get(event.get("pid")) == "Overlap Analysis":
            start = us_to_ns(event["ts"])
            spans.append((start, start + ns))
            slices += event["name"] in sums
            sums[event["name"]] = sums.get(event["name"], 0) + ns
    e2e_ns = max(end for _, end in spans) - min(start for start, _ in spans) if spans else 0
    sdma_ns = _sdma_ns(tasks, {stream for kind, stream, _ in tasks if kind in _COMPUTE_TASKS})
    return Totals(sums["Computing"], sums["Communication(Not Overlapped)"], e2e_ns, sdma_ns, slices)


def totals_of_database(path: Path, device: DeviceEvents, compute: Spans, uncovered: Spans) -> Totals:
    """E2E: kernels, collectives and every task but plain ones of a stream. SDMA as for text."""
    with closing(_database(path)) as db:
        named = "FROM TASK LEFT JOIN STRING_IDS AS s ON s.id = taskType"
        tasks = db.execute(f"SELECT IFNULL(s.value, ''), streamId, startNs, endNs {named}").fetchall()
        question = "SELECT DISTINCT streamId FROM TASK JOIN COMPUTE_TASK_INFO USING (globalTaskId)"
        streams = {str(stream) for (stream,) in db.execute(question)}
    rows = device.kind != DeviceKind.COPY
    spans = [(start, end) for kind, _, start, end in tasks if kind and kind not in _PLAIN_TASKS]
    starts = [int(device.start_ns[rows].min()), *(start for start, _ in spans)]
    ends = [int(device.end_ns[rows].max()), *(end for _, end in spans)]
    sdma_ns = _sdma_ns([(kind, str(stream), end - start) for kind, stream, start, end in tasks], streams)
    return Totals(compute.total_ns, uncovered.total_ns, max(ends) - min(starts), sdma_ns)


def _database(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)


def _sdma_ns(tasks: list[tuple[str, str, int]], streams: set[str]) -> int:
    waiting = {stream for kind, stream, _ in tasks if kind == "EVENT_WAIT_SQE"}
    chosen = streams & waiting if waiting else streams
    return sum(ns for kind, stream, ns in tasks if kind in _COPY_TASKS and stream in chosen)


def cube_by_task(path: Path, device: DeviceEvents) -> list[bool]:
    """Per device event whether its task has a type of the cube core: the test for a database without measurements."""
    question = """
        SELECT startNs, endNs FROM TASK AS t JOIN COMPUTE_TASK_INFO USING (globalTaskId)
        JOIN STRING_IDS AS s ON s.id = t.taskType WHERE s.value IN ('KERNEL_AICORE', 'KERNEL_MIX_AIC')
    """
    with closing(_database(path)) as db:
        spans = set(db.execute(question).fetchall())
    return [span in spans for span in zip(device.start_ns.tolist(), device.end_ns.tolist(), strict=True)]
