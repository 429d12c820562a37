"""Tables for a terminal, as wide as it is; plain text where there is no colour, the answer on the last line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from tracker.reports import (
    _empty,
    _human_bottleneck,
    _human_diff,
    _human_tree,
    _human_verdicts,
)
from tracker.reports._human import Column, Table, side_lines
from tracker.reports._layout import GAP, fit, wrapped
from tracker.reports.shared import Style, chosen_sections, has_tree
from tracker.units import counted, printable

if TYPE_CHECKING:
    from tracker.results import Diff, ExplainedFinding, Shown
    from tracker.results import Findings as Found

TITLE = "tables for the terminal"
SUFFIX = ".txt"
BINARY = False

_WIDTH = 120  # where nobody says how wide: a pipe, a file
_ROWS = 10
_INDENT = 2
_DIFF_SECTIONS = ("overall", "operator", "kernel", "kernel_type", "communication", "link", "memory_peak")
_SHOW_SECTIONS = (
    "overall",
    "operator",
    "kernel",
    "kernel_type",
    "metric",
    "communication",
    "link",
    "memory",
    "memory_peak",
    "counter",
)
_CODES = {"strong": "1", "dim": "2", "worse": "31", "better": "32"}
"""How terminals are told to show bold, dim, red, green."""


def diff(diff: Diff, style: Style) -> str:
    """What else changed, the chosen tables, why, and on the last line the answer and the command for details."""
    page, limit = _Page(style), style.rows(_ROWS)
    for line in side_lines(diff, ("baseline ", "candidate")):
        page.text(line)
    if note := _human_diff.note(diff):
        page.text(note, style="dim")
    notes = [*filter(None, [_human_verdicts.line(diff)]), *(f"Note: {note}" for note in diff.notes)]
    for line in (*_human_bottleneck.of_diff(diff), *notes):
        page.text(line)
    # never cut: what else changed decides what the numbers mean
    page.table(_human_diff.environment(diff, None))
    if has_tree(diff):
        page.table(_human_tree.diff(diff, limit, hide_small=style.limit is None))
    for section in chosen_sections(diff, style, _DIFF_SECTIONS):
        for table in _human_diff.tables(diff, section, limit, style.only):
            page.table(table)
    for table in _human_diff.explanation(diff, limit, style.only) if not has_tree(diff) or style.only else ():
        page.table(table)
    for sentence in _human_diff.renames(diff.explanation):
        page.text(sentence)
    return page.end(f"{diff.explanation.headline}  {_human_diff.hint(diff)}")


def show(shown: Shown, style: Style) -> str:
    """What the run is, the chosen tables, and on the last line a summary and the command for details."""
    from tracker.reports import _human_show, _human_show_summary

    page, limit = _Page(style), style.rows(_ROWS)
    for line in (*_human_show.header(shown), *_human_bottleneck.of_run(shown)):
        page.text(line)
    if shown.tree is not None:
        page.table(_human_tree.show(shown, limit, hide_small=style.limit is None))
    for section in chosen_sections(shown, style, _SHOW_SECTIONS):
        for make in (_human_show.TABLES if section in style.only else _human_show.SHORT)[section]:
            table = _empty.explained(make(shown, limit), section, shown.options, is_pruned=shown.is_pruned)
            if table.rows or section in style.only:
                page.table(table)
    return page.end(f"{_human_show_summary.summary(shown)}  {_human_show_summary.hint(shown)}")


def findings(found: Found, style: Style) -> str:
    """A table per incident with what explains it, then suspicions; on the last line what matters and the command."""
    from tracker.reports import _human_findings

    page = _Page(style)
    page.text(_human_findings.summary(found))
    for note in found.notes:
        page.text(f"Note: {note}")
    for table in _human_findings.tables(found, style.rows(_ROWS)):
        page.table(table)
    return page.end(f"{_human_findings.answer(found)}  {_human_findings.hint(found)}")


def explained(found: ExplainedFinding, style: Style) -> str:
    """One finding: its tests, its runs, its life."""
    from tracker.reports import _human_findings

    page = _Page(style)
    for line in _human_findings.explained_header(found):
        page.text(line)
    for note in found.notes:
        page.text(f"Note: {note}")
    for table in _human_findings.explained_tables(found):
        page.table(table)
    return page.end(_human_findings.explained_hint(found))


class _Page:
    """Lines of a terminal; with ANSI colours only where the style says so."""

    def __init__(self, style: Style) -> None:
        self._color = style.color
        self.width = max(style.width or _WIDTH, 40)
        self._lines: list[str] = []
        self._left_out: dict[str, None] = {}

    def text(self, line: str, style: str = "") -> None:
        """A paragraph, wrapped at the width."""
        self._lines += (self._styled(part, style) for part in wrapped(printable(line), self.width))

    def table(self, table: Table) -> None:
        """A blank line, the title, and the table fitted into the width."""
        if table.title:
            self._title(table.title)
        if table.lead:
            self._indented(table.lead)
        if table.rows:
            self._rows(table)
        elif not table.note:
            self._indented("no rows")
        if table.more:
            self._indented(f"… and {table.more:,} more")
        if table.note:
            self._indented(table.note)

    def lines(self, title: str, lines: Sequence[str]) -> None:
        """A title with an indented paragraph per line, not wrapped, since it may hold paths; nothing without lines."""
        if not lines:
            return
        self._title(title)
        self._lines += (" " * _INDENT + printable(line) for line in lines)

    def end(self, answer: str, whole: str = "--format csv") -> str:
        """The whole page with `answer` as its last line, unwrapped: scripts read it with `tail -1`.

        `whole`: the option that shows the columns for which there was no room here.
        """
        if self._left_out:
            self._lines.append("")
            what = f"{counted(len(self._left_out), 'column')} left out: {', '.join(self._left_out)}"
            self.text(f"{what}; use {whole} or a wider terminal", "dim")
        self._lines += ("", self._styled(printable(answer), "strong"))
        return "".join(f"{line if self._color else line.rstrip()}\n" for line in self._lines)

    def _title(self, title: str) -> None:
        self._lines.append("")
        self.text(title, "strong")

    def _indented(self, line: str, indent: int = _INDENT) -> None:
        for part in wrapped(printable(line), self.width - indent):
            rest = self.width - indent - cell_len(part)
            self._lines.append(f"{' ' * indent}{self._styled(part, 'dim')}{' ' * rest}")

    def _rows(self, table: Table) -> None:
        """The header and the rows, with the sentences under them, which take the whole width. A number is never cut: it
        would read as another one; where the columns that stay need more than the width, lines are longer.
        """
        fitted = fit(table, self.width - _INDENT)
        self._left_out.update(dict.fromkeys(fitted.left_out))
        sizes = list(zip(fitted.columns, fitted.widths, strict=True))
        for line in zip(*(column.header.split("\n") for column in fitted.columns), strict=True):
            named = (self._cell((text,), *size, "dim")[0] for text, size in zip(line, sizes, strict=True))
            self._lines.append(self._styled(" " * GAP, "dim").join(["", *named]))
        whole_rows = ((tone,) * len(sizes) for tone in table.tones)
        sentences = table.below or ("",) * len(table.rows)
        for row, tones, sentence in zip(fitted.rows, table.cell_tones or whole_rows, sentences, strict=True):
            drawn = [self._cell(lines, *size, tone) for lines, size, tone in zip(row, sizes, tones, strict=True)]
            for cells in zip_longest(*drawn):
                whole = (cell or " " * width for cell, width in zip(cells, fitted.widths, strict=True))
                self._lines.append((" " * GAP).join(["", *whole]))
            if sentence:
                self._indented(sentence, 2 * _INDENT)

    def _cell(self, lines: Sequence[str], column: Column, width: int, tone: str) -> list[str]:
        """The lines of a cell, each as wide as its column; those behind the first are of columns that folded."""
        first, *folded = lines
        space = " " * (width - cell_len(first))
        drawn = [self._styled(set_cell_size(first, width) if column.left else space + first, tone)]
        for line in folded:
            space = " " * (width - cell_len(line))
            drawn.append(self._styled(line, f"dim {tone}") + self._styled(space, tone))
        return drawn

    def _styled(self, text: str, style: str) -> str:
        codes = ";".join(sorted(_CODES[word] for word in style.split() if word in _CODES))
        return f"\x1b[{codes}m{text}\x1b[0m" if self._color and codes and text else text
