"""The workbook of a log: a row per version, with the columns of each measure side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from tracker.reports.views.log import cell_tone, short_names
from tracker.reports.workbook import UNITS, Book, Field, FieldsOf, coloured_change
from tracker.reports.workbooks.tables import write_summary
from tracker.results.verdicts import word_of_step

if TYPE_CHECKING:
    from tracker.reports.document import Look
    from tracker.reports.view import View
    from tracker.results import Log
    from tracker.results.log import LogCellRow, LogColumnRow, LogVersionRow


def write(book: Book, log: Log, view: View, look: Look) -> None:
    """Write the summary, the table with a row per version, then cells, columns and directions as they are."""
    write_summary(book, log, view)
    cells: dict[str, dict[int, LogCellRow]] = {}
    for cell in log.rows.cells:
        cells.setdefault(cell.version, {})[cell.column] = cell
    lines = [_Version(version, cells.get(version.version, {})) for version in log.rows.versions]
    fields = [
        _version.field("Version", lambda line: line.row.version, 16),
        _version.field("Direction", lambda line: line.row.direction, 16),
        _version.field("Note", lambda line: line.row.note, 36),
    ]
    if any(row.machine for row in log.rows.versions):
        fields.append(_version.field("Machine", lambda line: line.row.machine, 24))
    fields.append(_version.field("Commit", lambda line: line.row.commit, 14))
    for column, name in zip(log.rows.columns, short_names(log.rows.columns), strict=True):
        fields += _list_fields(column, name, log.baseline)
    book.sheet("Log", fields, lines)
    for name in ("cells", "columns", "directions"):
        book.table(name.capitalize(), log.tables[name])


class _Version(Struct, frozen=True):
    """A version with its cells, by their columns."""

    row: LogVersionRow
    cells: Mapping[int, LogCellRow]


_version: Final = FieldsOf(_Version)


def _list_fields(column: LogColumnRow, name: str, baseline: str | None) -> list[Field]:
    number, better = column.column, column.higher_is_better
    per = f", {column.scope}" if column.scope and column.scope not in name else ""
    kind, unit = UNITS[column.unit] if column.unit in ("ns", "bytes") else ("mean", f"{column.unit}{per}")

    def take(make: Callable[[LogCellRow], Any]) -> Callable[[_Version], Any]:
        return lambda line: make(line.cells[number]) if number in line.cells else None

    def change(diff: float | None) -> tuple[str, float | None]:
        return coloured_change(cell_tone(diff, better), diff)

    def expected(cell: LogCellRow) -> tuple[str, Any]:
        return ("text", cell.expected) if cell.expected_gain is None else ("percent", cell.expected_gain)

    against_baseline = f"DIFF against {baseline or 'the first version'}"
    return [
        _version.field(f"{name or column.title} ({unit})", take(lambda cell: cell.value), 18, kind),
        _version.field(against_baseline, take(lambda cell: change(cell.baseline_diff)), 12, "percent"),
        _version.field("DIFF against the version before", take(lambda cell: change(cell.previous_diff)), 12, "percent"),
        _version.field("Gain", take(lambda cell: cell.gain), 10, "percent"),
        _version.field("Expected gain", take(expected), 10, "percent"),
        _version.field("Runs", take(lambda cell: cell.runs), 8, "count"),
        _version.field("Verdict", take(lambda cell: word_of_step(cell.verdict, cell.reason) or None), 14),
    ]
