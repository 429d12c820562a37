"""Decoded events -> growing columns, kind by kind; of an event only numbers and text codes survive its chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from tracker.errors import SourceError
from tracker.profile import I32, I64, MISSING
from tracker.readers._event_texts import EXPORT_AGAIN, Chunk, InParts, find_event
from tracker.readers._growing import int_column
from tracker.readers._source import ReadOptions
from tracker.readers._times import numbers_to_ns, text_to_ns
from tracker.readers.torch_profiler.kernel_metrics import kernel_metric_columns, unknown_kernel_metrics
from tracker.readers.torch_profiler.kinds import (
    ANNOTATIONS,
    FLOW_CATEGORIES,
    FLOWS,
    FRAMES,
    KERNELS,
    KIND,
    LEVEL,
    MEMORY,
    OPS,
    bucket_of,
    stream_of,
)
from tracker.readers.torch_profiler.op_texts import OpNames
from tracker.readers.torch_profiler.records import Batch, Decoders
from tracker.readers.torch_profiler.schema import EVENTS, NO_ARGS, TEXT_EVENTS, AnyEvent, Args, TextEvent, kept
from tracker.readers.torch_profiler.tables import EventTables

_NO_ID: Final = 1 << 62
Bucket = list[AnyEvent]


class Collector(EventTables):
    """Decodes the events of a trace and adds them to its tables.

    `threads`: how many texts of events are decoded at once, at most.
    """

    def __init__(self, path: Path, options: ReadOptions, threads: int = 1) -> None:
        super().__init__()
        self._needs_text = False
        self._path = path
        self._skip_bad = options.skip_bad_rows
        self._flow_categories = FLOW_CATEGORIES | ({options.flow_category} if options.flow_category else set())
        self._decoders = Decoders.begin(self, self._flow_categories, threads)

    def decode(self, text: bytes) -> list[Any]:
        """The events of a JSON list: their times as numbers until one was met that only text can hold, or that is no
        time at all, and as text from then on. msgspec.DecodeError for anything else.
        """
        events: list[Any]
        if not self._needs_text:
            try:
                events = EVENTS.decode(text)
            except msgspec.ValidationError:  # of an event that nobody asks for, perhaps
                events = TEXT_EVENTS.decode(text)
                self._needs_text = True
            return events
        events = TEXT_EVENTS.decode(text)
        return events

    @property
    def decode_first(self) -> Callable[[bytes], tuple[Batch, int] | None] | None:
        """What reads the first events of a text without objects, see `Decoders`; None: nothing does."""
        return None if self._decoders is None else self._decoders.decode_first

    def in_parts(self, threads: int) -> InParts[Batch | list[Any]] | None:
        """How to decode several texts at once; None: there is nothing that does, or one thread."""
        return InParts(self._decoders.decode_part, threads) if self._decoders is not None and threads > 1 else None

    def release(self) -> None:
        """There will be no more events: what only reads them is given up."""
        self._decoders = None

    def add(self, chunk: Chunk[Batch | list[Any]]) -> None:
        """Takes the events of one chunk, as they were decoded."""
        if isinstance(chunk.events, Batch):
            chunk.events.of.add(chunk.events, chunk.text)
        else:
            self._add_events(chunk)

    def _add_events(self, chunk: Chunk[Any]) -> None:
        buckets = self._sort(chunk.events)
        times = [None if self._needs_text else self._times(bucket) for bucket in buckets]
        if any(time is None for time in times):
            self._needs_text = True
            events = chunk.events
            if not events or not isinstance(events[0], TextEvent):
                events = TEXT_EVENTS.decode(chunk.text)
                buckets = self._sort(events)
            times = [self._times_of_text(bucket, events, chunk) for bucket in buckets]
        for kind, (bucket, time) in enumerate(zip(buckets, times, strict=True)):
            if bucket and time is not None:
                self._add(kind, bucket, *time)

    def _sort(self, events: Sequence[AnyEvent]) -> list[Bucket]:
        buckets: list[Bucket] = [[] for _ in range(FLOWS + 1)]
        put: dict[str | None, Any] = {}
        memory = buckets[MEMORY].append
        flow = buckets[FLOWS].append
        for event in events:
            phase = event.ph
            if phase == "X":
                if event.cat not in put:
                    bucket = bucket_of(event.cat)
                    put[event.cat] = None if bucket is None else buckets[bucket].append
                take = put[event.cat]
                if take is not None:
                    take(event)
            elif phase in ("i", "I"):
                if event.name == "[memory]":
                    memory(event)
            elif phase in ("s", "f"):
                if event.cat in self._flow_categories:
                    flow(event)
            elif phase == "M":
                self.name_thread(event)
        return buckets

    def _times(self, bucket: Bucket) -> tuple[I64, I64] | None:
        """Starts and ends; None where they must be read from the text, or one of them is impossible."""
        starts = numbers_to_ns([event.ts for event in bucket])
        if starts is None or not bucket or bucket[0].ph != "X":
            return None if starts is None else (starts, starts)
        durations = numbers_to_ns([event.dur for event in bucket])
        if durations is None or durations.min() < 0:
            return None
        return starts, starts + durations

    def _times_of_text(self, bucket: Bucket, events: Sequence[AnyEvent], chunk: Chunk[Any]) -> tuple[I64, I64]:
        """Like `_times`, exact and slower; takes impossible events out of `bucket`, or says which is."""
        starts: list[int] = []
        ends: list[int] = []
        kept: Bucket = []
        for event in bucket:
            try:
                start, end = _exact_span(event)
            except ValueError as error:
                self._reject(event, str(error), events, chunk)
                continue
            starts.append(start)
            ends.append(end)
            kept.append(event)
        bucket[:] = kept
        return np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)

    def _reject(self, event: AnyEvent, problem: str, events: Sequence[AnyEvent], chunk: Chunk[Any]) -> None:
        self.skipped += 1
        if not self._skip_bad:
            index = next(i for i, other in enumerate(events) if other is event)
            place = f"byte {chunk.offset + find_event(chunk.text, index)}"
            remedy = f"{EXPORT_AGAIN}, or leave such events out with --skip-bad-rows"
            raise SourceError(self._path, place, f"event {event.name!r}: {problem}", remedy=remedy)

    def _threads(self, bucket: Bucket) -> Sequence[int] | I32:
        lanes = self._lanes
        first = bucket[0]
        tids = [event.tid for event in bucket]
        if tids.count(first.tid) == len(bucket) == [event.pid for event in bucket].count(first.pid):
            return np.full(len(bucket), self.thread(first.pid, first.tid), dtype=np.int32)
        return [lanes[key] if (key := (event.pid, event.tid)) in lanes else self.thread(*key) for event in bucket]

    def _add(self, kind: int, bucket: Bucket, starts: I64, ends: I64) -> None:
        if kind in (OPS, ANNOTATIONS):
            self._add_ops(kind, bucket, starts, ends)
        elif kind == FRAMES:
            known = self._frame_names
            names = np.array([known.get(event.name) or self.frame_name(event.name) for event in bucket])
            self.frames.add(**self._span(bucket, starts, ends, names >> 1), is_module=names & 1)
        elif kind in LEVEL:
            correlations = _correlations([event.args or NO_ARGS for event in bucket])
            level = np.full(len(bucket), LEVEL[kind], dtype=np.int8)
            self.launches.add(**self._span(bucket, starts, ends), level=level, correlation=correlations)
        elif kind in KIND:
            self._add_device(kind, bucket, starts, ends)
        elif kind == MEMORY:
            self._add_memory(bucket, starts)
        else:
            self._add_flows(bucket, starts)

    def _span(self, bucket: Bucket, starts: I64, ends: I64, names: I64 | None = None) -> dict[str, Any]:
        return {
            "start_ns": starts,
            "end_ns": ends,
            "thread": self._threads(bucket),
            "name": names if names is not None else self.strings.codes([event.name for event in bucket]),
        }

    def _add_ops(self, kind: int, bucket: Bucket, starts: I64, ends: I64) -> None:
        span = {name: np.asarray(column) for name, column in self._span(bucket, starts, ends).items()}
        says = self.op_names.say(span["name"])
        is_marker = (says & OpNames.MARKER) > 0
        if is_marker.any():
            names = [event.name or "" for event, is_one in zip(bucket, is_marker.tolist(), strict=True) if is_one]
            span, marked = ({name: column[rows] for name, column in span.items()} for rows in (~is_marker, is_marker))
            self.markers.add(**marked, step=[int(name.partition("#")[2]) for name in names])
            bucket = [event for event, is_one in zip(bucket, is_marker.tolist(), strict=True) if not is_one]
            says = says[~is_marker]
        if not bucket:
            return
        args = [event.args or NO_ARGS for event in bucket]
        for row in np.flatnonzero(says & OpNames.COLLECTIVE).tolist():
            self.op_calls.append((self.ops.rows + row, bucket[row].name or "", kept(args[row])))
        sequence = int_column([a.sequence for a in args], -1)
        forward = int_column([a.forward_thread for a in args], 0)
        texts = self.texts
        shapes = texts.shapes(args)
        for row in np.flatnonzero(says & OpNames.CONVOLUTION).tolist():
            self.convolutions.add(int(span["name"][row]), shapes[row], args[row])
        self.ops.add(
            **span,
            input_shapes=shapes,
            input_types=texts.types(args),
            module=texts.modules(args),
            call_stack=texts.stacks(args),
            sequence=sequence,
            is_backward=(forward > 0) & (sequence >= 0),
            external=_external_ids(args),
            is_annotation=np.full(len(bucket), True) if kind == ANNOTATIONS else (says & OpNames.ANNOTATION) > 0,
        )

    def _add_device(self, kind: int, bucket: Bucket, starts: I64, ends: I64) -> None:
        args = [event.args or NO_ARGS for event in bucket]
        for row, a in enumerate(args, start=self.device.rows):
            if a.collective is not None:
                self.kernel_calls.append((row, kept(a)))
        self.device.add(
            **self._span(bucket, starts, ends),
            stream=int_column([_stream(event, a) for event, a in zip(bucket, args, strict=True)], -1),
            ordinal=int_column([_ordinal(event, a) for event, a in zip(bucket, args, strict=True)], MISSING),
            correlation=_correlations(args),
            bytes=int_column([a.bytes for a in args], MISSING),
            external=_external_ids(args),
            **(kernel_metric_columns(args) if kind == KERNELS else unknown_kernel_metrics(len(args))),
            kind=np.full(len(bucket), KIND[kind], dtype=np.int8),
        )

    def _add_memory(self, bucket: Bucket, times: I64) -> None:
        says_size = np.array([event.args is not None and event.args.allocated is not None for event in bucket])
        if not says_size.all():
            bucket = [event for event, said in zip(bucket, says_size, strict=True) if said]
            times = times[says_size]
        if not bucket:
            return
        args = [event.args or NO_ARGS for event in bucket]
        allocated = int_column([a.allocated for a in args], MISSING)
        self.memory.add(
            time_ns=times,
            thread=self._threads(bucket),
            bytes=allocated,
            address=int_column([a.address for a in args], MISSING),
            device_type=int_column([a.device_type for a in args], 0),
            device_id=int_column([a.device_id for a in args], MISSING),
            total_allocated=int_column([a.total_allocated for a in args], MISSING),
            total_reserved=int_column([a.total_reserved for a in args], MISSING),
        )

    def _add_flows(self, bucket: Bucket, times: I64) -> None:
        for category in {event.cat or "" for event in bucket}:
            self.flow_codes[category] = self.strings.code(category)
        self.flows.add(
            time_ns=times,
            thread=self._threads(bucket),
            id=[id if type(id := event.id) is int and 0 <= id < _NO_ID else self._flow_id(id) for event in bucket],
            category=[self.flow_codes[event.cat or ""] for event in bucket],
            is_end=[event.ph == "f" for event in bucket],
        )

    def _flow_id(self, value: float | str | None) -> int:
        if isinstance(value, float) and value.is_integer() and 0 <= value < _NO_ID:
            return int(value)
        return -1 - self.flow_ids.setdefault(value, len(self.flow_ids))


def _exact_span(event: AnyEvent) -> tuple[int, int]:
    """Start and end in ns of an event decoded as text; a ValueError says which time is wrong, and how."""
    field = "ts"
    try:
        start = text_to_ns(_raw(event.ts))
        if event.ph != "X":
            return start, start
        field = "dur"
        duration = text_to_ns(_raw(event.dur))
    except ValueError as error:
        raise ValueError(f"{field} {error}") from None
    if duration < 0:
        raise ValueError("dur is negative")
    return start, start + duration


def _raw(value: object) -> bytes:
    return bytes(value) if isinstance(value, msgspec.Raw) else b""


def _correlations(args: Sequence[Args]) -> I64:
    """-1 for none; ids are never negative, and numbers above 2**62 are left free for the arrows of `flows`."""
    ids = int_column([a.correlation for a in args], -1)
    return np.where((ids < 0) | (ids > 1 << 62), -1, ids)


def _external_ids(args: Sequence[Args]) -> I64:
    """Return the id of the op that each event names, -1 for none; old traces write it in small letters."""
    ids = int_column([a.old_external if a.external is None else a.external for a in args], -1)
    return np.maximum(ids, -1)


def _stream(event: AnyEvent, args: Args) -> int:
    if type(args.stream) is int:
        return args.stream
    return stream_of(args.stream if args.stream is not None else event.tid)


def _ordinal(event: AnyEvent, args: Args) -> object:
    return args.device if args.device is not None else event.pid
