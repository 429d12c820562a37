"""The workbook of a log: a row per version, with the columns of each measure side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tracker.reports.rows import Row, records
from tracker.reports.views.log import cell_tone, short_names
from tracker.reports.workbook import UNITS, Book, Field, coloured_change, field
from tracker.reports.workbooks.tables import write_summary
from tracker.results.verdicts import word_of_step

if TYPE_CHECKING:
    from tracker.reports.document import Look
    from tracker.reports.view import View
    from tracker.results import Log
    from tracker.results.log import LogColumnRow


def write(book: Book, log: Log, view: View, look: Look) -> None:
    """Write the summary, the table with a row per version, then cells, columns and directions as they are."""
    write_summary(book, log, view)
    cells: dict[str, dict[int, Row]] = {}
    for cell in records(log.tables["cells"]):
        cells.setdefault(cell["version"], {})[cell["column"]] = cell
    rows = [{**row, "cells": cells.get(row["version"], {})} for row in records(log.tables["versions"])]
    fields = [field("Version", "version", 16), field("Direction", "direction", 16), field("Note", "note", 36)]
    if any(row.machine for row in log.rows.versions):
        fields.append(field("Machine", "machine", 24))
    fields.append(field("Commit", "commit", 14))
    for column, name in zip(log.rows.columns, short_names(log.rows.columns), strict=True):
        fields += _list_fields(column, name, log.baseline)
    book.sheet("Log", fields, rows)
    for name in ("cells", "columns", "directions"):
        book.table(name.capitalize(), log.tables[name])


def _list_fields(column: LogColumnRow, name: str, baseline: str | None) -> list[Field]:
    number, better = column.column, column.higher_is_better
    per = f", {column.scope}" if column.scope and column.scope not in name else ""
    kind, unit = UNITS[column.unit] if column.unit in ("ns", "bytes") else ("mean", f"{column.unit}{per}")

    def take(make: Callable[[Row], Any]) -> Any:
        return lambda row: make(row["cells"].get(number, {}))

    def change(key: str) -> Any:
        return take(lambda cell: coloured_change(cell_tone(cell.get(key), better), cell.get(key)))

    def expected(cell: Row) -> Any:
        gain = cell.get("expected_gain")
        return ("text", cell.get("expected")) if gain is None else ("percent", gain)

    return [
        field(f"{name or column.title} ({unit})", take(lambda cell: cell.get("value")), 18, kind),
        field(f"DIFF against {baseline or 'the first version'}", change("baseline_diff"), 12, "percent"),
        field("DIFF against the version before", change("previous_diff"), 12, "percent"),
        field("Gain", take(lambda cell: cell.get("gain")), 10, "percent"),
        field("Expected gain", take(expected), 10, "percent"),
        field("Runs", take(lambda cell: cell.get("runs")), 8, "count"),
        field("Verdict", take(lambda cell: word_of_step(cell.get("verdict"), cell.get("reason")) or None), 14),
    ]
