"""The workbook of a matrix: values, DIFF on a scale of colours, and verdicts."""

from __future__ import annotations

from typing import Any, Final

from openpyxl.formatting.rule import ColorScaleRule
from openpyxl.utils import get_column_letter

from tracker.reports._workbook import Book, Field, Row, field
from tracker.reports.shared import Style, plain
from tracker.reports.views.matrix import labels, rows_of, verdict_lines
from tracker.results import Matrix

_KINDS: Final = {"ns": "ms", "bytes": "mb", "count": "count", "ratio": "percent"}
_UNITS: Final = {"ns": "ms", "bytes": "MiB", "count": "count", "ratio": "%"}
_FASTER, _SAME, _SLOWER = "63BE7B", "FFFFFF", "F8696B"
_FAR: Final = 0.3
"""The DIFF from which on a cell has the full colour."""


def write(matrix: Matrix, style: Style) -> bytes:
    """The sheet Matrix: a row per row of the matrix, for each side its value, then DIFF, then verdicts; and Sides."""
    book = Book(style.tell)
    rows = rows_of(matrix, style.rows(None))
    fields = [
        field("Section", "text", "section", 14),
        field("Name", "text", lambda row: "    " * int(row["level"] or 0) + row["name"], 44),
        field("Input Shape", "text", "input_shapes", 30),
        field("Part", "text", "part", 20),
        field("Unit", "text", lambda row: _UNITS[row["unit"]], 8),
    ]
    sides = list(enumerate(labels(matrix)))
    fields += [field(label, "ms", _value(at), 14) for at, label in sides]
    first = len(fields) + 1
    fields += [field(f"DIFF of {label}", "percent", _cell(at, "diff"), 11) for at, label in sides[1:]]
    last = len(fields)
    fields += [_verdict(at, label) for at, label in sides[1:]]
    sheet = book.sheet("Matrix", fields, (("" if row["level"] else "main", row) if row["section"] == "overall" else
                                          ("", row) for row in rows), len(rows))  # fmt: skip
    area = f"{get_column_letter(first)}2:{get_column_letter(last)}{len(rows) + 1}"
    scale = {"start_type": "num", "start_value": -_FAR, "mid_type": "num", "mid_value": 0, "end_type": "num"}
    colors = {"start_color": _FASTER, "mid_color": _SAME, "end_color": _SLOWER}
    sheet.conditional_formatting.add(area, ColorScaleRule(**scale, **colors, end_value=_FAR))
    texts = [field(name.capitalize(), "text", name) for name in ("label", "workload", "device", "configuration")]
    counts = [field(name.capitalize(), "count", name) for name in ("runs", "ranks", "steps")]
    sentences = [{"note": line} for line in (*verdict_lines(matrix), *matrix.notes)]
    note = field("Note", "text", "note")
    book.blocks("Sides", [("Sides", [*texts, *counts], plain(matrix.sides)), ("Verdicts", [note], sentences)])
    return book.save()


def _value(side: int) -> Any:
    return lambda row: (_KINDS[row["unit"]], row["cells"][side]["value"])


def _cell(side: int, name: str) -> Any:
    return lambda row: row["cells"][side][name]


def _verdict(side: int, label: str) -> Field:
    def value(row: Row) -> tuple[str | None, bool]:
        word = row["cells"][side]["verdict"]
        return word, word in ("REGRESSED", "ADDED")

    return field(f"Verdict of {label}", "filter", value, 14)
