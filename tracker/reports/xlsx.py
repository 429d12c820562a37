"""Excel workbooks: that of a diff as in the comparison tools of Ascend, of all other results a sheet per table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from openpyxl.chart import LineChart, Reference
from openpyxl.formatting.rule import ColorScaleRule
from openpyxl.utils import get_column_letter

from tracker.columns import Columns
from tracker.reports import diff_workbook
from tracker.reports.cells import readable
from tracker.reports.document import Look
from tracker.reports.rows import Row, chosen_sections, plain, records, tables_of
from tracker.reports.summary_sheet import write_summary_of_document, write_summary_of_run
from tracker.reports.views import bottleneck
from tracker.reports.views.history import points_of, series_title
from tracker.reports.views.log import cell_tone, short_names
from tracker.reports.views.matrix import labels, rows_of, verdict_lines
from tracker.reports.workbook import UNITS, Book, Field, field
from tracker.results import Advised, Calibration, Cluster, ExplainedFinding, History, Log, Matrix, Shown
from tracker.units import printable

TITLE = "Excel workbook with all details"
SUFFIX = ".xlsx"
_TITLES: Final[Mapping[tuple[type, str], str]] = {
    (Calibration, "ratios"): "False verdicts", (Calibration, "power"): "Smallest change found",
    (Calibration, "series"): "Noisy series", (Shown, "ops"): "Operators",
}  # fmt: skip
"""Names of sheets that are not those of their tables."""
_SUMMARY_ROWS: Final = 30
"""Rows of a table on the first sheet."""
_EXACT: Final = 10**15
"""Above it a spreadsheet rounds whole numbers: it shows 15 digits."""


def render(what: str, result: Any, look: Look) -> bytes:
    """That of a diff as in the comparison tools of Ascend; of all other results the tables, a sheet each."""
    if what == "diff":
        return diff_workbook.write(result, look)
    book = Book(look.tell)
    if what == "show":
        _show(book, result, look)
        return book.save()
    document = import_module(f"tracker.reports.views.{what}").document
    summary = write_summary_of_document(book, document(result, Look(details=True, limit=_SUMMARY_ROWS)))
    if what == "history":
        _history(book, result, look, summary)
    else:
        _MADE.get(what, _sheets)(book, result, look)
    return book.save()


def _sheets(book: Book, result: Any, look: Look) -> None:
    """A sheet per table with rows, of one finding first its own."""
    tables = tables_of(result, look)
    if isinstance(result, ExplainedFinding):
        tables = {"finding": [plain(dict(result.finding))]} | tables
    for name, rows in tables.items():
        if len(rows):
            made = Columns.of_rows(rows, list(rows[0])) if isinstance(rows, list) else rows
            book.table(_TITLES.get((type(result), name), name.capitalize()), made)


def _show(book: Book, shown: Shown, look: Look) -> None:
    """What was found, the chosen tables that have rows, the memory curve beside memory, the run's facts and sources."""
    facts = plain(shown.run)
    if shown.bottleneck is not None:
        facts["bottleneck"] = bottleneck.sentence(shown.bottleneck)
    facts |= {f"per_step.{key}": value for key, value in (facts.pop("per_step", None) or {}).items()}
    facts |= {f"note {place}": note for place, note in enumerate(shown.notes, start=1)}
    run = [{"key": key, "value": value} for key, value in facts.items() if value is not None]
    write_summary_of_run(book, shown)
    book.sheet("Run", [field("Key", "key", 28), field("Value", lambda row: _typed(**row), 80)], run)
    tables = tables_of(shown, look)
    if "memory" in chosen_sections(shown, look):
        tables["memory_curve"] = shown.tables["memory_curve"]
    if not look.only and shown.tree_table is None:
        tables |= {name: shown.tables[name] for name in ("facts", "sources")}
        tables |= {"advice": shown.tables["advice"]} if shown.advice else {}
    for name, rows in tables.items():
        title = name.replace("_", " ").title().replace(" ", "")
        if len(rows):
            book.table(_TITLES.get((Shown, name), title), rows)


def _typed(key: str, value: Any) -> tuple[str, Any]:
    """Return the kind and the value of a cell: numbers stay numbers where a spreadsheet holds them exactly."""
    if key.endswith("_id"):
        return "flag", value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and abs(value) < _EXACT:
        return "count", value
    return "text", str(value)


def _megabytes(row: Row) -> float | None:
    return None if row["bytes"] is None else row["bytes"] / 1e6


_BESIDE: Final = {
    "ranks": ("StepTraceTime", (
        field("Type", lambda row: "rank", 8), field("Index", "rank", 8), field("Stage", "stage", 8, "count"),
        field("Step Time(us)", "step_ns", kind="us"), field("Computing(us)", "compute_ns", kind="us"),
        field("Communication(Not Overlapped)(us)", "exposed_communication_ns", kind="us"),
        field("Overlapped(us)", "overlap_ns", kind="us"), field("Communication(us)", "communication_ns", kind="us"),
        field("Free(us)", "idle_ns", kind="us"), field("Bubble(us)", "bubble_ns", kind="us"),
        field("Preparing(us)", "preparing_ns", kind="us"),
    )),
    "groups": ("CommunicationTime", (
        field("Communication Group", "ranks", 24, "text"), field("Group Role", "role", 12),
        field("Communication OP Name", "kind", 24), field("Calls", "calls"),
        field("Elapse Time(ms)", "elapse_ns", kind="ms"), field("Transit Time(ms)", "transit_ns", kind="ms"),
        field("Wait Time(ms)", "wait_ns", kind="ms"),
        field("Wait Time Ratio", lambda row: row["wait_ns"] / row["elapse_ns"]
              if row["wait_ns"] is not None and row["elapse_ns"] else None, kind="percent"),
        field("Transit Size(MB)", _megabytes, kind="mean"), field("Bus Bandwidth(GB/s)", "bus_gb_per_s", kind="mean"),
    )),
    "links": ("CommunicationMatrix", (
        field("Src Rank Id", "source_rank", 12), field("Dst Rank Id", "target_rank", 12),
        field("Transport Type", "transport", 16), field("Transit Size(MB)", _megabytes, kind="mean"),
        field("Transit Time(ms)", "transit_ns", kind="ms"), field("Bandwidth(GB/s)", "bandwidth_gb_per_s", kind="mean"),
        field("Verdict", "verdict", 12),
    )),
}  # fmt: skip
"""Section -> a sheet beside it, with the columns of Ascend's cluster analysis: MB and GB are 1e6 and 1e9 bytes."""


def _summed_up(book: Book, found: Cluster | Advised, look: Look) -> None:
    """A sheet per table that has rows; beside three of a cluster the sheet that Ascend's tools write."""
    for name, rows in tables_of(found, look).items():
        if len(rows) and isinstance(found, Cluster) and name in _BESIDE:
            title, fields = _BESIDE[name]
            listed = records(rows)
            if name == "ranks":
                listed.sort(key=lambda row: row["rank"])
            book.sheet(title, fields, listed)
        if len(rows):
            book.table(name.capitalize(), rows)


_MOST: Final = 20
"""Series with a sheet and a chart of their own."""

_SHEET_NAME: Final = 31  # characters: Excel specifications and limits
_VALUES: Final = (("Mean of the runs", "value"), ("Smallest run", "minimum"), ("Largest run", "maximum"))


def _history(book: Book, history: History, look: Look, summary: Any) -> None:
    """A sheet with a chart per series, the first one on the `summary`, too; then all points, runs and changes of the
    environment as they are.
    """
    points = points_of(history)
    series = records(history.tables["series"])
    for one in series[:_MOST]:
        own = points[one["series_id"]]
        name = re.sub(r"[\\\[\]*/:?']+", " ", printable(readable(one["name"]))).strip()
        sheet = book.sheet(f"{one['series_id']} {name}"[:_SHEET_NAME].strip(), _history_fields(one, history), own)
        sheet.add_chart(_chart(sheet, one, len(own)), f"A{len(own) + 4}")
        if one is series[0]:
            summary.add_chart(_chart(sheet, one, len(own)), "G2")
    if len(series) > _MOST:
        look.tell(f"only {_MOST} of {len(series)} series have a chart of their own")
    _sheets(book, history, look)


def _toned(tone: str, value: float | None) -> tuple[str, float | None]:
    """A change, green where it is better and red where it is worse."""
    return f"percent {tone}".strip(), value


def _history_fields(series: Row, history: History) -> list[Field]:
    kind, word = UNITS[series["unit"]]
    unit = "" if kind == "percent" else f" ({word})"

    def change(key: str) -> Any:
        tones = {"REGRESSED": "worse", "IMPROVED": "better"}
        return lambda row: _toned(tones.get(row["verdict"] or "", ""), row[key])

    pinned = [field(f"Change since {history.pinned}", "pinned_change", 12, "percent")] if history.pinned else []
    if pinned and history.options.against == "pinned":
        pinned.append(field(f"Verdict against {history.pinned}", "pinned_verdict", 16))
    return [
        field("Version", "version", 18), *(field(f"{name}{unit}", key, kind=kind) for name, key in _VALUES),
        field("Change", change("change"), 12, "percent"),
        field("Change without drift", change("judged_change"), 12, "percent"), field("Verdict", "verdict", 16),
        *pinned, field("Runs", "runs", 8), field("Calls", "calls", 8),
        field("Lasting change", lambda row: "from here on" if row["change_point"] else None, 14),
        field("Back to the level since", "back_to", 14), field("Facts", lambda row: row["facts"] or None, 24),
        field("What else changed", lambda row: row["environment"] or None, 40),
    ]  # fmt: skip


def _chart(sheet: Any, series: Row, rows: int) -> LineChart:
    chart = LineChart()
    # a title is text, not a formula, but characters that XML has no word for would break the file
    chart.title = printable(series_title(series))[:250]
    chart.y_axis.title = UNITS[series["unit"]][1].replace("%", "")
    chart.height, chart.width = 9, 26
    chart.x_axis.delete = chart.y_axis.delete = False
    chart.add_data(Reference(sheet, min_col=2, max_col=1 + len(_VALUES), min_row=1, max_row=rows + 1), True)
    chart.set_categories(Reference(sheet, min_col=1, min_row=2, max_row=rows + 1))
    for number, line in enumerate(chart.series):
        line.smooth = False
        if number:
            line.graphicalProperties.line.dashStyle = "sysDot"
    return chart


def _log(book: Book, log: Log, look: Look) -> None:
    """The table with a row per version, then cells, columns and directions as they are."""
    columns = records(log.tables["columns"])
    cells: dict[str, dict[int, Row]] = {}
    for cell in records(log.tables["cells"]):
        cells.setdefault(cell["version"], {})[cell["column"]] = cell
    rows = [{**row, "cells": cells.get(row["version"], {})} for row in records(log.tables["versions"])]
    fields = [field("Version", "version", 16), field("Direction", "direction", 16), field("Note", "note", 36)]
    fields.append(field("Commit", "commit", 14))
    for column, name in zip(columns, short_names(columns), strict=True):
        fields += _log_fields(column, name, log.baseline)
    book.sheet("Log", fields, rows)
    for name in ("cells", "columns", "directions"):
        book.table(name.capitalize(), log.tables[name])


def _log_fields(column: Row, name: str, baseline: str | None) -> list[Field]:
    number, better = column["column"], column["higher_is_better"]
    per = f", {column['scope']}" if column["scope"] and column["scope"] not in name else ""
    kind, unit = UNITS[column["unit"]] if column["unit"] in ("ns", "bytes") else ("mean", f"{column['unit']}{per}")

    def take(make: Callable[[Row], Any]) -> Any:
        return lambda row: make(row["cells"].get(number, {}))

    def change(key: str) -> Any:
        return take(lambda cell: _toned(cell_tone(cell.get(key), better), cell.get(key)))

    def expected(cell: Row) -> Any:
        gain = cell.get("expected_gain")
        return ("text", cell.get("expected")) if gain is None else ("percent", gain)

    return [
        field(f"{name or column['title']} ({unit})", take(lambda cell: cell.get("value")), 18, kind),
        field(f"DIFF against {baseline or 'the first version'}", change("baseline_diff"), 12, "percent"),
        field("DIFF against the version before", change("previous_diff"), 12, "percent"),
        field("Gain", take(lambda cell: cell.get("gain")), 10, "percent"),
        field("Expected gain", take(expected), 10, "percent"),
        field("Runs", take(lambda cell: cell.get("runs")), 8, "count"),
        field("Verdict", take(lambda cell: cell.get("verdict")), 14),
    ]


_FASTER, _SAME, _SLOWER = "63BE7B", "FFFFFF", "F8696B"
_FAR: Final = 0.3
"""The DIFF from which on a cell has the full colour."""


def _matrix(book: Book, matrix: Matrix, look: Look) -> None:
    """The sheet Matrix: a row per row of the matrix, for each side its value, then DIFF, then verdicts; and Sides."""
    rows = rows_of(matrix, look.rows(None))

    def of_side(at: int, make: Callable[[Row, Row], Any]) -> Callable[[Row], Any]:
        return lambda row: make(row, row["cells"][at])

    def verdict(row: Row, cell: Row) -> tuple[str | None, bool]:
        return cell["verdict"], cell["verdict"] in ("REGRESSED", "ADDED")

    fields = [
        field("Section", "section", 14), field("Name", lambda row: "    " * int(row["level"] or 0) + row["name"], 44),
        field("Input Shape", "input_shapes", 30), field("Part", "part", 20),
        field("Unit", lambda row: UNITS[row["unit"]][1], 8),
    ]  # fmt: skip
    sides = list(enumerate(labels(matrix)))
    for at, label in sides:
        fields.append(field(label, of_side(at, lambda row, cell: (UNITS[row["unit"]][0], cell["value"])), 14, "ms"))
    first = len(fields) + 1
    for at, label in sides[1:]:
        fields.append(field(f"DIFF of {label}", of_side(at, lambda row, cell: cell["diff"]), 11, "percent"))
    last = len(fields)
    fields += [field(f"Verdict of {label}", of_side(at, verdict), 14, "filter") for at, label in sides[1:]]

    def tone(row: Row) -> str:
        return "main" if row["section"] == "overall" and not row["level"] else ""

    sheet = book.sheet("Matrix", fields, rows, tone=tone)
    area = f"{get_column_letter(first)}2:{get_column_letter(last)}{len(rows) + 1}"
    scale = {"start_type": "num", "start_value": -_FAR, "mid_type": "num", "mid_value": 0, "end_type": "num"}
    colors = {"start_color": _FASTER, "mid_color": _SAME, "end_color": _SLOWER}
    sheet.conditional_formatting.add(area, ColorScaleRule(**scale, **colors, end_value=_FAR))
    texts = [field(name.capitalize(), name) for name in ("label", "workload", "device", "configuration")]
    counts = [field(name.capitalize(), name, kind="count") for name in ("runs", "ranks", "steps")]
    sentences = [{"note": line} for line in (*verdict_lines(matrix), *matrix.notes)]
    note = field("Note", "note")
    book.blocks("Sides", [("Sides", [*texts, *counts], plain(matrix.sides)), ("Verdicts", [note], sentences)])


_MADE: Final[Mapping[str, Callable[[Book, Any, Look], None]]] = {
    "advice": _summed_up, "cluster": _summed_up, "log": _log, "matrix": _matrix,
}  # fmt: skip
