"""The arguments of operators: tables of one run, and of what differs between two sides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from tracker.profile import OperatorArguments
from tracker.reports.cells import ColumnsOf, number, readable
from tracker.reports.document import NAME, Table
from tracker.reports.rows import table_of
from tracker.reports.views.sections import SIDES
from tracker.results import BOTH
from tracker.results.diff_rows import OperatorArgumentChange
from tracker.results.sections import SECTION
from tracker.results.shown_rows import OperatorArgumentRow
from tracker.units import MISSING_TEXT, format_ns

if TYPE_CHECKING:
    from tracker.columns import Columns

_TABLE: Final = "operator_arguments"
_CHANGES: Final = "Arguments of operators that differ"
_arguments: Final = ColumnsOf(OperatorArgumentRow)
_change: Final = ColumnsOf(OperatorArgumentChange)


def tables_of_run(tables: Mapping[str, Columns], limit: int | None, make: Callable[..., Table]) -> list[Table]:
    """Return the arguments of a run, with the calls and the time of the kernels of their shapes. `make`: makes a table
    of a run of its columns and rows.
    """
    columns = [
        _arguments.text("operator", lambda row: readable(row.operator), **NAME),
        _arguments.number("calls", lambda row: number(row.calls), drop=1),
        _arguments.number("total", lambda row: _time(row.total_ns)),
    ]
    title, rows = SECTION["argument"].title_of_run, tables[_TABLE]
    return [make(title, columns, rows, limit, kind=OperatorArgumentRow, below=_spell_arguments)]


def tables_of_diff(tables: Mapping[str, Columns], limit: int | None) -> list[Table]:
    """Return the arguments that differ, both sides below the operator."""
    columns = [_change.text("operator", lambda row: row.operator, **NAME), _change.text("differs", _what_differs)]
    changes = [*tables[_TABLE].structs(OperatorArgumentChange)]
    return [table_of(_CHANGES, columns, changes, limit, below=_both_sides)]


def _time(value: int | None) -> str:
    return MISSING_TEXT if value is None else format_ns(value)


def _spell_arguments(row: OperatorArgumentRow) -> str:
    return OperatorArguments(row.inputs, row.outputs, row.attributes).words()


def _what_differs(row: OperatorArgumentChange) -> str:
    return row.changed if row.status == BOTH else row.status


def _both_sides(row: OperatorArgumentChange) -> str:
    texts = zip(SIDES, (row.baseline, row.candidate), strict=True)
    return " against ".join(f"{side} {text}" for side, text in texts if text is not None)
