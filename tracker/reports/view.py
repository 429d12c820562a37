"""What reports take of a result, in each format.

A result that is drawn in its own way has a module `views/<word>.py` with a `VIEW`, by the `word` of its class; any
other one is shown by `views/any_result.py`: its headline and its tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tracker.reports.document import Document, Look
from tracker.reports.rows import plain, records

if TYPE_CHECKING:
    from tracker.results.screens import Result, Rows


def choose_tables(result: Result, look: Look) -> dict[str, Rows]:
    """Return the tables of a result that a reader chose, by name."""
    return result.chosen_tables(look.only, look.rows(None))


def list_fields_and_tables(result: Result, look: Look) -> dict[str, Any]:
    """Return the fields of a result that its class names for JSON, then a list of rows for each of its tables."""
    document = {name: plain(getattr(result, name)) for name in result.json_fields}
    for name, rows in choose_tables(result, look).items():
        document[name] = records(rows)
    return document


class View(Struct, frozen=True):
    """How a kind of result is reported.

    `document`: for people: text, Markdown and HTML.
    `json`: the keys of its JSON document.
    `csv`: its tables in CSV. `sheets`: its tables in a workbook, a sheet each.
    `sheet_titles`: table -> the title of its sheet, where that is not its name.
    `workbook`: the module of `reports.workbooks` that writes the workbook; "tables": a summary, then `sheets`.
    `hides`: formats that do not show it, of those that show any result.
    """

    document: Callable[[Any, Look], Document]
    json: Callable[[Any, Look], Mapping[str, Any]] = list_fields_and_tables
    csv: Callable[[Any, Look], Mapping[str, Rows]] = choose_tables
    sheets: Callable[[Any, Look], Mapping[str, Rows]] = choose_tables
    sheet_titles: Mapping[str, str] = {}
    workbook: str = "tables"
    hides: tuple[str, ...] = ()
