"""From the text of one Paddle trace to its captures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.errors import SourceError
from tracker.limits.rows import check_captures
from tracker.profile import (
    CPU,
    DEVICE_USE,
    I32,
    I64,
    MISSING,
    NO_STEP,
    UNKNOWN_DEVICE,
    Allocations,
    Capture,
    Counters,
    Device,
    Events,
    Extras,
    Frames,
    HostOps,
    Launches,
    LaunchLevel,
    Markers,
)
from tracker.readers import _paddle
from tracker.readers._collectives import Call, CallTable, kind_of
from tracker.readers._cut_steps import left_out
from tracker.readers._device import device_events
from tracker.readers._event_texts import CHUNK_BYTES, EventTexts
from tracker.readers._growing import Array
from tracker.readers._source import ReadOptions, SourceText
from tracker.readers.paddle_trace import collector as kinds
from tracker.readers.paddle_trace.clock import base_of, settled, starts_of
from tracker.readers.paddle_trace.collector import Collector
from tracker.readers.paddle_trace.schema import EVENTS, TOP, Event, Top
from tracker.units import NS_PER_US

Table = Mapping[str, Array]
_UNIX_NS: Final = 10**18
"""Times above this (2001-09-09) are taken for UTC."""

_RANK: Final = re.compile(r"(?:rank|trainer|worker)[-_]?(\d{1,9})", re.IGNORECASE)
# the default worker name is host_ + the host's name + pid_ + number
_HOST: Final = re.compile(r"host_(?P<host>[\w.-]+?)_?pid_\d+_time_")
_UTILIZATIONS: Final = {"Process Cpu Utilization": "CPU(Process)", "System Cpu Utilization": "CPU(System)"}
_SCHEMA: Final = re.compile(r"[\w.]{1,40}")


def captures_of(
    text: SourceText, options: ReadOptions, *, chunk_bytes: int = CHUNK_BYTES
) -> tuple[tuple[Capture, ...], tuple[str, ...]]:
    """The captures of a trace, and what the reader of the result should know about them. No events give no captures."""
    collector = Collector(text.path, options)
    chunks: EventTexts[list[Event]] = EventTexts(
        text,
        EVENTS.decode,
        exporter="paddle.profiler",
        allow_partial=options.allow_partial,
        chunk_bytes=chunk_bytes,
    )
    for chunk in chunks:
        collector.add(chunk)
    try:
        top = TOP.decode(chunks.top_text)
    except msgspec.DecodeError as error:
        raise SourceError(text.path, "top-level keys", str(error), remedy="export the trace again") from error
    partial = "the gzip stream ends early" if text.ended_early else chunks.partial
    trace = _settle(collector)
    is_cut = bool(partial) and not chunks.has_all
    partial += left_out(trace.host["step"][trace.host["kind"] == kinds.MARKER].tolist()) if is_cut else ""
    trace = _without_steps(trace) if is_cut else trace
    warnings = [f"partial: {partial}"] if partial else []
    if collector.skipped:
        warnings.append(f"{collector.skipped} events with impossible times were left out")
    return tuple(_captures(collector, trace, top, text, partial)), (*warnings, *chunks.notes)


class _Trace(Struct, frozen=True):
    """The columns of a trace with settled times; `memory` has `time_ns`, the others `start_ns` and `end_ns`."""

    host: dict[str, Array]
    device: dict[str, Array]
    memory: dict[str, Array]


def _captures(collector: Collector, trace: _Trace, top: Top, text: SourceText, partial: str) -> Iterator[Capture]:
    if not (len(trace.host["start_ns"]) or len(trace.device["start_ns"]) or len(trace.memory["time_ns"])):
        return
    rank, host = _RANK.search(text.path.name), _HOST.search(text.path.name)
    schema = str(top.schemaVersion)
    ordinals = np.unique(trace.device["ordinal"]).tolist()
    check_captures(len(ordinals))
    start_ns, end_ns = _window(trace)
    known = start_ns > _UNIX_NS
    for number, ordinal in enumerate(ordinals or [MISSING]):
        events = _events(collector, trace, ordinal, counters=_utilizations(top), is_first=number == 0)
        yield Capture(
            rank=int(rank[1]) if rank and number == 0 else None,
            world_size=None,
            host=host["host"] if host else "",
            device=_device(top, ordinal, in_use=bool(ordinals)),
            device_ordinal=None if ordinal == MISSING else ordinal,
            started_at_ns=start_ns if known else None,
            ended_at_ns=end_ns if known else None,
            sources=(text.source(),),
            settings=_settings(trace),
            facts={"framework": "paddle"} | ({"trace_schema_version": schema} if _SCHEMA.fullmatch(schema) else {}),
            quality="partial" if partial else "ok",
            quality_reason=partial,
            events=events,
        )


def _settle(collector: Collector) -> _Trace:
    host, device, memory = (dict(table.done()) for table in (collector.host, collector.device, collector.memory))
    base_ns = base_of(host) or base_of(device)
    host["start_ns"], host["end_ns"] = settled(host, base_ns)
    device["start_ns"] = starts_of(device, base_ns)
    device["end_ns"] = device["start_ns"] + device["duration_ns"]
    memory["time_ns"] = _memory_times(host, memory)
    memory["total_reserved"] = _reserved(memory)
    return _Trace(host, device, memory)


def _without_steps(trace: _Trace) -> _Trace:
    """The trace of a file that ends in the middle of its events; its first marker, without a number, says that nothing
    belongs to a step.

    Paddle writes thread by thread, and of each the steps, then what they called, then what that called: of every step
    something may be missing.
    """
    rows = np.flatnonzero(trace.host["kind"] == kinds.MARKER)
    step = trace.host["step"].copy()
    step[rows] = NO_STEP
    host = {name: np.delete(column, rows[1:]) for name, column in {**trace.host, "step": step}.items()}
    return replace(trace, host=host)


def _reserved(memory: Table) -> I64:
    """What the allocator of each place had taken from the system.

    Paddle keeps `current_reserved` for some places only, on a CPU it stays where it began. Where it is somewhere less
    than what was allocated, which cannot be, the place has the most that was reserved so far, `peak_reserved`.
    """
    reserved, allocated = memory["total_reserved"], memory["total_allocated"]
    wrong = (reserved != MISSING) & (allocated != MISSING) & (reserved < allocated)
    place = np.stack([memory["place"], memory["ordinal"]], axis=1)
    stays = (place[:, None] == np.unique(place[wrong], axis=0)[None]).all(axis=2).any(axis=1)
    chosen: I64 = np.where(stays, memory["peak_reserved"], reserved)
    return chosen


def _memory_times(host: Table, memory: Table) -> I64:
    """When allocations happened: in the middle of the us that the trace says, inside the event that they belong to.

    Without that, `ts` being cut to whole us, an allocation would stand before the op that made it.
    """
    middle: I64 = memory["ts_ns"] + NS_PER_US // 2
    owned = np.flatnonzero(memory["after"] >= 0)
    owner = memory["after"][owned]
    inside = np.clip(middle[owned], host["start_ns"][owner], np.maximum(host["start_ns"], host["end_ns"] - 1)[owner])
    middle[owned] = np.where(np.abs(inside - middle[owned]) <= NS_PER_US, inside, middle[owned])
    return middle


def _window(trace: _Trace) -> tuple[int, int]:
    starts = np.concatenate([trace.host["start_ns"], trace.device["start_ns"], trace.memory["time_ns"]])
    ends = np.concatenate([trace.host["end_ns"], trace.device["end_ns"], trace.memory["time_ns"]])
    return int(starts.min()), int(ends.max())


def _events(collector: Collector, trace: _Trace, ordinal: int, *, counters: list[tuple[str, float]],
            is_first: bool) -> Events:  # fmt: skip
    host, calls = trace.host, CallTable()
    kind = host["kind"]
    is_op = np.isin(kind, (kinds.OP, kinds.ANNOTATION, kinds.LAYER, kinds.COLLECTIVE))
    names = collector.strings.texts
    collective = np.full(len(kind), -1, dtype=np.int32)
    for row in np.flatnonzero(kind == kinds.COLLECTIVE).tolist():
        collective[row] = calls.index(Call(kind_of(names[int(host["name"][row])])))
    mine = trace.device["ordinal"] == ordinal
    threads = tuple(collector.thread_names.get(number, f"thread {key[1]}") for key, number in collector.threads.items())
    return Events(
        strings=collector.strings,
        threads=threads,
        thread_process=(0,) * len(threads),
        ops=_ops({name: column[is_op] for name, column in host.items()}, collective[is_op]),
        frames=_layers({name: column[kind == kinds.LAYER] for name, column in host.items()}),
        launches=_launches({name: column[kind == kinds.RUNTIME] for name, column in host.items()}),
        device=device_events({name: column[mine] for name, column in trace.device.items()}),
        collectives=calls.table(collector.strings),
        allocations=_allocations(collector, trace.memory, ordinal, is_first=is_first),
        markers=_markers({name: column[kind == kinds.MARKER] for name, column in host.items()}),
        host_is_primary=is_first,
        extras=Extras(op_phase=host["phase"][is_op], counters=_counters(collector, counters if is_first else [])),
    )


def _ops(host: Table, collective: NDArray[np.int32]) -> HostOps:
    count = len(host["start_ns"])
    nothing: I32 = np.zeros(count, dtype=np.int32)
    return HostOps(
        start_ns=host["start_ns"],
        end_ns=host["end_ns"],
        thread=host["thread"],
        name=host["name"],
        input_shapes=host["input_shapes"],
        input_types=host["input_types"],
        module=nothing,
        call_stack=host["call_stack"],
        sequence=np.full(count, -1, dtype=np.int64),
        is_backward=np.zeros(count, dtype=np.int8),
        is_annotation=(host["kind"] != kinds.OP).astype(np.int8),
        collective=collective,
    )


def _layers(host: Table) -> Frames:
    """The calls of layers, which Paddle names after their class: `Net`, in it `Conv2D`."""
    return Frames(
        start_ns=host["start_ns"],
        end_ns=host["end_ns"],
        thread=host["thread"],
        name=host["name"],
        is_module=np.ones(len(host["start_ns"]), dtype=np.int8),
    )


def _launches(host: Table) -> Launches:
    return Launches(
        start_ns=host["start_ns"],
        end_ns=host["end_ns"],
        thread=host["thread"],
        name=host["name"],
        level=np.full(len(host["start_ns"]), LaunchLevel.RUNTIME, dtype=np.int8),
        correlation=host["correlation"],
    )


def _markers(host: Table) -> Markers:
    order = np.argsort(host["start_ns"], kind="stable")
    return Markers(
        start_ns=host["start_ns"][order],
        end_ns=host["end_ns"][order],
        step=host["step"][order],
        process=np.zeros(len(order), dtype=np.int32),
    )


def _allocations(collector: Collector, memory: Table, ordinal: int, *, is_first: bool) -> Allocations:
    """Those of one device; host memory goes with the first. `component` is the place: `cpu`, `gpu_pinned`, `device`."""
    texts = collector.strings.texts
    on_device = np.array(
        [texts[code] not in ("", "cpu", "gpu_pinned") for code in memory["place"].tolist()], dtype=bool
    )
    here = np.isin(memory["ordinal"], (ordinal, MISSING)) | (ordinal == MISSING)
    mine = here & on_device | (~on_device & is_first)
    component = np.where(on_device, collector.strings.code("device"), memory["place"]).astype(np.int32)
    return Allocations(
        time_ns=memory["time_ns"][mine],
        thread=memory["thread"][mine],
        bytes=memory["bytes"][mine],
        address=memory["address"][mine],
        on_device=on_device[mine].astype(np.int8),
        component=component[mine],
        total_allocated_bytes=memory["total_allocated"][mine],
        total_reserved_bytes=memory["total_reserved"][mine],
    )


def _utilizations(top: Top) -> list[tuple[str, float]]:
    """How busy the processors were, in per cent of one core (process) and of all cores (system)."""
    said = top.ExtraInfo if isinstance(top.ExtraInfo, dict) else {}
    found = []
    for key, name in _UTILIZATIONS.items():
        try:
            found.append((name, float(said[key]) * 100))
        except (KeyError, TypeError, ValueError):
            continue  # not said, or not as a number
    return found


def _counters(collector: Collector, values: list[tuple[str, float]]) -> Counters:
    code = collector.strings.code
    return Counters(
        step=np.full(len(values), NO_STEP, dtype=np.int64),
        source=np.full(len(values), code(DEVICE_USE), dtype=np.int32),
        name=np.array([code(name) for name, _ in values], dtype=np.int32),
        attribute=np.full(len(values), code(_paddle.UTILIZATION), dtype=np.int32),
        value=np.array([value for _, value in values], dtype=np.float64),
    )


def _settings(trace: _Trace) -> dict[str, str]:
    """What the trace shows to have been switched on; what is not seen may still have been on."""
    seen = {
        "record_shapes": bool(trace.host["input_shapes"].any()),
        "profile_memory": len(trace.memory["time_ns"]) > 0,
        "with_stack": bool(trace.host["call_stack"].any()),
    }
    return {name: "on" for name, on in seen.items() if on}


def _device(top: Top, ordinal: int, *, in_use: bool) -> Device:
    """The device `ordinal`: cpu where none is in use, unknown where the trace does not name it."""
    if not in_use:
        return CPU
    entries: list[Any] = top.deviceProperties if isinstance(top.deviceProperties, list) else []
    told = [(entry.get("id"), entry.get("name")) for entry in entries if isinstance(entry, dict)]
    names = {own: name for own, name in told if isinstance(own, int | None) and isinstance(name, str)}
    distinct = set(names.values())
    name = names.get(ordinal, distinct.pop() if len(distinct) == 1 else "")
    return _paddle.gpu(name) if name else UNKNOWN_DEVICE
