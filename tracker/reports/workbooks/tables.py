"""The workbook of any result: a summary, then a sheet per table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracker.columns import Columns
from tracker.reports.document import Look
from tracker.reports.workbooks.summary import write_summary_of_document

if TYPE_CHECKING:
    from tracker.reports.view import View
    from tracker.reports.workbook import Book
    from tracker.results.screens import Result, Rows

_SUMMARY_ROWS = 30
"""Rows of a table on the first sheet."""


def write(book: Book, result: Result, view: View, look: Look) -> None:
    """Write the summary, then each table that has rows."""
    write_summary(book, result, view)
    write_tables(book, result, view, look)


def write_summary(book: Book, result: Result, view: View) -> Any:
    """Write the first sheet: what a first screen shows. Returns the sheet, for charts."""
    return write_summary_of_document(book, view.document(result, Look(details=True, limit=_SUMMARY_ROWS)))


def write_tables(book: Book, result: Result, view: View, look: Look) -> None:
    """Write a sheet for each table of the result that has rows."""
    for name, rows in view.sheets(result, look).items():
        if len(rows):
            book.table(view.sheet_titles.get(name, name.capitalize()), _columns(rows))


def _columns(rows: Rows) -> Columns:
    return Columns.of_rows(rows, list(rows[0])) if isinstance(rows, list) else rows
