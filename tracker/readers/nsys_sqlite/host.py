"""What happened on the host: CUDA calls, NVTX ranges, calls of cuDNN and cuBLAS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from msgspec import Struct

from tracker.profile import I32, I64, MISSING, Frames, HostOps, Launches, LaunchLevel, Markers, Strings
from tracker.readers._collectives import Call, CallTable
from tracker.readers._nvidia import api_level, api_name, launches_work
from tracker.readers._nvtx import RangeKind, RangeName, is_library_domain, range_name, split_emitted
from tracker.readers._spans import Spans
from tracker.readers._sqlite import picked
from tracker.readers.nsys_sqlite.markers import Ranges, markers_of
from tracker.readers.nsys_sqlite.tables import Arrays, Names, joined, process_of

NVTX: Final = "NVTX_EVENTS"
CALLS: Final = ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER")
OS_CALLS: Final = "OSRT_API"
OVERHEAD: Final = ("PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD")
_LIBRARY_CALLS: Final = ("CUDNN_EVENTS", "CUBLAS_EVENTS")
# ENUM_NSYS_EVENT_TYPE
_PUSH_POP, _START_END, _DOMAIN = 59, 60, 75


def launches_of(spans: Spans, names: Names) -> Arrays:
    """All CUDA calls: `start_ns`, `end_ns`, `thread` (globalTid), `process`, `name`, `level`, `correlation` (-1: none),
    `starts_work`.
    """
    tables = [spans.read(table, ("globalTid",), ("correlationId", "nameId|name", "returnValue")) for table in CALLS]
    calls = joined(tables)
    failed = (calls["returnValue"] != 0) & (calls["returnValue"] != MISSING)
    code = names.codes(calls["nameId"], api_name)
    texts = {number: names.strings[number] for number in np.unique(code).tolist()}
    level = {number: int(api_level(text)) for number, text in texts.items()}
    starts = {number: launches_work(text) for number, text in texts.items()}
    return {
        "start_ns": calls["start"],
        "end_ns": calls["end"],
        "thread": calls["globalTid"],
        "process": process_of(calls["globalTid"]),
        "name": code,
        "level": np.array([level[number] for number in code.tolist()], dtype=np.int8),
        # a call that failed launches nothing
        "correlation": np.where((calls["correlationId"] > 0) & ~failed, calls["correlationId"], -1),
        "starts_work": np.array([starts[number] for number in code.tolist()], dtype=bool),
    }


def os_calls_of(spans: Spans, names: Names) -> Arrays:
    """All calls of the operating system, and the work of the profiler itself, with the columns of `launches_of`; none
    has a correlation or starts work.
    """
    of_profiler = joined([spans.read(table, ("globalTid",), ("nameId|name",)) for table in OVERHEAD])
    calls = spans.read(OS_CALLS, ("globalTid",), ("nameId|name",))
    return joined(
        [_beside_calls(calls, names, LaunchLevel.OS), _beside_calls(of_profiler, names, LaunchLevel.PROFILER)]
    )


def _beside_calls(calls: Arrays, names: Names, level: LaunchLevel) -> Arrays:
    count = len(calls["start"])
    return {
        "start_ns": calls["start"],
        "end_ns": calls["end"],
        "thread": calls["globalTid"],
        "process": process_of(calls["globalTid"]),
        "name": names.codes(calls["nameId"]),
        "level": np.full(count, level, dtype=np.int8),
        "correlation": np.full(count, -1, dtype=np.int64),
        "starts_work": np.zeros(count, dtype=bool),
    }


def ranges_of(spans: Spans, names: Names) -> Ranges:
    """The push/pop and start/end ranges of NVTX, and the calls of CUDNN_EVENTS and CUBLAS_EVENTS."""
    raw = Strings()
    nvtx, libraries = _nvtx(spans, names, raw)
    calls = [_library_calls(spans, names, raw, table) for table in _LIBRARY_CALLS]
    columns = joined([nvtx, *calls])
    is_library = np.concatenate([libraries, *(np.ones(len(part["start_ns"]), dtype=bool) for part in calls)])
    # each operator call of PyTorch has a text of its own; what they say without their numbers are few
    split = [split_emitted(text) for text in raw.texts]
    plain = Strings()
    said = np.array([plain.code(text) for text, _ in split], dtype=np.int64)
    known = [range_name(text) for text in plain.texts]
    in_libraries = known if is_library.any() else []
    of_libraries = [RangeName(one.name, RangeKind.LIBRARY, collective=one.collective) for one in in_libraries]
    text = columns.pop("text")
    columns["said"] = said[text] + np.where(is_library, len(known), 0)
    columns["sequence"] = np.array([sequence for _, sequence in split], dtype=np.int64)[text]
    return Ranges(columns, (*known, *of_libraries))


def _nvtx(spans: Spans, names: Names, raw: Strings) -> tuple[Arrays, Any]:
    """The ranges with their texts, and which of them are in the domain of a library."""
    db = spans.db
    optional = ("end", "textId", "globalTid", "endGlobalTid", "domainId")
    table: Arrays = dict(db.ints(NVTX, ("start", "eventType"), optional))
    told, by_id = db.codes(NVTX, "text", raw), _codes_by_id(names, table["textId"], raw)
    table["text"] = np.where(told > 0, told, by_id)
    domains = picked(table, table["eventType"] == _DOMAIN)
    own = {
        domain
        for domain, text in zip(domains["domainId"].tolist(), domains["text"].tolist(), strict=True)
        if is_library_domain(raw[text])
    }
    wanted = np.isin(table["eventType"], (_PUSH_POP, _START_END)) & (table["globalTid"] != MISSING)
    table = picked(table, wanted & (table["start"] != MISSING))
    # old exports write 0 where there is no end, and no other thread
    ends = table["end"] >= table["start"]
    other = table["endGlobalTid"]
    columns = {
        "start_ns": table["start"],
        "end_ns": np.where(ends, table["end"], MISSING),
        "thread": table["globalTid"],
        "process": process_of(table["globalTid"]),
        "text": table["text"],
        "crosses": (other > 0) & (other != table["globalTid"]),
    }
    return columns, np.isin(table["domainId"], list(own))


def _codes_by_id(names: Names, ids: I64, raw: Strings) -> I32:
    distinct, back = np.unique(ids, return_inverse=True)
    return np.array([raw.code(names.text(number)) for number in distinct.tolist()], dtype=np.int32)[back]


def _library_calls(spans: Spans, names: Names, raw: Strings, table: str) -> Arrays:
    calls = spans.read(table, ("globalTid",), ("nameId|name",))
    return {
        "start_ns": calls["start"],
        "end_ns": calls["end"],
        "thread": calls["globalTid"],
        "process": process_of(calls["globalTid"]),
        "text": _codes_by_id(names, calls["nameId"], raw),
        "crosses": np.zeros(len(calls["start"]), dtype=bool),
    }


class Threads(Struct, frozen=True):
    """The threads of one process, numbered; sorted globalTids."""

    ids: I64

    def numbers(self, global_tids: I64) -> I32:
        """The number of each thread."""
        return np.searchsorted(self.ids, global_tids).astype(np.int32)


class Host(Struct, frozen=True):
    """What the ranges of one process say. `phase`: the `Extras.op_phase` of `ops`; `warnings`: what was left out."""

    ops: HostOps
    frames: Frames
    markers: Markers
    phase: I32
    warnings: tuple[str, ...]


def calls_of(launches: Mapping[str, Any], threads: Threads) -> Launches:
    """The calls of one process."""
    return Launches(
        start_ns=launches["start_ns"],
        end_ns=launches["end_ns"],
        thread=threads.numbers(launches["thread"]),
        name=launches["name"],
        level=launches["level"],
        correlation=launches["correlation"],
    )


def host_of(ranges: Ranges, threads: Threads, strings: Strings, calls: CallTable, *, on_device: bool) -> Host:
    """Every range is an op, so that kernels hang on the innermost one; ranges of modules are module frames too.

    A step marker is no op. `on_device`: False in a process without device events, where the ranges are all that tells
    work from waiting.
    """
    table = ranges.columns
    steps = markers_of(ranges)
    warnings = steps.warnings
    kept = np.flatnonzero(~steps.is_step & ~table["crosses"])
    crossing = int((~steps.is_step & table["crosses"]).sum())
    if crossing:
        warnings = (*warnings, f"{crossing} NVTX ranges that end on another thread than they began on were left out")
    said = table["said"][kept]
    of_name = _NameCodes(ranges.names, said, strings, calls)
    count = len(kept)
    nothing = np.zeros(count, dtype=np.int32)
    thread = threads.numbers(table["thread"][kept])
    ops = HostOps(
        start_ns=table["start_ns"][kept],
        end_ns=table["end_ns"][kept],
        thread=thread,
        name=of_name.column("name", np.int32),
        input_shapes=of_name.column("shapes", np.int32),
        input_types=nothing,
        module=nothing,
        call_stack=nothing,
        sequence=table["sequence"][kept],
        is_backward=of_name.column("is_backward", np.int8),
        is_annotation=of_name.column("is_annotation", np.int8) * np.int8(on_device),
        collective=of_name.column("collective", np.int32),
    )
    module = np.flatnonzero(of_name.column("is_module", np.int8))
    frames = Frames(
        ops.start_ns[module], ops.end_ns[module], thread[module], ops.name[module], np.ones(len(module), np.int8)
    )
    return Host(ops, frames, steps.markers, of_name.column("phase", np.int32), warnings)


class _NameCodes:
    """Arrays of what the names of ranges say; each distinct name is looked at once."""

    def __init__(self, names: tuple[RangeName, ...], said: I64, strings: Strings, calls: CallTable) -> None:
        self._distinct, self._back = np.unique(said, return_inverse=True)
        used = [names[number] for number in self._distinct.tolist()]
        # PyTorch's own range is around NCCL's: the inner ones are the same call
        by_torch = any(one.collective and one.kind is RangeKind.OPERATOR for one in used)
        self._values = {
            "name": [strings.code(one.name) for one in used],
            "shapes": [strings.code(one.shapes) for one in used],
            "phase": [strings.code(one.phase) for one in used],
            "is_backward": [one.is_backward for one in used],
            "is_annotation": [one.kind is not RangeKind.OPERATOR for one in used],
            "is_module": [one.kind is RangeKind.MODULE for one in used],
            "collective": [
                calls.index(Call(one.collective))
                if one.collective and (one.kind is RangeKind.OPERATOR or not by_torch)
                else -1
                for one in used
            ],
        }

    def column(self, name: str, dtype: type) -> Any:
        """One value per range."""
        return np.array(self._values[name], dtype=dtype)[self._back]
