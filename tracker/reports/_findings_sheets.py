"""The workbook of findings: incidents, what is in them, what else changed; and of one finding with its tests."""

from __future__ import annotations

from tracker.lazy import pd
from tracker.reports._show_sheets import fields_of
from tracker.reports._workbook import Book
from tracker.reports.shared import Style, records
from tracker.results import EXPLAIN_COLUMNS, FINDINGS_COLUMNS, ExplainedFinding, Findings


def write(found: Findings, style: Style) -> bytes:
    """A sheet each for incidents, findings and what else changed."""
    book = Book(style.tell)
    for name in FINDINGS_COLUMNS:
        frame = getattr(found, name).convert_dtypes()
        book.sheet(name.capitalize(), fields_of(frame), (("", row) for row in records(frame)), len(frame))
    return book.save()


def write_explained(found: ExplainedFinding, style: Style) -> bytes:
    """The finding, its tests, its runs, its life and facts, a sheet each."""
    book = Book(style.tell)
    frames = {"finding": pd.DataFrame([found.finding], dtype=object)}
    frames |= {name: getattr(found, name) for name in EXPLAIN_COLUMNS}
    for name, frame in frames.items():
        typed = frame.convert_dtypes()
        book.sheet(name.capitalize(), fields_of(typed), (("", row) for row in records(typed)), len(typed))
    return book.save()
