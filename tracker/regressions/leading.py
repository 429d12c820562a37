"""Which finding of an incident, or number of a version that waits for runs, makes most of the change of the step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tracker.detect.series import NO_OPERATORS
from tracker.regressions.found import FoundFinding, as_one
from tracker.regressions.lifecycle import ALIKE, MACHINE
from tracker.results.leading_cause import (
    DATA_LOADING,
    VERDICTS_WITH_CAUSE,
    LeadingCause,
    cause_of_data_loading,
    cause_of_idle_time,
    cause_of_operator,
    cause_of_part,
    choose_leading,
)
from tracker.schema.series import IDLE_SERIES, UNPROFILED

_IDLE_TIME: Final = "idle time"
_PARTS: Final = ("exposed communication", "exposed copy")
"""Series of whole runs that are a part of the step, beside idle time."""
_WORK: Final = ("op_name", "op", "kernel")
_NO_CHANGE_OF_ITS_OWN: Final = (ALIKE, MACHINE)
"""How findings came about that are not of their operator: of the machine, or of all operators together."""


def find_leading_finding(
    own: Sequence[FoundFinding], delta_ns: float | None, *, machine_ns: float | None
) -> LeadingCause | None:
    """Return what makes most of the change of the step of an incident; None where no finding does, and where the step
    itself may not have changed.

    `own`: its findings; `delta_ns`: the change of the step; `machine_ns`: the part of it that all operators share.
    """
    first = own[0]
    if (first.step_verdict or None) not in VERDICTS_WITH_CAUSE:
        return None
    counted = [row for row in own if row.state not in ("invalid", "renamed") and row.step_kind == first.step.kind]
    of_runs = {row.name: row for row in counted if row.kind == "run" and row.unit == "ns"}
    is_on_device = first.device not in ("", "cpu")
    rows = _list_parts({name: row.delta for name, row in of_runs.items()}, is_on_device=is_on_device)
    loading = of_runs.get(DATA_LOADING)
    if loading is not None and loading.part == UNPROFILED:
        # what a log says of the step; in a trace it may lie beside the work of a device
        rows.append(cause_of_data_loading(loading.delta, is_on_device=False))
    if machine_ns:
        rows.append(cause_of_part("machine-wide drift", machine_ns))
    work = [row for row in counted if _is_work(row)]
    of_operators = [_name_work(row) for row in work if row.kind != "kernel"]
    of_kernels = [_name_work(row) for row in work if row.kind == "kernel"]
    # the first of these that has half of the change: kernels say no more than the operators that launched them, and
    # the rest of the sum says least
    beside = []
    if first.step.beside_ns:
        beside.append(LeadingCause("time outside operators", "outside operators", first.step.beside_ns))
    for chosen in ([*rows, *of_operators], of_kernels, beside):
        leading = choose_leading(chosen, delta_ns)
        if leading is not None:
            return leading
    return None


def find_leading_part(
    before: Mapping[str, float], after: Mapping[str, float], delta_ns: float | None, *, is_on_device: bool, way: str
) -> LeadingCause | None:
    """Return which part of the step makes most of its change by `delta_ns`; None where none does.

    `before`, `after`: numbers of whole runs by the name of their series, measured in one `way`.
    """
    deltas = {name: after[name] - before[name] for name in before.keys() & after.keys()}
    has_causes = all(any(name.startswith(IDLE_SERIES) for name in side) for side in (before, after))
    for name in before.keys() ^ after.keys():
        if has_causes and name.startswith(IDLE_SERIES):
            # a side that knows why its device idles has none of a cause that it does not state
            deltas[name] = after.get(name, 0.0) - before.get(name, 0.0)
    rows = _list_parts(deltas, is_on_device=is_on_device)
    if way == UNPROFILED and DATA_LOADING in deltas:
        rows.append(cause_of_data_loading(deltas[DATA_LOADING], is_on_device=False))
    return choose_leading(rows, delta_ns)


def _list_parts(deltas: Mapping[str, float], *, is_on_device: bool) -> list[LeadingCause]:
    """Return the parts of a step that are no operators. `deltas`: by how much series of whole runs changed."""
    rows = [cause_of_part(name, deltas[name]) for name in _PARTS if name in deltas]
    if _IDLE_TIME in deltas:
        idle_ns = deltas[_IDLE_TIME]
        main_cause = _find_main_idle_cause(deltas, idle_ns)
        rows.append(cause_of_idle_time(idle_ns, is_on_device=is_on_device, main_cause=main_cause))
    return rows


def _find_main_idle_cause(deltas: Mapping[str, float], idle_ns: float) -> str:
    """Return the cause of at least half of a change of idle time, "" where none is known."""
    causes = {name.removeprefix(IDLE_SERIES): delta for name, delta in deltas.items() if name.startswith(IDLE_SERIES)}
    if not idle_ns or not causes:
        return ""
    largest = max(causes, key=lambda cause: causes[cause] / idle_ns)
    return largest if causes[largest] / idle_ns >= 1 / 2 else ""


def _is_work(row: FoundFinding) -> bool:
    """Return whether a finding is an operator's, or that of a kernel without one, and not a part of another finding."""
    if row.kind not in _WORK or row.unit != "ns" or row.name in NO_OPERATORS or row.change in _NO_CHANGE_OF_ITS_OWN:
        return False
    if row.replaced is not None:
        return row.stands_for_replacement
    return row.under is None


def _name_work(row: FoundFinding) -> LeadingCause:
    whole = as_one(row)
    return cause_of_operator(whole.name, whole.cause, whole.delta)
