"""The workbook of a matrix: all sides beside each other, coloured by their change against the first one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from openpyxl.formatting.rule import ColorScaleRule
from openpyxl.utils import get_column_letter

from tracker.reports.views.matrix import MatrixLine, labels, lines_of, verdict_lines
from tracker.reports.workbook import UNITS, Block, Book, FieldsOf, field
from tracker.reports.workbooks.tables import write_summary
from tracker.results.verdicts import word_of_step

if TYPE_CHECKING:
    from tracker.reports.document import Look
    from tracker.reports.view import View
    from tracker.results import Matrix

_FASTER, _SAME, _SLOWER = "63BE7B", "FFFFFF", "F8696B"
_FAR: Final = 0.3
"""The DIFF from which on a cell has the full colour."""


def write(book: Book, matrix: Matrix, view: View, look: Look) -> None:
    """Write the summary, the sheet Matrix (a row per row of it, for each side its value, then DIFF, then verdicts), and
    Sides.
    """
    write_summary(book, matrix, view)
    lines = lines_of(matrix, look.rows(None))
    fields = [
        _line.field("Section", lambda line: line.row.section, 14), _line.field("Name", _indent_name, 44),
        _line.field("Input Shape", lambda line: line.row.input_shapes, 30),
        _line.field("Part", lambda line: line.row.part, 20),
        _line.field("Unit", lambda line: UNITS[line.row.unit][1], 8),
    ]  # fmt: skip
    sides = list(enumerate(labels(matrix)))
    fields += [_line.field(label, _value_of_side(at), 14, "ms") for at, label in sides]
    first = len(fields) + 1
    fields += [_line.field(f"DIFF of {label}", _diff_of_side(at), 11, "percent") for at, label in sides[1:]]
    last = len(fields)
    fields += [_line.field(f"Verdict of {label}", _verdict_of_side(at), 14, "filter") for at, label in sides[1:]]

    def tone(line: MatrixLine) -> str:
        return "main" if line.is_overall and not line.row.level else ""

    sheet = book.sheet("Matrix", fields, lines, tone=tone)
    area = f"{get_column_letter(first)}2:{get_column_letter(last)}{len(lines) + 1}"
    scale = {"start_type": "num", "start_value": -_FAR, "mid_type": "num", "mid_value": 0, "end_type": "num"}
    colors = {"start_color": _FASTER, "mid_color": _SAME, "end_color": _SLOWER}
    sheet.conditional_formatting.add(area, ColorScaleRule(**scale, **colors, end_value=_FAR))
    texts = [field(name.capitalize(), name) for name in ("label", "workload", "device", "configuration")]
    counts = [field(name.capitalize(), name, kind="count") for name in ("runs", "ranks", "steps")]
    note = field("Note", str)
    sentences = (*verdict_lines(matrix), *matrix.notes)
    blocks = [Block("Sides", [*texts, *counts], matrix.sides), Block("Verdicts", [note], sentences)]
    book.blocks("Sides", blocks)


_line: Final = FieldsOf(MatrixLine)


def _indent_name(line: MatrixLine) -> str:
    return "    " * int(line.row.level or 0) + line.row.name


def _value_of_side(at: int) -> Callable[[MatrixLine], tuple[str, float | None]]:
    return lambda line: (UNITS[line.row.unit][0], line.cells[at].value)


def _diff_of_side(at: int) -> Callable[[MatrixLine], float | None]:
    return lambda line: line.cells[at].diff


def _verdict_of_side(at: int) -> Callable[[MatrixLine], tuple[str | None, bool]]:
    """Return what makes the verdict of a side, with whether it is for the worse."""

    def verdict(line: MatrixLine) -> tuple[str | None, bool]:
        cell = line.cells[at]
        return word_of_step(cell.verdict, cell.reason) or None, cell.verdict in ("REGRESSED", "ADDED")

    return verdict
