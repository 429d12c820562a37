"""The second half of a large trace, read by a process of its own while the first is read here.

The process guesses the start of an event behind the middle and tells it; the reader of the first half proves the guess
by arriving there with whole events. Where anything goes wrong the file is read by one process, which says what is
wrong with it. The rows come in the order in which one process would have read them.
"""

from __future__ import annotations

import os
import pickle  # only ever from the process that this module starts
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final, cast

import msgspec
import numpy as np

from tracker.profile import I64
from tracker.readers._event_texts import EventTexts
from tracker.readers._growing import Growing
from tracker.readers._pause import collector_paused
from tracker.readers._process import pipe, processors, start_process
from tracker.readers._source import GZIP_MAGIC, ReadOptions, SourceText, content_blocks, open_source
from tracker.readers.torch_profiler.collector import Collector
from tracker.readers.torch_profiler.schema import EVENTS

MIN_BYTES: Final = 96 << 20
"""Below this a second process costs more than it saves."""

START_BYTES: Final = 40 << 20
"""What is read here until the other process has started."""

_EVENT: Final = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|cat|name|pid|tid|ts|args)"\s*:)')
_TABLES: Final = ("ops", "frames", "launches", "device", "memory", "flows", "markers")
_TEXTS: Final = ("name", "input_shapes", "input_types", "module", "call_stack", "category")
_PLACE_BYTES: Final = 16
_TRIED_EVENTS: Final = 16


class SecondHalf:
    """A `Rest` of EventTexts: reads the trace at `path` from some event behind byte `near` on."""

    def __init__(self, path: Path, options: ReadOptions, chunk_bytes: int, near: int) -> None:
        self._job = (path, replace(options, progress=None, one_process=True), chunk_bytes, near)
        self._process: subprocess.Popen[bytes] | None = None
        self._place: int | None = None
        self.top_text = b""

    def begin(self, head: bytes) -> None:
        """Starts the process; where that fails, it never begins."""
        with suppress(OSError):
            self._process = start_process(__name__)
            pickle.dump((*self._job, head), pipe(self._process.stdin))
            pipe(self._process.stdin).close()

    def begins_at(self) -> int | None:
        """The byte at which the process begins, once it said so."""
        if self._place is None and self._process is not None:
            out = pipe(self._process.stdout)
            if select.select([out], [], [], 0)[0]:
                place = out.read(_PLACE_BYTES)
                if len(place) == _PLACE_BYTES:
                    self._place = int.from_bytes(place, "big")
                else:
                    self.end()
        return self._place

    def add_to(self, collector: Collector) -> bool:
        """Adds what the process read behind what is in there; False where it could not read all of it."""
        out = pipe(cast("subprocess.Popen[bytes]", self._process).stdout)
        try:
            state = pickle.load(out)
            self.top_text = state["top_text"]
            _absorb(collector, state, out)
        except (EOFError, pickle.UnpicklingError, OSError):
            return False
        return True

    def end(self) -> None:
        """Ends the process if it still runs."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            pipe(process.stdout).close()
            process.wait()


@contextmanager
def beside(path: Path, options: ReadOptions, chunk_bytes: int) -> Iterator[SecondHalf | None]:
    """The second half of the trace at `path`; None where one process reads it as fast."""
    size = 0 if options.one_process or processors() < 2 or os.name != "posix" else _content_bytes(path)
    if not MIN_BYTES <= size <= options.max_bytes:
        yield None
        return
    half = SecondHalf(path, options, chunk_bytes, (size + START_BYTES) // 2)
    try:
        yield half
    finally:
        half.end()


def _content_bytes(path: Path) -> int:
    """Bytes of the content; for gzip what its last member says, modulo 4 GiB, or 0 where that cannot be true."""
    with open_source(path) as file:
        is_gzip = file.read(2) == GZIP_MAGIC
        size = file.seek(0, os.SEEK_END)
        if not is_gzip:
            return size
        file.seek(-4, os.SEEK_END)
        said = int.from_bytes(file.read(4), "little")
        return said if said > size else 0


def _absorb(collector: Collector, state: dict[str, Any], columns: IO[bytes]) -> None:
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
    path, options, chunk_bytes, near, head = pickle.load(sys.stdin.buffer)
    out = sys.stdout.buffer
    place = _first_event(path, near)
    out.write(place.to_bytes(_PLACE_BYTES, "big"))
    out.flush()
    collector = Collector(path, options)
    text = SourceText(path, options, start=place)
    chunks: EventTexts[list[Any]] = EventTexts(
        text, collector.decoder(EVENTS.decode), exporter="", chunk_bytes=chunk_bytes, inside=head
    )
    with collector_paused():
        for chunk in chunks:
            collector.add(chunk)
        if not text.ended_early:
            _send(collector, chunks.top_text, out)


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
