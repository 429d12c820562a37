"""What makes most of the change of the step of an incident, or of a version that waits for runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.detect.series import NO_OPERATORS
from tracker.regressions.found import FoundFinding, as_one
from tracker.regressions.lifecycle import ALIKE, MACHINE
from tracker.regressions.run_numbers import PARTS, RunNumber, find_shared_way, list_parts
from tracker.results import CONFIRMED_STATES, ENDED_STATES
from tracker.results.leading_cause import (
    DATA_LOADING,
    IDLE_TIME,
    VERDICTS_WITH_CAUSE,
    LeadingCause,
    cause_of_data_loading,
    cause_of_idle_time,
    cause_of_operator,
    cause_of_part,
    choose_leading,
    find_largest,
)
from tracker.schema.series import IDLE_SERIES, UNPROFILED

_WORK: Final = ("op_name", "op", "kernel")
_NO_CHANGE_OF_ITS_OWN: Final = (ALIKE, MACHINE)
"""How findings came about that are not of their operator: of the machine, or of all operators together."""


class _Candidate(Struct, frozen=True):
    """What may be the cause, and the finding that says so; None for what is no finding of its own."""

    cause: LeadingCause
    finding: FoundFinding | None = None

    @property
    def delta_ns(self) -> float:
        """Its part of the change of the step."""
        return self.cause.delta_ns


def find_leading_of_incident(
    own: Sequence[FoundFinding],
    parts: Sequence[LeadingCause],
    delta_ns: float | None,
    *,
    machine_ns: float | None,
) -> LeadingCause | None:
    """Return what makes most of the change of the step of an incident; None where nothing does, where the step itself
    may not have changed, and where that is over while the incident is not.

    `own`: its findings; `parts`: of the step, of its runs; `delta_ns`: the change of the step; `machine_ns`: the part
    of it that all operators share.
    """
    first = own[0]
    if (first.step_verdict or None) not in VERDICTS_WITH_CAUSE:
        return None
    counted = [row for row in own if row.state not in ("invalid", "renamed") and row.step_kind == first.step.kind]
    of_parts = {row.name: row for row in counted if row.kind == "run"}
    candidates = [_name_part(part, of_parts.get(part.series)) for part in parts]
    if machine_ns:
        candidates.append(_Candidate(cause_of_part("machine-wide drift", machine_ns)))
    work = [row for row in counted if _is_work(row)]
    operators = [row for row in work if row.kind != "kernel"]
    # kernels say no more than the operators that launched them
    candidates += [_Candidate(_name_work(row), row) for row in operators or work]
    chosen = choose_leading(candidates, delta_ns)
    if chosen is None and find_largest(candidates, delta_ns) is None and first.step.beside_ns:
        # nothing else is known of it
        chosen = choose_leading([_Candidate(_name_rest(first.step.beside_ns))], delta_ns)
    if chosen is None:
        return None
    is_open = any(row.state in CONFIRMED_STATES for row in own)
    is_over = chosen.finding is not None and chosen.finding.state in ENDED_STATES
    return None if is_open and is_over else chosen.cause


def list_parts_that_changed(
    before: Sequence[RunNumber], after: Sequence[RunNumber], *, is_on_device: bool
) -> list[LeadingCause]:
    """Return the parts of the step of two sides as causes, as far as both know them in one way."""
    way = find_shared_way(before, after)
    if way is None:
        return []
    sides = list_parts(before, way), list_parts(after, way)
    deltas = {name: sides[1][name] - sides[0][name] for name in sides[0].keys() & sides[1].keys()}
    if all(any(name.startswith(IDLE_SERIES) for name in side) for side in sides):
        # a side that knows why its device idles has none of a cause that it does not state
        for name in sides[0].keys() ^ sides[1].keys():
            if name.startswith(IDLE_SERIES):
                deltas[name] = sides[1].get(name, 0.0) - sides[0].get(name, 0.0)
    rows = [cause_of_part(name, deltas[name]) for name in PARTS if name in deltas and name != IDLE_TIME]
    if IDLE_TIME in deltas:
        main_cause = _find_main_idle_cause(deltas, deltas[IDLE_TIME])
        rows.append(cause_of_idle_time(deltas[IDLE_TIME], is_on_device=is_on_device, main_cause=main_cause))
    if way == UNPROFILED and DATA_LOADING in deltas:
        # what a log says of the step; in a trace it may lie beside the work of a device
        rows.append(cause_of_data_loading(deltas[DATA_LOADING], is_on_device=False))
    return rows


def _find_main_idle_cause(deltas: Mapping[str, float], idle_ns: float) -> str:
    """Return the cause of at least half of a change of idle time, "" where none is known."""
    causes = {name.removeprefix(IDLE_SERIES): delta for name, delta in deltas.items() if name.startswith(IDLE_SERIES)}
    if not idle_ns or not causes:
        return ""
    largest = max(causes, key=lambda cause: (causes[cause] / idle_ns, cause))
    return largest if causes[largest] / idle_ns >= 1 / 2 else ""


def _name_part(part: LeadingCause, finding: FoundFinding | None) -> _Candidate:
    """Return a part of the step as a candidate: with the number of its own finding where it has one, which may be
    compared with other runs than the step.
    """
    return _Candidate(part if finding is None else replace(part, delta_ns=finding.delta), finding)


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


def _name_rest(beside_ns: float) -> LeadingCause:
    """Return what is left of the step beside its operators as a cause."""
    return LeadingCause("time outside operators", "outside operators", beside_ns)
