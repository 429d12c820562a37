"""The workbook of an optimisation log."""

from __future__ import annotations

from typing import Any, Final

from tracker.reports import tables_xlsx
from tracker.reports._workbook import Book, Field, Row, field
from tracker.reports.rows import records
from tracker.reports.shared import Style
from tracker.reports.views.log import cell_tone, short_names
from tracker.results import Log

_KINDS: Final = {"ns": ("ms", " (ms)"), "bytes": ("mb", " (MiB)")}


def write(log: Log, style: Style) -> bytes:
    """The table with a row per version, then cells, columns and directions as they are."""
    book = Book(style.tell)
    columns = records(log.columns)
    cells: dict[str, dict[int, Row]] = {}
    for cell in records(log.cells):
        cells.setdefault(cell["version"], {})[cell["column"]] = cell
    rows = [{**row, "cells": cells.get(row["version"], {})} for row in records(log.versions)]
    fields = [
        field("Version", "text", "version", 16),
        field("Direction", "text", "direction", 16),
        field("Note", "text", "note", 36),
        field("Commit", "text", "commit", 14),
    ]
    for column, name in zip(columns, short_names(columns), strict=True):
        fields += _fields(column, name, log.baseline)
    book.sheet("Log", fields, (("", row) for row in rows), len(rows))
    tables_xlsx.add(book, {"Cells": log.cells, "Columns": log.columns, "Directions": log.directions})
    return book.save()


def _fields(column: Row, name: str, baseline: str | None) -> list[Field]:
    number = column["column"]
    per = f", {column['scope']}" if column["scope"] and column["scope"] not in name else ""
    kind, unit = _KINDS.get(column["unit"], ("mean", f" ({column['unit']}{per})"))

    def take(key: str) -> Any:
        return lambda row: row["cells"].get(number, {}).get(key)

    def change(key: str) -> Any:
        def value(row: Row) -> Any:
            found = row["cells"].get(number, {}).get(key)
            tone = cell_tone(found, column["higher_is_better"])
            return (f"percent {tone}" if tone else "percent", found)

        return value

    def expected(row: Row) -> Any:
        cell = row["cells"].get(number, {})
        gain = cell.get("expected_gain")
        return ("text", cell.get("expected")) if gain is None else ("percent", gain)

    return [
        field(f"{name or column['title']}{unit}", kind, take("value"), 18),
        field(f"DIFF against {baseline or 'the first version'}", "percent", change("baseline_diff"), 12),
        field("DIFF against the version before", "percent", change("previous_diff"), 12),
        field("Gain", "percent", take("gain"), 10),
        field("Expected gain", "percent", expected, 10),
        field("Runs", "count", take("runs"), 8),
        field("Verdict", "text", take("verdict"), 14),
    ]
