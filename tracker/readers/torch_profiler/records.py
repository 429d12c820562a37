"""Events that the compiled decoder read -> rows of the collector's tables, a whole chunk at once.

Where it is not built (there was no C compiler), or a chunk holds something unusual, msgspec reads the events instead,
to the same rows: what the compiled decoder takes is a part of what msgspec takes, see native/scan.h.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.json import Decoder
from numpy.typing import NDArray

from tracker.profile import I32, I64, MISSING, each_once
from tracker.readers._event_texts import EventPart
from tracker.readers._growing import as_int
from tracker.readers.torch_profiler import native
from tracker.readers.torch_profiler.kernel_metrics import kernel_metric_columns
from tracker.readers.torch_profiler.kinds import (
    ANNOTATIONS,
    FLOWS,
    FRAMES,
    KERNEL_METRICS,
    KIND,
    LEVEL,
    MEMORY,
    OPS,
    SLICES,
    stream_of,
)
from tracker.readers.torch_profiler.op_texts import OpNames, module_path
from tracker.readers.torch_profiler.schema import ARGS, EVENTS, NO_ARGS, Args, kept
from tracker.readers.torch_profiler.tables import EventTables

THREADS: Final = FLOWS + 1
NAMES, LANES, SHAPES, TYPES, MODULES, STACKS = range(6)
NO_NUMBER: Final = int(np.iinfo(np.int64).min)
MAX_TEXT_BYTES: Final = 16 << 20
"""Size of the texts of all decoders together above which a decoder is replaced: the collector has its own copies."""

NAMES_COLLECTIVE, HAS_ODD_REALS = 1, 2
_NUMBERS: Final = 6
_WORDS: Final = ("name", "lane", "start", "end", "category", "flag")
_TEXTS: Final = ("shapes", "types", "module", "call_stack")
RECORD: Final = np.dtype(
    [
        ("time_ns", np.int64),
        ("duration_ns", np.int64),
        *((word, np.int32) for word in _WORDS),
        ("numbers", np.int64, _NUMBERS),
        *((text, np.int32) for text in _TEXTS),
        ("reals", np.float64, 3),
    ]
)
Table = NDArray[np.void]
_PID_OR_TID: Final = Decoder(int | str).decode
_TEXT: Final = Decoder(str).decode


@cache
def record_types() -> tuple[np.dtype[np.void], ...]:
    """Return the type of the records of each kind: the first fields of RECORD, as far as they are stored."""
    return tuple(_first_fields(size) for size in native.module.RECORD_SIZES)


def _first_fields(size: int) -> np.dtype[np.void]:
    """Return RECORD up to byte `size`, which may lie between two of its numbers."""
    fields: Mapping[str, Any] = RECORD.fields or {}
    names = [name for name, (kind, offset, *_) in fields.items() if offset + kind.itemsize <= size]
    formats: list[Any] = [fields[name][0] for name in names]
    count = (size - fields["numbers"][1]) // 8
    if 0 < count < _NUMBERS:
        names.append("numbers")
        # NumPy before 2.0 takes a bare 1 for no array at all
        formats.append((np.int64, (count,)))
    offsets = [fields[name][1] for name in names]
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})


class Batch(Struct, frozen=True):
    """The events of one text that we take: the bytes of their records, kind by kind, and what read them."""

    records: tuple[bytes, ...]
    of: Records


class _Meanings:
    """What the numbers of a pool of texts stand for: found out once, when first met. -1 stands for `none`."""

    def __init__(self, spellings: Sequence[bytes], meaning: Callable[[bytes], int], none: int = 0) -> None:
        self._spellings = spellings
        self._meaning = meaning
        self._known = np.array([none], dtype=np.int64)  # that of -1 is the last one

    def of(self, numbers: I32) -> I64:
        new = len(self._spellings) + 1 - len(self._known)
        if new:
            self._known = np.concatenate([self._known[:-1], np.full(new, NO_NUMBER), self._known[-1:]])
        found: I64 = self._known.take(numbers)
        if len(found) and found.min() == NO_NUMBER:
            for number in dict.fromkeys(numbers[found == NO_NUMBER].tolist()):
                self._known[number] = self._meaning(self._spellings[number])
            found = self._known.take(numbers)
        return found


class Decoders:
    """Reads texts of events into tables; of several texts at once, each by `Records` of its own.

    `threads`: how many texts are read at once, at most. The texts that all of them remember are bounded together.
    """

    def __init__(self, tables: EventTables, flow_categories: Collection[str], threads: int) -> None:
        self._tables = tables
        self._flow_categories = flow_categories
        self._own = Records(tables, flow_categories)
        self._resting: SimpleQueue[Records] = SimpleQueue()
        self._most_bytes = MAX_TEXT_BYTES // (threads + 1 if threads > 1 else 1)

    @classmethod
    def begin(cls, tables: EventTables, flow_categories: Collection[str], threads: int) -> Decoders | None:
        """None where the decoder is not built."""
        return cls(tables, flow_categories, threads) if native.is_built() else None

    def decode_first(self, text: bytes) -> tuple[Batch, int] | None:
        """The first events of a text that starts with one, as far as each is followed by a comma and holds nothing
        unusual, and the byte behind the last comma; None where the first one does not.
        """
        part = self._own.decode(text)
        self._own = self._to_use_again(self._own)
        return (part.events, part.end) if part.end else None

    def decode_part(self, text: bytes, is_start: bool) -> EventPart[Batch]:
        """The same of a text that starts with an event only where `is_start`, on any thread; see `EventPart`."""
        try:
            records = self._resting.get_nowait()
        except Empty:
            records = self._new()
        part = records.decode(text) if is_start else records.decode_inside(text)
        self._resting.put(self._to_use_again(records))
        return part

    def _new(self) -> Records:
        return Records(self._tables, self._flow_categories)

    def _to_use_again(self, records: Records) -> Records:
        return self._new() if records.holds_more_than(self._most_bytes) else records


class Records:
    """One decoder, and what its numbers mean: adds the events that it read to tables.

    It decodes on one thread at a time, which may change; batches are added on the thread of the collector.
    """

    def __init__(self, tables: EventTables, flow_categories: Collection[str]) -> None:
        self._to = to = tables
        self._flows = sorted(flow_categories)
        slices = {category.encode(): kind for category, kind in SLICES.items()}
        # what a user gave as no UTF-8 is in no trace
        flows = {category.encode("utf-8", "surrogatepass"): number for number, category in enumerate(self._flows)}
        self._decoder = native.module.Decoder(slices, flows, int.from_bytes(os.urandom(8), "little"))
        self._spellings: list[list[bytes]] = [[] for _ in range(6)]
        names, lanes, shapes, types, modules, stacks = self._spellings
        self._names = _Meanings(names, lambda raw: to.strings.code(_text(raw)))
        self._frames = _Meanings(names, lambda raw: to.frame_name(_text(raw)))
        self._threads = _Meanings(lanes, lambda raw: to.thread(*_lane(raw)))
        self._streams = _Meanings(lanes, lambda raw: stream_of(_lane(raw)[1]))
        self._ordinals = _Meanings(lanes, lambda raw: as_int(_lane(raw)[0], MISSING))
        self._shapes = _Meanings(shapes, to.texts.shape)
        self._types = _Meanings(types, to.texts.type_list)
        self._modules = _Meanings(modules, lambda raw: to.strings.code(module_path(_text(raw))))
        self._stacks = _Meanings(stacks, lambda raw: to.strings.code(_text(raw)))

    def decode(self, text: bytes) -> EventPart[Batch]:
        """The first events of a text that starts with one, see `Decoders.decode_first`."""
        records, end = self._decoder.decode(text)
        return EventPart(self._batch(records), 0, end)

    def decode_inside(self, text: bytes) -> EventPart[Batch]:
        """The events of a text that starts anywhere, from where one seems to start."""
        records, start, end = self._decoder.decode_inside(text)
        return EventPart(self._batch(records), start, end)

    def _batch(self, records: tuple[bytes, ...]) -> Batch:
        for pool, spellings in enumerate(self._spellings):
            spellings.extend(self._decoder.new_texts(pool))
        return Batch(records, self)

    def holds_more_than(self, most_bytes: int) -> bool:
        """Whether its texts take so much memory that another one should go on."""
        return self._decoder.held_bytes() > most_bytes

    def add(self, batch: Batch, text: bytes) -> None:
        """Adds the rows of a batch of its own, which was decoded from this text."""
        tables = [
            np.frombuffer(records, dtype=kind) for records, kind in zip(batch.records, record_types(), strict=True)
        ]
        for start, end in zip(tables[THREADS]["start"].tolist(), tables[THREADS]["end"].tolist(), strict=True):
            self._to.name_thread(EVENTS.decode(b"[" + text[start:end] + b"]")[0])
        for kind, table in enumerate(tables[:THREADS]):
            if len(table):
                self._add(kind, table, text)

    def _add(self, kind: int, table: Table, text: bytes) -> None:
        to = self._to
        if kind in (OPS, ANNOTATIONS):
            self._add_ops(kind, table, text)
        elif kind == FRAMES:
            span = self._span(table, self._frames)
            names = span.pop("name")
            to.frames.add(**span, name=names >> 1, is_module=names & 1)
        elif kind in LEVEL:
            level = np.full(len(table), LEVEL[kind], dtype=np.int8)
            to.launches.add(**self._span(table, self._names), level=level, correlation=_numbers(table, 0, -1, least=0))
        elif kind in KIND:
            self._add_device(kind, table, text)
        elif kind == MEMORY:
            self._add_memory(table)
        else:
            self._add_flows(table)

    def _span(self, table: Table, names: _Meanings) -> dict[str, Any]:
        return {
            "start_ns": table["time_ns"],
            "end_ns": table["time_ns"] + table["duration_ns"],
            "thread": self._threads.of(table["lane"]),
            "name": names.of(table["name"]),
        }

    def _add_ops(self, kind: int, table: Table, text: bytes) -> None:
        to = self._to
        span = self._span(table, self._names)
        says = to.op_names.say(span["name"])
        is_marker = (says & OpNames.MARKER) > 0
        if is_marker.any():
            span, marked = ({name: column[rows] for name, column in span.items()} for rows in (~is_marker, is_marker))
            names = [to.strings[code] for code in marked["name"].tolist()]
            to.markers.add(**marked, step=[int(name.partition("#")[2]) for name in names])
            table, says = table[~is_marker], says[~is_marker]
        for row in np.flatnonzero(says & OpNames.COLLECTIVE).tolist():
            to.op_calls.append((to.ops.rows + row, to.strings[int(span["name"][row])], _args(table[row], text)))
        sequence = _numbers(table, 0, -1)
        shapes = self._shapes.of(table["shapes"])
        for row in np.flatnonzero(says & OpNames.CONVOLUTION).tolist():
            to.convolutions.add(int(span["name"][row]), int(shapes[row]), _args(table[row], text))
        to.ops.add(
            **span,
            input_shapes=shapes,
            input_types=self._types.of(table["types"]),
            module=self._modules.of(table["module"]),
            call_stack=self._stacks.of(table["call_stack"]),
            sequence=sequence,
            is_backward=(_numbers(table, 1, 0) > 0) & (sequence >= 0),
            external=_numbers(table, 2, -1, least=0),
            is_annotation=np.full(len(table), True) if kind == ANNOTATIONS else (says & OpNames.ANNOTATION) > 0,
        )

    def _add_device(self, kind: int, table: Table, text: bytes) -> None:
        to = self._to
        for row in np.flatnonzero(table["flag"] & NAMES_COLLECTIVE).tolist():
            to.kernel_calls.append((to.device.rows + row, _args(table[row], text)))
        to.device.add(
            **self._span(table, self._names),
            stream=_numbers(table, 1, self._streams.of(table["lane"])),
            ordinal=_numbers(table, 2, self._ordinals.of(table["lane"])),
            correlation=_numbers(table, 0, -1, least=0),
            bytes=_numbers(table, 3, MISSING),
            external=_numbers(table, 4, -1, least=0),
            **self._kernel_metrics(table, text),
            kind=np.full(len(table), KIND[kind], dtype=np.int8),
        )

    def _kernel_metrics(self, table: Table, text: bytes) -> dict[str, Any]:
        """Return the columns of KERNEL_METRICS; what only msgspec reads is read from the text."""
        reals = table["reals"]
        odd = np.flatnonzero(table["flag"] & HAS_ODD_REALS)
        if len(odd):
            columns = kernel_metric_columns([_args(row, text) for row in table[odd]])
            reals = reals.copy()
            reals[odd] = np.stack(list(columns.values()), axis=1)
        return {name: reals[:, position] for position, name in enumerate(KERNEL_METRICS)}

    def _add_memory(self, table: Table) -> None:
        table = table[table["numbers"][:, 0] != NO_NUMBER]  # the others say no size
        self._to.memory.add(
            time_ns=table["time_ns"],
            thread=self._threads.of(table["lane"]),
            bytes=_numbers(table, 0, MISSING),
            address=_numbers(table, 1, MISSING),
            device_type=_numbers(table, 2, 0),
            device_id=_numbers(table, 3, MISSING),
            total_allocated=_numbers(table, 4, MISSING),
            total_reserved=_numbers(table, 5, MISSING),
        )

    def _add_flows(self, table: Table) -> None:
        to = self._to
        met = each_once(table["category"]).tolist()
        codes = np.zeros(len(self._flows), dtype=np.int32)
        for number in met:
            category = self._flows[number]
            codes[number] = to.flow_codes[category] = to.strings.code(category)
        to.flows.add(
            time_ns=table["time_ns"],
            thread=self._threads.of(table["lane"]),
            id=_numbers(table, 0, -1),
            category=codes[table["category"]],
            is_end=table["flag"],
        )


def _numbers(table: Table, slot: int, missing: int | I64, *, least: int = NO_NUMBER + 1) -> I64:
    """The numbers in a slot of records, `missing` where there is none, or one below `least`."""
    column: I64 = table["numbers"][:, slot]
    return np.where(column < least, missing, column)


def _text(raw: bytes) -> str:
    """A text as it stands between its quotes."""
    return _TEXT(b'"' + raw + b'"')


def _lane(raw: bytes) -> tuple[int | str | None, int | str | None]:
    """pid and tid as they stand there, a NUL between them."""
    pid, tid = raw.split(b"\0")
    return _PID_OR_TID(pid) if pid else None, _PID_OR_TID(tid) if tid else None


def _args(record: Any, text: bytes) -> Args:
    """The args of one record, decoded, to be kept."""
    start, end = int(record["start"]), int(record["end"])
    return kept(ARGS.decode(text[start:end])) if end else NO_ARGS
