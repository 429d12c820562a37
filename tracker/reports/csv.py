"""CSV for spreadsheets and data frames: the rows of JSON, one header, missing numbers as empty fields.

One table (`--only operator`) is plain CSV. Several tables share one header: the column `section` first, then the union
of their columns; fields that a table does not have stay empty.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tracker.columns import Columns
from tracker.reports.document import Look
from tracker.reports.rows import list_records, names, no_formula, records
from tracker.units import on_one_line, printable

if TYPE_CHECKING:
    from tracker.reports.view import View
    from tracker.results.screens import Result, Rows

TITLE = "comma-separated values, all tables or the chosen one"
SUFFIX = ".csv"


def render(result: Result, view: View, look: Look) -> str:
    """Return the chosen tables, where a reader chose none also the sentences of a diff, a run or its ranks; of an
    inbox, a board and advice the main table, of a matrix, a log and a history one with what is known of both sides of
    a cell.
    """
    return write_tables(view.csv(result, look))


def write_tables(tables: Mapping[str, Rows]) -> str:
    """Return tables under one header, the column `section` first where there are several; what is missing is empty."""
    header = list(dict.fromkeys(name for rows in tables.values() for name in names(rows)))
    several = len(tables) > 1
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((["section"] if several else []) + header)
    for section, rows in tables.items():
        for row in list_records(rows) if isinstance(rows, Columns) else records(rows):
            writer.writerow(([section] if several else []) + [_field(row.get(name)) for name in header])
    return out.getvalue()


def _field(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        return _text_field(value)
    if isinstance(value, list | dict):
        return _text_field(str(value))
    return value


@lru_cache(1 << 12)
def _text_field(text: str) -> str:
    # one record per line, and nothing for a terminal to act on; JSON has control characters as they are
    shown = on_one_line(text)
    return no_formula(printable(text) if "##[" in shown else shown)
