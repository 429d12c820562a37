"""Lists (of runs, of versions) for people, scripts and spreadsheets."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tracker.cli import database
from tracker.cli.output import emit
from tracker.units import MISSING_TEXT, format_moment, format_ns, printable

if TYPE_CHECKING:
    from tracker.columns import Columns
    from tracker.store import Store

SCHEMA = 1


class Column(NamedTuple):
    """A column of the text form: its head, and its cell for a row (column name -> value, None where missing)."""

    title: str
    cell: Callable[[Mapping[str, Any]], str]
    right: bool = False


def render(rows: Columns, columns: Sequence[Column], format: str, *, name: str, last_line: str) -> str:
    """`rows` as text in `columns` with `last_line` below, or all of its columns as CSV or as JSON under the key
    `name`.
    """
    from tracker.reports import csv as csv_text
    from tracker.reports.rows import records

    if format == "csv":
        return csv_text.written({name: csv_text.table(rows)})
    listed = records(rows)
    if format == "json":
        return json.dumps({"schema": SCHEMA, name: listed}, indent=2, ensure_ascii=False)
    return "\n".join([*_aligned(listed, columns), printable(last_line)]) if listed else last_line


def emit_list(
    query: Callable[[Store], Columns],
    columns: Sequence[Column],
    format: str,
    *,
    name: str,
    last_line: Callable[[Columns], str],
    db: str | None,
) -> None:
    """Print what `query` finds in the database that `db` names, as `render` does."""
    with database.reading(db) as store:
        found = query(store)
    emit(render(found, columns, format, name=name, last_line=last_line(found)), as_it_is=format != "text")


def text_of(key: str) -> Callable[[Mapping[str, Any]], str]:
    """A cell that shows the value of `key` as it is, `-` where it is missing or empty."""
    return lambda row: MISSING_TEXT if row[key] in (None, "") else str(row[key])


def time_of(key: str) -> Callable[[Mapping[str, Any]], str]:
    """A cell that shows a duration of `key` in ns for people."""
    return lambda row: format_ns(row[key])


def moment_of(key: str) -> Callable[[Mapping[str, Any]], str]:
    """A cell that shows a moment of `key` in ns since 1970 to the minute, in UTC."""
    return lambda row: MISSING_TEXT if row[key] is None else format_moment(row[key])


def _aligned(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> list[str]:
    table = [
        [column.title for column in columns],
        *([printable(column.cell(row)) for column in columns] for row in rows),
    ]
    widths = [max(len(line[position]) for line in table) for position in range(len(columns))]
    return [
        "  ".join(
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        ).rstrip()
        for line in table
    ]


def device(row: Mapping[str, Any]) -> str:
    """A cell with vendor and hardware model, `all` for a row of any device."""
    return "all" if row["device"] is None else f"{row['vendor'] or ''} {row['device']}".strip()
