"""Excel workbooks: each opens on a summary; behind it a sheet per table, or what its module of `workbooks` writes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tracker.reports.workbook import Book

if TYPE_CHECKING:
    from tracker.reports.document import Look
    from tracker.reports.view import View
    from tracker.results.screens import Result

TITLE = "Excel workbook with all details"
SUFFIX = ".xlsx"


def render(result: Result, view: View, look: Look) -> bytes:
    """Return the workbook of a result."""
    book = Book(look.tell)
    import_module(f"tracker.reports.workbooks.{view.workbook}").write(book, result, view, look)
    return book.save()
