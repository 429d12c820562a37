"""Which row of a diff makes most of the change of the step: what its headline names."""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING, Final

from tracker.compare.contributions import change_of_data_loading, find_main_idle_cause, is_waiting_for_data
from tracker.compare.kernel_causes import NOT_OPERATORS
from tracker.compare.overall_rows import EXPOSED
from tracker.compare.waiting import TRANSFER, WAIT
from tracker.results.leading_cause import (
    DATA_LOADING,
    LeadingCause,
    cause_of_data_loading,
    cause_of_idle_time,
    cause_of_operator,
    cause_of_part,
    choose_leading,
)
from tracker.results.verdicts import OTHER_WORK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracker.columns import Columns
    from tracker.compare.side import ExplainedTables
    from tracker.results import Contribution

_WORK: Final = ("operator", "kernel", "replacement")
_MAIN: Final = 0.5
"""Part of exposed communication that waiting or transfers have at least to be named."""


def find_leading_cause(
    contributions: Sequence[Contribution], tables: ExplainedTables, delta_ns: float | None, *, is_on_device: bool
) -> LeadingCause | None:
    """Return what makes most of a change of the step by `delta_ns`; None where no row does. `contributions`: that add
    up to it. `is_on_device`: the step is that of a device.
    """
    rows = []
    for row in contributions:
        cause = _name_cause(row, tables, delta_ns, is_on_device=is_on_device)
        if cause is not None:
            rows.append(cause)
    communication = _join_communication(contributions)
    return choose_leading([*rows, *([communication] if communication else [])], delta_ns)


def find_leading_data_loading(overall: Columns, delta_ns: float) -> LeadingCause | None:
    """Return waiting for data where that makes most of a change by `delta_ns` of a step of which nothing else is known:
    that of the log of a timer.
    """
    loading_ns = change_of_data_loading(overall)
    return choose_leading([cause_of_data_loading(loading_ns, is_on_device=False)], delta_ns)


def _join_communication(contributions: Sequence[Contribution]) -> LeadingCause | None:
    """Return exposed communication as one cause, whether its rows part it or not; None where there is none."""
    rows = [row for row in contributions if row.metric in (EXPOSED, WAIT, TRANSFER)]
    if not rows:
        return None
    whole_ns = fsum(row.delta_ns for row in rows)
    largest = max(rows, key=lambda row: row.delta_ns * whole_ns)
    is_main = len(rows) > 1 and whole_ns and largest.delta_ns / whole_ns >= _MAIN
    return cause_of_part("exposed communication", whole_ns, largest.name.lower() if is_main else "")


def _name_cause(
    row: Contribution, tables: ExplainedTables, delta_ns: float | None, *, is_on_device: bool
) -> LeadingCause | None:
    """Return a row as a cause; None for sums, rests and stand-ins, which say nothing of what happened."""
    if row.kind in _WORK and row.name not in NOT_OPERATORS and row.why != OTHER_WORK:
        return cause_of_operator(row.name, row.why, row.delta_ns)
    if row.kind == "alike":
        return cause_of_part(f"all {row.count:,} {row.name} alike", row.delta_ns)
    if row.kind == "category":
        return cause_of_part(row.name, row.delta_ns)
    if row.metric == "data_loading_ns":
        return cause_of_data_loading(row.delta_ns, is_on_device=is_on_device)
    if row.metric == "idle_ns":
        main_cause = find_main_idle_cause(tables.idle, row.delta_ns)
        if not main_cause and is_waiting_for_data(row.delta_ns, tables.overall, delta_ns):
            main_cause = DATA_LOADING
        return cause_of_idle_time(row.delta_ns, is_on_device=is_on_device, main_cause=main_cause)
    if row.metric == "exposed_copy_ns":
        return cause_of_part(row.name, row.delta_ns)
    return None
