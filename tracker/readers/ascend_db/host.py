"""PYTORCH_API, MSTX_EVENTS and CANN_API -> ops, frames, step markers and launch calls on the threads of the host."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.errors import SourceError
from tracker.profile import I32, I64, MISSING, Frames, HostOps, Launches, LaunchLevel, Markers
from tracker.readers._ascend.handovers import Handovers, LaunchCalls
from tracker.readers._ascend.levels import LEVELS
from tracker.readers._ascend.shapes import op_shapes_text, op_types_text
from tracker.readers._ascend.trace.host import QUEUE_FLOW
from tracker.readers._spans import Spans, impossible
from tracker.readers._sqlite import Database, first_rows, picked
from tracker.readers.ascend_db.tasks import NO_CONNECTION
from tracker.readers.ascend_db.texts import Texts
from tracker.readers.torch_profiler.op_texts import MARKER

# words of ENUM_API_TYPE
_OP, _QUEUE, _TRACE, _MSTX = "op", "queue", "trace", "mstx"
_WORD: Final = re.compile(r"[A-Za-z]")
_MODULE: Final = "nn.Module: "
_RANGES: Final = ("push/pop", "start/end")
_CHAINS: Final = ("PYTORCH_CALLCHAINS", "PYTORCH_CALLCHAIN")
_FLOW: Final = "async_npu"


class Threads:
    """Threads by globalTid, numbered in order of first sight, and the processes they belong to."""

    def __init__(self) -> None:
        self._index: dict[int, int] = {}
        self._processes: dict[int, int] = {}

    def numbers(self, global_tids: I64) -> I32:
        """The number of each thread."""
        distinct, back = np.unique(global_tids, return_inverse=True)
        for tid in distinct.tolist():
            self._index.setdefault(tid, len(self._index))
            self._processes.setdefault(tid >> 32, len(self._processes))
        return np.array([self._index[tid] for tid in distinct.tolist()], dtype=np.int32)[back]

    def processes_of(self, pids: I64) -> I32:
        """The number of each process; the first one for a process id without a thread here."""
        distinct, back = np.unique(pids, return_inverse=True)
        return np.array([self._processes.get(pid, 0) for pid in distinct.tolist()], dtype=np.int32)[back]

    @property
    def names(self) -> tuple[str, ...]:
        """`thread 4711` for each number."""
        return tuple(f"thread {tid & 0xFFFFFFFF}" for tid in self._index)

    @property
    def process(self) -> tuple[int, ...]:
        """The number of the process of each thread."""
        return tuple(self._processes[tid >> 32] for tid in self._index)


class Queue(Struct, frozen=True):
    """Tasks that one thread put into the queue and another took out: when and where each, sorted by the latter."""

    put_ns: I64
    put_thread: I64
    taken_start_ns: I64
    taken_end_ns: I64
    taken_thread: I64

    def task(self, thread: I64, time_ns: I64) -> I64:
        """The task in whose taking out each time on its thread lies, or -1."""
        return _around(self.taken_thread, self.taken_start_ns, self.taken_end_ns, thread, time_ns)


class Host(Struct, frozen=True):
    """What happened on the host; `calls`: those of CANN, by connection; `warnings` says what could not be read."""

    threads: Threads
    ops: HostOps
    frames: Frames
    launches: Launches
    markers: Markers
    queue: Queue
    calls: LaunchCalls
    warnings: tuple[str, ...]

    def handovers(self, connections: I64, processes: I32, start_ns: I64) -> Handovers:
        """Return when each device event was handed over: at the start of the call of its process and connection.

        connections: -1 for none. processes, start_ns: of the device events.
        """
        process = np.array(self.threads.process, dtype=np.int64)[self.calls.thread]
        numbers = np.unique(np.concatenate((self.calls.key, connections)))
        keys = process * len(numbers) + np.searchsorted(numbers, self.calls.key)
        named = processes * len(numbers) + np.searchsorted(numbers, connections)
        calls = replace(self.calls, key=np.where(self.calls.key >= 0, keys, -1))
        return Handovers.by_key(calls, np.where(connections >= 0, named, -1), start_ns)


def host_of(spans: Spans, texts: Texts, connections: I64) -> Host:
    """The host events. `connections`: those of the device events, to which the launches have to lead, -1 for none.

    A device event is linked to the op whose connections hold its own; where there is none, by its CANN call: that lies
    in a dequeued task, and the op is the one around the call that enqueued it.
    """
    db, threads = spans.db, Threads()
    api = _api(spans)
    cann, warnings = _cann(spans)
    api["thread"] = threads.numbers(api["globalTid"]).astype(np.int64)
    cann["thread"] = threads.numbers(cann["globalTid"]).astype(np.int64)
    kinds = _kinds(db, api["type"])
    is_step, steps = _steps(texts, api["name"])
    is_mstx = api["type"] == kinds.get(_MSTX, -1)
    annotations = _annotations(db, texts, threads, has_own=bool(is_mstx.any()))
    is_op = ((api["type"] == kinds.get(_OP, -1)) | is_mstx) & ~is_step
    arrows = _arrows(db, api, api["type"] == kinds.get(_OP, -1), connections)
    missing = np.setdiff1d(connections[connections >= 0], arrows["correlation"])
    is_queue = api["type"] == kinds.get(_QUEUE, -1)
    queue = _queue(db, api, is_queue)
    queued = _queue_arrows(queue, picked(cann, np.isin(cann["connectionId"], missing)))
    linked = np.concatenate([arrows["correlation"], queued["correlation"]])
    return Host(
        threads=threads,
        ops=_ops(db, texts, picked(api, is_op), is_mstx[is_op], annotations),
        frames=_frames(texts, picked(api, api["type"] == kinds.get(_TRACE, -1))),
        launches=_launches(texts, (cann, picked(api, is_queue)), (arrows, queued), linked),
        markers=_markers(spans, api, is_step, steps),
        queue=queue,
        calls=LaunchCalls(_known_connections(cann["connectionId"]), cann["startNs"], cann["thread"].astype(np.int32)),
        warnings=warnings,
    )


def _api(spans: Spans) -> dict[str, I64]:
    optional = ("connectionId", "sequenceNumber", "fwdThreadId", "inputDtypes", "inputShapes", "callchainId|callchains")
    return spans.read("PYTORCH_API", ("globalTid", "name", "type"), optional)


def _kinds(db: Database, types: I64) -> dict[str, int]:
    """Word -> id of the kinds of PYTORCH_API; without the words nothing can be told from anything."""
    words = db.words("ENUM_API_TYPE")
    unknown = sorted(set(np.unique(types).tolist()) - set(words))
    if unknown:
        problem = f"does not say what type {unknown[0]} of PYTORCH_API is"
        raise SourceError(db.path, "table ENUM_API_TYPE", problem, remedy="export the profile again")
    return {word: number for number, word in words.items()}


def _steps(texts: Texts, names: I64) -> tuple[Any, I64]:
    """Which rows are step markers, and the number of each row's step."""
    distinct, back = np.unique(names, return_inverse=True)
    found = [MARKER.fullmatch(texts.text(name)) for name in distinct.tolist()]
    steps = np.array([int(match.group(1)) if match else MISSING for match in found], dtype=np.int64)[back]
    return steps != MISSING, steps


def _markers(spans: Spans, api: Mapping[str, I64], is_step: Any, steps: I64) -> Markers:
    """`ProfilerStep#N` of the host; the table STEP_TIME where the host says nothing. The longest of one number."""
    start, end, step = api["startNs"][is_step], api["endNs"][is_step], steps[is_step]
    if not len(start):
        table = spans.read("STEP_TIME", ("id",))
        table = picked(table, table["id"] != MISSING)
        start, end, step = table["startNs"], table["endNs"], table["id"]
    order = np.lexsort((start, start - end, step))
    _, first = np.unique(step[order], return_index=True)
    kept = order[first]
    kept = kept[np.argsort(start[kept], kind="stable")]
    return Markers(start[kept], end[kept], step[kept], np.zeros(len(kept), dtype=np.int32))


def _ops(db: Database, texts: Texts, api: Mapping[str, I64], is_mstx: Any, more: Mapping[str, Any]) -> HostOps:
    count, extra = len(api["startNs"]), len(more["start_ns"])
    nothing = np.zeros(extra, dtype=np.int32)

    def with_none(codes: I32) -> I32:
        return np.concatenate([codes, nothing])

    shapes, types = _shapes_and_types(texts, api)
    # the exporter has no text for the shape of a single input without dimensions; then the type stands alone
    is_scalar = (shapes == MISSING) & (types != MISSING)
    scalar = np.int32(texts.strings.code(op_shapes_text("")))
    sequence = np.where(api["sequenceNumber"] == MISSING, -1, api["sequenceNumber"])
    return HostOps(
        start_ns=np.concatenate([api["startNs"], more["start_ns"]]),
        end_ns=np.concatenate([api["endNs"], more["end_ns"]]),
        thread=np.concatenate([api["thread"], more["thread"]]).astype(np.int32),
        name=np.concatenate([texts.codes(api["name"]), more["name"]]),
        input_shapes=with_none(np.where(is_scalar, scalar, texts.codes(shapes, op_shapes_text))),
        input_types=with_none(texts.codes(types, op_types_text)),
        module=np.zeros(count + extra, dtype=np.int32),
        call_stack=with_none(_stacks(db, texts, api["callchainId"])),
        sequence=np.concatenate([sequence, np.full(extra, -1, dtype=np.int64)]),
        is_backward=np.concatenate([(api["fwdThreadId"] > 0) & (sequence >= 0), nothing > 0]).astype(np.int8),
        is_annotation=np.concatenate([is_mstx, nothing == 0]).astype(np.int8),
        collective=np.full(count + extra, -1, dtype=np.int32),
    )


def _shapes_and_types(texts: Texts, api: Mapping[str, I64]) -> tuple[I64, I64]:
    """Ids of the shapes and of the types of the inputs.

    torch_npu of 2024 and early 2025 wrote each into the other's column; words can only be types.
    """
    shapes, types = api["inputShapes"], api["inputDtypes"]

    def has_words(ids: I64) -> bool:
        return any(_WORD.search(texts.text(number)) for number in np.unique(ids).tolist())

    return (types, shapes) if has_words(shapes) and not has_words(types) else (shapes, types)


def _stacks(db: Database, texts: Texts, chains: I64) -> I32:
    """The call stack of each row, innermost frame first, frames joined with `;`."""
    table = next((name for name in _CHAINS if db.has(name)), _CHAINS[0])
    frames = db.ints(table, ("id", "stack"), ("stackDepth",))
    used = np.isin(frames["id"], chains)
    number, stack, depth = (frames[name][used] for name in ("id", "stack", "stackDepth"))
    order = np.lexsort((depth, number))
    number, stack = number[order], stack[order]
    distinct, first = np.unique(number, return_index=True)
    joined = [";".join(texts.text(frame) for frame in part.tolist()) for part in np.split(stack, first[1:])]
    codes = np.array([texts.strings.code(text) for text in joined if len(distinct)] + [0], dtype=np.int32)
    return codes[first_rows(distinct, chains)]


def _annotations(db: Database, texts: Texts, threads: Threads, *, has_own: bool) -> dict[str, Any]:
    """The ranges of MSTX_EVENTS on one thread; none where PYTORCH_API has the ranges itself. Marks have no length."""
    events = db.ints("MSTX_EVENTS", ("startNs", "endNs", "eventType", "message", "globalTid"), ("endGlobalTid",))
    words = db.words("ENUM_MSTX_EVENT_TYPE")
    ranges = np.isin(events["eventType"], [number for number, word in words.items() if word in _RANGES])
    ranges &= np.isin(events["endGlobalTid"], (MISSING, 0xFFFFFFFF)) | (events["endGlobalTid"] == events["globalTid"])
    ranges &= ~impossible(events["startNs"], events["endNs"]) & (events["endNs"] > events["startNs"]) & (not has_own)
    events = picked(events, ranges)
    return {
        "start_ns": events["startNs"],
        "end_ns": events["endNs"],
        "thread": threads.numbers(events["globalTid"]),
        "name": texts.codes(events["message"]),
    }


def _frames(texts: Texts, api: Mapping[str, I64]) -> Frames:
    distinct, back = np.unique(api["name"], return_inverse=True)
    is_module = np.array([texts.text(name).startswith(_MODULE) for name in distinct.tolist()], dtype=np.int8)
    return Frames(
        start_ns=api["startNs"],
        end_ns=api["endNs"],
        thread=api["thread"].astype(np.int32),
        name=texts.codes(api["name"], lambda text: text.removeprefix(_MODULE)),
        is_module=is_module[back],
    )


def _cann(spans: Spans) -> tuple[dict[str, I64], tuple[str, ...]]:
    """CANN_API with the level of each call; a level that is no level of CANN is left out, and said."""
    columns = spans.read("CANN_API", ("type", "globalTid", "name"), ("connectionId",))
    words = spans.db.words("ENUM_API_TYPE")
    distinct, back = np.unique(columns["type"], return_inverse=True)
    levels = [LEVELS.get(words.get(number, "").lower(), -1) for number in distinct.tolist()]
    columns["level"] = np.array(levels, dtype=np.int64)[back]
    lost = int((columns["level"] < 0).sum())
    unknown = sorted({words.get(n, str(n)) for n, level in zip(distinct.tolist(), levels, strict=True) if level < 0})
    warnings = (f"{lost} calls of CANN at an unknown level ({', '.join(unknown)}) were left out",) if lost else ()
    return picked(columns, columns["level"] >= 0), warnings


def _connected(db: Database, api: Mapping[str, I64], chosen: Any) -> tuple[I64, I64]:
    """(row of `api`, connection) for each connection of the rows chosen; one row can have many."""
    pairs = db.ints("CONNECTION_IDS", ("id", "connectionId"))
    rows = np.flatnonzero(chosen & (api["connectionId"] != MISSING))
    row = np.append(rows, -1)[first_rows(api["connectionId"][rows], pairs["id"])]
    return row[row >= 0], pairs["connectionId"][row >= 0]


def _arrows(db: Database, api: Mapping[str, I64], is_op: Any, connections: I64) -> dict[str, I64]:
    """From the start of each op to the device events that share one of its connections."""
    row, connection = _connected(db, api, is_op)
    # forward and backward op share connections too, in numbers that no device event has
    leads = np.isin(connection, connections)
    return {
        "time_ns": api["startNs"][row[leads]],
        "thread": api["thread"][row[leads]],
        "correlation": connection[leads],
    }


def _queue(db: Database, api: Mapping[str, I64], is_queue: Any) -> Queue:
    row, connection = _connected(db, api, is_queue)
    # of the two rows of a connection the earlier one puts the task into the queue
    order = np.lexsort((api["startNs"][row], connection))
    row, connection = row[order], connection[order]
    pair = np.flatnonzero(connection[1:] == connection[:-1])
    put, taken = row[pair], row[pair + 1]
    order = np.lexsort((api["startNs"][taken], api["thread"][taken]))
    put, taken = put[order], taken[order]
    return Queue(
        put_ns=api["startNs"][put],
        put_thread=api["thread"][put],
        taken_start_ns=api["startNs"][taken],
        taken_end_ns=api["endNs"][taken],
        taken_thread=api["thread"][taken],
    )


def _queue_arrows(queue: Queue, calls: Mapping[str, I64]) -> dict[str, I64]:
    """From where a task was put into the queue to the device events whose CANN calls `calls` lie in its taking out."""
    found = queue.task(calls["thread"], calls["startNs"])
    inside = found >= 0
    return {
        "time_ns": queue.put_ns[found[inside]],
        "thread": queue.put_thread[found[inside]],
        "correlation": calls["connectionId"][inside],
    }


def _around(thread: I64, start: I64, end: I64, of_thread: I64, time_ns: I64) -> I64:
    """For each time on its thread the span around it, or -1; spans are sorted and do not overlap."""
    if not len(start):
        return np.full(len(time_ns), -1, dtype=np.int64)
    both = np.concatenate([start, time_ns])
    times = np.unique(both)
    keys = np.concatenate([thread, of_thread]) * len(times) + np.searchsorted(times, both)
    place = np.searchsorted(keys[: len(start)], keys[len(start) :], side="right") - 1
    known = np.maximum(place, 0)
    inside = (place >= 0) & (thread[known] == of_thread) & (time_ns < end[known])
    return np.where(inside, place, -1)


def _known_connections(connections: I64) -> I64:
    """Return the connection ids, -1 for what is none."""
    return np.where((connections < 0) | np.isin(connections, NO_CONNECTION), -1, connections)


def _launches(
    texts: Texts,
    calls: tuple[Mapping[str, I64], Mapping[str, I64]],
    flows: tuple[Mapping[str, I64], Mapping[str, I64]],
    linked: I64,
) -> Launches:
    """Arrows of ops and of the queue, the calls of CANN, and what the queue itself did.

    `calls`: of CANN and of the queue; one of CANN goes to its device event only where no arrow does.
    """
    (arrows, queued), (cann, queue) = flows, calls
    times = np.concatenate([arrows["time_ns"], queued["time_ns"]])
    code = texts.strings.code
    names = [code(_FLOW)] * len(arrows["time_ns"]) + [code(QUEUE_FLOW)] * len(queued["time_ns"])
    own = _known_connections(cann["connectionId"])
    correlation = np.where(np.isin(own, linked), -1, own)
    flow = np.full(len(times), LaunchLevel.FLOW, dtype=np.int8)
    waiting = np.full(len(queue["startNs"]), LaunchLevel.QUEUE, dtype=np.int8)
    threads = (arrows["thread"], queued["thread"], cann["thread"], queue["thread"])
    return Launches(
        start_ns=np.concatenate([times, cann["startNs"], queue["startNs"]]),
        end_ns=np.concatenate([times, cann["endNs"], queue["endNs"]]),
        thread=np.concatenate(threads).astype(np.int32),
        name=np.concatenate([np.array(names, dtype=np.int32), texts.codes(cann["name"]), texts.codes(queue["name"])]),
        level=np.concatenate([flow, cann["level"].astype(np.int8), waiting]),
        correlation=np.concatenate([linked, correlation, np.full(len(waiting), -1, dtype=np.int64)]),
    )
