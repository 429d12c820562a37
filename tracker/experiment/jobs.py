"""One run of a command, with all that it prints in files beside it, and an end in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Final

from msgspec import Struct

from tracker.errors import SourceError, UsageError

_SIGNALLED: Final = 128
"""What a shell adds to the number of the signal that ended a command."""
_LAST_WORDS_S: Final = 2.0
"""How long what a command printed is waited for, once it has ended: a process that it left behind may hold its
streams.
"""
_TERMINATES_S: Final = 10.0
"""How long a command may take to end once it has got the signal to."""
_PIECE: Final = 1 << 16


class _Copier(threading.Thread):
    """Copies a stream of a command to a file, and to stderr. `problem`: why the file could not be written."""

    def __init__(self, stream: IO[bytes], file: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self.problem: OSError | None = None
        self._stream = stream
        self._file = file

    def run(self) -> None:
        """Copy to the end of the stream, also where the file takes no more: the command must not wait for a reader."""
        shown = None if sys.stderr is None else getattr(sys.stderr, "buffer", None)
        while piece := os.read(self._stream.fileno(), _PIECE):
            if self.problem is None:
                try:
                    self._file.write(piece)
                    self._file.flush()
                except (OSError, ValueError) as error:
                    self.problem = error if isinstance(error, OSError) else OSError(str(error))
            if shown is not None:
                # a stderr that is closed is no reason to lose the run
                with suppress(OSError, ValueError):
                    shown.write(piece)
                    shown.flush()


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

    It and all that it starts are ended after `limit_s`, where this process is interrupted, and once it has ended
    itself: what it left behind would disturb the next run. `keep_open`: files that stay open in it, such as a lock that
    must outlive this process. UsageError where it cannot be started, SourceError where a log cannot be written.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(_open_log(path)) for path in (logs.output, logs.errors)]
        started = time.perf_counter_ns()
        child = _start(words, folder, environ, keep_open)
        copiers = [
            _Copier(stream, file) for stream, file in zip((child.stdout, child.stderr), files, strict=True) if stream
        ]
        for copier in copiers:
            copier.start()
        is_over = False
        try:
            child.wait(timeout=limit_s)
            is_over = True
        except subprocess.TimeoutExpired:
            pass
        finally:
            wall_ns = time.perf_counter_ns() - started
            _end_group(child, at_once=is_over)
            for copier in copiers:
                copier.join(_LAST_WORDS_S)
        for copier, path in zip(copiers, (logs.output, logs.errors), strict=True):
            if copier.problem is not None:
                raise _unwritable(path, copier.problem)
    code = child.returncode
    if not is_over:
        return JobEnd(None, wall_ns)
    return JobEnd(_SIGNALLED - code if code < 0 else code, wall_ns)


def _start(
    words: Sequence[str], folder: Path, environ: Mapping[str, str], keep_open: Sequence[int]
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
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


def _open_log(path: Path) -> IO[bytes]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("wb")
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> SourceError:
    return SourceError(
        path, "", f"cannot be written ({error.strerror})", remedy="make room, or name another folder with TRACKER_CACHE"
    )


def _end_group(child: subprocess.Popen[bytes], *, at_once: bool) -> None:
    """End a command with all that it started: politely, unless it has ended itself, then for good."""
    try:
        if not at_once:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                child.wait(timeout=_TERMINATES_S)
    finally:
        # also where a second Ctrl-C comes meanwhile
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            child.wait(timeout=_TERMINATES_S)
