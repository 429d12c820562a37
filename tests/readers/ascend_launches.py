"""One step of three kernels that go through the queue of torch_npu, as trace_view.json and as database.

Times are microseconds from the start of the step of 1,000. The framework has put all three into its queue by 114; a
thread of CANN takes each out, compiles the second one for half a millisecond, and launches it where `Node@launch`
begins:

    op              in the queue    launched    kernel
    aten::mm        100             124         130 to 150
    aten::softmax   105             690         703 to 800
    aten::add       110             710         802 to 900
"""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.readers import ascend_databases as db
from tests.readers.ascend_databases import T

FRAMEWORK, CANN, HARDWARE = 60, 61, 62
MAIN, ACL = 70, 71
LARGE_ID = 23_821_508_758_294_495_231
"""Ids of arrows do not fit 64 bits with a sign."""


class Work(Struct, frozen=True):
    """What one kernel needs: when its operator runs, when it is taken from the queue, which call of AscendCL is made of
    it and when, when that launches, and when the kernel runs.
    """

    op: str
    op_us: tuple[int, int]
    taken_us: tuple[int, int]
    call: str
    call_us: tuple[int, int]
    launch_us: tuple[int, int]
    kernel: str
    kernel_us: tuple[int, int]


WORK = (
    Work("aten::mm", (100, 104), (120, 132), "aclnnMm", (121, 131), (124, 128), "MatMulV2_1", (130, 150)),
    Work(
        "aten::softmax", (105, 109), (140, 700), "aclopCompileAndExecute", (141, 699), (690, 698),
        "SoftmaxV2_2", (703, 800),
    ),
    Work("aten::add", (110, 114), (701, 722), "aclnnAdd", (702, 721), (710, 720), "Add_3", (802, 900)),
)  # fmt: skip


def write_text(folder: Path, *, arrows: Set[int] = frozenset((0, 1, 2)), calls: bool = True, late_us: int = 0) -> Path:
    """Write the step as trace_view.json.

    arrows: which kernels have an arrow HostToDevice. calls: whether the profiler recorded those of CANN. late_us: how
    far the clock of the host is ahead of that of the device, for kernels and ends of arrows.
    """
    events = [_slice("ProfilerStep#3", FRAMEWORK, MAIN, (0, 1000), cat="cpu_op")]
    for pid, name in ((FRAMEWORK, "Python"), (CANN, "CANN"), (HARDWARE, "Ascend Hardware")):
        events.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}})
    events.append({"ph": "M", "name": "thread_name", "pid": HARDWARE, "tid": 2, "args": {"name": "Stream 2"}})
    for place, work in enumerate(WORK):
        begin, end = (time - late_us for time in work.kernel_us)
        queued = {"correlation_id": place}
        events += [
            _slice(work.op, FRAMEWORK, MAIN, work.op_us, cat="cpu_op"),
            _slice("Enqueue", FRAMEWORK, MAIN, (work.op_us[0] + 1, work.op_us[1] - 1), cat="enqueue", args=queued),
            _slice(f"Dequeue@{work.call}", FRAMEWORK, ACL, work.taken_us, cat="dequeue", args=queued),
            _slice(work.kernel, HARDWARE, 2, (begin, end), args={"Task Type": "AI_CORE", "Stream Id": 2}),
            *_arrow("async_npu", str(1000 + place), (FRAMEWORK, MAIN, work.op_us[0]), begin),
        ]
        if calls:
            events.append(_slice(f"AscendCL@{work.call}", CANN, ACL, work.call_us, args={"level": "acl"}))
            events.append(_slice("Node@launch", CANN, ACL, work.launch_us, args={"level": "node"}))
        if place in arrows:
            events += _arrow("HostToDevice", str(LARGE_ID + place), (CANN, ACL, work.launch_us[0]), begin)
    path = folder / "trace_view.json"
    path.write_text(json.dumps(events), encoding="utf-8")
    return path


def tables(*, outer: bool = False, calls: bool = True) -> db.Tables:
    """Return the tables of the step. outer: whether the calls of AscendCL have the connections of those in them, and so
    have calls behind the kernels. calls: whether there are any of CANN.
    """
    api = [db.api(db.OP, "ProfilerStep#3", *_ns((0, 1000)))]
    cann: list[dict[str, Any]] = []
    tasks, kernels, connections = [], [], []
    for place, work in enumerate(WORK):
        op, put, taken, connection = 10 + place, 20 + place, 30 + place, 501 + place
        queued = (work.op_us[0] + 1, work.op_us[1] - 1)
        api.append(db.api(db.OP, work.op, *_ns(work.op_us), connectionId=op))
        api.append(db.api(db.QUEUE, "Enqueue", *_ns(queued), connectionId=put))
        api.append(db.api(db.QUEUE, f"Dequeue@{work.call}", *_ns(work.taken_us), db.ACL, connectionId=taken))
        connections.append({"id": op, "connectionId": connection})
        connections += [{"id": number, "connectionId": 900 + place} for number in (put, taken)]
        cann.append(db.cann(db.LAYER_ACL, work.call, *_ns(work.call_us), connection if outer else 700 + place))
        cann.append(db.cann(db.LAYER_NODE, "launch", *_ns(work.launch_us), connection))
        if outer:
            cann.append(db.cann(db.LAYER_NODE, "launch", *_ns((950 + place, 950 + place)), connection))
        tasks.append(db.task(place, "KERNEL_AICORE", *_ns(work.kernel_us), connection))
        kernels.append({"name": T(work.kernel), "globalTaskId": place, "taskType": T("AI_CORE"), "opType": T("")})
    made: db.Tables = {
        "ENUM_API_TYPE": db.words({db.OP: "op", db.QUEUE: "queue", db.LAYER_ACL: "acl", db.LAYER_NODE: "node"}),
        "PYTORCH_API": api,
        "CONNECTION_IDS": connections,
        "CANN_API": cann,
        "TASK": tasks,
        "COMPUTE_TASK_INFO": kernels,
    }
    if not calls:
        del made["CANN_API"]
    return made


def _ns(span_us: Sequence[int]) -> tuple[int, int]:
    return span_us[0] * 1000, span_us[1] * 1000


def _us(time: int) -> str:
    return f"{db.START // 1000 + time}.000"


def _slice(name: str, pid: int, tid: int, span_us: Sequence[int], **more: Any) -> dict[str, Any]:
    start, end = span_us
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": _us(start), "dur": float(end - start), **more}


def _arrow(category: str, name: str, begins: tuple[int, int, int], ends: int) -> list[dict[str, Any]]:
    pid, tid, time = begins
    same = {"name": f"{category}{name}", "cat": category, "id": name}
    return [
        {**same, "ph": "s", "pid": pid, "tid": tid, "ts": _us(time)},
        {**same, "ph": "f", "bp": "e", "pid": HARDWARE, "tid": 2, "ts": _us(ends)},
    ]
