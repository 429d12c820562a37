"""Results to stdout, everything else to stderr; files are written whole or not at all."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tracker.cli._options import Format
from tracker.errors import SourceError, UsageError

PIPE_WIDTH = 120
_EXIT_BROKEN_PIPE = 128 + 13  # what a shell reports of a program that a closed pipe ended


@dataclass(frozen=True, slots=True)
class Screen:
    """Where text goes: `width` in characters; `color` only at a terminal that wants it."""

    width: int
    color: bool


def screen() -> Screen:
    """The terminal behind stdout, or what stands in for it in a pipe."""
    if not sys.stdout.isatty():
        return Screen(PIPE_WIDTH, color=False)
    return Screen(shutil.get_terminal_size((PIPE_WIDTH, 40)).columns, color="NO_COLOR" not in os.environ)


def emit(text: str) -> None:
    """Write a result to stdout, now. A reader that has gone (`| head`) ends the program without a word."""
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # What is left in the buffer must not raise again when the interpreter flushes it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(_EXIT_BROKEN_PIPE) from None


def tell(text: str) -> None:
    """Write a line about the work, not its result, to stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


@dataclass(frozen=True, slots=True)
class Delivery:
    """What goes to the screen (`shown`), and what to the file (`written` at `path`), if any."""

    shown: Format
    written: Format | None = None
    path: Path | None = None

    def deliver(self, render: Callable[[Format], str | bytes]) -> None:
        """Render for the screen and for the file; the file is named on stderr once it is there."""
        content = render(self.written) if self.written else b""
        if self.path is not None:
            write_file(self.path, content)
        text = content if self.written is self.shown else render(self.shown)
        emit(text if isinstance(text, str) else text.decode())
        if self.path is not None:
            tell(f"written: {self.path}")


def plan(asked: Format | None, output: Path | None, stem: str) -> Delivery:
    """What to write where, checked before any long work starts.

    `asked`: the user's --format. `output`: the user's -o, a file or a folder; a folder gets a file named after `stem`.
    """
    if output is None:
        if asked is Format.XLSX:
            raise UsageError("a workbook cannot be shown on screen", remedy="give -o FILE.xlsx")
        return Delivery(asked or Format.TEXT)
    endings = {suffix(each): each for each in Format}
    if output.is_dir() or str(output).endswith("/"):
        written = asked or Format.TEXT
        path = output / (_file_name(stem) + suffix(written))
    else:
        written = asked or endings.get(output.suffix.lower(), Format.TEXT)
        path = output
    _check_writable(path)
    return Delivery(Format.TEXT, written, path)


def suffix(format: Format) -> str:
    """The ending of a file of this format, as its report module says."""
    from tracker import reports

    return reports.suffix(format.value)


def write_file(path: Path, content: str | bytes) -> None:
    """Write `path` whole: into a neighbour first, then renamed, so that a failure leaves what was there."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(content if isinstance(content, bytes) else content.encode())
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise _unwritable(path, error.strerror) from error


def _check_writable(path: Path) -> None:
    folder = path.parent
    if not folder.is_dir():
        raise _unwritable(path, f"there is no folder {folder}")
    if path.is_dir():
        raise _unwritable(path, "it is a folder")
    if not os.access(folder, os.W_OK):
        raise _unwritable(path, "the folder is not writable")


def _unwritable(path: Path, reason: str | None) -> SourceError:
    return SourceError(
        path, "", f"cannot be written ({reason})", remedy="give -o a file in a folder that you may write to"
    )


def _file_name(stem: str) -> str:
    return re.sub(r"[^\w.+-]+", "_", stem).strip("._") or "report"
