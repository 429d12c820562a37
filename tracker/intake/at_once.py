"""All profiles of an ingest: the ranks of a run at once, one process per profile and processor, or one by one.

A process reads profiles and sends their rows; the one that asked forms the runs and writes them, as if it had read the
files itself.
"""

from __future__ import annotations

import os
import pickle  # only ever between this process and those that it starts
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from tracker import readers
from tracker.errors import SourceError, TrackerError, UsageError
from tracker.intake.pieces import IngestOptions, Piece, read_pieces
from tracker.readers import Found
from tracker.readers._process import pipe, processors, start_process

MIN_BYTES: Final = 96 << 20
"""Beside the largest profile: for less it costs more to start processes than they save."""

Process = subprocess.Popen[bytes]


def read_all(paths: Sequence[Path], options: IngestOptions) -> list[Piece]:
    """The captures of all profiles under `paths`, each file once, in order."""
    found: dict[Path, Found] = {}
    for path in paths:
        for item in readers.find(path, options.format):
            found.setdefault(item.path.resolve(), item)
    items = list(found.values())
    read = options.read_with or _read_here
    return [piece for pieces in read(items, options) for piece in pieces]


def _read_here(found: Sequence[Found], options: IngestOptions) -> Iterator[list[Piece]]:
    count = min(len(found), processors())
    if options.one_process or count < 2 or os.name != "posix" or not _is_worth_it(found):
        yield from (read_pieces(item, options) for item in found)
        return
    yield from read_at_once(found, options, count)


def _is_worth_it(found: Sequence[Found]) -> bool:
    sizes = sorted(_bytes(item.path) for item in found)
    return sum(sizes[:-1]) >= MIN_BYTES


def _bytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else (path,)
    return sum(file.stat().st_size for file in files if file.is_file())


def read_at_once(found: Sequence[Found], options: IngestOptions, count: int) -> Iterator[list[Piece]]:
    """The captures of each profile, in order, read by `count` processes; the first that cannot be read ends it.

    What a process dies over is read here, where it says why.
    """
    alone = replace(options, one_process=True, on_progress=None, read_with=None)
    # what still reads when this ends is ended first, so that no thread waits for it
    with ThreadPoolExecutor(count) as threads, _readers(count) as free:

        def read(item: Found) -> list[Piece] | TrackerError | None:
            if free is None:
                return None
            process = free.get()
            try:
                return _ask(process, (item, alone))
            finally:
                free.put(process)

        futures = [threads.submit(read, item) for item in found]
        try:
            for item, future in zip(found, futures, strict=True):
                content = future.result()
                if isinstance(content, TrackerError):
                    raise content
                yield read_pieces(item, options) if content is None else content
                if options.on_progress is not None:
                    size = max(1, _bytes(item.path))
                    options.on_progress(item.path.name, size, size)
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _readers(count: int) -> Iterator[SimpleQueue[Process] | None]:
    """Up to so many processes that read, those that are free; None where none can be started."""
    free: SimpleQueue[Process] = SimpleQueue()
    with ExitStack() as stack:
        with suppress(OSError):
            for _ in range(count):
                process = start_process(__name__)
                stack.callback(_end, process)
                free.put(process)
        yield None if free.empty() else free


def _end(process: Process) -> None:
    process.kill()
    for end in (process.stdin, process.stdout):
        with suppress(BrokenPipeError):
            pipe(end).close()
    process.wait()


def _ask(process: Process, job: Any) -> list[Piece] | TrackerError | None:
    """What the process read; None where it died."""
    try:
        pickle.dump(job, pipe(process.stdin))
        pipe(process.stdin).flush()
        content: list[Piece] | TrackerError = pickle.load(pipe(process.stdout))
    except (EOFError, OSError, pickle.UnpicklingError):
        return None
    return content


def main() -> None:
    """The other process: profiles come in, one by one, and their captures go out."""
    while True:
        try:
            found, options = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        content: list[Piece] | TrackerError
        try:
            content = read_pieces(found, options)
        except (SourceError, UsageError) as error:
            content = error
        pickle.dump(content, sys.stdout.buffer, protocol=pickle.HIGHEST_PROTOCOL)
        sys.stdout.buffer.flush()
