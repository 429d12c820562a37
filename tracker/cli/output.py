"""What a command prints: results and lists to stdout, all else to stderr; files are written whole or not at all."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import typer
from msgspec import Struct

from tracker import reports
from tracker.api.files import check_file, unwritable, write_file
from tracker.cli.proposed import with_database
from tracker.cli.report_options import FORMATS, Page
from tracker.errors import SourceError, UsageError
from tracker.reports import encodable
from tracker.units import MISSING_TEXT, counted, printable

if TYPE_CHECKING:
    from rich.progress import Progress

    from tracker.columns import Columns
    from tracker.results.listed import ListedRun, ListedThreshold
    from tracker.results.screens import Result
    from tracker.results.verdicts import Gate

PIPE_WIDTH: Final = 120
SCHEMA: Final = 1
_BAR_LABEL: Final = 40
_EXIT_BROKEN_PIPE: Final = 128 + 13  # what a shell reports of a program that a closed pipe ended
_FOR_PEOPLE: Final = ("text", "markdown", "html")


def screen(color: str = "auto") -> dict[str, Any]:
    """Width and colours of the terminal behind stdout, or of a pipe, as `reports.render` takes them."""
    columns = os.environ.get("COLUMNS", "")
    named = int(columns) if columns.isascii() and columns.isdecimal() and len(columns) < 9 else 0
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    width = named or (shutil.get_terminal_size((PIPE_WIDTH, 40)).columns if is_terminal else 0) or PIPE_WIDTH
    wanted = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return {"width": width, "color": color == "always" or (color == "auto" and wanted)}


def emit(content: str | bytes, *, as_it_is: bool = False, is_rendered: bool = False) -> None:
    """Write a result to stdout, now; a text ends its line. A closed pipe (`| head`) ends the program without a message.
    `as_it_is`: a document for programs or for publication; in any other text, commands name the database.
    `is_rendered`: a report, which may be coloured; in any other text, what a terminal acts on is escaped.

    SourceError where stdout is closed, or takes no more, as on a full disk.
    """
    if sys.stdout is None:
        raise SourceError("standard output", "", "is closed", remedy="give -o FILE, or redirect it")
    try:
        if isinstance(content, bytes):
            sys.stdout.buffer.write(content)
        else:
            shown = content if as_it_is or is_rendered else "\n".join(map(printable, content.split("\n")))
            shown = encodable(shown if as_it_is else with_database(shown), sys.stdout.encoding)
            sys.stdout.write(shown if shown.endswith("\n") else shown + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_stdout()
        raise SystemExit(_EXIT_BROKEN_PIPE) from None
    except OSError as error:
        _discard_stdout()
        raise SourceError(
            "standard output", "", f"cannot be written ({error.strerror})", remedy="make room, or redirect it"
        ) from error


def _discard_stdout() -> None:
    # What is left in the buffer must not raise again when the interpreter flushes it at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note(text: str) -> None:
    """Write a line about the work, not its result, to stderr; a closed or full stderr is no reason to fail.

    It stays one line, whatever names of files are in it: what a terminal acts on is escaped.
    """
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(with_database(printable(text)) + "\n")
            sys.stderr.flush()


def _shorten(what: str) -> str:
    """Return what a bar is about in at most 40 characters: the beginning of a name and its end."""
    what = printable(what)
    return what if len(what) <= _BAR_LABEL else f"{what[:24]}…{what[25 - _BAR_LABEL :]}"


@contextmanager
def progress(*, of_bytes: bool = True) -> Iterator[Callable[[str, int, int], None] | None]:
    """A function to call with (what, done, total), which shows a bar on a terminal; None where stderr is none. A total
    of 0 is not known: the bar then only shows that something is going on.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    bars: list[Progress] = []
    shown: list[Progress] = []

    def report(what: str, done: int, total: int) -> None:
        if not bars:  # made with the first bytes: a database query reads none, and bars take 40 ms to import
            bars.extend(_make_bars(of_bytes=of_bytes))
        measured, pulsing = bars
        bar = measured if total else pulsing
        if not bar.task_ids:
            bar.add_task(_shorten(what), total=total or None)
        if shown[-1:] != [bar]:
            for other in shown[-1:]:
                other.stop()
            shown.append(bar)
            bar.start()
        if total:
            bar.update(bar.task_ids[0], description=_shorten(what), completed=done, total=total)
        else:
            bar.update(bar.task_ids[0], description=_shorten(what))

    try:
        yield report
    finally:
        for bar in shown[-1:]:
            # interrupted while its thread was about to start, it has none that could end
            with suppress(RuntimeError):
                bar.stop()


def _make_bars(*, of_bytes: bool) -> tuple[Progress, Progress]:
    """Return a bar for a known total, of bytes or of things, and one for an unknown total."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console, what_column = Console(stderr=True), TextColumn("{task.description}", markup=False)
    amount = DownloadColumn() if of_bytes else MofNCompleteColumn()
    measured = Progress(what_column, BarColumn(), amount, TimeRemainingColumn(), console=console, transient=True)
    pulsing = Progress(what_column, BarColumn(), console=console, transient=True)
    return measured, pulsing


class Delivery(Struct, frozen=True):
    """Which format goes to the screen (`shown`), and which to the file at `path` (`written`), if any."""

    shown: str
    page: Page
    written: str | None = None
    path: Path | None = None

    @property
    def formats(self) -> list[str]:
        """The formats that are written, one or two."""
        return list(dict.fromkeys(filter(None, (self.shown, self.written))))

    def deliver(self, *results: Result, looks: Sequence[dict[str, Any]] = (), **look: Any) -> None:
        """Write a result, or several as one document, to the file and to the screen.

        `look`: as `reports.render` takes it, `looks` for each result. The file is named on stderr once it is there. In
        a report for people, proposed commands name the database.
        """
        own = {"details": self.page.details, "tell": note, **screen(self.page.color), **look}

        def document(format: str) -> str | bytes:
            pages = [
                reports.render(result, format, **{**own, **more})
                for result, more in zip(results, looks or [{}] * len(results), strict=True)
            ]
            made = pages[0] if len(pages) == 1 else reports.joined([str(page) for page in pages], format)
            if format in _FOR_PEOPLE and isinstance(made, str):
                return with_database(made, _escape_html if format == "html" else str)
            return made

        content = document(self.written) if self.written else b""
        if self.path is not None:
            write_file(self.path, content)
        if self.path is None or sys.stdout is not None:
            # without a standard output the file is all that was wanted
            text = content if self.written == self.shown else document(self.shown)
            emit(text if isinstance(text, str) else text.decode(), as_it_is=True)
        if self.path is not None:
            note(f"written: {self.path}")


def _escape_html(text: str) -> str:
    from html import escape

    return escape(text)


def finish(gate: Gate, of: str = "") -> NoReturn:
    """Write the result of the gate on one line, the last one, and exit with its code. `of`: one of several gates."""
    because = f"{of}: {gate.because}" if of else gate.because
    note(f"--fail-on {gate.word}: exit {gate.code}, {because}")
    raise typer.Exit(gate.code)


def plan(page: Page, stem: str, what: str) -> Delivery:
    """Decide what to write where, before any long work starts; UsageError, SourceError for what cannot be written.

    A folder gets a file named after `stem`. `what`: the result, as `reports.check` takes it.
    """
    wanted, output = page.format, page.output
    delivery = Delivery(wanted or "text", page)
    if output is None:
        if wanted == "xlsx":
            raise UsageError("a workbook cannot be shown on screen", remedy="give -o FILE.xlsx")
    elif not output:
        raise UsageError("-o is empty", remedy="give a file or a folder: -o report.xlsx")
    elif output == "-":
        raise UsageError("-o - is not a file", remedy="leave it out: results go to standard output, as --format says")
    else:
        try:
            written, path = _target(output, wanted, stem)
        except (OSError, ValueError) as error:
            raise unwritable(Path(output), error) from error
        check_file(path)
        delivery = Delivery("text", page, written, path)
    for format in delivery.formats:
        reports.check(format, what)
    return delivery


def _target(output: str, wanted: str | None, stem: str) -> tuple[str, Path]:
    """The format and path of a file, by its ending and --format."""
    path = Path(output)
    if path.is_dir() or output.endswith("/"):
        written = wanted or "text"
        return written, path / (
            (re.sub(r"[^\w.+-]+", "_", stem).strip("._") or "report")[:100] + reports.suffix(written)
        )
    meant, ending = reports.format_of_name(path.name)
    if wanted and meant and wanted != meant and reports.suffix(wanted) != path.suffix.lower():
        right = f"{str(path)[: -len(ending)]}{reports.suffix(wanted)}"
        raise UsageError(
            f"-o {path} ends in {ending}, but --format is {wanted}", remedy=f"write -o {right}, or leave out --format"
        )
    if ending and not (wanted or meant):
        raise UsageError(
            f"-o {path} ends in {ending}, which is not a report format",
            remedy=f"choose from {', '.join(map(reports.suffix, FORMATS))}, or add --format",
        )
    return wanted or meant or "text", path


class Column(NamedTuple):
    """A column of the text form. `of`: the field with its values, by default its title, which `show` writes, or what
    writes the cell of a row. `is_elastic`: may be shortened where there is no room. `drop`: may be left out,
    the highest number first.
    """

    title: str
    of: str | Callable[[Any], str] = ""
    show: Callable[[Any], str] = str
    right: bool = False
    is_elastic: bool = False
    drop: int = 0

    def cell(self, row: Struct) -> str:
        """The text for a row, `-` where the value is missing or empty."""
        if callable(self.of):
            return self.of(row)
        value = getattr(row, self.of or self.title)
        return MISSING_TEXT if value in (None, "") else self.show(value)


def device_of(row: ListedRun | ListedThreshold) -> str:
    """A cell with vendor and hardware model, `all` for a row of any device."""
    return "all" if row.device is None else f"{row.vendor or ''} {row.device}".strip()


def aligned(table: Sequence[Sequence[str]], right: Sequence[bool] = ()) -> list[str]:
    """The lines of a table, its cells padded to the widest of their column, on the left of those in `right`.

    In the cells, what a terminal acts on is escaped.
    """
    cells = [list(map(printable, line)) for line in table]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sides = right or [False] * len(widths)
    return [
        "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(line, widths, sides, strict=True)
        ).rstrip()
        for line in cells
    ]


def next_lines(*commands: str) -> str:
    """Return what ends a result: the commands to run next, whole, a line each.

    >>> next_lines("tracker runs", "tracker board")
    '\\nNext:\\n  tracker runs\\n  tracker board'
    """
    return "".join(["\nNext:", *(f"\n  {line}" for line in commands)])


def emit_list(
    rows: Columns,
    columns: Sequence[Column],
    format: str,
    *,
    name: str,
    last_line: str,
    kind: type[Struct] = Struct,
) -> None:
    """Print `rows` as text in `columns`, with `last_line` and what `next_lines` adds to it below; or all columns as CSV
    or as JSON under the key `name`. Text leaves out columns that are empty in every row, and fits a terminal.

    `kind`: what the columns take a row for.
    """
    from tracker.reports import csv as csv_text
    from tracker.reports.json import without_commands
    from tracker.reports.rows import records, rows_of

    if format == "csv":
        emit(csv_text.write_tables({name: rows}), as_it_is=True)
    elif format == "json":
        document = json.dumps({"schema": SCHEMA, name: records(rows)}, indent=2, ensure_ascii=False)
        emit(without_commands(document), as_it_is=True)
    else:
        cells = [[printable(one.cell(row)) for one in columns] for row in rows_of(kind, rows)]
        emit("\n".join([*_list_lines(columns, cells), last_line]))


def _list_lines(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a list, its header first; none for no rows. A pipe takes lines of any width."""
    filled = [at for at in range(len(columns)) if any(row[at] != MISSING_TEXT for row in cells)]
    if not filled:
        return []
    shown = [columns[at] for at in filled]
    rows = [[row[at] for at in filled] for row in cells]
    lines = aligned([[column.title for column in shown], *rows], [column.right for column in shown])
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    width = screen()["width"]
    # a list that fits is printed without loading what takes time
    if not (is_terminal or os.environ.get("COLUMNS")) or max(map(_most_cells, lines)) <= width:
        return lines
    return _fitted_lines(shown, rows, width)


def _most_cells(line: str) -> int:
    """Return how many cells of a terminal a line takes at most: letters of Asia take two."""
    return sum(1 if character.isascii() else 2 for character in line)


def _fitted_lines(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return the lines of a list in at most `width` cells; the last one names the columns that have no room."""
    from tracker.reports import document
    from tracker.reports.text import fit

    described = [
        document.Column(column.title, left=not column.right, elastic=column.is_elastic, drop=column.drop)
        for column in columns
    ]
    table = document.Table("", tuple(described), tuple(map(tuple, rows)), ("",) * len(rows))
    fitted = fit(table, width)
    header = [column.header for column in fitted.columns]
    body = [[lines[0] for lines in row] for row in fitted.rows]
    found = aligned([header, *body], [not column.left for column in fitted.columns])
    if fitted.left_out:
        count = counted(len(fitted.left_out), "column")
        found.append(f"{count} left out: {', '.join(fitted.left_out)}; use a wider terminal")
    return found
