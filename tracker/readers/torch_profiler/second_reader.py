"""The process that reads the second half of a trace, and what becomes of its rows in the one that asked for them."""

from __future__ import annotations

import pickle  # only ever between this process and the one that started it
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final, cast

import msgspec
import numpy as np

from tracker.profile import I64
from tracker.readers._event_texts import EventTexts
from tracker.readers._growing import Growing
from tracker.readers._pause import collector_paused
from tracker.readers._source import ReadOptions, SourceText, content_blocks, open_source
from tracker.readers.torch_profiler.collector import Collector
from tracker.readers.torch_profiler.schema import EVENTS
from tracker.readers.torch_profiler.second_half import PLACE_BYTES

_EVENT: Final = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|cat|name|pid|tid|ts|args)"\s*:)')
_TABLES: Final = ("ops", "frames", "launches", "device", "memory", "flows", "markers")
_TEXTS: Final = ("name", "input_shapes", "input_types", "module", "call_stack", "category")
_TRIED_EVENTS: Final = 16


def absorb(collector: Collector, state: dict[str, Any], columns: IO[bytes]) -> None:
    """Adds the rows that the process sent to those of `collector`."""
    codes = np.array([collector.strings.code(text) for text in state["texts"]], dtype=np.int32)
    lanes = [collector.threads.setdefault(key, len(collector.threads)) for key in state["threads"]]
    threads = np.array(lanes, dtype=np.int32)
    flow_ids = [collector.flow_ids.setdefault(key, len(collector.flow_ids)) for key in state["flow_ids"]]
    collector.thread_names.update({lanes[thread]: name for thread, name in state["thread_names"].items()})
    collector.flow_codes.update({name: int(codes[code]) for name, code in state["flow_codes"].items()})
    collector.skipped += state["skipped"]
    first_op, first_kernel = collector.ops.rows, collector.device.rows
    collector.op_calls += [(first_op + row, name, args) for row, name, args in state["op_calls"]]
    collector.kernel_calls += [(first_kernel + row, args) for row, args in state["kernel_calls"]]
    for name in _TABLES:
        table: Growing = getattr(collector, name)
        block = {column: _received(columns, dtype, state["rows"][name]) for column, dtype in table.dtypes.items()}
        for column in block:
            if column == "thread":
                block[column] = threads[block[column]]
            elif column in _TEXTS:
                block[column] = codes[block[column]]
        if name == "flows":
            block["id"] = _own_ids(block["id"], flow_ids)
        table.add(**block)


def _own_ids(ids: I64, numbers: list[int]) -> I64:
    """Ids that are numbered (negative) become those of this process."""
    numbered = ids < 0
    ids[numbered] = -1 - np.array(numbers, dtype=np.int64)[-1 - ids[numbered]]
    return ids


def _received(pipe: IO[bytes], dtype: type, rows: int) -> np.ndarray[Any, Any]:
    column: np.ndarray[Any, Any] = np.empty(rows, dtype=dtype)
    view = column.view(np.uint8).data
    while len(view):
        count = cast("Any", pipe).readinto(view)
        if not count:
            raise EOFError
        view = view[count:]
    return column


def main() -> None:
    """The other process: a job comes in, the place where it begins goes out, then what it read."""
    path, options, near = pickle.load(sys.stdin.buffer)
    out = sys.stdout.buffer
    place = _first_event(path, near)
    out.write(place.to_bytes(PLACE_BYTES, "big"))
    out.flush()
    collector = Collector(path, options)
    text = SourceText(path, options, start=place)
    chunks: EventTexts[list[Any]] = EventTexts(
        text, collector.decoder(EVENTS.decode), exporter="", inside=_head(path, options)
    )
    with collector_paused():
        for chunk in chunks:
            collector.add(chunk)
        if not text.ended_early:
            _send(collector, chunks.top_text, out)


def _head(path: Path, options: ReadOptions) -> bytes:
    """What stands in front of the events."""
    return EventTexts(SourceText(path, options), EVENTS.decode, exporter="").read_head()


def _first_event(path: Path, near: int) -> int:
    """The byte of the content at which the first event behind byte `near` starts, as far as the next ones tell."""
    with open_source(path) as file:
        block = next(content_blocks(path, file, start=near))
    cuts = [(cut.start() + 1, cut.end()) for cut in _EVENT.finditer(block)]
    for number, (_, start) in enumerate(cuts[:-1]):
        end = cuts[min(number + _TRIED_EVENTS, len(cuts) - 1)][0]
        with suppress(msgspec.DecodeError):  # so starts what lies inside of an event, or of a text
            EVENTS.decode(b"[" + block[start:end] + b"]")
            return near + start
    raise SystemExit(1)


def _send(collector: Collector, top_text: bytes, out: IO[bytes]) -> None:
    tables: dict[str, Growing] = {name: getattr(collector, name) for name in _TABLES}
    state = {
        "top_text": top_text,
        "texts": collector.strings.texts,
        "threads": list(collector.threads),
        "thread_names": collector.thread_names,
        "flow_ids": list(collector.flow_ids),
        "flow_codes": collector.flow_codes,
        "skipped": collector.skipped,
        "op_calls": collector.op_calls,
        "kernel_calls": collector.kernel_calls,
        "rows": {name: table.rows for name, table in tables.items()},
    }
    pickle.dump(state, out)
    for table in tables.values():
        for column in table.done().values():
            out.write(column.view(np.uint8).data)
    out.flush()
