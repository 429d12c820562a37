"""What carries the change of a step: each cause once, the largest first, with all others and the rest adding up to it
exactly.
"""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from tracker.columns import Columns
from tracker.compare import coverage, match
from tracker.compare.kernel_causes import NOT_OPERATORS, split_stand_ins
from tracker.compare.overall import LEAST_EARLIER, step_numbers
from tracker.compare.overall_rows import EXPOSED
from tracker.compare.overlap import describe_owners, measure_overlap
from tracker.compare.renames import NUMBERS, Change, list_changes, make_contribution
from tracker.compare.waiting import split_exposed_part
from tracker.profile.words import BESIDE_COMPUTE
from tracker.regressions.replacements import name_replacement
from tracker.results import ADDED, BOTH, OTHER_SHAPES, REMOVED, Contribution, Rename
from tracker.results.diff_rows import OverallRow
from tracker.results.run_summary import PARTS_OF_STEP
from tracker.results.verdicts import CHANGED, OTHER_WORK
from tracker.schema.column_names import (
    CATEGORY,
    CAUSE,
    COMPUTE_NS,
    DATA_LOADING_NS,
    DELTA,
    DELTA_NS,
    EARLIER_NS,
    IDLE_NS,
    INPUT_SHAPES,
    METRIC,
    NAME,
    OP,
    OP_INPUT_SHAPES,
    REST_NS,
    TOTAL_NS,
    WHOLE_NS,
)
from tracker.store import queries
from tracker.table import Numbered, is_among, number_distinct_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from tracker.compare.side import ExplainedTables, LoadedSide, OwnRows, WorkTables
    from tracker.compare.verdicts import Judged
    from tracker.results import Cause, Part

_MOST_CAUSES: Final = 8
"""Causes that are named, each on a line of a first screen."""
_LEAST_SHARE: Final = 0.02
"""Part of the change below which a cause is only named where it is a finding."""
_LEAST_OF_REST: Final = 0.25
"""Part of the rest below which kernels at the same time do not explain it."""
_EXPLAINED_PARTS: Final = (COMPUTE_NS, REST_NS, EARLIER_NS)
"""Parts that operators explain, or that are computed once more from all rows."""
_HIDDEN: Final = {
    "exposed_communication_ns": "not hidden by compute",
    "exposed_copy_ns": "not hidden by compute",
    "data_loading_ns": "waits for data",
}
_WHY_ON_HOST: Final = _HIDDEN | {IDLE_NS: "no operator runs"}
_WHY_ON_DEVICE: Final = _HIDDEN | {IDLE_NS: "nothing runs on the device"}
"""Part of the step -> what it means that it takes longer."""
_PLURALS: Final = {"kernel": "kernels", "category": "kinds of work"}

Sides = tuple["LoadedSide", "LoadedSide"]


def list_contributions(
    sides: Sides,
    tables: ExplainedTables,
    parts: Sequence[Part],
    delta_ns: float | None,
    renames: Sequence[Rename],
    findings: Sequence[Cause],
    judged: Judged,
    own: OwnRows | None = None,
) -> tuple[Contribution, ...]:
    """Return what carries the change of a step; the `delta_ns` of all rows sum to `delta_ns` exactly.

    Causes with a verdict stand first, then by size, at most 8; findings are never left out for others. Among them are
    the parts of the step that are no operators; then all other causes together, and the rest, where it is known how
    much the step changed.

    Causes are operators, all shapes of one together but a shape that is a finding, and what replaced what as one;
    kernels that no operator launched; kinds of work where the devices differ.

    `tables`: of the Diff.
    `parts`: of the step; `delta_ns`: by how much it changed. `own`: where rows are of other runs than the step; by how
    much they were longer or shorter in the runs of the step is a row of its own.
    """
    finding_of_name = {finding.name: finding for finding in findings}
    causes = []
    own_sides = sides if own is None else (own.side, sides[1])
    for cause in _list_causes(own_sides, tables, renames, finding_of_name, judged):
        if cause.delta_ns:
            causes.append(cause)
    causes = [_add_share(cause, delta_ns) for cause in _join_alike(causes, judged)]
    causes.sort(key=_by_size)
    named, others = _choose_named(causes)
    of_parts = _list_parts(sides, tables, parts, delta_ns, judged)
    of_parts = _split_communication(sides, own, parts, of_parts, delta_ns)
    last = []
    if others:
        together = fsum(cause.delta_ns for cause in others)
        what = _name_kinds({cause.kind for cause in others})
        # a replacement counts as all of its operators
        last.append(Contribution("others", what, together, count=sum(max(1, cause.count) for cause in others)))
    if delta_ns is not None and own is not None:
        last += _list_earlier(sides, own, parts, tables, judged)
    largest = [*named, *of_parts]
    if delta_ns is not None:
        rest = fsum([delta_ns, *(-row.delta_ns for row in (*largest, *last))])
        compute_sides = (sides[0].of_runs_of(COMPUTE_NS, own), sides[1])
        overlap = measure_overlap(compute_sides)
        if overlap is not None and _explains(overlap, rest, delta_ns):
            why = describe_owners(compute_sides, overlap.baseline_ns or 0.0, overlap.candidate_ns or 0.0)
            largest.append(replace(overlap, why=why))
    rows = [*sorted(largest, key=_by_verdict_and_size), *last]
    if delta_ns is None:
        return tuple(rows)
    rest = fsum([delta_ns, *(-row.delta_ns for row in rows)])
    if abs(rest) >= 1:
        rows.append(Contribution("rest", "", rest))
    return tuple(_add_share(row, delta_ns) for row in rows)


def _explains(overlap: Contribution, rest_ns: float, delta_ns: float) -> bool:
    """Return whether kernels at the same time are worth a row, and make the rest smaller: kernels that a step launched
    and that run in a later one are not hidden by any.
    """
    is_large = abs(overlap.delta_ns) >= max(_LEAST_SHARE * abs(delta_ns), _LEAST_OF_REST * abs(rest_ns), 1.0)
    return is_large and abs(rest_ns - overlap.delta_ns) < abs(rest_ns)


def _list_earlier(
    sides: Sides, own: OwnRows, parts: Sequence[Part], work: WorkTables, judged: Judged
) -> list[Contribution]:
    """Return by how much more the rows would have changed in the runs of the step than in those of their own level. Of
    less than 0.1 % of the step there is no row: it is a part of the rest.
    """
    numbers = step_numbers(sides[0])
    # both without findings: a shape and the others of its name are no sum of medians
    in_step = _list_work(sides, own.in_step, (), {}, judged)
    in_own_runs = _list_work((own.side, sides[1]), work, (), {}, judged)
    of_parts = []
    for part in parts:
        if part.name in PARTS_OF_STEP and part.name not in _EXPLAINED_PARTS and part.baseline_ns is not None:
            of_parts.append(part.baseline_ns - numbers[part.name])
    of_rows = [*(cause.delta_ns for cause in in_step), *(-cause.delta_ns for cause in in_own_runs)]
    delta = fsum([*of_rows, *of_parts])
    least = LEAST_EARLIER * numbers.get(WHOLE_NS, 0.0)
    return [Contribution("earlier", "", delta)] if abs(delta) > least else []


def _join_alike(causes: Sequence[Contribution], judged: Judged) -> list[Contribution]:
    """Return the causes with all that moved by one factor, which is one thing that happened, as one."""
    what, names = judged.list_alike_names()
    alike = [cause for cause in causes if cause.name in names and cause.kind in ("operator", "kernel")]
    if len(alike) < 2:
        return [*causes]
    delta_ns = fsum(cause.delta_ns for cause in alike)
    joined = Contribution(
        "alike",
        what,
        delta_ns,
        why="slower" if delta_ns > 0 else "faster",
        baseline_ns=fsum(cause.baseline_ns or 0.0 for cause in alike),
        candidate_ns=fsum(cause.candidate_ns or 0.0 for cause in alike),
        count=len(alike),
    )
    return [joined, *(cause for cause in causes if cause not in alike)]


def _choose_named(causes: Sequence[Contribution]) -> tuple[list[Contribution], list[Contribution]]:
    """Return the causes that are named, and all others, each in their order."""
    findings = [cause for cause in causes if cause.verdict in CHANGED]
    no_findings = [cause for cause in causes if cause.verdict not in CHANGED]
    large = [cause for cause in no_findings if abs(cause.share or 1.0) >= _LEAST_SHARE]
    chosen = [*findings, *large][:_MOST_CAUSES]
    named = [cause for cause in causes if cause in chosen]
    others = [cause for cause in causes if cause not in chosen]
    return named, others


def _name_kinds(kinds: Set[str]) -> str:
    """Return what causes of these kinds are called together."""
    if "kernel" in kinds and "operator" in kinds:
        return "operators and kernels"
    return next((words for kind, words in _PLURALS.items() if kind in kinds), "operators")


def _by_size(row: Contribution) -> tuple[float, str]:
    return -abs(row.delta_ns), row.name


def _by_verdict_and_size(row: Contribution) -> tuple[bool, float, str]:
    return row.verdict not in CHANGED, *_by_size(row)


def _add_share(row: Contribution, delta_ns: float | None) -> Contribution:
    return replace(row, share=row.delta_ns / delta_ns if delta_ns else None)


def _list_parts(
    sides: Sides,
    tables: ExplainedTables,
    parts: Sequence[Part],
    delta_ns: float | None,
    judged: Judged,
) -> list[Contribution]:
    """Return the parts of the step that no operator explains, each with what it means, and its verdict where it
    changed.
    """
    is_on_device = any(side.side.timeline == "device" for side in sides)
    why_of_part = dict(_WHY_ON_DEVICE if is_on_device else _WHY_ON_HOST)
    for part in parts:
        if part.name == IDLE_NS:
            main_cause = find_main_idle_cause(tables.idle, part.delta_ns)
            if main_cause:
                why_of_part[part.name] = f"mostly {main_cause}"
            elif is_waiting_for_data(part.delta_ns, tables.overall, delta_ns):
                why_of_part[part.name] = "waits for data"
    contributions = []
    for part in parts:
        # where nothing parts the step, all of it is listed, however little it changed
        has_changed = bool(part.delta_ns) or part.name == WHOLE_NS
        if part.name in _EXPLAINED_PARTS or not has_changed:
            continue
        row = judged.find_part(part.name)
        verdict = row.verdict if row is not None and row.verdict in CHANGED else None
        contributions.append(
            Contribution(
                "part",
                part.title,
                part.delta_ns,
                verdict=verdict,
                why=why_of_part.get(part.name, ""),
                baseline_ns=part.baseline_ns,
                candidate_ns=part.candidate_ns,
                metric=part.name,
            )
        )
    return contributions


def _split_communication(
    sides: Sides,
    own: OwnRows | None,
    parts: Sequence[Part],
    contributions: Sequence[Contribution],
    delta_ns: float | None,
) -> list[Contribution]:
    """Return the parts with exposed communication as waiting and transfers, where both are known."""
    before = sides[0].of_runs_of(EXPOSED, own)
    part = next((part for part in parts if part.name == EXPOSED), None)
    if part is None:
        return [*contributions]
    row = next((row for row in contributions if row.metric == EXPOSED), None)
    split = split_exposed_part(part, (before, sides[1]), delta_ns, None if row is None else row.verdict)
    if not split:
        return [*contributions]
    return [*(row for row in contributions if row.metric != EXPOSED), *split]


def find_main_idle_cause(idle: Columns, delta_ns: float) -> str:
    """Return the cause that makes most of a change of idle time, at least half of it; "" where none does."""
    change_by_cause: dict[str, float] = {}
    direction = 1 if delta_ns > 0 else -1
    for cause, change in idle.rows(CAUSE, DELTA_NS):
        change_by_cause[cause] = change_by_cause.get(cause, 0.0) + change * direction
    main_cause = max(change_by_cause, key=lambda cause: (change_by_cause[cause], cause), default="")
    if not main_cause or change_by_cause[main_cause] < abs(delta_ns) / 2:
        return ""
    return main_cause


def change_of_data_loading(overall: Columns) -> float:
    """Return by how much data loading changed, 0 where that is not known."""
    return dict(overall.rows(METRIC, DELTA)).get(DATA_LOADING_NS) or 0.0


def is_waiting_for_data(idle_delta_ns: float, overall: Columns, delta_ns: float | None) -> bool:
    """Return whether idle time changed because data loading did, and that carries at least half of the change."""
    loading = change_of_data_loading(overall)
    if not delta_ns or loading * delta_ns <= 0 or abs(loading) < abs(delta_ns) / 2:
        return False
    return idle_delta_ns * loading > 0


def _list_causes(
    sides: Sides,
    tables: ExplainedTables,
    renames: Sequence[Rename],
    finding_of_name: Mapping[str, Cause],
    judged: Judged,
) -> list[Contribution]:
    if sides[0].side.device != sides[1].side.device:
        categories = _list_categories(tables.overall)
        if categories:
            return categories
    return _list_work(sides, tables, renames, finding_of_name, judged)


def _list_work(
    sides: Sides,
    work: WorkTables,
    renames: Sequence[Rename],
    finding_of_name: Mapping[str, Cause],
    judged: Judged,
) -> list[Contribution]:
    """Return the operators as causes, and the kernels that no operator launched, or alone where they say more."""
    other_work = judged.recorded.other_work
    scaled = frozenset() if other_work is None else other_work.inputs.list_scaled()[0]
    by_kernel = split_stand_ins(sides, work.names, judged)
    is_real = ~is_among(work.ops[NAME], NOT_OPERATORS)
    moved = np.abs(np.nan_to_num(work.ops[DELTA_NS]))
    are_unknown = moved[is_real].sum() < moved[~is_real].sum()
    if not by_kernel.names and are_unknown and len(work.kernels):
        return _list_kernels(work.kernels)
    of_operators = _list_operators(sides, work, renames, finding_of_name)
    kept = [cause for cause in of_operators if cause.name not in by_kernel.names]
    # inputs of another size are neither slower nor faster
    kept = [replace(cause, why=OTHER_WORK) if cause.name in scaled else cause for cause in kept]
    return [*kept, *by_kernel.causes]


def _list_categories(overall: Columns) -> list[Contribution]:
    """Return the kinds of compute work, as the overall table has them."""
    above = ""
    categories = []
    for row in overall.structs(OverallRow):
        if row.level == 1:
            above = row.metric
        if row.level == 2 and above == COMPUTE_NS and row.unit == "ns" and row.delta is not None:
            categories.append(
                Contribution(
                    "category",
                    row.title,
                    row.delta,
                    baseline_ns=row.baseline_value,
                    candidate_ns=row.candidate_value,
                    metric=row.metric,
                )
            )
    return categories


def _list_kernels(kernels: Columns) -> list[Contribution]:
    compute = kernels.taken(~is_among(kernels[CATEGORY], BESIDE_COMPUTE))
    return [make_contribution("kernel", change) for change in list_changes(compute)]


def _list_operators(
    sides: Sides, work: WorkTables, renames: Sequence[Rename], finding_of_name: Mapping[str, Cause]
) -> list[Contribution]:
    """Return operators without what they have in collectives and copies, for these are parts of the step of their
    own.
    """
    ops, names = work.ops, work.names
    beside: dict[str, tuple[float, float]] = {}
    if any(side.side.timeline == "device" for side in sides):
        before, after = (_sum_beside_compute(side) for side in coverage.blank_unless_both(*sides, coverage.KERNELS))
        beside = {name: (before.get(name, 0.0), after.get(name, 0.0)) for name in before.keys() | after.keys()}
    else:
        names = names.taken(~is_among(names[NAME], _find_host_collectives(sides)))
    operators = {}
    for change in list_changes(names):
        beside_before, beside_after = beside.get(change.name, (0.0, 0.0))
        compute = change._replace(
            before_ns=max(change.before_ns - beside_before, 0.0), after_ns=max(change.after_ns - beside_after, 0.0)
        )
        operators[change.name] = make_contribution("operator", compute)
    main_shapes = _find_main_shapes(ops, operators)
    others_of = _find_other_shapes(ops, finding_of_name)
    contributions = []
    for every in renames:
        rename = _keep_found(every, finding_of_name)
        replaced = [operators[name] for name in dict.fromkeys(rename.names) if name in operators]
        if len(replaced) > 1:
            contributions.append(_make_replacement(rename, replaced, finding_of_name))
            for operator in replaced:
                del operators[operator.name]
    for name, operator in operators.items():
        finding = finding_of_name.get(name)
        if finding is None:
            contributions.append(replace(operator, input_shapes=main_shapes.get(name, "")))
        elif finding.kind == "op" and name not in beside:
            contributions += _split_shape_from_others(operator, finding, others_of[name])
        else:
            contributions.append(replace(operator, verdict=finding.verdict))
    return contributions


def _find_other_shapes(ops: Columns, finding_of_name: Mapping[str, Cause]) -> dict[str, Change]:
    """Return of each operator of which one shape is a finding the sum of its other shapes."""
    shape_of_name = {name: finding.input_shapes for name, finding in finding_of_name.items() if finding.kind == "op"}
    numbers_of_name = dict.fromkeys(shape_of_name, (0.0, 0.0, 0.0, 0.0))
    for name, shapes, *numbers in ops.rows(NAME, INPUT_SHAPES, *NUMBERS):
        if name in shape_of_name and shapes != shape_of_name[name]:
            before, after, calls_before, calls_after = (number or 0.0 for number in numbers)
            sums = numbers_of_name[name]
            numbers_of_name[name] = (
                sums[0] + before, sums[1] + after, sums[2] + calls_before, sums[3] + calls_after
            )  # fmt: skip
    return {name: Change(name, BOTH, *numbers) for name, numbers in numbers_of_name.items()}


def _split_shape_from_others(operator: Contribution, finding: Cause, others: Change) -> list[Contribution]:
    """Return the shape of an operator that is a finding, and all its other shapes together where it has any."""
    status = finding.status if finding.status in (ADDED, REMOVED) else BOTH
    shape = Change(
        operator.name,
        status,
        finding.baseline_ns or 0.0,
        finding.candidate_ns or 0.0,
        finding.baseline_calls or 0.0,
        finding.candidate_calls or 0.0,
    )
    contribution = make_contribution(operator.kind, shape)
    contributions = [replace(contribution, input_shapes=finding.input_shapes, verdict=finding.verdict)]
    # less than a nanosecond is what the sums were rounded by
    if abs(others.before_ns) >= 1 or abs(others.after_ns) >= 1:
        contributions.append(replace(make_contribution(operator.kind, others), input_shapes=OTHER_SHAPES))
    return contributions


def _keep_found(rename: Rename, finding_of_name: Mapping[str, Cause]) -> Rename:
    """Return a replacement of those of its operators that are findings, as `findings` has it, where some that went and
    some that came are; else as it is. What came with them and costs next to nothing is no part of the finding.
    """
    sides = []
    for names in (rename.removed, rename.added):
        found = [finding_of_name[name] for name in names.split(" + ") if name in finding_of_name]
        sides.append([finding.name for finding in found if finding.kind == "name" and finding.verdict in CHANGED])
    if not all(sides):
        return rename
    removed, added = (" + ".join(names) for names in sides)
    return replace(rename, removed=removed, added=added)


def _make_replacement(
    rename: Rename, operators: Sequence[Contribution], finding_of_name: Mapping[str, Cause]
) -> Contribution:
    """Return what went and what came, as one: what its operators took and no longer do, and what they take now and did
    not.
    """
    delta = fsum(operator.delta_ns for operator in operators)
    verdicts = {finding_of_name[operator.name].verdict for operator in operators if operator.name in finding_of_name}
    verdict = None
    if verdicts & {"REGRESSED", "ADDED", "IMPROVED", "REMOVED"}:
        if rename.is_worse:
            verdict = "REGRESSED"
        elif delta < 0:
            verdict = "IMPROVED"
    return Contribution(
        "replacement",
        name_replacement(rename.removed.split(" + "), rename.added.split(" + ")),
        delta,
        why=rename.word,
        baseline_ns=fsum(max(-operator.delta_ns, 0.0) for operator in operators),
        candidate_ns=fsum(max(operator.delta_ns, 0.0) for operator in operators),
        verdict=verdict,
        count=len(operators),
    )


def _sum_beside_compute(side: LoadedSide) -> dict[str, float]:
    """Return name of an operator -> its time in collectives and copies."""
    kernels = side.query(queries.kernels)
    kernels = kernels.taken(is_among(kernels[CATEGORY], BESIDE_COMPUTE))
    kernels = side.keep_own(
        "ops", kernels.having(name=kernels[OP], input_shapes=kernels[OP_INPUT_SHAPES]), by_name=True
    )
    number, first = number_distinct_rows([kernels[OP]])
    times = match.reduce_side(side, Numbered(kernels, number, len(first)), [TOTAL_NS])[TOTAL_NS]
    return dict(zip(kernels[OP][first].tolist(), np.nan_to_num(times).tolist(), strict=True))


def _find_host_collectives(sides: Sides) -> list[str]:
    """Return names of the operators in which a host waits for its collectives."""
    names: set[str] = set()
    for side in coverage.blank_unless_both(*sides, coverage.COLLECTIVES):
        names.update(side.query(queries.communication_tasks).listed(NAME))
    return sorted(names)


def _find_main_shapes(ops: Columns, operators: Mapping[str, Contribution]) -> dict[str, str]:
    """Return name -> the shapes that carry most of its change, where it has others too."""
    shapes_of_name: dict[str, list[tuple[float, str]]] = {}
    for name, shapes, delta in ops.rows(NAME, INPUT_SHAPES, DELTA_NS):
        shapes_of_name.setdefault(name, []).append((delta or 0.0, shapes or ""))
    main_shapes = {}
    for name, changes in shapes_of_name.items():
        whole = operators[name].delta_ns if name in operators else 0.0
        direction = 1 if whole > 0 else -1
        delta, shapes = max(changes, key=lambda change: change[0] * direction)
        if len(changes) > 1 and whole and delta / whole > 0.5:
            main_shapes[name] = shapes
    return main_shapes
