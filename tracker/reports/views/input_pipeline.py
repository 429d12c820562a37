"""The data pipeline of the input: tables of one run, and of a diff, in which a queue is a line with its course."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tracker.reports.cells import col, diff_text, measured, number, of, pair, share
from tracker.reports.document import NAME, Column, Table
from tracker.reports.rows import Row, records, table_of
from tracker.reports.views.sections import SIDES
from tracker.results.sections import SECTION
from tracker.units import MISSING_TEXT, format_ns

if TYPE_CHECKING:
    from tracker.columns import Columns

_GRAIN: Final = ("rank", "step")
_QUEUES: Final = "Input pipeline: entries in the queues behind its operations, over time below"


def tables_of_run(tables: Mapping[str, Columns], limit: int | None, make: Callable[..., Table]) -> list[Table]:
    """Return the operations of the data pipeline with their shares, and the queues behind them with their course.
    `make`: makes a table of a run of its columns and rows.
    """
    operations = [
        col("operation", **NAME), Column("calls", of("calls", number), drop=2),
        Column("average", of("average_ns", format_ns)), Column("total", of("total_ns", format_ns), drop=1),
        Column("share", of("share", share)),
    ]  # fmt: skip
    queues = [
        col("operation", **NAME), Column("workers", of("workers", number), drop=3),
        Column("capacity", of("capacity", number), drop=1), Column("mean", of("mean", _size)),
        Column("largest", of("max", number), drop=2), Column("empty", of("empty_share", share)),
        Column("CPU", of("cpu_percent", _percent), drop=4),
        Column("of", of("sampled_ns", _time), drop=5),
    ]  # fmt: skip
    listed = _with_courses(records(tables["input_queues"]), ("",))
    return [
        make(SECTION["input"].title_of_run, operations, records(tables["input_operations"]), limit),
        make(_QUEUES, queues, listed, limit, below=of("course")),
    ]


def tables_of_diff(tables: Mapping[str, Columns], limit: int | None) -> list[Table]:
    """Return the operations of both sides by change of their average, and the queues behind them with both courses."""
    operations = [
        col("operation", **NAME), *(Column(side, of(f"{side}_average_ns", format_ns)) for side in SIDES),
        Column("change %", diff_text), Column("share", _both("share", share), drop=1),
        Column("calls", _both("calls", number), drop=2),
    ]  # fmt: skip
    queues = [
        col("operation", **NAME), *(Column(side, of(f"{side}_mean", _size)) for side in SIDES),
        Column("change %", diff_text), Column("empty", _both("empty_share", share)),
        Column("workers", _both("workers", number), drop=3), Column("capacity", _both("capacity", number), drop=2),
    ]  # fmt: skip
    listed = _with_courses(records(tables["input_queues"]), [f"{side}_" for side in SIDES])
    return [
        table_of(SECTION["input"].title, operations, tables["input_operations"], limit),
        table_of(_QUEUES, queues, listed, limit, below=_both_courses),
    ]


def _with_courses(rows: Sequence[Row], prefixes: Sequence[str]) -> list[Row]:
    """Return the rows of whole queues, each with the means of its intervals of time as its course; `prefixes`: of the
    sides, "" for those of one run.
    """
    wholes: list[Row] = []
    intervals: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        key = (*(row.get(name) for name in _GRAIN), row["operation"])
        if row["interval"] is not None:
            intervals.setdefault(key, []).append(row)
            continue
        wholes.append({**row, "key": key})
    for whole in wholes:
        own = intervals.get(whole["key"], [])
        for prefix in prefixes:
            means = [row[f"{prefix}mean"] for row in own if row[f"{prefix}mean"] is not None]
            whole[f"{prefix}course"] = " ".join(map(_size, means)) or MISSING_TEXT
    return wholes


def _both_courses(row: Row) -> str:
    return pair(row["baseline_course"], row["candidate_course"])


def _size(value: float | None) -> str:
    """Return how many entries there are in a queue on the mean."""
    return MISSING_TEXT if value is None else f"{value:.1f}"


def _percent(value: float | None) -> str:
    return MISSING_TEXT if value is None else f"{measured(value)} %"


def _time(value: float | None) -> str:
    return MISSING_TEXT if value is None else format_ns(value)


def _both(name: str, form: Callable[[float | None], str]) -> Callable[[Row], str]:
    """Return what writes a number of both sides as one cell."""
    return lambda row: pair(form(row[f"baseline_{name}"]), form(row[f"candidate_{name}"]))
