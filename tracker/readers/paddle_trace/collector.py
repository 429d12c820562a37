"""Decoded events -> growing columns; of an event only numbers and text codes survive its chunk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import DecodeError
from msgspec.json import decode

from tracker.errors import SourceError
from tracker.profile import MISSING, DeviceKind, Strings
from tracker.readers import _paddle, _times
from tracker.readers._event_texts import EXPORT_AGAIN, Chunk, find_event
from tracker.readers._growing import Growing, as_int, int_column
from tracker.readers._source import ReadOptions
from tracker.readers.paddle_trace.schema import Args, Event
from tracker.units import NS_PER_US

MARKER, OP, ANNOTATION, LAYER, RUNTIME, COLLECTIVE = range(6)
HOST: Final[Mapping[str, int]] = {
    "ProfileStep": MARKER,
    "Operator": OP,
    "OperatorInner": OP,
    "DygraphKernelLaunch": OP,
    "StaticKernelLaunch": OP,
    "PythonOp": OP,
    "Forward": LAYER,
    "Backward": ANNOTATION,
    "Dataloader": ANNOTATION,
    "Optimization": ANNOTATION,
    "UserDefined": ANNOTATION,
    "PythonUserDefined": ANNOTATION,
    "CudaRuntime": RUNTIME,
    "MluRuntime": RUNTIME,
    "Communication": COLLECTIVE,
}
DEVICE: Final[Mapping[str, DeviceKind]] = {
    "Kernel": DeviceKind.KERNEL,
    "Memcpy": DeviceKind.COPY,
    "Memset": DeviceKind.MEMSET,
    "Communication": DeviceKind.COMMUNICATION,
}
PHASE: Final = {
    "Forward": "forward",
    "Backward": "backward",
    "Dataloader": "dataloader",
    "Optimization": "optimizer",
}
RESERVING: Final = frozenset(("ReservedAllocate", "ReservedFree"))
MEMORY: Final = RESERVING | {"Allocate", "Free"}

_TOOK: Final = re.compile(r"\[-?\d+(?:\.\d+)? ?(?:s|ms|us|ns)\]$")
_STEP: Final = re.compile(r"ProfileStep#(\d{1,18})")
_THREAD: Final = re.compile(r"(\d{1,18})\((?:Python|C\+\+)\)")
_CLEARS: Final = re.compile(r"clear_?grad", re.IGNORECASE)
_PLACE: Final = re.compile(r"Place\((\w+?)(?::(\d{1,9}))?\)")
_NO_ARGS: Final = Args()


def plain_name(name: str) -> str:
    """The name without the duration that Paddle writes behind it.

    >>> plain_name("relu dygraph[673.108 us]"), plain_name("x[0]")
    ('relu dygraph', 'x[0]')
    """
    return _TOOK.sub("", name)


class Collector:
    """All events of a trace as columns.

    `host`: all that ran on threads, `kind` one of the constants above; `step`: of markers, else MISSING. `memory`:
    `after` is the row of `host` behind which the event stands in the file: the innermost event around it, or -1.
    A thread has two lanes, for Python and for C++; it is one thread.
    """

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.strings = Strings()
        self.threads: dict[tuple[object, object], int] = {}
        self.thread_names: dict[int, str] = {}
        self.skipped = 0
        texts = dict.fromkeys(("name", "phase", "input_shapes", "input_types", "call_stack"), np.int32)
        spans = dict.fromkeys(("ts_ns", "told_start_ns", "told_end_ns", "duration_ns"), np.int64)
        numbers = {"thread": np.int32, "kind": np.int8, "step": np.int64, "correlation": np.int64}
        self.host = Growing(**spans, **texts, **numbers)
        device = dict.fromkeys(("ordinal", "stream", "correlation", "bytes"), np.int64)
        self.device = Growing(**spans, **device, name=np.int32, kind=np.int8)
        counts = dict.fromkeys(
            ("bytes", "address", "total_allocated", "total_reserved", "peak_reserved", "ordinal"), np.int64
        )
        self.memory = Growing(ts_ns=np.int64, thread=np.int32, after=np.int64, place=np.int32, **counts)
        self._path = path
        self._skip_bad = options.skip_bad_rows
        self._last: tuple[int, int] = (-1, -1)  # row of `host` and thread of the host event before
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def add(self, chunk: Chunk[list[Event]]) -> None:
        """Takes the events of one chunk; a SourceError names the byte of an event with impossible times."""
        self._rows = {"host": [], "device": [], "memory": []}
        for index, event in enumerate(chunk.events):
            try:
                self._take(event)
            except ValueError as error:
                self.skipped += 1
                if self._skip_bad:
                    continue
                place = f"byte {chunk.offset + find_event(chunk.text, index)}"
                remedy = f"{EXPORT_AGAIN}, or leave such events out with --skip-bad-rows"
                raise SourceError(self._path, place, f"event {event.name!r}: {error}", remedy=remedy) from error
        for name, rows in self._rows.items():
            table: Growing = getattr(self, name)
            if rows:
                table.add(**{column: int_column([row[column] for row in rows], MISSING) for column in table.dtypes})

    def _take(self, event: Event) -> None:
        category = event.cat or ""
        if event.ph == "X":
            thread = _THREAD.fullmatch(event.tid) if isinstance(event.tid, str) else None
            if thread and category in HOST:
                self._take_host(event, category, self._thread(event.pid, int(thread[1])))
            elif not thread and category in DEVICE:
                self._take_device(event, category)
        elif event.ph in ("i", "I") and category in MEMORY:
            self._take_memory(event, category)
        elif event.ph == "M" and event.name == "thread_name" and isinstance(event.tid, str):
            self._name_thread(event)

    def _take_host(self, event: Event, category: str, thread: int) -> None:
        args = event.args or _NO_ARGS
        name = plain_name(event.name or "")
        step = _STEP.fullmatch(name) if category == "ProfileStep" else None
        kind = HOST[category] if category != "ProfileStep" or step else ANNOTATION
        phase = "clear_grad" if _CLEARS.search(name) else PHASE.get(category, "")
        code = self.strings.code
        row = {
            **_span(event, args),
            "thread": thread,
            "kind": kind,
            "step": int(step[1]) if step else MISSING,
            "name": code(name),
            "phase": code(phase),
            "input_shapes": code(_inputs(bytes(args.input_shapes))),
            "input_types": code(_inputs(bytes(args.input_dtypes))),
            "call_stack": code(args.callstack) if isinstance(args.callstack, str) else 0,
            "correlation": _number(args.correlation, -1),
        }
        self._last = (self.host.rows + len(self._rows["host"]), thread)
        self._rows["host"].append(row)

    def _take_device(self, event: Event, category: str) -> None:
        args = event.args or _NO_ARGS
        self._rows["device"].append(
            {
                **_span(event, args),
                "ordinal": _number(args.device if args.device is not None else event.pid, MISSING),
                "stream": _number(args.stream if args.stream is not None else event.tid, -1),
                "correlation": _number(args.correlation, -1),
                "bytes": _number(args.bytes, MISSING),
                "name": self.strings.code(plain_name(event.name or "")),
                "kind": int(DEVICE[category]),
            }
        )

    def _take_memory(self, event: Event, category: str) -> None:
        args = event.args or _NO_ARGS
        thread = _THREAD.fullmatch(event.tid) if isinstance(event.tid, str) else None
        place = _PLACE.fullmatch(args.place) if isinstance(args.place, str) else None
        number = self._thread(event.pid, int(thread[1]) if thread else event.tid)
        reserves = category in RESERVING
        self._rows["memory"].append(
            {
                "ts_ns": _time(bytes(event.ts), "ts"),
                "thread": number,
                "after": self._last[0] if self._last[1] == number else -1,
                "place": self.strings.code(place[1] if place else ""),
                "ordinal": int(place[2]) if place and place[2] else MISSING,
                # what the allocator takes from the system is no allocation of an op; it only moves the counters
                "bytes": 0 if reserves else _number(args.increase_bytes, MISSING),
                "address": MISSING if reserves else _number(args.addr, MISSING),
                "total_allocated": _number(args.current_allocated, MISSING),
                "total_reserved": _number(args.current_reserved, MISSING),
                "peak_reserved": _number(args.peak_reserved, MISSING),
            }
        )

    def _thread(self, pid: object, tid: object) -> int:
        return self.threads.setdefault((pid, tid), len(self.threads))

    def _name_thread(self, event: Event) -> None:
        thread = _THREAD.fullmatch(str(event.tid))
        name = event.args.name if event.args is not None else None
        if thread and isinstance(name, str):
            # thread 15898:MainThread(Python)
            plain = re.sub(r"\((?:Python|C\+\+)\)$", "", name)
            self.thread_names[self._thread(event.pid, int(thread[1]))] = plain


def _span(event: Event, args: Args) -> dict[str, int]:
    duration = _time(bytes(event.dur), "dur")
    if duration < 0:
        raise ValueError("dur is negative")
    return {
        "ts_ns": _time(bytes(event.ts), "ts"),
        "duration_ns": duration,
        "told_start_ns": _told(args.start_time, "start_time"),
        "told_end_ns": _told(args.end_time, "end_time"),
    }


def _time(raw: bytes, field: str) -> int:
    if raw.isdigit() and len(raw) < 17:
        return int(raw) * NS_PER_US
    try:
        return _times.text_to_ns(raw)
    except ValueError as error:
        raise ValueError(f"{field} {error}") from None


def _told(value: object, field: str) -> int:
    if value is None:
        return MISSING
    try:
        return _paddle.text_to_ns(str(value))
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None


def _number(value: object, missing: int) -> int:
    """An integer of the trace, also as text; `missing` for anything else, or beyond int64."""
    return as_int(value, missing)


def _inputs(raw: bytes) -> str:
    """`input_shapes` or `input_dtypes`, `{"X": [[8, 96]]}`, as compact text; '' for none.

    >>> _inputs(b'{"X": [[8, 96]],  "Y": [[96]]}'), _inputs(b"{}")
    ('X[[8,96]],Y[[96]]', '')
    """
    if len(raw) <= 2:
        return ""
    try:
        said = decode(raw)
    except DecodeError:
        return ""
    if not isinstance(said, dict):
        return ""
    return ",".join(f"{name}{value}".replace(" ", "").replace("'", "") for name, value in said.items() if value)
