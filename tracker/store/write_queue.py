"""Turns at a SQLite file: processes of one machine that wait for each other, in the order in which they came.

SQLite has its writers look again and again whether the file is free, the more seldom the longer they wait: newcomers
overtake whoever waits longest. A lock of the operating system (flock) on a file beside the database lets them queue up
instead. It is a queue and no more: where there is no such lock, or the turn does not come, SQLite's own one still keeps
the data whole. So nobody may rely on being alone.

Who may only read the database cannot open these files, and keeps nobody waiting: only those can who may write it.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # a system without it
    fcntl = None  # type: ignore[assignment]

from tracker.store.waiting import Patience, find_holder, say_waiting

_WHAT = {
    "writers": "the writers before this one",
    "next": "the end of a write",
    "judges": "another process that judges versions",
}
"""Queue -> what is waited for in it."""

_NEVER_WAITS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_FLAGS = os.O_RDWR | getattr(os, "O_CLOEXEC", 0)


@contextmanager
def turn(database: Path | None, of: str, seconds: float) -> Iterator[bool]:
    """Be the only one at the queue `of` this file, of all processes and threads, within the block; None: nobody else is
    there to wait for.

    Whoever asked first goes first, and a process that died waits for nothing and keeps nobody waiting. False, and not
    the only one, where the turn does not come within so many seconds: whoever may write the database can keep it. The
    file of the queue stays: were it removed, two could hold what each takes for the one lock.
    """
    path = None if database is None or fcntl is None else database.with_name(f"{database.name}-{of}")
    file = None if database is None or path is None else _opened(path, database)
    if database is None or path is None or file is None:
        yield True
    elif not _locked(file, seconds, lambda since_ns, rest_s: _say(of, database, path, since_ns, rest_s)):
        yield False
    else:
        try:
            yield True
        finally:
            _give_back(file)


def _say(of: str, database: Path, path: Path, since_ns: int, rest_s: float) -> None:
    say_waiting(_WHAT.get(of, of), database, since_ns, rest_s, find_holder(path, "FLOCK"))


def _opened(path: Path, database: Path) -> int | None:
    """Return the file of the queue, None where there can be none: who may not write the database needs no turn."""
    with suppress(OSError):  # a folder that may not be written to; the writer will say so
        like = database.stat()
        with suppress(FileNotFoundError):
            return _opened_file(path, like)
        with suppress(FileExistsError):
            return _made(path, like)
        return _opened_file(path, like)  # another one was faster
    return None


def _opened_file(path: Path, like: os.stat_result) -> int:
    """Return the file at `path`, its mode mended where it is ours; an OSError where another one put a link, a pipe,
    which would be waited at, or a device.
    """
    file = os.open(path, _FLAGS | _NEVER_WAITS)
    state = os.fstat(file)
    if not stat.S_ISREG(state.st_mode):
        os.close(file)
        raise PermissionError(errno.EPERM, "Not a file", str(path))
    mode = _mode_of_writers(like)
    # a file with a second name or with content is another one's, whatever put it here
    is_ours = state.st_uid == os.geteuid() and state.st_nlink == 1 and state.st_size == 0
    if is_ours and stat.S_IMODE(state.st_mode) != mode:
        with suppress(OSError):  # a file system without modes
            os.fchmod(file, mode)
    return file


def _mode_of_writers(like: os.stat_result) -> int:
    """Return the mode of a file that its owner can open, and those who can write one `like` this.

    A file that all who read the database can open, each of them can lock, for ever.
    """
    writers = like.st_mode & 0o222
    return 0o600 | writers | writers << 1


def _made(path: Path, like: os.stat_result) -> int:
    """Return a new file that those can open who can write one `like` this, whatever the umask of its maker takes
    away.
    """
    mode = _mode_of_writers(like)
    file = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, mode)
    with suppress(OSError):  # a group that we are not in
        os.fchown(file, like.st_uid if os.geteuid() == 0 else -1, like.st_gid)
    with suppress(OSError):  # a file system without modes
        os.fchmod(file, mode)
    return file


def _locked(file: int, seconds: float, say: Callable[[int, float], None]) -> bool:
    """Return whether the lock is ours; if not, the file is closed, or will be.

    say: is called once where it does not come soon, with since when it is waited for and how much longer.
    """
    since_ns = time.time_ns()
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
        soon_s = min(seconds, Patience.said_after_s)
        waiter.join(soon_s)
        if waiter.is_alive() and seconds > soon_s:
            say(since_ns, seconds - soon_s)
            waiter.join(seconds - soon_s)
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
        """Return whether the lock is ours; if not, it is given back as soon as it comes."""
        with self.guard:
            self.given_up = not self.got
            return self.got
