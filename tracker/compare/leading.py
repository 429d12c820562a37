"""Which row of a diff makes most of the change of the step: what its headline names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracker.compare.contributions import find_main_idle_cause, is_waiting_for_data
from tracker.compare.overall_rows import EXPOSED
from tracker.compare.waiting import TRANSFER, WAIT
from tracker.profile import NO_OP, NOT_LISTED, UNLINKED_OP
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

_STAND_INS: Final = (UNLINKED_OP, NO_OP, NOT_LISTED)
_WORK: Final = ("operator", "kernel", "replacement")
_NAMED_PARTS: Final = (EXPOSED, "exposed_copy_ns", WAIT, TRANSFER)
"""Parts of a step whose titles say what happened."""


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
    return choose_leading(rows, delta_ns)


def find_leading_data_loading(overall: Columns, delta_ns: float) -> LeadingCause | None:
    """Return waiting for data where that makes most of a change by `delta_ns` of a step of which nothing else is known:
    that of the log of a timer.
    """
    loading_ns = dict(overall.rows("metric", "delta")).get("data_loading_ns") or 0.0
    return choose_leading([cause_of_data_loading(loading_ns, is_on_device=False)], delta_ns)


def _name_cause(
    row: Contribution, tables: ExplainedTables, delta_ns: float | None, *, is_on_device: bool
) -> LeadingCause | None:
    """Return a row as a cause; None for sums, rests and stand-ins, which say nothing of what happened."""
    if row.kind in _WORK and row.name not in _STAND_INS and row.why != OTHER_WORK:
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
    if row.metric in _NAMED_PARTS:
        return cause_of_part(row.name, row.delta_ns)
    return None
