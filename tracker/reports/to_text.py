"""Tables for a terminal, as wide as it is; plain text where there is no colour, the answer on the last line."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Literal

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from tracker.reports import _human_diff, _human_show
from tracker.reports._human import Table, metric_words, side_lines
from tracker.reports._layout import GAP, fit
from tracker.reports._shared import Style, printable
from tracker.results import Diff, Shown

TITLE = "tables for the terminal"
SUFFIX = ".txt"
BINARY = False

_WIDTH = 120  # where nobody says how wide: a pipe, a file
_ROWS = 10
_INDENT = 2
_DIFF_SECTIONS = ("overall", "operator", "kernel", "communication")
_SHOW_SECTIONS = ("overall", "operator", "kernel", "communication", "memory")
_STYLES = {"worse": "red", "better": "green", "strong": "bold"}


def diff(diff: Diff, style: Style) -> str:
    """What else changed, the chosen tables, why, and on the last line the answer and the command for details."""
    page, limit = _Page(style), style.rows(_ROWS)
    for line in side_lines(diff, ("baseline ", "candidate")):
        page.text(line)
    page.text(_human_diff.NOTE.format(metric=metric_words(diff)), style="dim")
    for note in diff.notes:
        page.text(f"Note: {note}")
    # never cut: what else changed decides what the numbers mean
    page.table(_human_diff.environment(diff, None))
    for section in style.sections(_DIFF_SECTIONS):
        table = _human_diff.TABLES[section](diff, limit)
        if table.rows or section in style.only:
            page.table(table)
    for table in _human_diff.explanation(diff, limit, style.only):
        page.table(table)
    for sentence in _human_diff.renames(diff.explanation):
        page.text(sentence)
    return page.end(f"{diff.explanation.answer}  {_human_diff.hint(diff)}")


def show(shown: Shown, style: Style) -> str:
    """What the run is, the chosen tables, and on the last line a summary and the command for details."""
    page, limit = _Page(style), style.rows(_ROWS)
    for line in _human_show.header(shown):
        page.text(line)
    for section in style.sections(_SHOW_SECTIONS):
        for make in _human_show.TABLES[section]:
            table = make(shown, limit)
            if table.rows or section in style.only:
                page.table(table)
    return page.end(f"{_human_show.summary(shown)}  {_human_show.hint(shown)}")


class _Page:
    """Lines of a terminal, collected as text; with ANSI colours only where the style says so."""

    def __init__(self, style: Style) -> None:
        self._color = style.color
        self._width = max(style.width or _WIDTH, 40)
        self._out = io.StringIO()
        self._console = Console(
            file=self._out,
            width=self._width,
            color_system="standard" if style.color else None,
            force_terminal=style.color,
            force_interactive=False,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )

    def text(self, line: str, style: str = "") -> None:
        """A paragraph, wrapped at the width."""
        self._console.print(Text(printable(line), style=style))

    def table(self, table: Table) -> None:
        """A blank line, the title, and the table fitted into the width."""
        if table.title:
            self._console.print()
            self.text(table.title, style="bold")
        if table.lead:
            self._indented(table.lead)
        if table.rows:
            self._console.print(self._grid(table))
        elif not table.note:
            self._indented("no rows")
        if table.more:
            self._indented(f"… and {table.more:,} more")
        if table.note:
            self._indented(table.note)

    def end(self, answer: str) -> str:
        """The whole page with `answer` as its last line, unwrapped: scripts read it with `tail -1`."""
        self._console.print()
        self._console.print(Text(printable(answer), style="bold"), soft_wrap=True)
        page = self._out.getvalue()
        return page if self._color else "".join(f"{line.rstrip()}\n" for line in page.splitlines())

    def _indented(self, line: str) -> None:
        self._console.print(Text(" " * _INDENT + printable(line), style="dim"))

    def _grid(self, table: Table) -> RichTable:
        fitted = fit(table, self._width - _INDENT)
        grid = RichTable(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_edge=False, header_style="dim")
        grid.add_column("", width=0, no_wrap=True)
        for column, width in zip(fitted.columns, fitted.widths, strict=True):
            justify: Literal["left", "right"] = "left" if column.left else "right"
            grid.add_column(Text(column.header), justify=justify, width=width, no_wrap=True, overflow="crop")
        for tone, row in zip(table.tones, fitted.rows, strict=True):
            grid.add_row("", *(_cell(lines, _STYLES.get(tone, "")) for lines in row))
        return grid


def _cell(lines: Sequence[str], style: str) -> Text:
    text = Text(lines[0], style=style)
    for line in lines[1:]:
        text.append(f"\n{line}", style="dim")
    return text
