"""The sheet on which a workbook opens: what was found in a few sentences, its numbers, and a chart of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from openpyxl.chart import BarChart, Reference

from tracker.reports.cells import PARTS
from tracker.reports.document import Lines, Look
from tracker.reports.rows import rows_of
from tracker.reports.views import diff as diff_view
from tracker.reports.views import show as show_view
from tracker.reports.workbook import UNITS, Block, Book, Field, FieldsOf, field
from tracker.results import Contribution, MeanCause, SlowStep
from tracker.results.diff_rows import EnvironmentRow, OverallRow
from tracker.results.run_summary import PARTS_OF_STEP
from tracker.results.verdicts import word_of_step
from tracker.schema.series import UNPROFILED_STEP
from tracker.units import printable

if TYPE_CHECKING:
    from tracker.reports.document import Column, Document
    from tracker.results import Diff, Shown

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


class _WrittenPart(Struct, frozen=True, kw_only=True):
    """A part of the step, or a number beside it: in ns, or with the kind of its cell."""

    part: str
    baseline_ns: float | tuple[str, float | None] | None
    candidate_ns: float | tuple[str, float | None] | None
    delta_ns: float | tuple[str, float | None] | None
    diff: float | None
    verdict: str | None


class _NamedCause(Struct, frozen=True):
    """What carries a part of the change, with its words."""

    cause: str
    row: Contribution


class _SlowStepOfSide(Struct, frozen=True):
    """A slow step, and the label of its side."""

    side: str
    row: SlowStep


class _PartOfRun(Struct, frozen=True):
    """A part of the step of a run."""

    part: str
    ns: float
    share: float | None


_part, _cause, _slow = FieldsOf(_WrittenPart), FieldsOf(_NamedCause), FieldsOf(_SlowStepOfSide)
_part_of_run, _mean_cause, _fact = FieldsOf(_PartOfRun), FieldsOf(MeanCause), FieldsOf(EnvironmentRow)
_OF_LINE: Final = (field("", printable),)
_OF_STEP: Final = (
    _part.field("Part", lambda row: row.part), _part.field("Baseline (ms)", lambda row: row.baseline_ns, kind="ms"),
    _part.field("Candidate (ms)", lambda row: row.candidate_ns, kind="ms"),
    _part.field("Change (ms)", lambda row: row.delta_ns, kind="ms"),
    _part.field("Change", lambda row: row.diff, kind="percent"), _part.field("Verdict", lambda row: row.verdict),
)  # fmt: skip
_OF_CAUSE: Final = (
    _cause.field("Cause", lambda row: row.cause), _cause.field("Change (ms)", lambda row: row.row.delta_ns, kind="ms"),
    _cause.field("Share of the change", lambda row: row.row.share, kind="percent"),
    _cause.field("Why", lambda row: row.row.why), _cause.field("Verdict", lambda row: row.row.verdict),
)  # fmt: skip
_OF_MEAN: Final = (
    _mean_cause.field("Cause of the Mean Step", lambda row: row.name),
    _mean_cause.field("Change (ms)", lambda row: row.delta_ns, kind="ms"),
)
_OF_SLOW_STEP: Final = (
    _slow.field("Side", lambda row: row.side), _slow.field("Slow Step", lambda row: row.row.name),
    _slow.field("Time (ms)", lambda row: row.row.ns, kind="ms"),
    _slow.field("Longer than the Median (ms)", lambda row: row.row.longer_ns, kind="ms"),
    _slow.field("Cause", lambda row: row.row.cause),
    _slow.field("Of the Cause (ms)", lambda row: row.row.cause_ns, kind="ms"),
)  # fmt: skip
_OF_ENVIRONMENT: Final = (
    _fact.field("Kind", lambda row: row.kind), _fact.field("Key", lambda row: row.key),
    _fact.field("Baseline", lambda row: row.baseline), _fact.field("Candidate", lambda row: row.candidate),
)  # fmt: skip
_OF_RUN: Final = (
    _part_of_run.field("Part", lambda row: row.part),
    _part_of_run.field("Per step (ms)", lambda row: row.ns, kind="ms"),
    _part_of_run.field("Share of the step", lambda row: row.share, kind="percent"),
)


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
                yield Block(heading, _OF_LINE, _lines(block.lines))
            continue
        if block.lead:
            yield Block(heading, _OF_LINE, _lines([block.lead]))
            heading = ""
        if block.rows:
            yield Block(heading, [_text_of(column, place) for place, column in enumerate(block.columns)], block.rows)
        if block.more:
            yield Block(f"… and {block.more:,} more")
    if found.notes:
        yield Block("Notes", _OF_LINE, _lines(found.notes))


def _text_of(column: Column, place: int) -> Field:
    """Return the field of a column of a document, whose cells are texts."""
    return field(column.header.replace("\n", " ") or " ", lambda row: _typed(printable(row[place].strip())))


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
    yield Block(printable(f"{found.headline} {found.verdict}".strip()))
    lines = [found.title, *found.remarks]
    yield Block("About", _OF_LINE, _lines(lines))


def _lines(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line]


def _blocks_of_diff(diff: Diff, found: Document) -> Iterator[Block]:
    yield from _sentences(found)
    if not diff.is_refused:
        yield Block(_STEP, _OF_STEP, list(_list_parts(diff)))
        causes = [_NamedCause(diff_view.name_of_cause(one, diff), one) for one in diff.explanation.contributions]
        if causes:
            yield Block(_CAUSES, _OF_CAUSE, causes)
        yield from _blocks_of_slow_steps(diff)
    environment = rows_of(EnvironmentRow, diff.tables["environment"])
    if environment:
        yield Block(_ENVIRONMENT, _OF_ENVIRONMENT, environment)
    if found.notes:
        yield Block("Notes", _OF_LINE, _lines(found.notes))


def _blocks_of_slow_steps(diff: Diff) -> Iterator[Block]:
    """Yield what carries the change of the mean step, and the slow steps of both sides, where there are any."""
    found = diff.explanation
    if found.mean is not None:
        whole = MeanCause("mean step", found.mean.delta_ns)
        yield Block("What carries the change of the mean step", _OF_MEAN, [*found.mean.causes, whole])
    rows = _list_slow_steps(found.baseline_slow_steps, diff.baseline.label)
    rows += _list_slow_steps(found.candidate_slow_steps, diff.candidate.label)
    if rows:
        yield Block(_SLOW_STEPS, _OF_SLOW_STEP, rows)


def _list_slow_steps(slow_steps: Sequence[SlowStep], side: str) -> list[_SlowStepOfSide]:
    return [_SlowStepOfSide(side, one) for one in slow_steps]


def _list_parts(diff: Diff) -> Iterator[_WrittenPart]:
    """Yield the parts of the step, the step itself, and what stands beside it."""
    explanation, of_step = diff.explanation, diff_view.rows_of_step(diff)
    for part in explanation.parts:
        yield _WrittenPart(
            part=PARTS.get(part.name, part.title),
            baseline_ns=part.baseline_ns,
            candidate_ns=part.candidate_ns,
            delta_ns=part.delta_ns,
            diff=part.delta_ns / part.baseline_ns if part.baseline_ns else None,
            verdict=_verdict(of_step.get(part.name)),
        )
    total = diff_view.total_row(diff)
    before, delta = explanation.baseline_ns, explanation.delta_ns
    yield _WrittenPart(
        part="step time" if explanation.total_metric == "step_ns" else "E2E",
        baseline_ns=before,
        candidate_ns=explanation.candidate_ns,
        delta_ns=delta,
        diff=delta / before if before and delta is not None else None,
        verdict=word_of_step(diff.verdict_of_parts, total.reason if total is not None else None) or None,
    )
    for metric, words in _BESIDE_STEP.items():
        row = of_step.get(metric)
        if row is None or not (row.baseline_value or row.candidate_value):
            continue
        kind, unit = UNITS[row.unit]
        yield _WrittenPart(
            part=f"{words} ({unit})",
            baseline_ns=(kind, row.baseline_value),
            candidate_ns=(kind, row.candidate_value),
            delta_ns=(kind, row.delta),
            diff=row.diff,
            verdict=_verdict(row),
        )


def _verdict(row: OverallRow | None) -> str | None:
    return word_of_step(row.verdict, row.reason) or None if row is not None else None


def _blocks_of_run(shown: Shown, found: Document) -> Iterator[Block]:
    yield from _sentences(found)
    numbers: dict[str, Any] = shown.run.get("per_step") or {}
    whole_ns = numbers.get("whole_ns")
    parts = []
    for name in PARTS_OF_STEP:
        if numbers.get(name):
            parts.append(_PartOfRun(PARTS[name], numbers[name], numbers[name] / whole_ns if whole_ns else None))
    if parts:
        yield Block(_PARTS, _OF_RUN, parts)
    if shown.slow_steps:
        yield Block(_SLOW_STEPS, _OF_SLOW_STEP[1:], _list_slow_steps(shown.slow_steps, ""))
    if found.notes:
        yield Block("Notes", _OF_LINE, _lines(found.notes))


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
