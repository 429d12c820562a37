"""A command that touches foreign files does its work in a copy of its process, which this one watches over.

A call of the system on a disk that is gone ends with its process, or, where a file system in user space does not
answer, not even so. Who waits for the command must not: the copy is killed, or left to the system; this process says
which file did not answer, and ends.
"""

from __future__ import annotations

import mmap
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from tracker.errors import EXIT_COULD_NOT_RUN
from tracker.limits.touch import GRACE_S, PAGE_BYTES, LateError, keep_diary, read_diary

_LOOK_EVERY_S: Final = 1.0
_PASSED_ON: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_FROM_KEYS: Final = (signal.SIGINT, signal.SIGQUIT)
_SIGNALLED: Final = 128
_DIES_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG


def continue_in_copy(say: Callable[[LateError], None]) -> None:
    """Return in a copy of this process, which does the work; this process waits for it, and ends as it ends.

    say: writes what is wrong where a touch of a file is late; then this process ends with code 2. It returns in this
    process itself where no copy can be made. To be called before threads and databases are there.
    """
    if sys.platform != "linux":  # elsewhere libraries of the system forbid copies of a process
        return
    page = mmap.mmap(-1, PAGE_BYTES)
    ends_with_copy, end_of_copy = os.pipe()
    waiting = os.getpid()
    try:
        copy = os.fork()
    except OSError:
        os.close(ends_with_copy)
        os.close(end_of_copy)
        return
    if copy == 0:
        os.close(ends_with_copy)
        _die_with(waiting)
        keep_diary(page)
        return
    os.close(end_of_copy)
    _wait_for(copy, ends_with_copy, page, say)


def _die_with(parent: int) -> None:
    """Let this process be killed when its parent is."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, int(signal.SIGKILL))
    if os.getppid() != parent:  # it died meanwhile
        os._exit(EXIT_COULD_NOT_RUN)


def _wait_for(copy: int, ends_with_copy: int, page: mmap.mmap, say: Callable[[LateError], None]) -> NoReturn:
    def pass_on(number: int, _frame: FrameType | None) -> None:
        # what is typed at a terminal goes to all processes in its foreground; the copy has it already
        if not (number in _FROM_KEYS and _is_in_foreground()):
            with suppress(ProcessLookupError):
                os.kill(copy, number)

    for name in _PASSED_ON:
        number = getattr(signal, name)
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, pass_on)
    while not select.select([ends_with_copy], [], [], _LOOK_EVERY_S)[0]:
        touched = read_diary(page)
        if touched is not None and time.monotonic() > touched.until + GRACE_S:
            _kill(copy)
            say(LateError(touched.path, touched.seconds))
            os._exit(EXIT_COULD_NOT_RUN)
    _end_as(os.waitpid(copy, 0)[1])


def _kill(copy: int) -> None:
    """Kill the copy and the processes that it started."""
    helpers: list[str] = []
    with suppress(OSError):
        helpers = Path(f"/proc/{copy}/task/{copy}/children").read_text(encoding="ascii").split()
    for process in (copy, *map(int, helpers)):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)


def _end_as(status: int) -> NoReturn:
    """End this process with the code, or by the signal, that ended the copy."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
        code = _SIGNALLED - code
    os._exit(code)


def _is_in_foreground() -> bool:
    """Whether this process is in the foreground of its terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
