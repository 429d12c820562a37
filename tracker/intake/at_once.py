"""All profiles of an ingest: the ranks of a run at once, one process per profile and processor, or one by one.

A process reads profiles and sends their rows; the one that asked forms the runs and writes them, as if it had read the
files itself.
"""

from __future__ import annotations

import os
import pickle  # only ever between this process and those that it starts
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tracker import readers
from tracker.errors import SourceError, TrackerError, UsageError
from tracker.intake.pieces import IngestOptions, Piece, read_pieces
from tracker.limits.deadline import READ_S
from tracker.limits.files import identify_file
from tracker.limits.processes import Process, can_fork, pipe, processors, start_process
from tracker.limits.supervision import keep_freed_memory
from tracker.limits.touch import keeps_diary, touch
from tracker.profile.packed_tables import pack_tables
from tracker.readers import Found, NotRecognised, Search

MIN_BYTES: Final = 96 << 20
"""Beside the largest profile: for less it costs more to start processes than they save."""

MAX_BYTES_AHEAD: Final = 1 << 30
"""Of profiles that a copy of this process reads while this one gets ready: what two processes hold of larger ones
counts more than half a second.
"""

TOLD_EVERY_S: Final = 0.1

_Content = list[Piece] | TrackerError | None
_Progress = tuple[int, int]


class _Ear(Struct):
    """Hears how far the processes are, and tells it of the profile that is waited for."""

    report: Callable[[str, int, int], None] | None = None
    waits_for: Found | None = None

    def hear(self, found: Found, done: int, total: int) -> None:
        if self.report is not None and self.waits_for is found:
            self.report(found.path.name, done, total)


class _Contents(Struct, frozen=True):
    """What processes read of each profile, in the end; None where they could not. What was received is held no more."""

    waiting: deque[tuple[Found, Future[_Content]]]
    ear: _Ear
    readers_at_work: _Readers


class _Begun(Struct, frozen=True):
    """What was begun before it is asked for."""

    options: IngestOptions
    contents: _Contents


_AHEAD: Final[dict[tuple[Found, ...], _Begun]] = {}


class All(Struct, frozen=True):
    """The captures of all profiles, each file once, in order; `warnings` and `passed` as in `readers.Search`.

    `failed`: why some could not be read, where the options say to keep going.
    """

    pieces: list[Piece]
    warnings: tuple[str, ...]
    passed: tuple[NotRecognised, ...] = ()
    failed: tuple[TrackerError, ...] = ()


def read_all(paths: Sequence[Path], options: IngestOptions) -> All:
    """All that is under `paths`."""
    if keeps_diary():
        # a process of our own: how a program that uses the package keeps its memory is not ours to say
        keep_freed_memory()
    below = _find_all(paths, options)
    read = options.read_with or _read_here
    pieces: list[Piece] = []
    failed: list[TrackerError] = list(below.problems)
    counted = _Counted(options.on_progress, len(below.found))
    if options.on_progress is not None:
        options = replace(options, on_progress=counted.report)
    try:
        for content in read(below.found, options):
            counted.number += 1
            if isinstance(content, TrackerError):
                failed.append(content)
            elif len(below.found) > 1:
                pieces += [_pack(piece) for piece in content]
            else:
                pieces += content
    except SourceError as error:
        if len(below.found) > 1:
            _offer_to_keep_going(error)
        raise
    return All(pieces, below.warnings, below.passed, tuple(failed))


def _pack(piece: Piece) -> Piece:
    """Return a piece with packed rows, which wait until those of all profiles are read."""
    return replace(piece, capture=pack_tables(piece.capture))


class _Counted:
    """A count of the profiles that are read, in front of their names. `number`: of the one that is read, from 1."""

    def __init__(self, report: Callable[[str, int, int], None] | None, of: int) -> None:
        self.number = 1
        self._report = report
        self._of = of

    def report(self, label: str, done: int, total: int) -> None:
        """Pass on how far the reading of `label` is."""
        if self._report is not None:
            several = f"{min(self.number, self._of):,} of {self._of:,}: " if self._of > 1 else ""
            self._report(f"{several}{label}", done, total)


def _offer_to_keep_going(error: TrackerError) -> None:
    """Says beside an error of one of several profiles how the others are read."""
    offer = "tracker ingest --keep-going leaves it out and reads the others"
    error.remedy = "; ".join(filter(None, [error.remedy, offer]))


@contextmanager
def ahead(paths: Sequence[Path], options: IngestOptions) -> Iterator[None]:
    """Begins to read, in copies of this process, while the caller still gets ready for `read_all`.

    That must happen inside of this context and under the same options; what is not read is given up at its end.
    """
    found = _find_all(paths, options).found
    count = _processes_for(found, options)
    if count < 2 and not _is_worth_a_copy(found, options):
        yield
        return
    with _reading(found, options, count, may_fork=True) as contents:
        _AHEAD[found] = _Begun(_alone(options), contents)
        try:
            yield
        finally:
            _AHEAD.pop(found, None)


def _find_all(paths: Sequence[Path], options: IngestOptions) -> Search:
    found: dict[tuple[int, int] | str, Found] = {}
    warnings: dict[str, None] = {}
    passed: dict[NotRecognised, None] = {}
    problems: list[SourceError] = []
    for path in paths:
        if path in options.places and not any(
            seen.claims or seen.problem for seen in readers.survey(path, options.format)
        ):
            reason = "no profile in this folder" if path.is_dir() else readers.why(path)
            passed[NotRecognised(str(path), reason)] = None
            continue
        try:
            below = readers.search(path, options.format, keep_going=options.keep_going)
        except SourceError as error:
            if not options.keep_going:
                if os.path.isdir(path) and str(path) != error.path:
                    _offer_to_keep_going(error)
                raise
            problems.append(error)
            continue
        warnings |= dict.fromkeys(below.warnings)
        passed |= dict.fromkeys(below.passed)
        problems += below.problems
        for item in below.found:
            with touch(item.path):
                found.setdefault(identify_file(item.path), item)
    return Search(tuple(found.values()), tuple(warnings), tuple(passed), tuple(problems))


def _content(item: Found, options: IngestOptions) -> list[Piece] | TrackerError:
    """The captures of a profile; where the options say to keep going, why it cannot be read."""
    try:
        return read_pieces(item, options)
    except (SourceError, UsageError) as error:
        if not options.keep_going:
            raise
        return error


def _read_here(found: Sequence[Found], options: IngestOptions) -> Iterator[list[Piece] | TrackerError]:
    count = _processes_for(found, options)
    begun = _AHEAD.pop(tuple(found), None)
    if begun is not None:
        try:
            if begun.options == _alone(options):
                yield from _received(begun.contents, options)
                return
        finally:  # neither is needed any longer: the processes that have read, those that read otherwise
            begun.contents.readers_at_work.give_up()
    if count < 2:
        yield from (_content(item, options) for item in found)
    else:
        yield from read_at_once(found, options, count)


def _processes_for(found: Sequence[Found], options: IngestOptions) -> int:
    """How many processes read so many profiles at once; 1: they are read here."""
    if options.one_process or os.name != "posix":
        return 1
    sizes = sorted(_bytes(item.path) for item in found)
    return min(len(found), processors()) if sum(sizes[:-1]) >= MIN_BYTES else 1


def _is_worth_a_copy(found: Sequence[Found], options: IngestOptions) -> bool:
    """Whether a copy of this process shall read, so that this one can get ready meanwhile."""
    if options.one_process or processors() < 2 or not can_fork():
        return False
    return sum(_bytes(item.path) for item in found) <= MAX_BYTES_AHEAD


def _bytes(path: Path) -> int:
    with touch(path):
        files = path.rglob("*") if path.is_dir() else (path,)
        return sum(file.stat().st_size for file in files if file.is_file())


def read_at_once(found: Sequence[Found], options: IngestOptions, count: int) -> Iterator[list[Piece] | TrackerError]:
    """The captures of each profile, in order, read by `count` processes.

    The first that cannot be read ends it, or gives its error where the options say to keep going.

    What a process dies over is read here, where it says why.
    """
    with _reading(found, options, count) as contents:
        yield from _received(contents, options)


def _alone(options: IngestOptions) -> IngestOptions:
    """The options of a process that reads some of the profiles."""
    return replace(options, one_process=True, on_progress=None, read_with=None)


@contextmanager
def _reading(
    found: Sequence[Found], options: IngestOptions, count: int, *, may_fork: bool = False
) -> Iterator[_Contents]:
    # what reads beside others gets its share of the processors
    job, ear = replace(_alone(options), threads=max(1, processors() // count)), _Ear()
    # what still reads when this ends is ended first, so that no thread waits for it
    with ThreadPoolExecutor(count) as threads, closing(_Readers(count, may_fork)) as readers_at_work:

        def read(item: Found) -> _Content:
            if not readers_at_work:
                return None
            process, content = readers_at_work.free.get(), None
            try:
                content = _ask(process, (item, job), partial(ear.hear, item))
                return content
            finally:
                # a dead one would have no answer at once, again and again, and so take nearly all that is left
                readers_at_work.free.put(readers_at_work.another(process) if content is None else process)

        try:
            yield _Contents(deque((item, threads.submit(read, item)) for item in found), ear, readers_at_work)
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def _received(contents: _Contents, options: IngestOptions) -> Iterator[list[Piece] | TrackerError]:
    contents.ear.report = options.on_progress
    while contents.waiting:
        item, future = contents.waiting.popleft()
        contents.ear.waits_for = item
        with touch(item.path, READ_S):
            content = future.result()
        if isinstance(content, TrackerError) and not options.keep_going:
            raise content
        if content is None:
            content = _content(item, options)
        if options.on_progress is not None:
            size = max(1, _bytes(item.path))
            options.on_progress(item.path.name, size, size)
        yield content


class _Readers:
    """Up to so many processes that read; none where none can be started. `free`: those that wait for work."""

    def __init__(self, count: int, may_fork: bool) -> None:
        self.free: SimpleQueue[Process] = SimpleQueue()
        self._started: list[Process] = []
        self._lock = Lock()
        self._closed = False
        with suppress(OSError):
            for _ in range(count):
                self._started.append(start_process(__name__, may_fork=may_fork))
                self.free.put(self._started[-1])

    def __bool__(self) -> bool:
        return bool(self._started)

    def another(self, dead: Process) -> Process:
        """One in place of one that died, itself where none can be started; no copy, since there are threads now."""
        with self._lock, suppress(OSError):
            if not self._closed:
                self._started.append(start_process(__name__))
                return self._started[-1]
        return dead

    def give_up(self) -> None:
        """End all of them, whatever they do, and wait for none: each takes a while to give its memory back."""
        with self._lock:
            if self._closed:  # the system may have given their numbers to others
                return
            self._closed = True
        for process in self._started:
            process.kill()

    def close(self) -> None:
        """End all of them, and wait until they have."""
        self.give_up()
        for process in self._started:
            for end in (process.stdin, process.stdout):
                with suppress(BrokenPipeError):
                    pipe(end).close()
            process.wait()


def _ask(process: Process, job: Any, hear: Callable[[int, int], None]) -> _Content:
    """What the process read; None where it died. `hear`: is told how many bytes of how many it has read."""
    try:
        pickle.dump(job, pipe(process.stdin))
        pipe(process.stdin).flush()
        said: list[Piece] | TrackerError | _Progress = pickle.load(pipe(process.stdout))
        while isinstance(said, tuple):
            hear(*said)
            said = pickle.load(pipe(process.stdout))
    except (EOFError, OSError, pickle.UnpicklingError):
        return None
    return said


def main() -> None:
    """The other process: profiles come in, one by one, and their captures go out."""
    keep_freed_memory()
    while True:
        try:
            found, options = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        content: list[Piece] | TrackerError
        try:
            content = read_pieces(found, replace(options, on_progress=_telling()))
        except (SourceError, UsageError) as error:
            content = error
        _say(content)


def _telling() -> Callable[[str, int, int], None]:
    """Says now and then how far this process is; so it ends, too, where nobody is there any longer who listens."""
    last = time.monotonic()

    def report(_label: str, done: int, total: int) -> None:
        nonlocal last
        if (now := time.monotonic()) - last > TOLD_EVERY_S:
            last = now
            _say((done, total))

    return report


def _say(what: list[Piece] | TrackerError | _Progress) -> None:
    pickle.dump(what, sys.stdout.buffer, protocol=pickle.HIGHEST_PROTOCOL)
    sys.stdout.buffer.flush()
