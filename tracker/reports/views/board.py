"""The board: a line per workload, configuration and device, what is new first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracker.reports.cells import col, of, pairs, sparkline, waiting_words
from tracker.reports.commands import command
from tracker.reports.document import WORDS, Column, Document, Look, Table, Target, Trend
from tracker.reports.rows import Row, records, table_of
from tracker.results import Board
from tracker.units import MISSING_TEXT, format_diff, format_moment

_ROWS = 20
_LEAST_AXIS = 0.05
"""Part of the largest value that a course spans at least: noise must not look like a change."""


def document(board: Board, look: Look) -> Document:
    """The report of `tracker board`."""
    lines = records(board.tables["lines"])
    return Document(
        title="all workloads" if board.options.workload is None else board.options.workload,
        headline=board.headline,
        tone="worse" if any(line["new"] or line["open"] for line in lines) else "",
        blocks=(_lines(board, lines, look),) if lines else (),
        next_commands=tuple(_next(lines)),
    )


def _lines(board: Board, lines: Sequence[Row], look: Look) -> Table:
    courses: dict[int, list[Row]] = {}
    for point in records(board.tables["points"]):
        courses.setdefault(point["line"], []).append(point)
    for at, line in enumerate(lines):
        line["course"] = courses.get(at, [])

    def name(line: Row) -> str:
        return " ".join([line["workload"], *(f"{key}={value}" for key, value in pairs(line["configuration"] or ""))])

    has_good = any(line["good_change"] is not None for line in lines)
    is_pinned = any(line["pinned_version"] for line in lines)
    columns = [
        Column("workload", name, **WORDS), col("device", drop=4, **WORDS), col("version"),
        Column("runs", lambda line: f"{line['version_runs']} of {line['runs']}", drop=5), col("step", "step_ns"),
        *([col("vs last good", "good_change", _change, drop=1)] if has_good else []),
        col("vs previous", "previous_change", _change),
        *([col("vs pinned", "pinned_change", _change, drop=3)] if is_pinned else []),
        col("step by version", "course", form=_course, drop=2),
        Column("regressions", _counts, left=True), col("peak", "peak_allocated_bytes", drop=6),
        Column("last run", of("last_run_ns", lambda ns: format_moment(ns) if ns else MISSING_TEXT), left=True, drop=7),
    ]  # fmt: skip
    points = tuple((point["version"], point["step_ns"], (), "", "") for point in courses.get(0, []))
    chart = Trend("ns", points) if len(points) > 1 and len(lines) == 1 else None
    return table_of(
        "", columns, lines, look.rows(_ROWS), is_first=True, links=_link, chart=chart, below=waiting_words,
        tone=lambda line: "worse" if line["new"] or line["open"] else "",
    )  # fmt: skip


def _link(line: Row) -> Target:
    """The worst incident of a track, else the history of its step."""
    if line["incident_id"] is not None:
        return Target("incident", (("ID", f"I-{line['incident_id']}"),))
    return Target("history", (("KEY", "step"), ("--workload", line["workload"])))


def _change(value: float | None) -> str:
    return "" if value is None else format_diff(value)


def _course(points: Sequence[Row]) -> str:
    """The step over the versions; changes below a twentieth are drawn as none."""
    values = [point["step_ns"] for point in points]
    known = [value for value in values if value is not None]
    if known and max(known) - min(known) < _LEAST_AXIS * max(known):
        values = [None if value is None else 1.0 for value in values]
    return sparkline(values)


def _counts(line: Row) -> str:
    names = (("new", "NEW"), ("open", "open"), ("suspects", "suspect"), ("muted", "muted"))
    return ", ".join(f"{line[name]} {word}" for name, word in names if line[name])


def _next(lines: Sequence[Row]) -> Iterator[str]:
    worst = lines[0] if lines else None
    if worst and worst["incident_id"] is not None:
        yield command("tracker", "explain", f"I-{worst['incident_id']}")
    if worst:
        yield command("tracker", "history", "step", "--workload", worst["workload"])
    yield command("tracker", "status")
