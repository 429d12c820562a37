"""The workbook of a matrix: all sides beside each other, coloured by their change against the first one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from openpyxl.formatting.rule import ColorScaleRule
from openpyxl.utils import get_column_letter

from tracker.reports.rows import Row, plain
from tracker.reports.views.matrix import labels, rows_of, verdict_lines
from tracker.reports.workbook import UNITS, Book, field
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
    rows = rows_of(matrix, look.rows(None))

    def of_side(at: int, make: Callable[[Row, Row], Any]) -> Callable[[Row], Any]:
        return lambda row: make(row, row["cells"][at])

    def verdict(row: Row, cell: Row) -> tuple[str | None, bool]:
        return word_of_step(cell["verdict"], cell["reason"]) or None, cell["verdict"] in ("REGRESSED", "ADDED")

    fields = [
        field("Section", "section", 14), field("Name", lambda row: "    " * int(row["level"] or 0) + row["name"], 44),
        field("Input Shape", "input_shapes", 30), field("Part", "part", 20),
        field("Unit", lambda row: UNITS[row["unit"]][1], 8),
    ]  # fmt: skip
    sides = list(enumerate(labels(matrix)))
    for at, label in sides:
        fields.append(field(label, of_side(at, lambda row, cell: (UNITS[row["unit"]][0], cell["value"])), 14, "ms"))
    first = len(fields) + 1
    for at, label in sides[1:]:
        fields.append(field(f"DIFF of {label}", of_side(at, lambda row, cell: cell["diff"]), 11, "percent"))
    last = len(fields)
    fields += [field(f"Verdict of {label}", of_side(at, verdict), 14, "filter") for at, label in sides[1:]]

    def tone(row: Row) -> str:
        return "main" if row["section"] == "overall" and not row["level"] else ""

    sheet = book.sheet("Matrix", fields, rows, tone=tone)
    area = f"{get_column_letter(first)}2:{get_column_letter(last)}{len(rows) + 1}"
    scale = {"start_type": "num", "start_value": -_FAR, "mid_type": "num", "mid_value": 0, "end_type": "num"}
    colors = {"start_color": _FASTER, "mid_color": _SAME, "end_color": _SLOWER}
    sheet.conditional_formatting.add(area, ColorScaleRule(**scale, **colors, end_value=_FAR))
    texts = [field(name.capitalize(), name) for name in ("label", "workload", "device", "configuration")]
    counts = [field(name.capitalize(), name, kind="count") for name in ("runs", "ranks", "steps")]
    sentences = [{"note": line} for line in (*verdict_lines(matrix), *matrix.notes)]
    note = field("Note", "note")
    book.blocks("Sides", [("Sides", [*texts, *counts], plain(matrix.sides)), ("Verdicts", [note], sentences)])
