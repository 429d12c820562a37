"""The sheet on which a workbook opens: what was found in a few sentences, its numbers, and a chart of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from openpyxl.chart import BarChart, Reference

from tracker.reports.cells import PARTS
from tracker.reports.document import Lines, Look
from tracker.reports.rows import Row, plain, records
from tracker.reports.views import diff as diff_view
from tracker.reports.views import show as show_view
from tracker.reports.workbook import SIDES, UNITS, Book, Field, field
from tracker.results.run_summary import PARTS_OF_STEP
from tracker.results.verdicts import word_of_step
from tracker.schema.series import UNPROFILED_STEP
from tracker.units import printable

if TYPE_CHECKING:
    from tracker.reports.document import Column, Document
    from tracker.results import Diff, Shown, SlowStep

_STEP: Final = "Step"
_CAUSES: Final = "What carries the change"
_ENVIRONMENT: Final = "What else changed"
_PARTS: Final = "Parts of the step"
_SLOW_STEPS: Final = "Slow steps"
_FIRST_TABLE: Final = "In short"
_MOST_BARS: Final = 20
"""Bars of a chart: more have no room for their names."""
_BESIDE_STEP: Final = {
    UNPROFILED_STEP: "step without a profiler",
    "data_loading_ns": "data loading",
    "peak_allocated_bytes": "peak memory",
}
"""Numbers of a step that are no part of its sum, in the rows below it."""
_PER_CENT: Final = re.compile(r"[+-]?[\d,]+(\.\d+)? %")
_COUNT: Final = re.compile(r"\d[\d,]*")
Block = tuple[str, Sequence[Field], Sequence[Row]]

_OF_STEP: Final = (
    field("Part", "part"), *(field(f"{side} (ms)", f"{prefix}_ns", kind="ms") for side, prefix in SIDES),
    field("Change (ms)", "delta_ns", kind="ms"), field("Change", "diff", kind="percent"), field("Verdict", "verdict"),
)  # fmt: skip
_OF_CAUSE: Final = (
    field("Cause", "cause"), field("Change (ms)", "delta_ns", kind="ms"),
    field("Share of the change", "share", kind="percent"), field("Why", "why"), field("Verdict", "verdict"),
)  # fmt: skip
_OF_MEAN: Final = (field("Cause of the Mean Step", "name"), field("Change (ms)", "delta_ns", kind="ms"))
_OF_SLOW_STEP: Final = (
    field("Side", "side"), field("Slow Step", "name"), field("Time (ms)", "ns", kind="ms"),
    field("Longer than the Median (ms)", "longer_ns", kind="ms"), field("Cause", "cause"),
    field("Of the Cause (ms)", "cause_ns", kind="ms"),
)  # fmt: skip
_OF_ENVIRONMENT: Final = (field("Kind", "kind"), field("Key", "key"), *(field(side, name) for side, name in SIDES))
_OF_RUN: Final = (
    field("Part", "part"), field("Per step (ms)", "ns", kind="ms"), field("Share of the step", "share", kind="percent"),
)  # fmt: skip


def write_summary_of_diff(book: Book, diff: Diff) -> None:
    """Write the sheet of a diff: the headline with what limits it, the step, its causes with a chart, what else changed
    and the notes.
    """
    found = diff_view.document(diff, Look(details=True))
    sheet, places = book.blocks("Summary", _blocks_of_diff(diff, found))
    if _CAUSES in places:
        _add_bars(sheet, *places[_CAUSES], title="Change of the step in ms", column="H")


def write_summary_of_run(book: Book, shown: Shown) -> None:
    """Write the sheet of a run: the headline, the parts of its step with a chart, and the notes."""
    found = show_view.document(shown, Look(details=True))
    sheet, places = book.blocks("Summary", _blocks_of_run(shown, found))
    if _PARTS in places:
        _add_bars(sheet, *places[_PARTS], title="ms per step", column="H")


def write_summary_of_document(book: Book, found: Document) -> Any:
    """Write the sheet of any other result: the headline with what limits it, what a first screen shows, and the notes.

    Its numbers are texts with their units; the sheets behind it have them as numbers. Returns the sheet, for charts.
    """
    sheet, _ = book.blocks("Summary", _blocks_of_document(found))
    return sheet


def _blocks_of_document(found: Document) -> Iterator[Block]:
    yield from _sentences(found)
    for block in found.blocks:
        if not block.is_first:
            continue
        heading = block.title or _FIRST_TABLE
        if isinstance(block, Lines):
            if block.lines and not block.is_drawing:
                yield heading, [field("", "line")], _lines(block.lines)
            continue
        if block.lead:
            yield heading, [field("", "line")], _lines([block.lead])
            heading = ""
        rows = [{str(place): text for place, text in enumerate(row)} for row in block.rows]
        if rows:
            yield heading, [_text_of(column, place) for place, column in enumerate(block.columns)], rows
        if block.more:
            yield f"… and {block.more:,} more", [], []
    if found.notes:
        yield "Notes", [field("", "line")], _lines(found.notes)


def _text_of(column: Column, place: int) -> Field:
    """Return the field of a column of a document, whose cells are texts."""
    return field(column.header.replace("\n", " ") or " ", lambda row: _typed(printable(row[str(place)].strip())))


def _typed(text: str) -> tuple[str, Any]:
    """Return the kind and the value of a text: counts and per cents become numbers, so that they sort.

    >>> _typed("+3.5 %"), _typed("1,206"), _typed("3.50 ms")
    (('percent', 0.035), ('count', 1206), ('text', '3.50 ms'))
    """
    if _PER_CENT.fullmatch(text):
        return "percent", round(float(text.removesuffix(" %").replace(",", "")) / 100, 6)
    if _COUNT.fullmatch(text):
        return "count", int(text.replace(",", ""))
    return "text", text


def _sentences(found: Document) -> Iterator[Block]:
    """Yield the headline with its verdict, and what it is about or what was compared."""
    yield printable(f"{found.headline} {found.verdict}".strip()), [], []
    lines = [found.title, *found.remarks]
    yield "About", [field("", "line")], _lines(lines)


def _lines(lines: Sequence[str]) -> list[Row]:
    return [{"line": printable(line)} for line in lines if line]


def _blocks_of_diff(diff: Diff, found: Document) -> Iterator[Block]:
    yield from _sentences(found)
    explanation, of_step = diff.explanation, {row["metric"]: row for row in records(diff.tables["overall"])}
    if not diff.is_refused:
        yield _STEP, _OF_STEP, list(_rows_of_step(diff, of_step))
        causes = [{**plain(one), "cause": diff_view.name_of_cause(one, diff)} for one in explanation.contributions]
        if causes:
            yield _CAUSES, _OF_CAUSE, causes
        yield from _blocks_of_slow_steps(diff)
    environment = records(diff.tables["environment"])
    if environment:
        yield _ENVIRONMENT, _OF_ENVIRONMENT, environment
    if found.notes:
        yield "Notes", [field("", "line")], _lines(found.notes)


def _blocks_of_slow_steps(diff: Diff) -> Iterator[Block]:
    """Yield what carries the change of the mean step, and the slow steps of both sides, where there are any."""
    found = diff.explanation
    if found.mean is not None:
        whole = {"name": "mean step", "delta_ns": found.mean.delta_ns}
        yield "What carries the change of the mean step", _OF_MEAN, [*plain(found.mean.causes), whole]
    rows = [*_rows_of_slow_steps(found.baseline_slow_steps, diff.baseline.label)]
    rows += _rows_of_slow_steps(found.candidate_slow_steps, diff.candidate.label)
    if rows:
        yield _SLOW_STEPS, _OF_SLOW_STEP, rows


def _rows_of_slow_steps(slow_steps: Sequence[SlowStep], side: str) -> list[Row]:
    return [plain(one) | {"name": one.name, "side": side} for one in slow_steps]


def _rows_of_step(diff: Diff, of_step: dict[str, Row]) -> Iterator[Row]:
    explanation = diff.explanation
    for part in explanation.parts:
        verdict = _verdict(of_step.get(part.name, {}))
        yield _with_diff(plain(part) | {"part": PARTS.get(part.name, part.title), "verdict": verdict})
    whole = {"baseline_ns": explanation.baseline_ns, "candidate_ns": explanation.candidate_ns}
    name = "step time" if explanation.total_metric == "step_ns" else "E2E"
    of_whole = diff_view.total_row(diff) | {"verdict": diff.verdict_of_parts}
    yield _with_diff({**whole, "part": name, "delta_ns": explanation.delta_ns, "verdict": _verdict(of_whole)})
    for metric, words in _BESIDE_STEP.items():
        row = of_step.get(metric)
        if row is None or not (row["baseline_value"] or row["candidate_value"]):
            continue
        kind, unit = UNITS[row["unit"]]
        ends = {f"{side}_ns": (kind, row[f"{side}_value"]) for _, side in SIDES}
        beside = {"part": f"{words} ({unit})", "delta_ns": (kind, row["delta"])}
        yield {**ends, **beside, "diff": row["diff"], "verdict": _verdict(row)}


def _verdict(row: Row) -> str | None:
    return word_of_step(row.get("verdict"), row.get("reason")) or None


def _with_diff(row: Row) -> Row:
    before, delta = row["baseline_ns"], row["delta_ns"]
    return {**row, "diff": delta / before if before and delta is not None else None}


def _blocks_of_run(shown: Shown, found: Document) -> Iterator[Block]:
    yield from _sentences(found)
    numbers: dict[str, Any] = shown.run.get("per_step") or {}
    whole_ns = numbers.get("whole_ns")
    parts: list[Row] = [
        {"part": PARTS[name], "ns": numbers[name], "share": numbers[name] / whole_ns if whole_ns else None}
        for name in PARTS_OF_STEP
        if numbers.get(name)
    ]
    if parts:
        yield _PARTS, _OF_RUN, parts
    if shown.slow_steps:
        yield _SLOW_STEPS, _OF_SLOW_STEP[1:], _rows_of_slow_steps(shown.slow_steps, "")
    if found.notes:
        yield "Notes", [field("", "line")], _lines(found.notes)


def _add_bars(sheet: Any, header: int, last: int, *, title: str, column: str) -> None:
    """Add a chart of the second column, a bar for each row, the first one on top."""
    last = min(last, header + _MOST_BARS)
    chart = BarChart()
    chart.type, chart.style, chart.title, chart.legend = "bar", 10, title, None
    chart.height, chart.width = max(5.0, 1.5 + 0.7 * (last - header)), 24
    # deleted axes are what openpyxl writes by itself
    chart.x_axis.delete = chart.y_axis.delete = False
    chart.x_axis.scaling.orientation = "maxMin"
    chart.y_axis.number_format = "#,##0.00"
    chart.add_data(Reference(sheet, min_col=2, min_row=header, max_row=last), titles_from_data=True)
    chart.set_categories(Reference(sheet, min_col=1, min_row=header + 1, max_row=last))
    sheet.add_chart(chart, f"{column}2")
