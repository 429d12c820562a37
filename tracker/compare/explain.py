"""Why the total changed: parts that add up exactly, operators by contribution, and one line that answers the
question.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import fsum
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec.structs import replace

from tracker.columns import Columns, objects
from tracker.compare import match
from tracker.compare.certain import facts_of
from tracker.compare.contributions import contributions
from tracker.compare.headline import Total, headline
from tracker.compare.incomplete import remarks_on_incomplete_captures
from tracker.compare.kernels import op_reasons
from tracker.compare.overall import ROUNDING, run_numbers, step_numbers
from tracker.compare.renames import find_renames, status_of_names
from tracker.compare.spread import standing_out, total_range
from tracker.results import Cause, Explanation, Part
from tracker.table import is_among, number_distinct_rows, number_tables, rank_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Set

    from tracker.compare.comparable import Recorded
    from tracker.compare.kernels import Measured
    from tracker.compare.operators import Operators
    from tracker.compare.side import LoadedSide
    from tracker.compare.verdicts import Judged, Row
    from tracker.results import DiffOptions

_MAX_CAUSES: Final = 20
_SUMMED: Final = ("baseline_ns", "candidate_ns", "delta_ns", "baseline_calls", "candidate_calls")
_OF_A_CAUSE: Final = ("name", "input_shapes", "status", *_SUMMED, "calls_delta_ns", "per_call_delta_ns")
_FRAMEWORK: Final = re.compile(r"(^|/)(torch|torch_npu|site-packages|dist-packages|lib/python3?[.\d]*)/")
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
    baseline: LoadedSide,
    candidate: LoadedSide,
    operators: Operators,
    measured: Measured,
    options: DiffOptions,
    judged: Judged,
    recorded: Recorded,
    tables: Mapping[str, Columns],
) -> Explanation:
    """Return the explanation of a Diff. `tables`: its tables, of which overall and kernels are read."""
    before, after = step_numbers(baseline), step_numbers(candidate)
    metric = "step_ns" if baseline.has_markers and candidate.has_markers else "e2e_ns"
    total0, total1 = before.get(metric), after.get(metric)
    delta = None if total0 is None or total1 is None else total1 - total0
    ops = operators.everything
    deltas = np.nan_to_num(ops["delta_ns"])
    explained, loss, gain = (float(part.sum()) for part in (deltas, np.maximum(deltas, 0), np.minimum(deltas, 0)))
    causes, rollup = (
        _with_reasons(found, measured, (baseline, candidate), options)
        for found in _causes(baseline, candidate, operators, delta, judged)
    )
    findings = _findings(operators.everything, delta, judged)
    renames = find_renames(baseline, candidate, ops)
    parts = _parts(baseline, candidate, before, after, metric)
    ranges = (total_range(baseline, metric), total_range(candidate, metric))
    incomplete = remarks_on_incomplete_captures((baseline, candidate))
    total = Total(metric, total0, total1, ranges, is_incomplete=bool(incomplete))
    found = headline(
        baseline,
        candidate,
        total,
        parts,
        judged,
        recorded,
        facts=facts_of(ops, tables["overall"]),
        forced=options.force,
    )
    cancelling = delta is not None and (loss - gain) > 0 and abs(delta) < _CANCELLING_SHARE * (loss - gain)
    return Explanation(
        total_metric=metric,
        baseline_ns=total0,
        candidate_ns=total1,
        delta_ns=delta,
        parts=parts,
        causes=causes,
        rest_ns=None if delta is None else delta - explained,
        explained_ns=explained,
        cancelling=cancelling,
        gross_loss_ns=loss,
        gross_gain_ns=gain,
        rollup=rollup,
        renames=renames,
        headline=found.text,
        verdict=found.verdict,
        remarks=(*incomplete, *found.remarks),
        contributions=contributions(
            (baseline, candidate), {**tables, "ops": ops}, parts, delta, renames, findings, judged
        ),
        other_causes_ns=explained - sum(cause.delta_ns for cause in causes),
        baseline_range_ns=ranges[0],
        candidate_range_ns=ranges[1],
        ranged_runs=(len(run_numbers(baseline).get(metric, ())), len(run_numbers(candidate).get(metric, ()))),
        findings=findings,
        rest_title=_rest_title(baseline, candidate),
    )


def headline_alone(found: Explanation) -> Explanation:
    """Return an explanation of which only the headline is left."""
    return Explanation(
        total_metric=found.total_metric, baseline_ns=None, candidate_ns=None, delta_ns=None, parts=(), causes=(),
        rest_ns=None, explained_ns=0.0, cancelling=False, gross_loss_ns=0.0, gross_gain_ns=0.0, rollup=(), renames=(),
        headline=found.headline, remarks=found.remarks,
    )  # fmt: skip


def _rest_title(baseline: LoadedSide, candidate: LoadedSide) -> str:
    """Return what the total changed by beyond its operators: no operator ran, or on a device several at the
    same time.
    """
    host = _host_only(baseline, candidate)
    what = "idle time: no operator runs" if host else "idle time, less what runs at the same time"
    return f"rest ({what}; {_NO_SUMS})"


def _causes(
    baseline: LoadedSide, candidate: LoadedSide, operators: Operators, delta: float | None, judged: Judged
) -> tuple[tuple[Cause, ...], tuple[Cause, ...]]:
    """Return the largest ops, and the largest names of ops; each with where it runs and its verdict, or without one
    whether it stands out of the runs.
    """
    largest = operators.everything.head(_MAX_CAUSES)
    where = _places(operators, set(largest.listed("name")))
    causes = [
        replace(_cause("op", row, delta), where=where.get((row["name"], row["input_shapes"]), ""))
        for row in _records(largest)
        if row["delta_ns"]
    ]
    by_name = _by_name(operators.everything, _MAX_CAUSES)
    rollup = [_cause("name", row, delta) for row in _records(by_name) if row["delta_ns"]]
    if judged.found is not None and judged.of_ops:
        causes = [_judged(cause, judged.of_op(cause.name, cause.input_shapes)) for cause in causes]
        return tuple(causes), tuple(_judged(cause, judged.of_name(cause.name)) for cause in rollup)
    rows = (operators.baseline_rows, operators.candidate_rows)
    key = ["name", "input_shapes"]
    apart, apart_by_name = (standing_out(baseline, candidate, rows, chosen) for chosen in (key, key[:1]))
    if apart is not None and apart_by_name is not None:
        causes = [replace(cause, stands_out=apart.get((cause.name, cause.input_shapes))) for cause in causes]
        rollup = [replace(cause, stands_out=apart_by_name.get((cause.name,))) for cause in rollup]
    return tuple(causes), tuple(rollup)


def _findings(ops: Columns, delta: float | None, judged: Judged) -> tuple[Cause, ...]:
    """Return what is a finding or a suspicion, once per name of an op, the largest contribution first: all shapes
    together, or the shape that is one.
    """
    found = judged.findings()
    if not found:
        return ()
    own = ops.taken(is_among(ops["name"], found))
    whole = {row["name"]: row for row in _records(_by_name(own))}
    parts = {(row["name"], row["input_shapes"]): row for row in _records(own)}
    causes = []
    for name, row in found.items():
        part = parts.get((name, row["input_shapes"])) if row["kind"] == "op" else None
        if part is not None:
            causes.append(_judged(_cause("op", part, delta), row))
        elif name in whole:
            causes.append(_judged(_cause("name", whole[name], delta), row))
    return tuple(causes)


def _judged(cause: Cause, row: Row | None) -> Cause:
    if row is None:
        return cause
    return replace(cause, verdict=row["verdict"], q=_known(row["q"]), contribution=_known(row["contribution"]))


def _with_reasons(
    causes: tuple[Cause, ...], measured: Measured, sides: tuple[LoadedSide, LoadedSide], options: DiffOptions
) -> tuple[Cause, ...]:
    """Return `causes` with what the metrics of their kernels say."""
    by_name = any(cause.kind == "name" for cause in causes)
    reasons = op_reasons(measured, sides, causes, options, by_name=by_name)
    return tuple(replace(cause, why=why) for cause, why in zip(causes, reasons, strict=True))


def _parts(
    baseline: LoadedSide, candidate: LoadedSide, before: dict[str, float], after: dict[str, float], metric: str
) -> tuple[Part, ...]:
    """Parts of the total whose deltas sum to its delta exactly; what medians leave over is a part of its own."""
    host = _host_only(baseline, candidate)
    parts = [
        Part(name, title, before[name], after[name], after[name] - before[name])
        for name, title in (_HOST_PARTS if host else _PARTS)
        if name in before and name in after and (before[name] or after[name])
    ]
    if metric not in before or metric not in after:
        return tuple(parts)
    if not any(name in before and name in after for name, _ in _PARTS):
        return _parts_of_log(before, after, metric)
    rest = fsum([after[metric], -before[metric], *(-part.delta_ns for part in parts)])
    if abs(rest) > ROUNDING * after[metric]:
        known = all(name in own for name in ("compute_ns", "idle_ns") for own in (before, after))
        why = _NO_SUMS if known else "in no part that both sources know"
        parts.append(Part("rest_ns", f"Rest ({why})", None, None, rest))
    return tuple(parts)


def _parts_of_log(before: dict[str, float], after: dict[str, float], metric: str) -> tuple[Part, ...]:
    """Return the parts of a step of which the sources say at most how long it waits for its data, as training
    logs do.
    """

    def part(name: str, title: str, times: tuple[float, float]) -> Part:
        return Part(name, title, *times, times[1] - times[0])

    whole = (before[metric], after[metric])
    if "data_loading_ns" not in before or "data_loading_ns" not in after:
        return (part("whole_ns", "All of it (the sources do not part it)", whole),)
    loading = (before["data_loading_ns"], after["data_loading_ns"])
    others = (whole[0] - loading[0], whole[1] - loading[1])
    return (part("data_loading_ns", "Data loading", loading), part("others_ns", "All but data loading", others))


def _host_only(baseline: LoadedSide, candidate: LoadedSide) -> bool:
    return "device" not in (baseline.side.timeline, candidate.side.timeline)


def _by_name(ops: Columns, most: int | None = None) -> Columns:
    """Ops summed over shapes, the `most` that changed most: the roll-up that a reader must see first."""
    place, first = number_distinct_rows([ops["name"]])
    sums = {name: match.sum_exactly(ops[name], place, len(first)) for name in _SUMMED}
    names = ops["name"][first]
    order = np.lexsort([rank_values(names), -np.abs(sums["delta_ns"])])[:most]
    rolled = Columns({"name": names, **sums}).taken(order)
    calls0, calls1 = rolled["baseline_calls"], rolled["candidate_calls"]
    by_calls = (calls1 - calls0) * (rolled["baseline_ns"] / np.where(calls0 > 0, calls0, np.nan))
    of_names = ops.only(["name", "status"]).taken(is_among(ops["name"], set(rolled.listed("name"))))
    statuses = status_of_names(of_names)
    return rolled.having(
        input_shapes=objects([""] * len(rolled)),
        status=objects([statuses[name] for name in rolled["name"]]),
        calls_delta_ns=by_calls,
        per_call_delta_ns=rolled["delta_ns"] - by_calls,
    )


def _places(operators: Operators, names: Set[str]) -> dict[tuple[Any, ...], str]:
    """Return where each op of these names mostly runs: its module, then the line of the user's code in its most
    frequent call stack.
    """
    found: dict[tuple[Any, ...], dict[str, None]] = {}
    for rows in (operators.candidate_rows, operators.baseline_rows):
        columns = [name for name in ("module", "call_stack") if name in rows]
        chosen = rows.only(["name", "input_shapes", "own_ns", *columns]).taken(is_among(rows["name"], names))
        (own,), keys = number_tables([chosen], ["name", "input_shapes"])
        for column in columns:
            for *key, text in keys.having(text=match.dominant_texts(own, column, "own_ns")).rows(*keys.arrays, "text"):
                place = text if column == "module" else code_line(text)
                if place:
                    found.setdefault(tuple(key), {})[place] = None
    return {key: ", ".join(texts) for key, texts in found.items()}


def _records(table: Columns) -> Iterator[Row]:
    """Row by row what a cause is made of."""
    for row in table.rows(*_OF_A_CAUSE):
        yield dict(zip(_OF_A_CAUSE, row, strict=True))


def code_line(call_stack: str) -> str:
    """Return the innermost frame of a call stack (innermost first, `;` between) that is neither built in nor of the
    framework.

    >>> code_line("<built-in function linear>;torch/nn/modules/linear.py(130): forward;train.py(89): forward")
    'train.py(89): forward'
    """
    for frame in call_stack.split(";"):
        if ".py(" in frame and _is_of_user(frame.strip()):
            return frame.strip()
    return ""


@lru_cache(maxsize=10_000)
def _is_of_user(frame: str) -> bool:
    """Return whether a frame of Python is not of the framework. The stacks of a capture share most of their frames."""
    return not _FRAMEWORK.search(frame)


def _cause(kind: str, row: Row, delta: float | None) -> Cause:
    change = np.nan if row["delta_ns"] is None else row["delta_ns"]
    return Cause(kind=kind, share=change / delta if delta else None, **{**row, "delta_ns": change})


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
