"""Results to stdout, everything else to stderr; files are written whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer
from msgspec import Struct

from tracker.cli._options import Format
from tracker.cli._proposals import with_database
from tracker.errors import SourceError, UsageError
from tracker.reports.signs import encodable
from tracker.units import printable

if TYPE_CHECKING:
    from tracker.results.gates import Gate

PIPE_WIDTH = 120
_EXIT_BROKEN_PIPE = 128 + 13  # what a shell reports of a program that a closed pipe ended


class Screen(Struct, frozen=True):
    """Where text goes: `width` in characters; `color` only at a terminal that wants it."""

    width: int
    color: bool


def screen() -> Screen:
    """The terminal behind stdout, or what stands in for it in a pipe."""
    if sys.stdout is None or not sys.stdout.isatty():
        asked = os.environ.get("COLUMNS", "")
        return Screen(int(asked) if asked.isdecimal() and int(asked) else PIPE_WIDTH, color=False)
    color = "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return Screen(shutil.get_terminal_size((PIPE_WIDTH, 40)).columns, color=color)


def emit(content: str | bytes, *, as_it_is: bool = False) -> None:
    """Write a result to stdout, now; a text ends its line. A reader that has gone (`| head`) ends the program without
    a word. `as_it_is`: a document for programs or for others; in any other text, commands name the database.

    SourceError where stdout is closed, or takes no more, as on a full disk.
    """
    if sys.stdout is None:
        raise SourceError("standard output", "", "is closed", remedy="give -o FILE, or send it somewhere")
    try:
        if isinstance(content, bytes):
            sys.stdout.buffer.write(content)
        else:
            shown = encodable(content if as_it_is else with_database(content), sys.stdout.encoding)
            sys.stdout.write(shown if shown.endswith("\n") else shown + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
        raise SystemExit(_EXIT_BROKEN_PIPE) from None
    except OSError as error:
        _forget_stdout()
        raise SourceError(
            "standard output", "", f"cannot be written ({error.strerror})", remedy="make room, or send it elsewhere"
        ) from error


def _forget_stdout() -> None:
    # What is left in the buffer must not raise again when the interpreter flushes it at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tell(text: str) -> None:
    """Write a line about the work, not its result, to stderr."""
    sys.stderr.write(with_database(text) + "\n")
    sys.stderr.flush()


class Delivery(Struct, frozen=True):
    """What goes to the screen (`shown`), and what to the file (`written` at `path`), if any."""

    shown: Format
    written: Format | None = None
    path: Path | None = None

    def deliver(self, render: Callable[[Format], str | bytes]) -> None:
        """Render for the screen and for the file; the file is named on stderr once it is there."""
        content = _rendered(render, self.written) if self.written else b""
        if self.path is not None:
            write_file(self.path, content)
        text = content if self.written is self.shown else _rendered(render, self.shown)
        emit(text if isinstance(text, str) else text.decode(), as_it_is=True)
        if self.path is not None:
            tell(f"written: {self.path}")


def _rendered(render: Callable[[Format], str | bytes], format: Format) -> str | bytes:
    """A report; what is for people, and not published, names the database in the commands that it proposes."""
    document = render(format)
    own = format in (Format.TEXT, Format.MARKDOWN)
    return with_database(document) if own and isinstance(document, str) else document


def finish(gate: Gate, of: str = "") -> NoReturn:
    """Say on one line, the last one, how the gate ends, and end with its exit code. `of`: which of several it is."""
    because = f"{of}: {gate.because}" if of else gate.because
    tell(f"--fail-on {gate.word}: exit {gate.code}, {printable(because)}")
    raise typer.Exit(gate.code)


def plan(asked: Format | None, output: str | None, stem: str, what: str) -> Delivery:
    """What to write where, checked before any long work starts.

    `asked`: the user's --format. `output`: the user's -o, a file or a folder; a folder gets a file named after `stem`.
    `what`: the result, as `reports.check` knows it.
    """
    from tracker import reports

    delivery = _planned(asked, output, stem)
    for format in filter(None, (delivery.shown, delivery.written)):
        reports.check(format.value, what)
    return delivery


def _planned(asked: Format | None, output: str | None, stem: str) -> Delivery:
    if output is None:
        if asked is Format.XLSX:
            raise UsageError("a workbook cannot be shown on screen", remedy="give -o FILE.xlsx")
        return Delivery(asked or Format.TEXT)
    if not output:
        raise UsageError("-o is empty", remedy="give a file or a folder: -o report.xlsx")
    if output == "-":
        raise UsageError("-o - is no file", remedy="leave it out: results go to standard output, as --format says")
    path = Path(output)
    try:
        if path.is_dir() or output.endswith("/"):
            written = asked or Format.TEXT
            path /= _file_name(stem) + suffix(written)
        else:
            written = _written(asked, path)
        _check_writable(path)
    except OSError as error:
        raise _unwritable(path, error.strerror) from error
    return Delivery(Format.TEXT, written, path)


def _written(asked: Format | None, path: Path) -> Format:
    """The format of the file `path`: as asked for, else as its ending says; UsageError where the two contradict."""
    endings = {suffix(each): each for each in Format}
    ending = path.suffix.lower()
    meant = endings.get(ending)
    if asked and meant and asked is not meant:
        raise UsageError(
            f"-o {path} ends in {ending}, but --format is {asked.value}",
            remedy=f"write -o {path.with_suffix(suffix(asked))}, or leave out --format",
        )
    if ending and not (asked or meant):
        raise UsageError(
            f"-o {path} ends in {ending}, which is no report",
            remedy=f"choose from {', '.join(endings)}, or add --format",
        )
    return asked or meant or Format.TEXT


def suffix(format: Format) -> str:
    """The ending of a file of this format, as its report module says."""
    from tracker import reports

    return reports.suffix(format.value)


def check_file(path: Path) -> None:
    """SourceError where `path` cannot be written, before any long work starts."""
    try:
        _check_writable(path)
    except OSError as error:
        raise _unwritable(path, error.strerror) from error


def write_file(path: Path, content: str | bytes) -> None:
    """Write `path` whole: into a neighbour first, then renamed, so that a failure leaves what was there.

    A link stays a link: what it points to is written. What is no regular file (a pipe, a device) is written straight.
    """
    data = content if isinstance(content, bytes) else content.encode()
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            _replace(path.resolve(), data)
    except OSError as error:
        raise _unwritable(path, error.strerror) from error


def _replace(target: Path, data: bytes) -> None:
    """Write a file whole, for whom it was until now."""
    from tracker.hooks import spool

    try:
        mode = target.stat().st_mode & 0o777
    except FileNotFoundError:
        spool.write(str(target), data, 0o666, whatever_umask=False)
    else:
        spool.write(str(target), data, mode, whatever_umask=True)


def _check_writable(path: Path) -> None:
    if path.exists() and not path.is_file() and not path.is_dir():
        return
    try:
        folder = path.resolve().parent
    except RuntimeError as error:
        raise _unwritable(path, "its links lead in a circle") from error
    if not folder.is_dir():
        raise _unwritable(path, f"there is no folder {folder}")
    if path.is_dir():
        raise _unwritable(path, "it is a folder")
    if not os.access(folder, os.W_OK):
        raise _unwritable(path, "the folder is not writable")


def _unwritable(path: Path, reason: str | None) -> SourceError:
    is_full = reason in (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
    remedy = "make room there, or name another file" if is_full else "give -o a file in a folder that you may write to"
    return SourceError(path, "", f"cannot be written ({reason})", remedy=remedy)


def _file_name(stem: str) -> str:
    return re.sub(r"[^\w.+-]+", "_", stem).strip("._") or "report"
