"""A command that works in a copy of its process ends as it would without one, whatever ends it."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no copies are made elsewhere")

START = """
import os, signal, sys, time
from tracker.limits import supervision, touch
touch.GRACE_S = supervision.GRACE_S = 0.2
supervision._LOOK_EVERY_S = 0.1
first = os.getpid()
supervision.continue_in_copy(lambda error: print(f"late: {error}", flush=True))
def begin():
    print(os.getpid(), first, flush=True)
"""


def start(work: str, before: str = "", **more) -> tuple[subprocess.Popen[str], int]:
    """Start a process whose copy does `work`; returns it, and the copy's number, once the copy has begun."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"{before}\n{START}\n{work}"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more,
    )  # fmt: skip
    copy, first = map(int, process.stdout.readline().split())
    assert first == process.pid
    return process, copy


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


WAITS = "begin(); time.sleep(20)"


@pytest.mark.parametrize("code", [0, 1, 3, 130])
def test_the_exit_code_is_that_of_the_copy(code):
    process, copy = start(f"begin(); os._exit({code})")
    assert copy != process.pid
    assert end(process) == (code, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1])
def test_a_signal_to_the_process_ends_the_copy_and_then_it(number):
    # whoever runs the tests by nohup ignores SIGHUP
    process, copy = start(WAITS, f"import signal; signal.signal({int(number)}, signal.SIG_DFL)")
    process.send_signal(number)
    assert end(process) == (-number, "", "")
    with pytest.raises(ProcessLookupError):
        os.kill(copy, 0)


def test_a_copy_that_the_system_kills_leaves_no_traceback_and_no_code_1():
    process, copy = start(WAITS)
    os.kill(copy, signal.SIGKILL)
    assert end(process) == (-signal.SIGKILL, "", "")


def test_where_the_caller_ignores_ended_processes_the_code_is_known_too():
    before = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    process, _ = start("begin(); os._exit(3)", before)
    assert end(process) == (3, "", "")


def test_what_the_caller_ignores_stays_ignored():
    before = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    process, copy = start("begin(); time.sleep(0.5); os._exit(0)", before)
    for each in (process.pid, copy):
        os.kill(each, signal.SIGHUP)
    assert end(process) == (0, "", "")


def test_where_no_copy_can_be_made_the_process_does_the_work():
    before = "import errno, os\ndef fork(): raise BlockingIOError(errno.EAGAIN, 'no more processes')\nos.fork = fork"
    process, copy = start("begin(); signal.raise_signal(signal.SIGTERM)", before)
    assert copy == process.pid
    assert end(process) == (-signal.SIGTERM, "", "")


def test_a_touch_that_no_signal_breaks_off_is_said_and_ends_with_2():
    work = "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})\nwith touch.touch('/disk/a.json', 0.1):\n    "
    process, _ = start(work + WAITS)
    line = "late: /disk/a.json: to look at it took longer than 0.1 s; see whether its disk answers\n"
    assert end(process) == (2, line, "")


def test_while_the_command_is_stopped_its_touches_are_not_late():
    work = "with touch.guarded(), touch.touch('/disk/a.json', 1.0):\n    begin(); time.sleep(0.5)\nos._exit(0)"
    process, _ = start(work, start_new_session=True)
    os.killpg(process.pid, signal.SIGSTOP)
    time.sleep(2.5)  # longer than the touch may take, and than the timer may be late
    os.killpg(process.pid, signal.SIGCONT)
    assert end(process) == (0, "", "")


@pytest.mark.parametrize("is_typed", [True, False])
def test_an_interrupt_comes_once_typed_or_sent(is_typed):
    ours, theirs = pty.openpty()
    become = "import fcntl, os, termios; fcntl.ioctl(int(os.environ['TERMINAL']), termios.TIOCSCTTY, 0)"
    work = """
heard = []
signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
begin()
until = time.monotonic() + 1
while time.monotonic() < until:
    time.sleep(0.05)
print(len(heard), flush=True)
os._exit(0)
"""
    environ = {**os.environ, "TERMINAL": str(theirs)}
    process, _ = start(work, become, start_new_session=True, pass_fds=[theirs], env=environ)
    if is_typed:
        os.write(ours, b"\x03")
    else:
        process.send_signal(signal.SIGINT)
    assert end(process) == (0, "1\n", "")
    os.close(ours)
    os.close(theirs)
