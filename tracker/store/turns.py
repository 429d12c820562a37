"""Turns at a SQLite file: processes of one machine that wait for each other, in the order in which they came.

SQLite has its writers look again and again whether the file is free, the more seldom the longer they wait: newcomers
overtake whoever waits longest. A lock of the operating system (flock) on a file beside the database lets them queue up
instead. It is a queue and no more: where there is no such lock, SQLite's own still keeps the data whole.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:  # a system without it
    fcntl = None  # type: ignore[assignment]

_MODE: Final = 0o666
"""Less what the umask takes; who may only read the file can queue up as well."""


class TooLong(Exception):
    """The turn did not come in time."""


@contextmanager
def turn(path: Path | None, seconds: float) -> Iterator[None]:
    """Be the only one, of all processes and threads, within this block; None: nobody else is there to wait for.

    Whoever asked first goes first, and a process that died waits for nothing and keeps nobody waiting. TooLong after so
    many seconds. The file stays: were it removed, two could hold what each takes for the one lock.
    """
    file = _opened(path)
    if file is None:
        yield
        return
    if not _locked(file, seconds):
        raise TooLong
    try:
        yield
    finally:
        _give_back(file)


def _opened(path: Path | None) -> int | None:
    if path is None or fcntl is None:
        return None
    with suppress(OSError):  # a folder that may not be written to; the writer will say so
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, _MODE)
    return None


def _locked(file: int, seconds: float) -> bool:
    """Whether the lock is ours; if not, the file is closed, or will be."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pass
    except OSError:
        return True  # a file system without locks
    else:
        return True
    waiter = _Waiter(file)
    waiter.start()
    got = False
    try:
        waiter.join(seconds)
        got = waiter.settle()
    except BaseException:  # a signal ends the wait
        if waiter.settle():
            _give_back(file)
        raise
    return got


def _give_back(file: int) -> None:
    # closing alone would not do while a child that was forked meanwhile has the file, too
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_UN)
    os.close(file)


class _Waiter(threading.Thread):
    """Waits in the queue, which no call can do for a limited time; who gave up leaves it here until the turn comes."""

    def __init__(self, file: int) -> None:
        super().__init__(name="turn", daemon=True)
        self.file = file
        self.guard = threading.Lock()
        self.got = False
        self.given_up = False

    def run(self) -> None:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(self.file, fcntl.LOCK_EX)
        with self.guard:
            self.got = True
            if self.given_up:
                _give_back(self.file)

    def settle(self) -> bool:
        """Whether the lock is ours; if not, it is given back as soon as it comes."""
        with self.guard:
            self.given_up = not self.got
            return self.got
