"""`tracker run`: a job, and then the profiles that it wrote."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Final

import typer

from tracker.cli.options import Database, Labels
from tracker.results.options import InputFormat, Option

_NOT_FOUND: Final = 127
_NOT_STARTED: Final = 126
_SIGNALLED: Final = 128
_PASSED_ON: Final = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT")
_FROM_KEYS: Final = (signal.SIGINT, signal.SIGQUIT)


def run(
    command: Annotated[list[str], Option("The job and its arguments.", "COMMAND...", positional=True)],
    profiles: Annotated[
        Path, Option("Folder of the profiles; what is new or changed there at the end is read.", "FOLDER")
    ],
    labels: Labels,
    format: InputFormat = None,
    db: Database = None,
) -> None:
    """Run a job, then ingest the profiles that it wrote to a folder.

    The job keeps its streams, signals and exit code, whatever happens to its profiles: what cannot be read is reported
    on stderr and waits for tracker ingest --spooled. Without --version, it is git describe --always --dirty in the
    current folder.

    \b
    Example:
      tracker run --profiles ./prof --workload gpt -- python train.py --epochs 1
    """
    from msgspec.structs import asdict

    from tracker.cli.job import Job
    from tracker.cli.output import note
    from tracker.intake import Sidecar

    job = Job(profiles, Sidecar(**asdict(labels)), format, db)
    try:
        code = run_child(command, {**os.environ, **job.variables()})
    except FileNotFoundError as error:
        note(f"tracker: {command[0]}: {error.strerror}")
        raise typer.Exit(_NOT_FOUND) from error
    except (OSError, ValueError) as error:
        note(f"tracker: {command[0]}: cannot be started ({getattr(error, 'strerror', None) or error})")
        raise typer.Exit(_NOT_STARTED) from error
    if code:
        number = code - _SIGNALLED
        by = f": signal {number}, {signal.strsignal(number)}" if 0 < number < signal.NSIG else ""
        note(f"note: the job ended with exit code {code}{by}")
    try:
        job.read_profiles()
    except Exception as error:  # noqa: BLE001 the job has its own end, whatever happens to its profiles
        note(f"tracker: the profiles in {profiles} are not read ({error})")
    raise typer.Exit(code)


def run_child(words: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a command with the streams of this process and the signals sent to it; return its exit code.

    A command that a signal ended has 128 and its number, as in a shell. Raises OSError where it cannot be started.
    """
    with _Signals().passed_on() as signals:
        signals.child = subprocess.Popen(words, env=dict(environ))
        signals.send_early()
        code = signals.child.wait()
    return _SIGNALLED - code if code < 0 else code


class _Signals:
    """Signals on their way to a child; those that come before it is started wait for it."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []

    @contextmanager
    def passed_on(self) -> Iterator[_Signals]:
        """Pass signals to the child, except those that the caller ignores, as under nohup."""
        before = {}
        for number in (getattr(signal, name) for name in _PASSED_ON):
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, self._receive)
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def send_early(self) -> None:
        """Send what came before the child was started."""
        for number in self._early:
            self._send(number)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.child is None:
            self._early.append(number)
        else:
            self._send(number)

    def _send(self, number: int) -> None:
        # what is typed at a terminal goes to all processes in its foreground; the child has it already
        if self.child is not None and not (number in _FROM_KEYS and _in_foreground()):
            self.child.send_signal(number)


def _in_foreground() -> bool:
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
