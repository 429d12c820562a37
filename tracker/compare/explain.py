"""Why the total changed: parts that add up exactly, operators by contribution, and one line that answers the
question.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import Columns, objects
from tracker.compare import match
from tracker.compare.beside import remark_on_log
from tracker.compare.contributions import list_contributions
from tracker.compare.headline import (
    Range,
    Total,
    add_machines,
    add_missing_devices,
    add_regressed,
    do_overlap,
    find_facts,
    list_regressed,
    make_headline,
)
from tracker.compare.kernels import op_reasons
from tracker.compare.leading import find_leading_cause, find_leading_data_loading
from tracker.compare.notes import lacks_device_data, notes_on_incomplete_captures, sentence_on_odd_run
from tracker.compare.overall import (
    ROUNDING,
    find_odd_run,
    has_trace,
    numbers_of_rows,
    run_numbers,
    step_numbers,
    with_one_step,
)
from tracker.compare.references import short_names
from tracker.compare.renames import find_renames
from tracker.compare.side import ExplainedTables
from tracker.compare.slow_steps import explain_mean, list_slow_steps
from tracker.profile.code_lines import code_line
from tracker.results import Cause, Contribution, Explanation, Part
from tracker.results.verdicts import SeriesVerdict
from tracker.schema.column_names import (
    CALL_STACK,
    COMPUTE_NS,
    DATA_LOADING_NS,
    DELTA_NS,
    E2E_NS,
    EARLIER_NS,
    IDLE_NS,
    INPUT_SHAPES,
    MODULE,
    NAME,
    OWN_NS,
    STEP_NS,
    TEXT,
)
from tracker.schema.series import UNPROFILED_STEP
from tracker.table import is_among, number_tables, rank_values
from tracker.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence, Set

    from tracker.compare.comparable import Recorded
    from tracker.compare.kernels import Measured
    from tracker.compare.operators import Operators
    from tracker.compare.side import LoadedSide, OwnRows
    from tracker.compare.verdicts import Judged
    from tracker.results import DiffOptions

_MAX_CAUSES: Final = 20
_CANCELLING_SHARE: Final = 0.3
"""A change below this share of the sum of |delta| is a cancellation: losses and gains that nearly add up to nothing."""
_NO_SUMS: Final = "medians do not add up"
_PARTS: Final = (
    ("compute_ns", "Compute"),
    ("exposed_communication_ns", "Exposed communication"),
    ("exposed_copy_ns", "Exposed copies"),
    ("idle_ns", "Idle"),
)
_HOST_PARTS: Final = (
    ("compute_ns", "Operators"),
    ("exposed_communication_ns", "Exposed communication"),
    ("exposed_copy_ns", "Exposed copies"),
    ("idle_ns", "Idle time (no operator: data loading, Python)"),
)


def explain(
    sides: tuple[LoadedSide, LoadedSide],
    operators: Operators,
    measured: Measured,
    options: DiffOptions,
    judged: Judged,
    recorded: Recorded,
    tables: Mapping[str, Columns],
    own: OwnRows | None = None,
) -> Explanation:
    """Return the explanation of a Diff. `tables`: its tables; overall, idle and kernels are read. `own`: where rows are
    of other runs than the step.
    """
    baseline, candidate = sides
    before = numbers_of_rows(baseline, None if own is None else own.side)
    after = step_numbers(candidate)
    measured_numbers = (before, after)
    before, after = with_one_step(sides, before, after)
    metric = STEP_NS if baseline.has_markers and candidate.has_markers else E2E_NS
    total_before, total_after = before.get(metric), after.get(metric)
    delta = None if total_before is None or total_after is None else total_after - total_before
    has_whole_device = all(side.partial.has_whole_device for side in sides)
    if len({lacks_device_data(side) for side in sides}) > 1 or not has_whole_device:
        # times on a device and on the host explain nothing of each other, nor do times of which some are lost
        operators = replace(operators, everything=operators.everything.head(0), names=operators.names.head(0))
    ops = operators.everything

    deltas = np.nan_to_num(ops[DELTA_NS])
    explained = float(deltas.sum())
    loss, gain = float(np.maximum(deltas, 0).sum()), float(np.minimum(deltas, 0).sum())
    moved = loss - gain
    causes = _list_causes(sides, operators, delta, judged)
    rollup = _list_causes_by_name(sides, operators, delta, judged)
    findings = _list_findings(operators, delta, judged)
    renames = find_renames(baseline, candidate, operators.names, operators.everything)
    # how long a device worked is not known where records were lost, and neither is what explains a change
    is_split = measured_numbers == (before, after)  # the step of a log has no parts
    parts = _list_parts(sides, before, after, metric) if has_whole_device and is_split else ()
    contributions: tuple[Contribution, ...] = ()
    leading = None
    if has_whole_device:
        explained_tables = ExplainedTables(
            operators.everything, operators.names, tables["kernels"], tables["overall"], tables["idle"]
        )
        contributions = list_contributions(sides, explained_tables, parts, delta, renames, findings, judged, own)
        is_on_device = not _are_host_timelines(sides)
        leading = find_leading_cause(contributions, explained_tables, delta, is_on_device=is_on_device)

    ranges = (_find_range(baseline, metric), _find_range(candidate, metric))
    incomplete = notes_on_incomplete_captures(sides)
    excused_names = set() if judged.verdicts is None else {key.name for key in judged.verdicts.excused}
    slow_steps = (list_slow_steps(baseline), list_slow_steps(candidate))
    is_incomplete = bool(incomplete)
    total = Total(
        metric, total_before, total_after, ranges, is_incomplete=is_incomplete, slow_steps=slow_steps, leading=leading
    )
    if UNPROFILED_STEP in before and UNPROFILED_STEP in after:
        total = _make_total_without_profiler(sides, measured_numbers, total)
        if total.metric == UNPROFILED_STEP:
            # what adds up is the step under the profiler, another number than this one
            leading = find_leading_data_loading(tables["overall"], (total.after or 0.0) - (total.before or 0.0))
            total = replace(total, leading=leading)
    mean = None
    if is_split and all(side.partial.has_whole_steps for side in sides):
        mean = explain_mean((baseline.of_runs_of("mean_step_ns", own), candidate))
    headline = make_headline(
        baseline,
        candidate,
        total,
        parts,
        judged,
        recorded,
        facts=find_facts(operators, tables["overall"]),
        forced=options.force,
    )
    headline = add_machines(add_missing_devices(headline, sides), sides)
    odd_runs = tuple(_remarks_on_odd_runs(sides, total.metric))
    on_logs = dict.fromkeys(remark for side in sides for remark in remark_on_log(side))
    headline = add_regressed(headline, list_regressed(findings, renames, excused_names, contributions))
    return Explanation(
        total_metric=metric,
        baseline_ns=total_before,
        candidate_ns=total_after,
        delta_ns=delta,
        parts=parts,
        causes=_add_reasons(causes, measured, sides, options),
        rest_ns=None if delta is None else delta - explained,
        explained_ns=explained,
        cancelling=delta is not None and moved > 0 and abs(delta) < _CANCELLING_SHARE * moved,
        gross_loss_ns=loss,
        gross_gain_ns=gain,
        rollup=_add_reasons(rollup, measured, sides, options),
        renames=renames,
        headline=headline.text,
        verdict=headline.verdict,
        remarks=(*incomplete, *headline.remarks, *odd_runs, *_remark_on_loading(total, before, after), *on_logs),
        contributions=contributions,
        other_causes_ns=explained - sum(cause.delta_ns for cause in causes),
        baseline_range_ns=ranges[0],
        candidate_range_ns=ranges[1],
        ranged_runs=(len(run_numbers(baseline).get(metric, ())), len(run_numbers(candidate).get(metric, ()))),
        findings=findings,
        rest_title=_title_of_rest(sides, has_earlier=own is not None),
        has_own_levels=own is not None and own.side.own_runs is not None,
        baseline_slow_steps=slow_steps[0],
        candidate_slow_steps=slow_steps[1],
        mean=mean,
    )


def _remarks_on_odd_runs(sides: Sequence[LoadedSide], metric: str) -> Iterator[str]:
    """Yield the runs that the total of a side leaves out."""
    for side, label in zip(sides, short_names([side.side for side in sides]), strict=True):
        odd = find_odd_run(side, metric)
        if odd is not None:
            yield sentence_on_odd_run(odd, label)


def _make_total_without_profiler(
    sides: tuple[LoadedSide, LoadedSide], numbers: tuple[Mapping[str, float], Mapping[str, float]], traced: Total
) -> Total:
    """Return the step that the user pays, of sides that both have a log of it; `traced` where that is all."""
    before, after = (one[UNPROFILED_STEP] for one in numbers)
    is_traced = [has_trace(side) for side in sides]
    if not any(is_traced):
        return traced
    ranges = (_find_range(sides[0], UNPROFILED_STEP), _find_range(sides[1], UNPROFILED_STEP))
    return Total(UNPROFILED_STEP, before, after, ranges, under_profiler=traced if all(is_traced) else None)


def _remark_on_loading(total: Total, before: Mapping[str, float], after: Mapping[str, float]) -> tuple[str, ...]:
    """Return a sentence beside a step without a profiler: what is below is of another one, but for data loading."""
    name = "data_loading_ns"
    if total.under_profiler is None:
        return ()
    below = "Parts and causes below are those of the step under the profiler."
    if name not in before or name not in after or before[name] == after[name]:
        return (below,)
    delta = after[name] - before[name]
    return (f"Data loading took {format_ns(abs(delta))} {'more' if delta > 0 else 'less'}. {below}",)


def keep_headline(explanation: Explanation) -> Explanation:
    """Return an explanation of which only the headline is left."""
    return Explanation(
        total_metric=explanation.total_metric, baseline_ns=None, candidate_ns=None, delta_ns=None, parts=(), causes=(),
        rest_ns=None, explained_ns=0.0, cancelling=False, gross_loss_ns=0.0, gross_gain_ns=0.0, rollup=(), renames=(),
        headline=explanation.headline, remarks=explanation.remarks,
    )  # fmt: skip


def _title_of_rest(sides: tuple[LoadedSide, LoadedSide], *, has_earlier: bool) -> str:
    """Return what the total changed by beyond its operators: no operator ran, or on a device several at the
    same time; and what rows of other runs than the step had changed by before.
    """
    what = "idle time, less what runs at the same time"
    if _are_host_timelines(sides):
        what = "idle time: no operator runs"
    earlier = "; rows of other runs" if has_earlier else ""
    return f"rest ({what}; {_NO_SUMS}{earlier})"


class _OpChange(Struct, frozen=True):
    """What a row of the operators of a Diff says of a cause."""

    name: str
    input_shapes: str
    status: str
    baseline_ns: float | None
    candidate_ns: float | None
    delta_ns: float | None
    baseline_calls: float | None
    candidate_calls: float | None
    calls_delta_ns: float | None
    per_call_delta_ns: float | None


def _list_causes(
    sides: tuple[LoadedSide, LoadedSide], operators: Operators, delta: float | None, judged: Judged
) -> list[Cause]:
    """Return the operators that changed most, each with where it runs and its verdict, or without one whether it stands
    out of the runs.
    """
    largest = operators.everything.head(_MAX_CAUSES)
    places = _find_places(operators, set(largest.listed(NAME)))
    causes = []
    for row in largest.structs(_OpChange):
        if row.delta_ns:
            where = places.get((row.name, row.input_shapes), "")
            causes.append(replace(_make_cause("op", row, delta), where=where))
    if judged.verdicts is not None and judged.has_op_series:
        return [_add_verdict(cause, judged.find_op(cause.name, cause.input_shapes)) for cause in causes]
    stands_out = _find_what_stands_out(sides, operators, [NAME, INPUT_SHAPES])
    return [replace(cause, stands_out=stands_out.get((cause.name, cause.input_shapes))) for cause in causes]


def _list_causes_by_name(
    sides: tuple[LoadedSide, LoadedSide], operators: Operators, delta: float | None, judged: Judged
) -> list[Cause]:
    """Return the same of names of operators, all shapes of one together."""
    largest = _of_names(operators.names).head(_MAX_CAUSES)
    causes = [_make_cause("name", row, delta) for row in largest.structs(_OpChange) if row.delta_ns]
    if judged.verdicts is not None and judged.has_op_series:
        return [_add_verdict(cause, judged.find_op_name(cause.name)) for cause in causes]
    stands_out = _find_what_stands_out(sides, operators, ["name"])
    return [replace(cause, stands_out=stands_out.get((cause.name,))) for cause in causes]


def _find_what_stands_out(
    sides: tuple[LoadedSide, LoadedSide], operators: Operators, key: Sequence[str]
) -> dict[tuple[str, ...], bool]:
    """Return for each `key` whether every run of one side took longer than every run of the other; nothing with one run
    a side. No statistics, no verdict: a run without the key took 0.
    """
    if min(side.side.runs for side in sides) < 2:
        return {}
    ranges_before = _find_ranges(sides[0], operators.baseline_rows, key)
    ranges_after = _find_ranges(sides[1], operators.candidate_rows, key)
    absent = (0.0, 0.0)
    stands_out = {}
    for name in ranges_before.keys() | ranges_after.keys():
        stands_out[name] = not do_overlap(ranges_before.get(name, absent), ranges_after.get(name, absent))
    return stands_out


def _find_ranges(side: LoadedSide, rows: Columns, key: Sequence[str]) -> dict[tuple[str, ...], Range]:
    (numbered,), keys = number_tables([rows], key)
    values = np.nan_to_num(match.reduce_per_run(side, numbered, [OWN_NS])[OWN_NS])
    ranges = zip(values.min(axis=1).tolist(), values.max(axis=1).tolist(), strict=True)
    return dict(zip(keys.rows(*key), ranges, strict=True))


def _find_range(side: LoadedSide, metric: str) -> Range | None:
    """Return the smallest and the largest `metric` of the runs of `side`, None where none states it."""
    values = run_numbers(side).get(metric)
    return (min(values), max(values)) if values else None


def _list_findings(operators: Operators, delta: float | None, judged: Judged) -> tuple[Cause, ...]:
    """Return what is a finding or a suspect, once per name of an operator, the largest contribution first: all shapes
    together, or the shape that is one.
    """
    verdicts = judged.find_op_findings()
    if not verdicts:
        return ()
    by_name, by_shapes = (ops.taken(is_among(ops[NAME], verdicts)) for ops in (operators.names, operators.everything))
    row_of_name = {row.name: row for row in _of_names(by_name).structs(_OpChange)}
    row_of_shape = {(row.name, row.input_shapes): row for row in by_shapes.structs(_OpChange)}
    causes = []
    for name, (key, verdict) in verdicts.items():
        shape = (name, key.input_shapes)
        if key.kind == "op" and shape in row_of_shape:
            causes.append(_add_verdict(_make_cause("op", row_of_shape[shape], delta), verdict))
        elif name in row_of_name:
            causes.append(_add_verdict(_make_cause("name", row_of_name[name], delta), verdict))
    return tuple(causes)


def _add_verdict(cause: Cause, row: SeriesVerdict | None) -> Cause:
    if row is None:
        return cause
    q, contribution = _none_if_nan(row.q), _none_if_nan(row.contribution)
    return replace(cause, verdict=row.verdict, q=q, contribution=contribution)


def _add_reasons(
    causes: Sequence[Cause], measured: Measured, sides: tuple[LoadedSide, LoadedSide], options: DiffOptions
) -> tuple[Cause, ...]:
    """Return `causes` with what the metrics of their kernels say."""
    by_name = any(cause.kind == "name" for cause in causes)
    reasons = op_reasons(measured, sides, tuple(causes), options, by_name=by_name)
    return tuple(replace(cause, why=why) for cause, why in zip(causes, reasons, strict=True))


def _list_parts(
    sides: tuple[LoadedSide, LoadedSide], before: dict[str, float], after: dict[str, float], metric: str
) -> tuple[Part, ...]:
    """Return parts of the total whose deltas sum to its delta exactly; what medians leave over is a part of its own."""
    titles = _HOST_PARTS if _are_host_timelines(sides) else _PARTS
    shared = [(name, title) for name, title in titles if name in before and name in after]
    parts = []
    for name, title in shared:
        if before[name] or after[name]:
            parts.append(Part(name, title, before[name], after[name], after[name] - before[name]))
    if metric not in before or metric not in after:
        return tuple(parts)
    if not shared:
        return _list_parts_of_log(before, after, metric)
    earlier = before.get(EARLIER_NS)
    if earlier:
        parts.append(Part("earlier_ns", "Parts of other runs", None, None, -earlier))
    rest = fsum([after[metric], -before[metric], *(-part.delta_ns for part in parts)])
    if abs(rest) > ROUNDING * after[metric]:
        has_main_parts = all(name in times for name in (COMPUTE_NS, IDLE_NS) for times in (before, after))
        why = _NO_SUMS if has_main_parts else "in no part that both sources know"
        parts.append(Part("rest_ns", f"Rest ({why})", None, None, rest))
    return tuple(parts)


def _list_parts_of_log(before: dict[str, float], after: dict[str, float], metric: str) -> tuple[Part, ...]:
    """Return the parts of a step of which the sources say at most how long it waits for its data, as training
    logs do.
    """
    if DATA_LOADING_NS not in before or DATA_LOADING_NS not in after:
        return (_make_part("whole_ns", "All of it (the sources do not part it)", before[metric], after[metric]),)
    loading_before, loading_after = before[DATA_LOADING_NS], after[DATA_LOADING_NS]
    return (
        _make_part("data_loading_ns", "Data loading", loading_before, loading_after),
        _make_part("others_ns", "All but data loading", before[metric] - loading_before, after[metric] - loading_after),
    )


def _make_part(name: str, title: str, before: float, after: float) -> Part:
    return Part(name, title, before, after, after - before)


def _are_host_timelines(sides: tuple[LoadedSide, LoadedSide]) -> bool:
    return all(side.side.timeline != "device" for side in sides)


def _of_names(names: Columns) -> Columns:
    """Return the rows of names without shapes, in the order of their changes: the roll-up that a reader must see
    first.
    """
    order = np.lexsort([rank_values(names[NAME]), -np.abs(np.nan_to_num(names[DELTA_NS]))])
    ordered = names.taken(order)
    return ordered.having(input_shapes=objects([""] * len(ordered)))


def _find_places(operators: Operators, names: Set[str]) -> dict[tuple[str, str], str]:
    """Return where each operator of these names mostly runs: its module, then the line of the user's code in its most
    frequent call stack.
    """
    places_of_op: dict[tuple[str, str], dict[str, None]] = {}
    for rows in (operators.candidate_rows, operators.baseline_rows):
        columns = [name for name in (MODULE, CALL_STACK) if name in rows]
        chosen = rows.only([NAME, INPUT_SHAPES, OWN_NS, *columns]).taken(is_among(rows[NAME], names))
        (numbered,), keys = number_tables([chosen], [NAME, INPUT_SHAPES])
        for column in columns:
            texts = match.dominant_texts(numbered, column, OWN_NS)
            for name, shapes, text in keys.having(text=texts).rows(NAME, INPUT_SHAPES, TEXT):
                place = text if column == "module" else code_line(text)
                if place:
                    places_of_op.setdefault((name, shapes), {})[place] = None
    return {op: ", ".join(places) for op, places in places_of_op.items()}


def _make_cause(kind: str, row: _OpChange, delta: float | None) -> Cause:
    """Return a change as a cause of the change `delta` of the total."""
    change = np.nan if row.delta_ns is None else row.delta_ns
    share = change / delta if delta else None
    return Cause(
        kind=kind,
        name=row.name,
        input_shapes=row.input_shapes,
        status=row.status,
        delta_ns=change,
        share=share,
        calls_delta_ns=row.calls_delta_ns,
        per_call_delta_ns=row.per_call_delta_ns,
        baseline_calls=row.baseline_calls,
        candidate_calls=row.candidate_calls,
        baseline_ns=row.baseline_ns,
        candidate_ns=row.candidate_ns,
    )


def _none_if_nan(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
