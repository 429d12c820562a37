"""Touches foreign files in a process of its own, which is killed where it does not end in time.

Whoever watches folders, or empties a spool, must not wait for one of them: a file on a disk that is gone is waited at
for ever, by a call of the system that only the end of its process breaks off. The process stays for the next touch.
"""

from __future__ import annotations

import mmap
import os
import pickle  # only ever between this process and those that it starts
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final, ParamSpec, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tracker.errors import SourceError, TrackerError, our_fault
from tracker.intake.at_once import All, read_all
from tracker.intake.pieces import IngestOptions
from tracker.limits.processes import Helper, answer_each
from tracker.limits.touch import PAGE_BYTES, LateError, keep_diary, read_diary

P = ParamSpec("P")
Answer = TypeVar("Answer")

_REMEDY: Final = "examine it alone with tracker doctor"


class _Failed(Struct, frozen=True):
    """What a touch ended with instead of an answer."""

    error: Exception


class Toucher:
    """Calls functions in another process; use it in a `with` statement, which ends that process.

    `seconds`: what `read_all` may take; raise it where profiles are large.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._helper: Helper | None = None
        self._diary: mmap.mmap | None = None

    def call(
        self, path: Path, seconds: float, function: Callable[P, Answer], *args: P.args, **named: P.kwargs
    ) -> Answer:
        """Return what `function` gives for the arguments. It must be a function of a module, all else is pickled.

        path: the file or folder that it touches. LateError where it takes longer than `seconds`, about the one of all
        files below `path` that it was at; SourceError where it ends the process; else what it raises itself.
        """
        try:
            answer = self._ask((function, args, named), seconds)
        except TimeoutError as error:
            touched = None if self._diary is None else read_diary(self._diary)
            self.close()
            raise LateError(path if touched is None else touched.path, seconds) from error
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            self.close()
            raise SourceError(path, "", "it ended the process that looked at it", remedy=_REMEDY) from error
        except BaseException:  # a signal: what is answered later would be taken for the answer to the next question
            self.close()
            raise
        if isinstance(answer, _Failed):
            raise answer.error
        found: Answer = answer
        return found

    def read_all(self, paths: list[Path], options: IngestOptions) -> All:
        """Return what `at_once.read_all` gives, which may take `self.seconds`."""
        alone = replace(options, read_all_with=None, on_progress=None)
        return self.call(paths[0], self.seconds, read_all, paths, alone)

    def _ask(self, question: Any, seconds: float) -> Any:
        if self._helper is None:
            with TemporaryFile() as file:
                file.truncate(PAGE_BYTES)
                self._diary = mmap.mmap(file.fileno(), PAGE_BYTES)
                self._helper = Helper(__name__, pass_fds=[file.fileno()])
                self._helper.send(file.fileno())
        return self._helper.ask(question, seconds)

    def close(self) -> None:
        """Kill the process and all that it started; one that cannot be killed is waited for no longer."""
        helper, self._helper = self._helper, None
        if helper is not None:
            helper.close()
        if self._diary is not None:
            self._diary.close()
            self._diary = None

    def __enter__(self) -> Toucher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def main() -> None:
    """Answer the questions of the other process, one by one."""
    diary = pickle.load(sys.stdin.buffer)
    keep_diary(mmap.mmap(diary, PAGE_BYTES))
    os.close(diary)
    answer_each(_call)


def _call(question: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]) -> Any:
    function, args, named = question
    try:
        return function(*args, **named)
    except (TrackerError, OSError, MemoryError) as error:
        return _Failed(error)
    except Exception as error:  # noqa: BLE001 what it is cannot always be pickled
        return _Failed(RuntimeError(our_fault(error)))
