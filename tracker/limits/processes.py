"""Processes of our own on this machine."""

from __future__ import annotations

import atexit
import os
import pickle  # only ever between this process and those that it starts
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final, NoReturn, Protocol

from tracker.limits import touch

_STDERR: Final = 2
_CONTROL_GROUP: Final = Path("/sys/fs/cgroup")


class Process(Protocol):
    """What subprocess.Popen has of a process with pipes, as far as it is used here."""

    pid: int
    returncode: int | None
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None

    def kill(self) -> None:
        """Ends it, if it still runs."""

    def wait(self) -> int:
        """Its exit code, once it ended; negative: the signal that ended it."""


def start_process(
    module: str, *, may_fork: bool = False, own_session: bool = False, pass_fds: Sequence[int] = ()
) -> Process:
    """A process that runs `main()` of a module of this package, with pipes; an OSError where none can be started.

    It takes nothing from the folder that it runs in, but the package from where this one was taken. `may_fork`: the
    caller has opened nothing that a copy of this process must not hold (a database); then the copy is made, which has
    imported already what this one has. `own_session`: it and all that it starts can be ended at once. `pass_fds`:
    handles that it shall have.
    """
    if may_fork and can_fork():
        return _Forked(import_module(module).main)
    package = Path(__file__).parents[2]
    paths = os.pathsep.join(filter(None, (str(package), os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-P", "-c", f"from {module} import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": paths},
        start_new_session=own_session,
        pass_fds=pass_fds,
    )


class _Forked:
    """A copy of this process that runs `main` on two pipes, and nothing else of this one."""

    def __init__(self, main: Callable[[], None]) -> None:
        self.returncode: int | None = None
        with ExitStack() as ends:
            theirs_in, ours_in = _pipe(ends)
            ours_out, theirs_out = _pipe(ends)
            self.pid = os.fork()
            ends.pop_all()
        if self.pid == 0:
            _be_the_copy(main, theirs_in, theirs_out)
        os.close(theirs_in)
        os.close(theirs_out)
        self.stdin: IO[bytes] | None = os.fdopen(ours_in, "wb")
        self.stdout: IO[bytes] | None = os.fdopen(ours_out, "rb")

    def kill(self) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        if self.returncode is None:
            try:
                self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            except ChildProcessError:  # whoever started this one ignores SIGCHLD: the system told nobody
                self.returncode = 0
        return self.returncode


def _pipe(ends: ExitStack) -> tuple[int, int]:
    """The ends of a pipe to read from and to write to, closed with `ends`."""
    pair = os.pipe()
    for end in pair:
        ends.callback(os.close, end)
    return pair


def can_fork() -> bool:
    """Whether a copy of this process can be made: on Linux, of one thread, those of libraries counted as well."""
    try:
        return sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1
    except OSError:  # there is no /proc, nor a way to know
        return False


def _be_the_copy(main: Callable[[], None], stdin: int, stdout: int) -> NoReturn:
    """Run `main` and end, whatever happens: what the other process has open or still does is none of the copy's."""
    code = 1
    touch.leave_to_the_other()
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        for place, end in enumerate((stdin, stdout, nothing)):
            os.dup2(end, place)
        for end in map(int, os.listdir("/proc/self/fd")):
            if end > _STDERR:
                with suppress(OSError):  # that of the list itself
                    os.close(end)
        sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
        main()
        sys.stdout.flush()
        code = 0
    finally:
        os._exit(code)


def processors() -> int:
    """How many processors this process may use: of those that it may run on, what its control group grants."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(count, granted_processors(_CONTROL_GROUP) or count))


def granted_processors(folder: Path) -> int:
    """Return how many processors the control group of a container grants, rounded up; 0 where it sets no limit.

    In a container the files of its own group lie at the root. Version 2 has one file for both numbers.
    """
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            words = [word for name in names for word in (folder / name).read_text(encoding="ascii").split()]
            quota_us, period_us = map(int, words)
        except (OSError, ValueError):  # there is none, or it says "max"
            continue
        if quota_us > 0 and period_us > 0:
            return -(-quota_us // period_us)
    return 0


class Helper:
    """A process that runs `main()` of a module, which calls `answer_each`; it can be killed amid a question.

    An OSError where it cannot be started. pass_fds: handles that it shall have.
    """

    def __init__(self, module: str, *, pass_fds: Sequence[int] = ()) -> None:
        self._process = start_process(module, own_session=True, pass_fds=pass_fds)
        atexit.register(self.close)  # a process that hangs would outlive this one

    def send(self, question: Any) -> None:
        """Hand over what can be pickled; an OSError where the process has ended."""
        pickle.dump(question, pipe(self._process.stdin))
        pipe(self._process.stdin).flush()

    def ask(self, question: Any, seconds: float) -> Any:
        """Return the answer to `question`.

        TimeoutError where it takes longer than `seconds`; EOFError, OSError or UnpicklingError where the process ends
        instead. After any error the helper is to be closed: a late answer would be taken for that to the next question.
        """
        deadline = time.monotonic() + seconds
        self.send(question)
        answers = pipe(self._process.stdout)
        while not select.select([answers], [], [], max(0.0, deadline - time.monotonic()))[0]:
            if time.monotonic() >= deadline:
                raise TimeoutError
        return pickle.load(answers)

    def close(self) -> None:
        """Kill the process and all that it started; one that cannot be killed is waited for no longer."""
        atexit.unregister(self.close)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for end in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe(end).close()


def answer_each(answer: Callable[[Any], Any]) -> None:
    """In the process of a Helper, give the answers to its questions, one by one, until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asks decides
    # what a library prints is no answer
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        while True:
            try:
                question = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            pickle.dump(answer(question), answers, protocol=pickle.HIGHEST_PROTOCOL)
            answers.flush()


def pipe(end: IO[bytes] | None) -> IO[bytes]:
    """A pipe of a process that was started with pipes."""
    if end is None:
        raise OSError("no pipe")
    return end
