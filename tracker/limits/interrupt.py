"""Ctrl-C while the command line is being imported: an end at once, without a traceback.

Python raises KeyboardInterrupt wherever it is. Amid an import that may be a place where nothing hears it.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

from tracker.errors import EXIT_INTERRUPTED


def end_at_once() -> None:
    """End this process at Ctrl-C from now on. Where the caller ignores Ctrl-C it stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_again() -> None:
    """Raise KeyboardInterrupt at Ctrl-C again: a command that runs may have something to put in order."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(EXIT_INTERRUPTED)
