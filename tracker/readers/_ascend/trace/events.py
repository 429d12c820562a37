"""A trace -> growing columns, kind by kind; of an event only numbers and text codes survive its chunk."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from tracker.errors import SourceError
from tracker.profile import MISSING, LaunchLevel, Source, Strings
from tracker.readers._ascend import core_clock, mindspore
from tracker.readers._ascend.counters import CounterRows
from tracker.readers._ascend.levels import LEVELS
from tracker.readers._ascend.shapes import op_shapes_text, op_types_text
from tracker.readers._ascend.stacks import split_stack, stack_text
from tracker.readers._ascend.trace.schema import COUNTERS, EVENTS, Args, Event, counted_by
from tracker.readers._ascend.trace.times import duration_ns, time_ns
from tracker.readers._event_texts import EXPORT_AGAIN, Chunk, EventTexts, find_event
from tracker.readers._growing import Growing, as_int
from tracker.readers._source import ReadOptions, SourceText
from tracker.readers.torch_profiler.op_texts import MARKER
from tracker.readers.torch_profiler.tables import MODULE_PREFIX

# torch_npu writes annotations as cpu_op too; these are the ones that torch itself makes
_ANNOTATION: Final = re.compile(r"(?:Optimizer\.(?:step|zero_grad)|enumerate\(DataLoader\))#")
# the layer of CANN in front of a call, which the level says as well: AscendCL@aclnnMm, Node@launch
_LAYER: Final = re.compile(r"[A-Za-z]+@")
_OPS: Final = ("cpu_op", "user_annotation", "MsTx", "mstx", "GC")
_ARROWS: Final = {"async_npu": "arrows", "HostToDevice": "handovers"}
"""Category of arrows -> the table that takes them: from an op to its task, and from the call that launched the task."""
# the counters of the last-level cache call a fraction so; databases hold per cent
_HIT_RATE: Final = "Hit Rate(%)"
_PER_CENT: Final = 100.0
_NO_CONNECTION: Final = 0xFFFFFFFF

Lane = tuple[int | str | None, int | str | None]


class Trace:
    """All events of one trace, of one file or several, as columns. Lanes are `(pid, tid)`, in order of first sight.

    `left_open`: names of the files without the `]` behind their last event. `notes`: what to know of their text.
    `core_clocks`: by file and process, when which clock of the cores began, in ns and MHz.
    """

    decode: Callable[[bytes], list[Any]] = staticmethod(EVENTS.decode)
    no_args: Args = Args()

    def __init__(self, options: ReadOptions, strings: Strings, counters: CounterRows) -> None:
        self.strings = strings
        self.lanes: dict[Lane, int] = {}
        self.process_names: dict[int | str | None, str] = {}
        self.lane_names: dict[int, str] = {}
        self.lane_order: dict[int, int] = {}
        self.plane_lanes: set[int] = set()
        self.skipped = 0
        self.left_open: list[str] = []
        self.notes: list[str] = []
        self.core_clocks: dict[tuple[Path, int | str | None], list[tuple[int, float]]] = {}
        span = {"start_ns": np.int64, "end_ns": np.int64, "lane": np.int32, "name": np.int32}
        texts = dict.fromkeys(("input_shapes", "input_types", "module", "call_stack"), np.int32)
        self.ops = Growing(**span, **texts, sequence=np.int64, is_backward=np.int8, is_annotation=np.int8)
        self.frames = Growing(**span, is_module=np.int8)
        self.queue = Growing(**span, correlation=np.int64, is_end=np.int8)
        self.calls = Growing(**span, level=np.int8, connection=np.int64)
        task = {"type": np.int32, "stream": np.int64, "task": np.int64, "connection": np.int64}
        self.tasks = Growing(**span, **task)
        self.collectives = Growing(**span, connection=np.int64, data_type=np.int32, count=np.int64)
        moved = {"source": np.int64, "target": np.int64, "bytes": np.int64, "link_type": np.int32}
        self.plane_tasks = Growing(**span, **moved)
        self.markers = Growing(start_ns=np.int64, end_ns=np.int64, lane=np.int32, step=np.int64)
        self.arrows, self.handovers = (
            Growing(time_ns=np.int64, lane=np.int32, id=np.int64, is_end=np.int8) for _ in _ARROWS
        )
        self._arrow_ids: dict[object, int] = {}
        self._counted: dict[tuple[int | str | None, str, str], list[float]] = {}
        self._counters = counters
        self._by_category: dict[str, Callable[..., None]] = {
            **dict.fromkeys(_OPS, self._add_op),
            "python_function": self._add_frame,
            "enqueue": self._add_queue,
            "dequeue": self._add_queue,
            mindspore.CATEGORY: self._add_mindspore,
        }
        self._known: dict[tuple[str, object], int] = {}
        self._path = Path()
        self._options = options

    def read(self, path: Path) -> tuple[Source, str]:
        """Takes all events of the file at `path`; the file, and why it is only a part ('' when it is whole).

        A list that was never closed is whole where it ends behind an event: the exporter was stopped at its end.
        """
        self._path = path
        text = SourceText(path, self._options)
        chunks = EventTexts(
            text,
            self.decode,
            exporter="torch_npu.profiler or msprof",
            allow_partial=self._options.allow_partial,
            may_stay_open=True,
        )
        for chunk in chunks:
            self.add(chunk)
        if chunks.is_open:
            self.left_open.append(path.name)
        self.notes += [f"{path.name}: {note}" for note in chunks.notes]
        return text.source(), "the gzip stream ends early" if text.ended_early else chunks.partial

    # -- chunk by chunk

    def add(self, chunk: Chunk[list[Event]]) -> None:
        """Takes the events of one chunk."""
        rows: dict[str, list[tuple[Any, ...]]] = {}
        has_counters = False
        for index, event in enumerate(chunk.events):
            phase = event.ph
            if phase == "X":
                take = self._kind(event)
                if take is None:
                    continue
                try:
                    span = self._span(event)
                except ValueError as error:
                    self._reject(event, index, str(error), chunk)
                    continue
                take(span, event.args or self.no_args, event, rows)
            elif phase in ("s", "f"):
                if event.cat in _ARROWS:
                    self._add_arrow(event, index, chunk, rows)
            elif phase == "M":
                self._name(event)
            elif phase == "C":
                has_counters = True
                if event.name == core_clock.COUNTER:
                    self._add_clock(event)
        for table, block in rows.items():
            growing: Growing = getattr(self, table)
            growing.add(**dict(zip(growing.dtypes, zip(*block, strict=True), strict=True)))
        if has_counters:
            self._count(chunk.text)

    def _kind(self, event: Event) -> Callable[..., None] | None:
        """Which table takes a slice; None for those that only repeat what others say (Overlap Analysis)."""
        if event.cat is not None:
            return self._by_category.get(event.cat)
        args = event.args or self.no_args
        if args.level is not None:
            return self._add_call
        if args.task_type is not None:
            return self._add_task
        if args.plane_task_type is not None:
            return self._add_plane_task
        return self._add_collective if args.count is not None or (event.name or "").startswith("hcom_") else None

    def _span(self, event: Event) -> tuple[int, int, int, int]:
        start = time_ns(event.ts)
        lane = self.lanes.setdefault((event.pid, event.tid), len(self.lanes))
        return start, start + duration_ns(event.dur), lane, self.strings.code(event.name or "")

    def _lane(self, event: Event) -> int:
        return self.lanes.setdefault((event.pid, event.tid), len(self.lanes))

    def _reject(self, event: Event, index: int, problem: str, chunk: Chunk[list[Event]]) -> None:
        self.skipped += 1
        if not self._options.skip_bad_rows:
            place = f"byte {chunk.offset + find_event(chunk.text, index)}"
            remedy = f"{EXPORT_AGAIN}, or leave such events out with --skip-bad-rows"
            raise SourceError(self._path, place, f"event {event.name!r}: {problem}", remedy=remedy)

    # -- host

    def _add_op(self, span: tuple[int, ...], args: Args, event: Event, rows: dict[str, list[Any]]) -> None:
        name, glued = split_stack(event.name or "")
        marker = MARKER.fullmatch(name)
        if marker:
            rows.setdefault("markers", []).append((*span[:3], int(marker.group(1))))
            return
        sequence = _int(args.sequence, -1)
        is_annotation = event.cat != "cpu_op" or _ANNOTATION.match(name) is not None
        stack = args.call_stack or args.old_call_stack or glued
        rows.setdefault("ops", []).append((
            *span[:3],
            self.strings.code(name),
            self._code("dims", args.dims, op_shapes_text),
            self._code("types", args.types, op_types_text),
            self._code("module", args.module, _module),
            self._code("stack", stack or None, stack_text),
            sequence,
            _int(args.forward_thread, 0) > 0 and sequence >= 0,
            is_annotation,
        ))  # fmt: skip

    def _add_mindspore(self, span: tuple[int, ...], args: Args, event: Event, rows: dict[str, list[Any]]) -> None:
        found = mindspore.host_name(event.name or "")
        if marker := MARKER.fullmatch(found.name):
            rows.setdefault("markers", []).append((*span[:3], int(marker.group(1))))
            return
        name, module = self.strings.code(found.name), self.strings.code(found.module)
        rows.setdefault("ops", []).append((*span[:3], name, 0, 0, module, 0, -1, False, not found.is_operator))

    def _code(self, kind: str, value: object, translate: Callable[[str], str]) -> int:
        """The code of a translated text; each distinct text is translated once."""
        if not isinstance(value, str):
            return 0
        known = self._known.get((kind, value))
        if known is None:
            known = self._known[kind, value] = self.strings.code(translate(value))
        return known

    def _add_frame(self, span: tuple[int, ...], args: Args, event: Event, rows: dict[str, list[Any]]) -> None:
        name = event.name or ""
        code = self.strings.code(name.removeprefix(MODULE_PREFIX))
        rows.setdefault("frames", []).append((*span[:3], code, name.startswith(MODULE_PREFIX)))

    def _add_queue(self, span: tuple[int, ...], args: Args, event: Event, rows: dict[str, list[Any]]) -> None:
        rows.setdefault("queue", []).append((*span, _int(args.correlation, -1), event.cat == "dequeue"))

    def _add_call(self, span: tuple[int, ...], args: Args, event: Event, rows: dict[str, list[Any]]) -> None:
        level = LEVELS.get(str(args.level).lower(), LaunchLevel.RUNTIME)
        name = self._code("call", event.name, _bare)
        rows.setdefault("calls", []).append((*span[:3], name, level, _connection(args)))

    # -- device

    def _add_task(self, span: tuple[int, ...], args: Args, event: Event, rows: dict[str, list[Any]]) -> None:
        stream = args.stream if args.stream is not None else args.physic_stream
        task = (self.strings.code(str(args.task_type)), _int(stream, -1), _int(args.task, MISSING), _connection(args))
        rows.setdefault("tasks", []).append((*span, *task))

    def _add_plane_task(self, span: tuple[int, ...], args: Args, event: Event, rows: dict[str, list[Any]]) -> None:
        moved = (_rank(args.source), _rank(args.target), _int(args.size, 0), self.strings.code(str(args.link_type)))
        self.plane_lanes.add(span[2])
        rows.setdefault("plane_tasks", []).append((*span, *moved))

    def _add_collective(self, span: tuple[int, ...], args: Args, event: Event, rows: dict[str, list[Any]]) -> None:
        said = (_connection(args), self.strings.code(str(args.data_type or "")), _int(args.count, MISSING))
        rows.setdefault("collectives", []).append((*span, *said))

    # -- arrows, names, counters

    def _add_arrow(self, event: Event, index: int, chunk: Chunk[list[Event]], rows: dict[str, list[Any]]) -> None:
        try:
            time = time_ns(event.ts)
        except ValueError as error:
            self._reject(event, index, str(error), chunk)
            return
        lane = self.lanes.setdefault((event.pid, event.tid), len(self.lanes))
        number = self._arrow_ids.setdefault(event.id, len(self._arrow_ids))
        rows.setdefault(_ARROWS[event.cat or ""], []).append((time, lane, number, event.ph == "f"))

    def _add_clock(self, event: Event) -> None:
        megahertz = (event.args or self.no_args).megahertz
        is_number = isinstance(megahertz, int | float) and not isinstance(megahertz, bool)
        entry = (0, core_clock.UNKNOWN)
        # a capture is read whatever stands here, and then nothing is known of its clock
        with contextlib.suppress(ValueError):
            entry = (time_ns(event.ts), float(megahertz) if is_number else core_clock.UNKNOWN)
        self.core_clocks.setdefault((self._path, event.pid), []).append(entry)

    def one_core_clock(self) -> list[tuple[int, float]]:
        """Return the clock of the cores of the one device that the files show; nothing where they show several."""
        clocks = [*self.core_clocks.values()]
        return clocks[0] if len(clocks) == 1 else []

    def _name(self, event: Event) -> None:
        args = event.args or self.no_args
        if event.name == "process_name" and isinstance(args.name, str):
            self.process_names[event.pid] = args.name
        elif event.name == "thread_name" and isinstance(args.name, str):
            self.lane_names[self._lane(event)] = args.name
        elif event.name == "thread_sort_index":
            self.lane_order[self._lane(event)] = _int(args.sort_index, 0)

    def _count(self, text: bytes) -> None:
        for event in COUNTERS.decode(text):
            if event.ph != "C":
                continue
            args = counted_by(event)
            unit = args.get("acc_id")
            name = event.name if unit is None else f"{event.name} {unit}"
            for attribute, value in args.items():
                if attribute != "acc_id" and isinstance(value, int | float) and not isinstance(value, bool):
                    number = float(value) * (_PER_CENT if attribute == _HIT_RATE else 1)
                    self._counted.setdefault((event.pid, name or "", attribute), []).append(number)

    def finish(self) -> None:
        """Hands the counters over, each under the name of its process (`AI Core Freq` -> `ai_core_freq`)."""
        for (pid, name, attribute), values in self._counted.items():
            source = re.sub(r"\W+", "_", self.process_names.get(pid, "counter")).lower()
            self._counters.add(source, [name] * len(values), attribute, values)


def read_trace(path: Path, options: ReadOptions, strings: Strings, counters: CounterRows) -> tuple[Trace, Source, str]:
    """The trace, its file, and why it is only a part ('' when it is whole)."""
    trace = Trace(options, strings, counters)
    source, partial = trace.read(path)
    trace.finish()
    return trace, source, partial


def _int(value: object, missing: int) -> int:
    return value if type(value) is int and -MISSING > value > MISSING else as_int(value, missing)


def _rank(value: object) -> int:
    rank = _int(value, -1)
    return -1 if rank >= _NO_CONNECTION else rank


def _connection(args: Args) -> int:
    number = _int(args.connection, -1)
    return number if 0 < number < 1 << 61 and number != _NO_CONNECTION else -1


def _bare(name: str) -> str:
    layer = _LAYER.match(name)
    return name[layer.end() :] if layer else name


def _module(text: str) -> str:
    return "/".join(part for part in text.split(".") if part)
