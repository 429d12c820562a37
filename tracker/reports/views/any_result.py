"""The document of a result that has no view of its own: its headline, and its tables as they are."""

from __future__ import annotations

from tracker.reports.cells import col
from tracker.reports.document import Document, Look, Table
from tracker.reports.rows import names, table_of
from tracker.reports.text import ROWS
from tracker.reports.view import View
from tracker.results.screens import Result, Rows


def document(result: Result, look: Look) -> Document:
    """Return a table for each table of the result, under its name; the title is the word of the result."""
    blocks = []
    for name, rows in result.chosen_tables(look.only).items():
        blocks.append(_table(name, rows, look.rows(ROWS)))
    return Document(title=result.word, headline=result.headline, blocks=tuple(blocks))


def _table(name: str, rows: Rows, limit: int | None) -> Table:
    columns = [col(column.replace("_", " "), column) for column in names(rows)]
    return table_of(name.replace("_", " ").capitalize(), columns, rows, limit, is_first=True)


VIEW = View(document)
