"""The workbook of a calibration."""

from __future__ import annotations

from typing import Final

from tracker.reports._workbook import Book, field
from tracker.reports.shared import Style, records
from tracker.results import Calibration

_PERCENT: Final = ("ratio", "share", "spread", "change", "contribution", "detectable")
_MEAN: Final = ("_false", "value", "tested")
_TEXT: Final = ("device", "kind", "metric", "unit", "name", "input_shapes", "part", "version")
_TITLES: Final = {
    "ratios": "False verdicts", "proposals": "Proposals", "power": "Smallest change found", "suspects": "Suspects",
    "series": "Noisy series",
}  # fmt: skip


def write(calibration: Calibration, style: Style) -> bytes:
    """A sheet per table, as it is."""
    book = Book(style.tell)
    for name, title in _TITLES.items():
        frame = getattr(calibration, name)
        fields = [field(column.replace("_", " ").capitalize(), _kind(column), column, 16) for column in frame.columns]
        book.sheet(title, fields, (("", row) for row in records(frame)), len(frame))
    return book.save()


def _kind(column: str) -> str:
    if column in _TEXT:
        return "text"
    if column.endswith(_PERCENT):
        return "percent"
    return "mean" if column.endswith(_MEAN) else "count"
