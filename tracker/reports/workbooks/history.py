"""The workbook of a history: a sheet with a chart per series, then its tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from openpyxl.chart import LineChart, Reference

from tracker.reports.cells import readable
from tracker.reports.rows import rows_of
from tracker.reports.views.history import PointInCourse, is_lasting, points_of, series_title
from tracker.reports.workbook import UNITS, Book, Field, FieldsOf, coloured_change
from tracker.reports.workbooks.tables import write_summary, write_tables
from tracker.results.history import FollowedSeries
from tracker.results.verdicts import word_of_step
from tracker.units import printable

if TYPE_CHECKING:
    from tracker.reports.document import Look
    from tracker.reports.view import View
    from tracker.results import History

_MOST: Final = 20
"""Series with a sheet and a chart of their own."""

_SHEET_NAME: Final = 31  # characters: Excel specifications and limits
_VALUES: Final = 3
"""Columns that the chart draws: the mean of the runs, the smallest and the largest one."""


def write(book: Book, history: History, view: View, look: Look) -> None:
    """Write a sheet with a chart per series, the first chart on the summary, too; then all points, runs and changes of
    the environment as they are.
    """
    summary = write_summary(book, history, view)
    points = points_of(history)
    series = rows_of(FollowedSeries, history.tables["series"])
    for one in series[:_MOST]:
        own = points[one.series_id]
        name = re.sub(r"[\\\[\]*/:?']+", " ", printable(readable(one.name))).strip()
        sheet = book.sheet(f"{one.series_id} {name}"[:_SHEET_NAME].strip(), _list_fields(one, history), own)
        sheet.add_chart(_make_chart(sheet, one, len(own)), f"A{len(own) + 4}")
        if one is series[0]:
            summary.add_chart(_make_chart(sheet, one, len(own)), "G2")
    if len(series) > _MOST:
        look.tell(f"only {_MOST} of {len(series)} series have a chart of their own")
    write_tables(book, history, view, look)


_point: Final = FieldsOf(PointInCourse)


def _list_fields(series: FollowedSeries, history: History) -> list[Field]:
    kind, word = UNITS[series.unit]
    unit = "" if kind == "percent" else f" ({word})"
    pinned = []
    if history.pinned:
        pinned.append(_point.field(f"Change since {history.pinned}", lambda row: row.pinned_change, 12, "percent"))
        if history.options.against == "pinned":
            pinned.append(_point.field(f"Verdict against {history.pinned}", lambda row: row.pinned_verdict, 16))
    return [
        _point.field("Version", lambda row: row.version, 18),
        _point.field(f"Mean of the runs{unit}", lambda row: row.value, kind=kind),
        _point.field(f"Smallest run{unit}", lambda row: row.minimum, kind=kind),
        _point.field(f"Largest run{unit}", lambda row: row.maximum, kind=kind),
        _point.field("Change", lambda row: _change(row, row.change), 12, "percent"),
        _point.field("Change without drift", lambda row: _change(row, row.judged_change), 12, "percent"),
        _point.field("Verdict", _verdict, 16),
        *pinned,
        _point.field("Runs", lambda row: row.runs, 8, "count"),
        _point.field("Calls", lambda row: row.calls, 8, "count"),
        _point.field("Lasting change", _lasting, 14),
        _point.field("Back to the level since", lambda row: row.back_to, 14),
        _point.field("Facts", lambda row: row.facts or None, 24),
        _point.field("What else changed", lambda row: row.environment or None, 40),
    ]


def _change(row: PointInCourse, change: float | None) -> tuple[str, float | None]:
    tones = {"REGRESSED": "worse", "IMPROVED": "better"}
    return coloured_change(tones.get(row.verdict or "", ""), change)


def _verdict(row: PointInCourse) -> str | None:
    return word_of_step(row.verdict or "", row.reason) or None


def _lasting(row: PointInCourse) -> str | None:
    return "from here on" if row.change_point and is_lasting(row) else None


def _make_chart(sheet: Any, series: FollowedSeries, rows: int) -> LineChart:
    chart = LineChart()
    # a title is text, not a formula, but characters that XML has no word for would break the file
    chart.title = printable(series_title(series))[:250]
    chart.y_axis.title = UNITS[series.unit][1].replace("%", "")
    chart.height, chart.width = 9, 26
    chart.x_axis.delete = chart.y_axis.delete = False
    chart.add_data(Reference(sheet, min_col=2, max_col=1 + _VALUES, min_row=1, max_row=rows + 1), True)
    chart.set_categories(Reference(sheet, min_col=1, min_row=2, max_row=rows + 1))
    for number, line in enumerate(chart.series):
        line.smooth = False
        if number:
            line.graphicalProperties.line.dashStyle = "sysDot"
    return chart
