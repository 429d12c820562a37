"""A command that touches foreign files does its work in a copy of its process, which this one watches over.

A call of the system on a disk that is gone ends with its process, or, where a file system in user space does not
answer, not even so. Who waits for the command must not: the copy is killed, or left to the system; this process says
which file did not answer, and ends.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

from tracker.errors import EXIT_COULD_NOT_RUN
from tracker.limits.touch import GRACE_S, PAGE_BYTES, LateError, keep_diary, read_diary

_LOOK_EVERY_S: Final = 1.0
_PASSED_ON: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_SIGNALLED: Final = 128
_FROM_KERNEL: Final = 128  # SI_KERNEL: the sender is a terminal, no process
_DIES_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG
_ALLOCATOR: Final = {-8: 2, -1: 256 << 20, -3: 32 << 20}
"""Settings of glibc's malloc: M_ARENA_MAX, M_TRIM_THRESHOLD, M_MMAP_THRESHOLD."""


def continue_in_copy(say: Callable[[LateError], None]) -> None:
    """Return in a copy of this process, which does the work; this process waits for it, and ends as it ends.

    say: writes what is wrong where a touch of a file is late; then this process ends with code 2. It returns in this
    process itself where no copy can be made. To be called before threads and databases are there.
    """
    if sys.platform != "linux":  # elsewhere libraries of the system forbid copies of a process
        return
    passed_on = {getattr(signal, name) for name in _PASSED_ON}
    # those that the caller ignores, as under nohup, stay so
    passed_on = {number for number in passed_on if signal.getsignal(number) is not signal.SIG_IGN}
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # the system would tell nobody how the copy ended
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    awaited = {*passed_on, signal.SIGCHLD}
    # what comes between the copy and the first wait is heard then
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    waiting = os.getpid()
    try:
        page = mmap.mmap(-1, PAGE_BYTES)
        copy = os.fork()
    except OSError:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    if copy == 0:
        _die_with(waiting)
        keep_diary(page)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    _wait_for(copy, awaited, page, say)


def keep_freed_memory() -> None:
    """Have this process use memory again that it has freed, in place of asking the system for more.

    Reading makes and frees blocks and columns of some MB on several threads, and each would have memory of its
    own. For processes of our own alone: what they do not need is given back when they end. And for those that read
    profiles: the columns of a database, made one after the other, would leave gaps that nothing fits into.
    """
    if sys.platform != "linux":
        return
    import ctypes

    with suppress(OSError, AttributeError):  # of other C libraries than glibc
        set_option = ctypes.CDLL(None).mallopt
        for option, value in _ALLOCATOR.items():
            set_option(option, value)


def _die_with(parent: int) -> None:
    """Let this process be killed when its parent is."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, int(signal.SIGKILL))
    if os.getppid() != parent:  # it died meanwhile
        os._exit(EXIT_COULD_NOT_RUN)


def _wait_for(copy: int, awaited: set[signal.Signals], page: mmap.mmap, say: Callable[[LateError], None]) -> NoReturn:
    late_looks = 0
    while True:
        heard = signal.sigtimedwait(awaited, _LOOK_EVERY_S)
        ended, status = os.waitpid(copy, os.WNOHANG)
        if ended:
            _end_as(status)
        if heard is not None:
            _pass_on(heard, copy)
            continue
        touched = read_diary(page)
        is_late = touched is not None and time.monotonic() > touched.until
        # looks are counted, not seconds: they do not go on while this process and its copy are stopped
        late_looks = late_looks + 1 if is_late else 0
        if touched is not None and late_looks * _LOOK_EVERY_S > GRACE_S:
            _kill(copy)
            say(LateError(touched.path, touched.seconds))
            os._exit(EXIT_COULD_NOT_RUN)


def _pass_on(heard: signal.struct_siginfo, copy: int) -> None:
    """Send the copy what a process sent to this one; what is typed at a terminal, the copy has already."""
    if heard.si_signo != signal.SIGCHLD and heard.si_code != _FROM_KERNEL:
        os.kill(copy, heard.si_signo)


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
        with suppress(OSError):  # SIGKILL, as of a system without memory, has no other handler
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
        os.kill(os.getpid(), -code)
        code = _SIGNALLED - code  # the first process of a container does not end by a signal of its own
    os._exit(code)
