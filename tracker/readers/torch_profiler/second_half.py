"""The second half of a large trace, read by a process of its own while the first is read here.

The process guesses the start of an event behind the middle and tells it; the reader of the first half proves the guess
by arriving there with whole events. Where anything goes wrong the file is read by one process, which says what is
wrong with it. The rows come in the order in which one process would have read them.

Nothing heavy is imported here: a command starts the process first, and gets ready itself while that one reads.
"""

from __future__ import annotations

import os
import pickle  # only ever from the process that this module starts
import select
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast

from tracker.readers._process import Process, pipe, processors, start_process
from tracker.readers._source import GZIP_MAGIC, ReadOptions, open_source

if TYPE_CHECKING:
    from tracker.readers.torch_profiler.collector import Collector

MIN_BYTES: Final = 96 << 20
"""Below this a second process costs more than it saves."""

START_BYTES: Final = 40 << 20
"""What is read here until a process has started that did not start ahead."""

PLACE_BYTES: Final = 16
"""How long the place is that the process tells first."""

_AHEAD: Final[dict[Path, SecondHalf]] = {}
"""Those that were begun before their trace is read."""


class SecondHalf:
    """A `Rest` of EventTexts: reads the trace at `path` from some event behind byte `near` on."""

    def __init__(self, path: Path, options: ReadOptions, near: int) -> None:
        self._job = (path, replace(options, progress=None, one_process=True), near)
        self._process: Process | None = None
        self._place: int | None = None
        self.top_text = b""

    def begin(self, *, may_fork: bool = False) -> None:
        """Starts the process if it was not yet, see `start_process`; where that fails, it never begins."""
        if self._process is None:
            with suppress(OSError):
                self._process = start_process(f"{__package__}.second_reader", may_fork=may_fork)
                pickle.dump(self._job, pipe(self._process.stdin))
                pipe(self._process.stdin).close()

    def reads(self, options: ReadOptions) -> bool:
        """Whether it reads under these options."""
        return self._job[1] == replace(options, progress=None, one_process=True)

    def begins_at(self) -> int | None:
        """The byte at which the process begins, once it said so."""
        if self._place is None and self._process is not None:
            out = pipe(self._process.stdout)
            if _can_read(out):
                place = out.read(PLACE_BYTES)
                if len(place) == PLACE_BYTES:
                    self._place = int.from_bytes(place, "big")
                else:
                    self.end()
        return self._place

    def add_to(self, collector: Collector) -> bool:
        """Adds what the process read behind what is in there; False where it could not read all of it."""
        from tracker.readers.torch_profiler import second_reader

        out = pipe(cast("Process", self._process).stdout)
        try:
            state = pickle.load(out)
            self.top_text = state["top_text"]
            second_reader.absorb(collector, state, out)
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
def ahead(path: Path, options: ReadOptions) -> Iterator[None]:
    """Begins to read the second half of the trace at `path`, if it is large, for the one who reads it in here."""
    half = _half_of(path, options, start_bytes=0)
    if half is None:
        yield
        return
    half.begin(may_fork=True)
    _AHEAD[path] = half
    try:
        yield
    finally:
        _AHEAD.pop(path, None)
        half.end()


@contextmanager
def beside(path: Path, options: ReadOptions) -> Iterator[SecondHalf | None]:
    """The second half of the trace at `path`; None where one process reads it as fast."""
    half = _AHEAD.pop(path, None)
    if half is None or options.one_process or not half.reads(options):
        half = _half_of(path, options, START_BYTES)
    if half is None:
        yield None
        return
    try:
        yield half
    finally:
        half.end()


def _half_of(path: Path, options: ReadOptions, start_bytes: int) -> SecondHalf | None:
    size = 0 if options.one_process or processors() < 2 or os.name != "posix" else _content_bytes(path)
    return SecondHalf(path, options, (size + start_bytes) // 2) if MIN_BYTES <= size <= options.max_bytes else None


def _can_read(out: IO[bytes], wait_ms: int = 0) -> bool:
    """Whether the process said something, or ended; unlike select() for any number of open files."""
    poll = select.poll()
    poll.register(out, select.POLLIN)
    return bool(poll.poll(wait_ms))


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
