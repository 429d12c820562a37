"""Excel workbooks: that of a diff as in the comparison tools of Ascend, of all other results a sheet per table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from openpyxl.chart import LineChart, Reference
from openpyxl.formatting.rule import ColorScaleRule
from openpyxl.utils import get_column_letter

from tracker.columns import Columns
from tracker.reports import diff_workbook
from tracker.reports.cells import readable
from tracker.reports.look import Look
from tracker.reports.rows import Row, plain, records
from tracker.reports.tables import (
    chosen_sections,
    chosen_tables,
    selected,
    tables_of_incident,
    tables_of_status,
)
from tracker.reports.views import bottleneck
from tracker.reports.views.history import points_of, series_title
from tracker.reports.views.log import cell_tone, short_names
from tracker.reports.views.matrix import labels, rows_of, verdict_lines
from tracker.reports.workbook import Book, Field, field
from tracker.results import (
    EXPLAIN_COLUMNS,
    Advised,
    Board,
    Calibration,
    Cluster,
    Diff,
    ExplainedFinding,
    ExplainedIncident,
    Findings,
    History,
    Log,
    Matrix,
    Shown,
    Status,
)
from tracker.units import printable

TITLE = "Excel workbook with all details"
SUFFIX = ".xlsx"
BINARY = True
_TITLES: Final = {"ops": "Operators"}
_CALIBRATION: Final = {
    "ratios": "False verdicts", "proposals": "Proposals", "power": "Smallest change found", "suspects": "Suspects",
    "series": "Noisy series",
}  # fmt: skip


def diff(diff: Diff, look: Look) -> bytes:
    """A sheet per chosen section, then Environment and Explanation."""
    return diff_workbook.write(diff, look)


def show(shown: Shown, look: Look) -> bytes:
    """The chosen tables, the memory curve beside memory, then the run's facts and sources."""
    book = Book(look.tell)
    facts = plain(shown.run)
    if shown.bottleneck is not None:
        facts["bottleneck"] = bottleneck.sentence(shown.bottleneck)
    facts |= {f"note {place}": note for place, note in enumerate(shown.notes, start=1)}
    run = [{"key": key, "value": str(value)} for key, value in facts.items() if value is not None]
    pair = [field("Key", "text", "key", 28), field("Value", "text", "value", 80)]
    book.sheet("Run", pair, (("", row) for row in run), len(run))
    tables = dict(selected(shown, look))
    if "memory" in chosen_sections(shown, look):
        tables["memory_curve"] = shown.tables["memory_curve"]
    if not look.only and shown.tree_table is None:
        tables |= {name: shown.tables[name] for name in ("facts", "sources")}
    for name, rows in tables.items():
        title = _TITLES.get(name, name.replace("_", " ").title().replace(" ", ""))
        book.table(title, rows)
    return book.save()


def findings(found: Findings | Board, look: Look) -> bytes:
    """A sheet per table."""
    book = Book(look.tell)
    for name, rows in found.tables.items():
        book.table(name.capitalize(), rows)
    return book.save()


def explained(found: ExplainedFinding, look: Look) -> bytes:
    """The finding, its tests, its runs, its life and facts, a sheet each."""
    book = Book(look.tell)
    book.table("Finding", Columns.of_rows([plain(dict(found.finding))], list(found.finding)))
    for name in EXPLAIN_COLUMNS:
        book.table(name.capitalize(), getattr(found, name))
    return book.save()


def incident(found: ExplainedIncident, look: Look) -> bytes:
    """The findings of an incident, and the tests, runs, events and facts of all, a sheet for each that has rows."""
    return _sheets(tables_of_incident(found), look)


def status(found: Status, look: Look) -> bytes:
    """The whole, and a sheet per list that has rows."""
    return _sheets(tables_of_status(found), look)


def _sheets(tables: Mapping[str, list[Row]], look: Look) -> bytes:
    book = Book(look.tell)
    for name, rows in tables.items():
        if rows:
            book.table(name.capitalize(), Columns.of_rows(rows, list(rows[0])))
    return book.save()


board = findings


_BESIDE: Final = {
    "ranks": ("StepTraceTime", (
        field("Type", "text", lambda row: "rank", 8), field("Index", "count", "rank", 8),
        field("Stage", "count", "stage", 8), field("Step Time(us)", "us", "step_ns"),
        field("Computing(us)", "us", "compute_ns"),
        field("Communication(Not Overlapped)(us)", "us", "exposed_communication_ns"),
        field("Overlapped(us)", "us", "overlap_ns"), field("Communication(us)", "us", "communication_ns"),
        field("Free(us)", "us", "idle_ns"), field("Bubble(us)", "us", "bubble_ns"),
        field("Preparing(us)", "us", "preparing_ns"),
    )),
    "groups": ("CommunicationTime", (
        field("Communication Group", "text", "ranks", 24), field("Group Role", "text", "role", 12),
        field("Communication OP Name", "text", "kind", 24), field("Calls", "count", "calls"),
        field("Elapse Time(ms)", "ms", "elapse_ns"), field("Transit Time(ms)", "ms", "transit_ns"),
        field("Wait Time(ms)", "ms", "wait_ns"),
        field("Wait Time Ratio", "percent", lambda row: row["wait_ns"] / row["elapse_ns"]
              if row["wait_ns"] is not None and row["elapse_ns"] else None),
        field("Transit Size(MB)", "mean", lambda row: None if row["bytes"] is None else row["bytes"] / 1e6),
        field("Bus Bandwidth(GB/s)", "mean", "bus_gb_per_s"),
    )),
    "links": ("CommunicationMatrix", (
        field("Src Rank Id", "count", "source_rank", 12), field("Dst Rank Id", "count", "target_rank", 12),
        field("Transport Type", "text", "transport", 16),
        field("Transit Size(MB)", "mean", lambda row: None if row["bytes"] is None else row["bytes"] / 1e6),
        field("Transit Time(ms)", "ms", "transit_ns"), field("Bandwidth(GB/s)", "mean", "bandwidth_gb_per_s"),
        field("Verdict", "text", "verdict", 12),
    )),
}  # fmt: skip
"""Section -> a sheet beside it, with the columns of Ascend's cluster analysis: MB and GB are 1e6 and 1e9 bytes."""


def advice(found: Advised, look: Look) -> bytes:
    """What can be won together, a row per piece of advice, and how near operators come to what the device can do."""
    book = Book(look.tell)
    notes = [{"note": note} for note in (found.headline, *found.missing, *found.notes)]
    book.sheet("Summary", [field("Note", "text", "note", 120)], (("", row) for row in notes), len(notes))
    for name, rows in found.tables.items():
        if len(rows):
            book.table(name.capitalize(), rows)
    return book.save()


def cluster(found: Cluster, look: Look) -> bytes:
    """What was found, then a sheet per section that has rows, and beside three the sheet that Ascend's tools write."""
    book = Book(look.tell)
    runs = " -> ".join(str(run["reference"]) for run in (found.baseline, found.run) if run is not None)
    notes = [{"note": note} for note in (runs, found.headline, *found.remarks, *found.missing, *found.notes)]
    book.sheet("Summary", [field("Note", "text", "note", 120)], (("", row) for row in notes), len(notes))
    for name, rows in chosen_tables(found, look):
        if len(rows) and name in _BESIDE:
            title, fields = _BESIDE[name]
            order = ["rank"] if name == "ranks" else []
            listed = sorted(records(rows), key=lambda row: [row[key] for key in order])
            book.sheet(title, fields, (("", row) for row in listed), len(listed))
        if len(rows):
            book.table(name.capitalize(), rows)
    return book.save()


def calibration(calibration: Calibration, look: Look) -> bytes:
    """A sheet per table."""
    book = Book(look.tell)
    for name, title in _CALIBRATION.items():
        book.table(title, getattr(calibration, name))
    return book.save()


_MOST: Final = 20
"""Series with a sheet and a chart of their own."""

_HISTORY_KINDS: Final = {
    "ns": ("ms", " (ms)"), "bytes": ("mb", " (MiB)"), "per_second": ("mean", " (per second)"), "ratio": ("percent", ""),
}  # fmt: skip
_SHEET_NAME: Final = 31  # characters: Excel specifications and limits
_VALUES: Final = (("Mean of the runs", "value"), ("Smallest run", "minimum"), ("Largest run", "maximum"))


def history(history: History, look: Look) -> bytes:
    """A sheet with a chart per series, then all points, runs and changes of the environment as they are."""
    book = Book(look.tell)
    points = points_of(history)
    series = records(history.series)
    for one in series[:_MOST]:
        own = points[one["series_id"]]
        sheet = book.sheet(_sheet_name(one), _history_fields(one, history), (("", row) for row in own), len(own))
        sheet.add_chart(_chart(sheet, one, len(own)), f"A{len(own) + 4}")
    if len(series) > _MOST:
        look.tell(f"only {_MOST} of {len(series)} series have a chart of their own")
    for name in ("series", "points", "runs", "environment"):
        book.table(name.capitalize(), getattr(history, name))
    return book.save()


def _history_fields(series: Row, history: History) -> list[Field]:
    kind, unit = _HISTORY_KINDS[series["unit"]]

    def change(key: str) -> Any:
        def value(row: Row) -> Any:
            tone = {"REGRESSED": "worse", "IMPROVED": "better"}.get(row["verdict"] or "", "")
            return (f"percent {tone}" if tone else "percent", row[key])

        return value

    pinned = [field(f"Change since {history.pinned}", "percent", "pinned_change", 12)] if history.pinned else []
    if pinned and history.options.against == "pinned":
        pinned.append(field(f"Verdict against {history.pinned}", "text", "pinned_verdict", 16))
    return [
        field("Version", "text", "version", 18),
        *(field(f"{name}{unit}", kind, key) for name, key in _VALUES),
        field("Change", "percent", change("change"), 12),
        field("Change without drift", "percent", change("judged_change"), 12),
        field("Verdict", "text", "verdict", 16),
        *pinned,
        field("Runs", "count", "runs", 8),
        field("Calls", "count", "calls", 8),
        field("Lasting change", "text", lambda row: "from here on" if row["change_point"] else None, 14),
        field("Back to the level since", "text", "back_to", 14),
        field("Facts", "text", lambda row: row["facts"] or None, 24),
        field("What else changed", "text", lambda row: row["environment"] or None, 40),
    ]


def _chart(sheet: Any, series: Row, rows: int) -> LineChart:
    chart = LineChart()
    # a title is text, not a formula, but characters that XML has no word for would break the file
    chart.title = printable(series_title(series))[:250]
    chart.y_axis.title = _HISTORY_KINDS[series["unit"]][1].strip(" ()")
    chart.height, chart.width = 9, 26
    chart.x_axis.delete = chart.y_axis.delete = False
    chart.add_data(Reference(sheet, min_col=2, max_col=1 + len(_VALUES), min_row=1, max_row=rows + 1), True)
    chart.set_categories(Reference(sheet, min_col=1, min_row=2, max_row=rows + 1))
    for number, line in enumerate(chart.series):
        line.smooth = False
        if number:
            line.graphicalProperties.line.dashStyle = "sysDot"
    return chart


def _sheet_name(series: Row) -> str:
    """A name that is unique by its number, without what Excel forbids in one."""
    name = re.sub(r"[\\\[\]*/:?']+", " ", printable(readable(series["name"]))).strip()
    return f"{series['series_id']} {name}"[:_SHEET_NAME].strip()


_LOG_KINDS: Final = {"ns": ("ms", " (ms)"), "bytes": ("mb", " (MiB)")}


def log(log: Log, look: Look) -> bytes:
    """The table with a row per version, then cells, columns and directions as they are."""
    book = Book(look.tell)
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
        fields += _log_fields(column, name, log.baseline)
    book.sheet("Log", fields, (("", row) for row in rows), len(rows))
    for name in ("cells", "columns", "directions"):
        book.table(name.capitalize(), getattr(log, name))
    return book.save()


def _log_fields(column: Row, name: str, baseline: str | None) -> list[Field]:
    number = column["column"]
    per = f", {column['scope']}" if column["scope"] and column["scope"] not in name else ""
    kind, unit = _LOG_KINDS.get(column["unit"], ("mean", f" ({column['unit']}{per})"))

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


_MATRIX_KINDS: Final = {"ns": "ms", "bytes": "mb", "count": "count", "ratio": "percent"}
_UNITS: Final = {"ns": "ms", "bytes": "MiB", "count": "count", "ratio": "%"}
_FASTER, _SAME, _SLOWER = "63BE7B", "FFFFFF", "F8696B"
_FAR: Final = 0.3
"""The DIFF from which on a cell has the full colour."""


def matrix(matrix: Matrix, look: Look) -> bytes:
    """The sheet Matrix: a row per row of the matrix, for each side its value, then DIFF, then verdicts; and Sides."""
    book = Book(look.tell)
    rows = rows_of(matrix, look.rows(None))
    fields = [
        field("Section", "text", "section", 14),
        field("Name", "text", lambda row: "    " * int(row["level"] or 0) + row["name"], 44),
        field("Input Shape", "text", "input_shapes", 30),
        field("Part", "text", "part", 20),
        field("Unit", "text", lambda row: _UNITS[row["unit"]], 8),
    ]
    sides = list(enumerate(labels(matrix)))
    fields += [field(label, "ms", _side_value(at), 14) for at, label in sides]
    first = len(fields) + 1
    fields += [field(f"DIFF of {label}", "percent", _side_cell(at, "diff"), 11) for at, label in sides[1:]]
    last = len(fields)
    fields += [_side_verdict(at, label) for at, label in sides[1:]]
    sheet = book.sheet("Matrix", fields, (("" if row["level"] else "main", row) if row["section"] == "overall" else
                                          ("", row) for row in rows), len(rows))  # fmt: skip
    area = f"{get_column_letter(first)}2:{get_column_letter(last)}{len(rows) + 1}"
    scale = {"start_type": "num", "start_value": -_FAR, "mid_type": "num", "mid_value": 0, "end_type": "num"}
    colors = {"start_color": _FASTER, "mid_color": _SAME, "end_color": _SLOWER}
    sheet.conditional_formatting.add(area, ColorScaleRule(**scale, **colors, end_value=_FAR))
    texts = [field(name.capitalize(), "text", name) for name in ("label", "workload", "device", "configuration")]
    counts = [field(name.capitalize(), "count", name) for name in ("runs", "ranks", "steps")]
    sentences = [{"note": line} for line in (*verdict_lines(matrix), *matrix.notes)]
    note = field("Note", "text", "note")
    book.blocks("Sides", [("Sides", [*texts, *counts], plain(matrix.sides)), ("Verdicts", [note], sentences)])
    return book.save()


def _side_value(side: int) -> Any:
    return lambda row: (_MATRIX_KINDS[row["unit"]], row["cells"][side]["value"])


def _side_cell(side: int, name: str) -> Any:
    return lambda row: row["cells"][side][name]


def _side_verdict(side: int, label: str) -> Field:
    def value(row: Row) -> tuple[str | None, bool]:
        word = row["cells"][side]["verdict"]
        return word, word in ("REGRESSED", "ADDED")

    return field(f"Verdict of {label}", "filter", value, 14)
