"""Marks every touch of a foreign file with its path and its deadline; whoever keeps watch ends a touch that is late.

A touch is whatever may wait for a disk: a look at a path, a folder that is listed, a block that is read. Two watch:

- In a command in the foreground (`guarded`), a timer of the system raises the error in the middle of a pattern that
  does not end, or of a wait that a signal breaks off.
- A call of the system that no signal breaks off, as on a disk that is gone, ends with its process or not even with
  that. So each touch is written down on a page of memory (`keep_diary`) that another process reads, which kills the
  one that is late, or leaves it, and says the error: `limits.supervision` for commands, `intake.touching` for watchers.

Elsewhere, as in a program that uses the package, a mark costs nothing and does nothing.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, TypeVar

from msgspec import Struct

from tracker.errors import SourceError
from tracker.limits.deadline import LOOK_S

Item = TypeVar("Item")

GRACE_S: Final = 5.0
"""Between the error and the end of a process that did not notice it."""

PAGE_BYTES: Final = 8192
"""Room for one path; the longest that systems take has 4,096 bytes."""

_HEAD: Final = struct.Struct("<ddI")
"""Of a page: when the touch is late, by the clock that does not go back; the seconds it may take; bytes of its path."""

_SOON_S: Final = 1e-6  # 0 would stop the timer
_STOPPED_S: Final = 1.0
"""A timer that comes later than this came to a process that did not run."""

_REMEDY: Final = "see whether its disk answers"


class LateError(SourceError):
    """A touch that took longer than it may."""

    def __init__(self, path: str | os.PathLike[str], seconds: float) -> None:
        super().__init__(path, "", f"to look at it took longer than {seconds:g} s", remedy=_REMEDY)


class Touched(Struct, frozen=True):
    """What another process touches right now: `until` by the clock that does not go back, at most `seconds` long."""

    path: str
    until: float
    seconds: float


class touch:
    """Within the block, the file or folder at `path` is touched, for at most `seconds`.

    LateError where it takes longer and a watch is kept; of touches within each other, about the innermost.
    """

    __slots__ = ("is_restarted", "path", "seconds", "until")

    def __init__(self, path: str | os.PathLike[str], seconds: float | None = None) -> None:
        self.path = path
        self.seconds = LOOK_S if seconds is None else seconds
        self.until = 0.0
        self.is_restarted = False

    def __enter__(self) -> None:
        if not (_Kept.has_timer or _Kept.page is not None):
            return
        self.until = time.monotonic() + self.seconds
        if _under_way:
            self.until = min(self.until, _under_way[-1].until)
        _under_way.append(self)
        _tell()

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        while self in _under_way:
            _under_way.pop()  # and with it one that was broken off before it began
        if isinstance(error, LateError) and _under_way:
            # those around it are as late, and are not to raise an error of their own on the way
            around = _under_way[-1]
            around.until = max(around.until, time.monotonic() + GRACE_S)
        if self.until:
            _tell()


_under_way: Final[list[touch]] = []
"""The touches of this process, the outermost first."""


class _Kept:
    """Who watches over this process: a timer, and another one that reads a page, if any."""

    has_timer = False
    page: mmap.mmap | None = None


def _tell() -> None:
    """Tell both who watch of the innermost touch.

    The timer comes again and again from then on: what reads may take the error for one of its own.
    """
    last = _under_way[-1] if _under_way else None
    if _Kept.page is not None:
        path = b"" if last is None else os.fsencode(last.path)[: PAGE_BYTES - _HEAD.size]
        head = _HEAD.pack(0.0, 0.0, 0) if last is None else _HEAD.pack(last.until, last.seconds, len(path))
        _Kept.page[: _HEAD.size + len(path)] = head + path
    if _Kept.has_timer:
        rest = 0.0 if last is None else max(last.until - time.monotonic(), _SOON_S)
        signal.setitimer(signal.ITIMER_REAL, rest, GRACE_S)


def touch_each(items: Iterator[Item], path: str | os.PathLike[str]) -> Iterator[Item]:
    """Yield the items; to make each of them is a touch of `path`, what is done with it is none."""
    while True:
        with touch(path):
            try:
                item = next(items)
            except StopIteration:
                return
        yield item


@contextmanager
def guarded() -> Iterator[None]:
    """Within the block, a touch that is late ends with LateError, where a signal can break it off.

    Nothing is watched outside of the main thread, which alone hears signals.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    had_timer, _Kept.has_timer = _Kept.has_timer, True
    before = signal.signal(signal.SIGALRM, _raise_late)
    try:
        yield
    finally:
        _Kept.has_timer = had_timer
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _raise_late(_signal: int, _frame: FrameType | None) -> None:
    """Raise the error of a touch that is late, in the middle of what the main thread does."""
    if not _under_way:
        return
    last = _under_way[-1]
    late_s = time.monotonic() - last.until
    if late_s < 0:
        return
    if late_s > _STOPPED_S and not last.is_restarted:
        _restart_touches()
        return
    last.is_restarted = True
    raise LateError(last.path, last.seconds)


def _restart_touches() -> None:
    """Give the touches under way their time again, once: the process was stopped at a terminal, say, and goes on."""
    until = float("inf")
    for each in _under_way:
        until = min(until, time.monotonic() + each.seconds)
        each.until = until
        each.is_restarted = True
    _tell()


def leave_to_the_other() -> None:
    """In a copy of a process: the other one watches over what the copy does."""
    _Kept.has_timer = False
    _Kept.page = None
    _under_way.clear()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


def keep_diary(page: mmap.mmap) -> None:
    """Write down each touch from now on, on a page of PAGE_BYTES that another process reads."""
    _Kept.page = page


def keeps_diary() -> bool:
    """Return whether another process watches over this one: a command or a watcher of tracker started it then, and not
    a program that uses the package.
    """
    return _Kept.page is not None


def read_diary(page: mmap.mmap) -> Touched | None:
    """Return what the process that keeps this diary touches right now, None where it touches nothing."""
    until, seconds, length = _HEAD.unpack(page[: _HEAD.size])
    path = os.fsdecode(page[_HEAD.size : _HEAD.size + min(length, PAGE_BYTES)])
    return Touched(path, until, seconds) if until else None
