"""A command that runs as if nothing stood between it and its caller."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final

_PASSED_ON: Final = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT")
_FROM_KEYS: Final = (signal.SIGINT, signal.SIGQUIT)
_SIGNALLED: Final = 128


def run(words: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a command with the streams of this process and the signals that come for it; its exit code.

    One that a signal ended has 128 and its number, as in a shell. Raises OSError where it cannot be started.
    """
    with _Signals().passed_on() as signals:
        signals.child = subprocess.Popen(words, env=dict(environ))
        signals.send_early()
        code = signals.child.wait()
    return _SIGNALLED - code if code < 0 else code


class _Signals:
    """Signals on their way to a child; those that come before it is there wait for it."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []

    @contextmanager
    def passed_on(self) -> Iterator[_Signals]:
        """Hand signals to the child, but those that the caller ignores, as under nohup."""
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
        """Hand over what came before the child was there."""
        for number in self._early:
            self._send(number)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.child is None:
            self._early.append(number)
        else:
            self._send(number)

    def _send(self, number: int) -> None:
        # what is typed at a terminal goes to all that runs in it; the child has it already
        if self.child is not None and not (number in _FROM_KEYS and _at_terminal()):
            self.child.send_signal(number)


def _at_terminal() -> bool:
    """Whether this process is what its terminal runs in the foreground."""
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
