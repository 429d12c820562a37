"""The data pipeline of the input: tables of one run, and of a diff, in which a queue is a line with its course."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tracker.reports.cells import ColumnsOf, diff_text, measured, number, pair, readable, share
from tracker.reports.document import NAME, Table
from tracker.reports.rows import rows_of, table_of
from tracker.results.diff_rows import InputOperationChange, InputQueueChange
from tracker.results.sections import SECTION
from tracker.results.shown_rows import InputOperationRow, InputQueueRow
from tracker.units import MISSING_TEXT, format_ns

if TYPE_CHECKING:
    from tracker.columns import Columns

_QUEUES: Final = "Input pipeline: entries in the queues behind its operations, over time below"


class _Queue(Struct, frozen=True):
    """A queue with its course: the means of its intervals of time."""

    row: InputQueueRow
    course: str

    @property
    def rank(self) -> int | None:
        """Of which rank it is, where these are kept apart."""
        return self.row.rank

    @property
    def step(self) -> int | None:
        """Of which step it is, where these are kept apart."""
        return self.row.step


class _QueueOfSides(Struct, frozen=True):
    """A queue of both sides with both of its courses."""

    row: InputQueueChange
    baseline_course: str
    candidate_course: str


_operation: Final = ColumnsOf(InputOperationRow)
_queue: Final = ColumnsOf(_Queue)
_operation_of_sides: Final = ColumnsOf(InputOperationChange)
_queue_of_sides: Final = ColumnsOf(_QueueOfSides)


def tables_of_run(tables: Mapping[str, Columns], limit: int | None, make: Callable[..., Table]) -> list[Table]:
    """Return the operations of the data pipeline with their shares, and the queues behind them with their course.
    `make`: makes a table of a run of its columns and rows.
    """
    operations = [
        _operation.text("operation", lambda row: readable(row.operation), **NAME),
        _operation.number("calls", lambda row: number(row.calls), drop=2),
        _operation.number("average", lambda row: format_ns(row.average_ns)),
        _operation.number("total", lambda row: format_ns(row.total_ns), drop=1),
        _operation.number("share", lambda row: share(row.share)),
    ]
    queues = [
        _queue.text("operation", lambda queue: readable(queue.row.operation), **NAME),
        _queue.number("workers", lambda queue: number(queue.row.workers), drop=3),
        _queue.number("capacity", lambda queue: number(queue.row.capacity), drop=1),
        _queue.number("mean", lambda queue: _size(queue.row.mean)),
        _queue.number("largest", lambda queue: number(queue.row.max), drop=2),
        _queue.number("empty", lambda queue: share(queue.row.empty_share)),
        _queue.number("CPU", lambda queue: _percent(queue.row.cpu_percent), drop=4),
        _queue.number("of", lambda queue: _time(queue.row.sampled_ns), drop=5),
    ]
    listed = _with_courses(rows_of(InputQueueRow, tables["input_queues"]))
    title = SECTION["input"].title_of_run
    return [
        make(title, operations, tables["input_operations"], limit, kind=InputOperationRow),
        make(_QUEUES, queues, listed, limit, below=lambda queue: queue.course),
    ]


def tables_of_diff(tables: Mapping[str, Columns], limit: int | None) -> list[Table]:
    """Return the operations of both sides by change of their average, and the queues behind them with both courses."""

    def shares(row: InputOperationChange) -> str:
        return pair(share(row.baseline_share), share(row.candidate_share))

    def calls(row: InputOperationChange) -> str:
        return pair(number(row.baseline_calls), number(row.candidate_calls))

    operations = [
        _operation_of_sides.text("operation", lambda row: readable(row.operation), **NAME),
        _operation_of_sides.number("baseline", lambda row: format_ns(row.baseline_average_ns)),
        _operation_of_sides.number("candidate", lambda row: format_ns(row.candidate_average_ns)),
        _operation_of_sides.number("change %", lambda row: diff_text(row.diff)),
        _operation_of_sides.number("share", shares, drop=1),
        _operation_of_sides.number("calls", calls, drop=2),
    ]
    return [
        table_of(SECTION["input"].title, operations, tables["input_operations"], limit, kind=InputOperationChange),
        _queues_of_sides(rows_of(InputQueueChange, tables["input_queues"]), limit),
    ]


def _queues_of_sides(rows: Sequence[InputQueueChange], limit: int | None) -> Table:
    """Return the queues of both sides, both courses below each."""

    def empty(queue: _QueueOfSides) -> str:
        return pair(share(queue.row.baseline_empty_share), share(queue.row.candidate_empty_share))

    def workers(queue: _QueueOfSides) -> str:
        return pair(number(queue.row.baseline_workers), number(queue.row.candidate_workers))

    def capacity(queue: _QueueOfSides) -> str:
        return pair(number(queue.row.baseline_capacity), number(queue.row.candidate_capacity))

    columns = [
        _queue_of_sides.text("operation", lambda queue: readable(queue.row.operation), **NAME),
        _queue_of_sides.number("baseline", lambda queue: _size(queue.row.baseline_mean)),
        _queue_of_sides.number("candidate", lambda queue: _size(queue.row.candidate_mean)),
        _queue_of_sides.number("change %", lambda queue: diff_text(queue.row.diff)),
        _queue_of_sides.number("empty", empty),
        _queue_of_sides.number("workers", workers, drop=3),
        _queue_of_sides.number("capacity", capacity, drop=2),
    ]
    listed = []
    for row in rows:
        if row.interval is None:
            own = [one for one in rows if one.operation == row.operation and one.interval is not None]
            before = _course([one.baseline_mean for one in own])
            listed.append(_QueueOfSides(row, before, _course([one.candidate_mean for one in own])))
    return table_of(_QUEUES, columns, listed, limit, below=_both_courses)


def _with_courses(rows: Sequence[InputQueueRow]) -> list[_Queue]:
    """Return the rows of whole queues, each with the means of its intervals of time as its course."""
    means: dict[tuple[int | None, int | None, str], list[float | None]] = {}
    for row in rows:
        if row.interval is not None:
            means.setdefault((row.rank, row.step, row.operation), []).append(row.mean)
    wholes = [row for row in rows if row.interval is None]
    return [_Queue(row, _course(means.get((row.rank, row.step, row.operation), []))) for row in wholes]


def _course(means: Sequence[float | None]) -> str:
    return " ".join(_size(mean) for mean in means if mean is not None) or MISSING_TEXT


def _both_courses(queue: _QueueOfSides) -> str:
    return pair(queue.baseline_course, queue.candidate_course)


def _size(value: float | None) -> str:
    """Return how many entries there are in a queue on the mean."""
    return MISSING_TEXT if value is None else f"{value:.1f}"


def _percent(value: float | None) -> str:
    return MISSING_TEXT if value is None else f"{measured(value)} %"


def _time(value: float | None) -> str:
    return MISSING_TEXT if value is None else format_ns(value)
