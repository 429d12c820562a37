"""Incidents: all that one version of a track changed, in which direction, how loud it is, and what it adds up to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.detect.series import NO_OPERATORS
from tracker.regressions import causes
from tracker.regressions.found import FoundFinding, IncidentStep, net_contribution
from tracker.regressions.leading import find_leading_of_incident, list_parts_that_changed
from tracker.regressions.lifecycle import MAYBE_CODE
from tracker.regressions.run_numbers import RunNumbers
from tracker.results import CONFIRMED_STATES
from tracker.results.findings import ChangedFact, ListedFinding, ListedIncident
from tracker.store import Store

STEP: Final = frozenset({"step", "mean step", "e2e", "compute"})
"""Series of whole runs that are the step, or what it computes."""
SEVERITIES: Final = ("critical", "warning", "info")
"""How loud an incident is, the loudest first."""
_LEAST_CHANGE: Final = 0.005
"""Part of the step from which on its change has parts that say something."""
_MATTERS: Final = 0.01
"""Part of the step from which a finding is more than a remark."""
_CRITICAL: Final = 0.05
"""Change of the step from which a regression of it is critical."""


class FoundIncident(ListedIncident, frozen=True, kw_only=True):
    """An incident with what is known of it beside its columns. `ordinal`: of its version in the track; `vendor`: of the
    device; `level_versions`: what its step was compared with.
    """

    ordinal: int
    vendor: str
    level_versions: tuple[str, ...]


class _OperatorParts(Struct, frozen=True):
    """What operators changed the step by, in ns: those found on both sides, those that came, those that went, and all
    others; None where that is not known.
    """

    operators_ns: float | None
    new_ns: float | None
    gone_ns: float | None
    other_operators_ns: float | None


def explain_incident(
    store: Store, own: Sequence[FoundFinding], numbers: RunNumbers | None = None
) -> tuple[FoundIncident, list[ChangedFact]]:
    """Return an incident with its causes, and what else changed with it, from all of its findings. `numbers`: of its
    runs, where they were read for several incidents.
    """
    incident = with_leading_cause(store, make_incident(own), own, numbers)
    changed = causes.changed_between(store, incident)
    return replace(incident, causes=", ".join(causes_of(own, changed))), changed


def list_runs(rows: Sequence[FoundFinding]) -> set[int]:
    """Return the runs that incidents of these findings compare."""
    texts = {text for row in rows for text in (row.level_runs, row.baseline_runs, row.candidate_runs)}
    return {int(run) for text in texts for run in text.split()}


def with_leading_cause(
    store: Store, incident: FoundIncident, own: Sequence[FoundFinding], numbers: RunNumbers | None = None
) -> FoundIncident:
    """Return an incident with what makes most of the change of its step. `own`: all of its findings; `numbers`: of its
    runs, where they were read before.
    """
    if incident.step_delta_ns is None:
        return incident
    if numbers is None:
        numbers = RunNumbers(store, list_runs(own))
    sides = [[int(run) for run in runs.split()] for runs in (incident.baseline_runs, incident.candidate_runs)]
    before, after = (numbers.of(runs, incident.step_kind) for runs in sides)
    parts = list_parts_that_changed(before, after, is_on_device=incident.device not in ("", "cpu"))
    counted = [row for row in own if row.state != "invalid"] or list(own)
    leading = find_leading_of_incident(counted, parts, incident.step_delta_ns, machine_ns=incident.machine_ns)
    if leading is None:
        return incident
    return replace(incident, leading_cause=leading.clause, leading_label=leading.short)


def make_incident(own: Sequence[FoundFinding]) -> FoundIncident:
    """Return an incident from all of its findings, without its causes."""
    first, step = own[0], own[0].step
    counted = [row for row in own if row.state != "invalid"] or list(own)
    tops = [row for row in own if row.under is None]
    direction = direction_of(counted)
    parts = _part_operators(step, counted)
    delta_ns = None if step.before_ns is None or step.after_ns is None else step.after_ns - step.before_ns
    return FoundIncident(
        incident_id=first.incident_id,
        workload=first.workload,
        configuration=first.configuration,
        device=first.device,
        version=first.version,
        good_version=first.level_versions[-1] if first.level_versions else first.good_version,
        direction=direction,
        severity=severity_of(counted, direction, step.before_ns, step.after_ns),
        is_new=any(row.is_new for row in own),
        findings=len(tops),
        open=sum(row.state in CONFIRMED_STATES for row in tops),
        baseline_runs=first.level_runs or first.baseline_runs,
        candidate_runs=Counter(row.candidate_runs for row in own).most_common(1)[0][0],
        baseline_step_ns=step.before_ns,
        candidate_step_ns=step.after_ns,
        step_delta_ns=delta_ns,
        operators_ns=parts.operators_ns,
        new_ns=parts.new_ns,
        gone_ns=parts.gone_ns,
        machine_ns=step.machine_ns,
        other_operators_ns=parts.other_operators_ns,
        earlier_ns=step.earlier_ns,
        beside_ns=step.beside_ns,
        shared_factor=None if step.shift_log is None else math.expm1(step.shift_log),
        causes="",
        step_kind=step.kind,
        so_far=next((row.so_far for row in tops if row.so_far), ""),
        coverage=first.coverage,
        step_verdict=first.step_verdict,
        ordinal=first.ordinal,
        vendor=first.vendor,
        level_versions=first.level_versions,
    )


def _part_operators(step: IncidentStep, own: Sequence[FoundFinding]) -> _OperatorParts:
    """Return what the operators of an incident changed the step by, as its findings list them: an operator once, not
    its shapes beside it, and a replacement by its net. What these are not, the others are.
    """
    if step.other_operators_ns is None:
        return _OperatorParts(step.operators_ns, step.new_ns, step.gone_ns, None)
    operators_ns, new_ns, gone_ns = 0.0, 0.0, 0.0
    own_time = "host_self_ns" if own[0].device in ("", "cpu") else "device_self_ns"
    metrics = {row.metric for row in own if row.is_leaf} or {own_time}
    for row in own:
        is_operator = row.kind in ("op_name", "op", "kernel") and row.metric in metrics
        # the parts are those of the step of one kind
        is_operator = is_operator and row.step_kind == own[0].step.kind
        is_part = row.replaced is not None and row.kind in ("op_name", "kernel")
        # what is under its kernels, is counted by its own time
        is_sum = row.name in NO_OPERATORS and row.kind == "op_name"
        if not is_operator or not (row.under is None or is_part or is_sum):
            continue
        if row.change != "presence" or row.replaced is not None:
            operators_ns += row.delta
        elif row.is_worse:
            new_ns += row.delta
        else:
            gone_ns += row.delta
    moved = (step.operators_ns or 0.0) + (step.new_ns or 0.0) + (step.gone_ns or 0.0) + step.other_operators_ns
    return _OperatorParts(operators_ns, new_ns, gone_ns, moved - (operators_ns + new_ns + gone_ns))


def direction_of(own: Sequence[FoundFinding]) -> str:
    """Return what a version did to the step on the whole: what its own finding says.

    Where it has none, the net of its operators decides, as long as nothing else got worse; else it is a regression
    where anything did. What came in the place of others counts as they do, with what it allocates.
    """
    whole = {row.direction for row in own if row.kind == "run" and row.name in STEP}
    if whole:
        return "regression" if "regression" in whole else "improvement"
    replaced = {row.name for row in own if row.replaced is not None and row.replaced.delta <= 0}
    worse = [row for row in own if row.is_worse and row.name not in replaced]
    if not worse or all(row.is_worse for row in own):
        return "regression" if worse else "improvement"
    net = sum(row.contribution or 0.0 for row in own if row.is_leaf)
    is_time = all(row.unit == "ns" and row.kind != "run" for row in worse)
    return "improvement" if net < 0 and is_time else "regression"


def severity_of(own: Sequence[FoundFinding], direction: str, before: float | None, after: float | None) -> str:
    """Return how loud an incident is: critical where the step itself regressed by 5 % in two runs, and neither the
    machine nor another host can explain it; a warning where it did at all, or one finding makes it 1 % slower; what got
    worse in a version that is faster on the whole, and names alone, are for information.
    """
    if direction == "improvement" or all(row.state == "renamed" for row in own):
        return "info"
    worse = [row for row in own if row.is_worse]
    steps = [row for row in worse if row.kind == "run" and row.name in STEP]
    may_be_machine = all(row.change in MAYBE_CODE for row in worse)
    is_repeated = any(len(row.candidate_runs.split()) > 1 for row in steps)
    if is_repeated and not may_be_machine and before and after and after / before - 1 >= _CRITICAL:
        return "critical"
    largest = max((net_contribution(row) for row in worse), default=0.0)
    return "warning" if steps or largest >= _MATTERS else "info"


def causes_of(own: Sequence[FoundFinding], environment: Sequence[ChangedFact]) -> list[str]:
    """Return the causes of an incident, the largest part of the step first, then of memory, then what else changed."""
    weights: dict[str, float] = {}
    step = own[0].step
    delta = (step.after_ns or 0.0) - (step.before_ns or 0.0)
    if delta and step.beside_ns and step.beside_ns / delta >= 0.5:
        weights["time outside operators"] = 1.0
    for row in own:
        if row.cause and row.under is None:
            part = abs(net_contribution(row)) if row.unit == "ns" else 0.0
            cause = row.cause if row.replaced is None else "replaced operators"
            weights[cause] = weights.get(cause, 0.0) + part
    words = sorted(weights, key=lambda cause: -weights[cause])
    words += ["profiler settings"] * any(changed.key.startswith("profiler ") for changed in environment)
    return words + ["environment"] * any(not changed.key.startswith("profiler ") for changed in environment)


def share_of(row: ListedFinding, incident: ListedIncident) -> float | None:
    """Return the part of the step's change that a finding makes.

    It is None where the step did not change, where gains and losses cancel, or where the finding is no time.
    """
    delta = incident.step_delta_ns
    if not delta or row.unit != "ns" or row.kind == "run":
        return None
    if abs(delta) < _LEAST_CHANGE * (incident.baseline_step_ns or 0.0):
        return None
    parts = (
        incident.operators_ns, incident.new_ns, incident.gone_ns, incident.machine_ns, incident.other_operators_ns,
        incident.earlier_ns, incident.beside_ns,
    )  # fmt: skip
    moved = sum(abs(part or 0.0) for part in parts)
    return None if abs(delta) < 0.3 * moved else row.delta / delta


def urgency_of(incident: FoundIncident) -> tuple[Any, ...]:
    """Return a sort key: what is new first, then the most severe, then what costs most time of the step, then the
    newest.
    """
    return (
        not incident.is_new, SEVERITIES.index(incident.severity), incident.direction != "regression",
        -abs(incident.step_delta_ns or 0.0), -incident.ordinal, incident.incident_id,
    )  # fmt: skip
