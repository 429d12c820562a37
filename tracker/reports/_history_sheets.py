"""The workbook of series over versions, with charts that Excel draws itself."""

from __future__ import annotations

import re
from typing import Any, Final

from openpyxl.chart import LineChart, Reference

from tracker.reports import tables_xlsx
from tracker.reports._workbook import Book, Field, Row, field
from tracker.reports.cells import readable
from tracker.reports.rows import records
from tracker.reports.shared import Style
from tracker.reports.views.history import points_of, series_title
from tracker.results import History
from tracker.units import printable

_MOST: Final = 20
"""Series with a sheet and a chart of their own."""

_KINDS: Final = {"ns": ("ms", " (ms)"), "bytes": ("mb", " (MiB)"), "per_second": ("mean", " (per second)")}
_SHEET_NAME: Final = 31  # characters: Excel specifications and limits
_VALUES: Final = (("Mean of the runs", "value"), ("Smallest run", "minimum"), ("Largest run", "maximum"))


def write(history: History, style: Style) -> bytes:
    """A sheet with a chart per series, then all points, runs and changes of the environment as they are."""
    book = Book(style.tell)
    points = points_of(history)
    series = records(history.series)
    for one in series[:_MOST]:
        own = points[one["series_id"]]
        sheet = book.sheet(_sheet_name(one), _fields(one, history), (("", row) for row in own), len(own))
        sheet.add_chart(_chart(sheet, one, len(own)), f"A{len(own) + 4}")
    if len(series) > _MOST:
        style.tell(f"only {_MOST} of {len(series)} series have a chart of their own")
    names = ("series", "points", "runs", "environment")
    tables_xlsx.add(book, {name.capitalize(): getattr(history, name) for name in names})
    return book.save()


def _fields(series: Row, history: History) -> list[Field]:
    kind, unit = _KINDS[series["unit"]]

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
        field("Back to the level of", "text", "back_to", 14),
        field("Facts", "text", lambda row: row["facts"] or None, 24),
        field("What else changed", "text", lambda row: row["environment"] or None, 40),
    ]


def _chart(sheet: Any, series: Row, rows: int) -> LineChart:
    chart = LineChart()
    # a title is text, not a formula, but characters that XML has no word for would break the file
    chart.title = printable(series_title(series))[:250]
    chart.y_axis.title = _KINDS[series["unit"]][1].strip(" ()")
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
