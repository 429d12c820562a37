"""One run of a command, with all that it prints in files beside it, and an end in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from msgspec import Struct

from tracker.errors import UsageError

_SIGNALLED: Final = 128
"""What a shell adds to the number of the signal that ended a command."""
_LAST_WORDS_S: Final = 2.0
"""How long what a command printed is waited for, once it has ended: a process that it left behind may hold its
streams.
"""
_TERMINATES_S: Final = 10.0
"""How long a command that is told to end may take for it."""
_PIECE: Final = 1 << 16


class JobEnd(Struct, frozen=True):
    """How a command ended. `code`: as a shell has it, None where it was ended since it took too long."""

    code: int | None
    wall_ns: int


class Logs(Struct, frozen=True):
    """The files with what a command prints."""

    output: Path
    errors: Path


def run_job(
    words: Sequence[str],
    *,
    folder: Path,
    environ: Mapping[str, str],
    logs: Logs,
    limit_s: float,
    keep_open: Sequence[int] = (),
) -> JobEnd:
    """Run a command in `folder` to its end, and copy what it prints to `logs` and to stderr of this process.

    It and all that it starts are ended after `limit_s`, and where this process is interrupted. `keep_open`: files that
    stay open in it, such as a lock that must outlive this process. UsageError where it cannot be started.
    """
    started = time.perf_counter_ns()
    try:
        child = subprocess.Popen(
            words,
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=tuple(keep_open),
        )
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"{words[0]} cannot be started in {folder} ({problem})", remedy="check the command behind --"
        ) from error
    copiers = [_start_copying(child.stdout, logs.output), _start_copying(child.stderr, logs.errors)]
    try:
        child.wait(timeout=limit_s)
    except subprocess.TimeoutExpired:
        _end_group(child)
        return JobEnd(None, time.perf_counter_ns() - started)
    except BaseException:
        _end_group(child)
        raise
    wall_ns = time.perf_counter_ns() - started
    for copier in copiers:
        copier.join(_LAST_WORDS_S)
    code = child.returncode
    return JobEnd(_SIGNALLED - code if code < 0 else code, wall_ns)


def _start_copying(stream: IO[bytes] | None, path: Path) -> threading.Thread:
    """Copy a stream of a command to a file, and to stderr, in a thread of its own."""
    copier = threading.Thread(target=_copy, args=[stream, path], daemon=True)
    copier.start()
    return copier


def _copy(stream: IO[bytes], path: Path) -> None:
    shown = None if sys.stderr is None else getattr(sys.stderr, "buffer", None)
    with path.open("wb", buffering=0) as file:
        while piece := os.read(stream.fileno(), _PIECE):
            file.write(piece)
            if shown is not None:
                # a stderr that is closed is no reason to lose the run
                with suppress(OSError, ValueError):
                    shown.write(piece)
                    shown.flush()


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """End a command with all that it started: politely, then for good."""
    for number, wait_s in ((signal.SIGTERM, _TERMINATES_S), (signal.SIGKILL, _TERMINATES_S)):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        with suppress(subprocess.TimeoutExpired):
            child.wait(timeout=wait_s)
            break
    # what did not hear the first signal must not outlive its parent
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
