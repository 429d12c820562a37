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
from tracker.compare.renames import status_of_names
from tracker.profile import NO_OP, NOT_LISTED, UNLINKED_OP
from tracker.regressions.causes import cause_words
from tracker.results import ADDED, BOTH, OTHER_SHAPES, REMOVED, REPLACED_BY, Contribution, Rename
from tracker.results.verdicts import CHANGED
from tracker.store import queries
from tracker.table import Numbered, is_among, number_distinct_rows
from tracker.units import format_diff

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tracker.compare.side import LoadedSide
    from tracker.compare.verdicts import Judged
    from tracker.results import Cause, Part

_MOST: Final = 8
"""Causes that are named, each on a line of a first screen."""
_LEAST_SHARE: Final = 0.02
"""Part of the change below which a cause is only named where it is a finding."""
_BESIDE: Final = ("communication", "copy", "memset")
"""Categories of device work that have a part of the step of their own."""
_STAND_INS: Final = (UNLINKED_OP, NO_OP, NOT_LISTED)
_EXPLAINED: Final = ("compute_ns", "rest_ns")
"""Parts that operators explain, or that are made anew from all rows."""
_HIDDEN: Final = {
    "exposed_communication_ns": "not hidden by compute",
    "exposed_copy_ns": "not hidden by compute",
    "data_loading_ns": "waits for data",
}
_WHY_ON_HOST: Final = _HIDDEN | {"idle_ns": "no operator runs"}
_WHY_ON_DEVICE: Final = _HIDDEN | {"idle_ns": "nothing runs on the device"}
"""Part of the step -> what it means that it takes longer."""
_NUMBERS: Final = ("baseline_ns", "candidate_ns", "baseline_calls", "candidate_calls")


def contributions(
    sides: tuple[LoadedSide, LoadedSide],
    tables: Mapping[str, Columns],
    parts: Sequence[Part],
    delta_ns: float | None,
    renames: Sequence[Rename],
    findings: Sequence[Cause],
    judged: Judged,
) -> tuple[Contribution, ...]:
    """Causes by size, at most 8, of which findings are never left out for others, and among them the parts of the step
    that are no operators; then all others together, and the rest: their `delta_ns` sum to `delta_ns` exactly. Nothing
    where a source says at most how long a step took.

    Causes are operators, all shapes of one together but a shape that is a finding, and what replaced what as one;
    kernels where no operators are known; kinds of work where the devices differ. `tables`: overall, ops (all of them)
    and kernels of the Diff, and idle.
    """
    causes = _causes(sides, tables, renames, {cause.name: cause for cause in findings})
    causes = [_as_judged(cause, judged) for cause in causes]
    causes = [_with_share(cause, delta_ns) for cause in causes if cause.delta_ns]
    causes.sort(key=_by_size)
    large = [cause for cause in causes if cause.verdict in CHANGED or abs(cause.share or 1.0) >= _LEAST_SHARE]
    chosen = sorted(large, key=lambda cause: cause.verdict not in CHANGED)[:_MOST]
    named = [cause for cause in causes if cause in chosen]
    others = [cause for cause in causes if cause not in named]
    rows = sorted([*named, *_parts(sides, tables, parts, delta_ns, judged)], key=_by_size)
    if others:
        together = fsum(cause.delta_ns for cause in others)
        what = {"kernel": "kernels", "category": "kinds of work"}.get(others[0].kind, "operators")
        rows.append(Contribution("others", what, together, count=sum(max(1, cause.count) for cause in others)))
    if delta_ns is None:
        return tuple(rows)
    rest = fsum([delta_ns, *(-row.delta_ns for row in rows)])
    rows += [Contribution("rest", "", rest)] if abs(rest) >= 1 else []
    return tuple(_with_share(row, delta_ns) for row in rows)


def _by_size(row: Contribution) -> tuple[float, str]:
    return -abs(row.delta_ns), row.name


def _parts(
    sides: tuple[LoadedSide, LoadedSide],
    tables: Mapping[str, Columns],
    parts: Sequence[Part],
    delta_ns: float | None,
    judged: Judged,
) -> list[Contribution]:
    """Return the parts of the step that no operator explains, each with what it means, and its verdict where it
    changed.
    """
    on_device = any(side.side.timeline == "device" for side in sides)
    why = _WHY_ON_DEVICE if on_device else _WHY_ON_HOST
    waiting = _waits_for_data(tables["overall"], parts, delta_ns)
    found = []
    for part in parts:
        if part.name in _EXPLAINED or not (part.delta_ns or part.name == "whole_ns"):
            continue
        row = judged.of_part(part.name)
        idles = _idle_cause(tables["idle"], part.delta_ns) if part.name == "idle_ns" else ""
        found.append(
            Contribution(
                "part",
                part.title,
                part.delta_ns,
                verdict=row["verdict"] if row is not None and row["verdict"] in CHANGED else None,
                why="waits for data" if part.name == waiting else idles or why.get(part.name, ""),
                baseline_ns=part.baseline_ns,
                candidate_ns=part.candidate_ns,
                metric=part.name,
            )
        )
    return found


def _idle_cause(idle: Columns, delta_ns: float) -> str:
    """Return the cause that makes most of a change of idle time, at least half of it; "" where none does."""
    by_cause: dict[str, float] = {}
    for cause, change in idle.rows("cause", "delta_ns"):
        by_cause[cause] = by_cause.get(cause, 0.0) + change * (1 if delta_ns > 0 else -1)
    cause = max(by_cause, key=lambda one: (by_cause[one], one), default="")
    return f"mostly {cause}" if cause and by_cause[cause] >= abs(delta_ns) / 2 else ""


def _waits_for_data(overall: Columns, parts: Sequence[Part], delta_ns: float | None) -> str:
    """Return the part that changed because data loading did, where that carries at least half of the change;
    else "".
    """
    loading = dict(overall.rows("metric", "delta")).get("data_loading_ns") or 0.0
    if not delta_ns or loading * delta_ns <= 0 or abs(loading) < abs(delta_ns) / 2:
        return ""
    idle = next((part for part in parts if part.name == "idle_ns"), None)
    return idle.name if idle is not None and idle.delta_ns * loading > 0 else ""


def _with_share(row: Contribution, delta_ns: float | None) -> Contribution:
    return replace(row, share=row.delta_ns / delta_ns if delta_ns else None)


def _causes(
    sides: tuple[LoadedSide, LoadedSide],
    tables: Mapping[str, Columns],
    renames: Sequence[Rename],
    findings: Mapping[str, Cause],
) -> list[Contribution]:
    if sides[0].side.device != sides[1].side.device and (categories := _categories(tables["overall"])):
        return categories
    ops = tables["ops"]
    real = ~is_among(ops["name"], _STAND_INS)
    moved = np.abs(np.nan_to_num(ops["delta_ns"]))
    if moved[real].sum() < moved[~real].sum() and len(tables["kernels"]):
        return _kernels(tables["kernels"])
    return _operators(sides, ops, renames, findings)


def _categories(overall: Columns) -> list[Contribution]:
    """Kinds of compute work, as the overall table has them."""
    columns = ("metric", "title", "level", "unit", "baseline_value", "candidate_value", "delta")
    under, found = "", []
    for metric, title, level, unit, before, after, delta in overall.rows(*columns):
        under = metric if level == 1 else under
        if level == 2 and under == "compute_ns" and unit == "ns" and delta is not None:
            found.append(Contribution("category", title, delta, baseline_ns=before, candidate_ns=after, metric=metric))
    return found


def _kernels(kernels: Columns) -> list[Contribution]:
    own = kernels.taken(~is_among(kernels["category"], _BESIDE))
    return [_cause("kernel", *row) for row in _by_name(own, {})]


def _operators(
    sides: tuple[LoadedSide, LoadedSide], ops: Columns, renames: Sequence[Rename], findings: Mapping[str, Cause]
) -> list[Contribution]:
    """Operators without what they have in collectives and copies, for these are parts of the step of their own."""
    beside: dict[str, tuple[float, float]] = {}
    if any(side.side.timeline == "device" for side in sides):
        before, after = (_beside_compute(side) for side in coverage.blank_unless_both(*sides, coverage.KERNELS))
        beside = {name: (before.get(name, 0.0), after.get(name, 0.0)) for name in before.keys() | after.keys()}
    else:
        ops = ops.taken(~is_among(ops["name"], _host_collectives(sides)))
    rows = {row[0]: _cause("operator", *row) for row in _by_name(ops, beside)}
    largest = _largest_shapes(ops, rows)
    found = []
    for rename in renames:
        own = [rows.pop(name) for name in rename.names if name in rows]
        if len(own) > 1:
            found.append(_replacement(rename, own, findings))
        else:
            rows |= {cause.name: cause for cause in own}
    for name, cause in rows.items():
        finding = findings.get(name)
        if finding is not None and finding.kind == "op" and name not in beside:
            found += _shape_and_others(cause, finding)
        else:
            found.append(_with_verdict(cause, finding, "" if finding else largest.get(name, "")))
    return found


def _shape_and_others(whole: Contribution, finding: Cause) -> Iterator[Contribution]:
    """Yield the shape of an operator that is a finding, and all its other shapes together where it has any."""
    own, all_shapes = ([getattr(row, name) or 0.0 for name in _NUMBERS] for row in (finding, whole))
    status = finding.status if finding.status in (ADDED, REMOVED) else BOTH
    yield _with_verdict(_cause(whole.kind, whole.name, status, *own), finding, finding.input_shapes)
    others = [of_all - of_one for of_all, of_one in zip(all_shapes, own, strict=True)]
    if any(abs(number) >= 1 for number in others[:2]):
        yield replace(_cause(whole.kind, whole.name, BOTH, *others), input_shapes=OTHER_SHAPES)


def _with_verdict(cause: Contribution, finding: Cause | None, shapes: str) -> Contribution:
    return replace(cause, input_shapes=shapes, verdict=None if finding is None else finding.verdict)


def _as_judged(cause: Contribution, judged: Judged) -> Contribution:
    """Return a cause that says why, where its change has another sign than its verdict."""
    word, sign = {"IMPROVED": ("faster", -1.0), "REGRESSED": ("slower", 1.0)}.get(cause.verdict or "", ("", 0.0))
    if cause.delta_ns * sign >= 0:
        return cause
    drift = judged.judgement.shared or 0.0
    without_drift = (cause.candidate_ns or 0.0) / (1.0 + drift) - (cause.baseline_ns or 0.0)
    if without_drift * sign > 0:
        return replace(cause, why=f"{word} but for machine-wide drift")
    row = judged.of_cause(cause.name, cause.input_shapes)
    if row is None or not judged.base_runs or np.isnan(row["judged_change"]):
        return cause
    # the level of this operator began with another version than that of the step, whose runs are the baseline
    size = format_diff(abs(row["judged_change"])).lstrip("+")
    return replace(cause, why=f"{word} than its own level by {size}")


def _replacement(rename: Rename, causes: Sequence[Contribution], findings: Mapping[str, Cause]) -> Contribution:
    """Return what went and what came, as one: what its operators took and no longer do, and what they take now and did
    not.
    """
    delta = fsum(cause.delta_ns for cause in causes)
    known = {finding.verdict for cause in causes if (finding := findings.get(cause.name)) is not None}
    word = None
    if known & {"REGRESSED", "ADDED", "IMPROVED", "REMOVED"}:
        word = "REGRESSED" if rename.is_worse else "IMPROVED" if delta < 0 else None
    return Contribution(
        "replacement",
        f"{rename.removed}{REPLACED_BY}{rename.added}".replace(" + ", ", "),
        delta,
        why="replaced" if rename.is_worse or delta < 0 else "renamed or fused",
        baseline_ns=fsum(max(-cause.delta_ns, 0.0) for cause in causes),
        candidate_ns=fsum(max(cause.delta_ns, 0.0) for cause in causes),
        verdict=word,
        count=len(causes),
    )


def _cause(
    kind: str, name: str, status: str, before: float, after: float, calls0: float, calls1: float
) -> Contribution:
    why = {ADDED: "new", REMOVED: "gone", BOTH: ""}.get(status, "on one side only")
    return Contribution(
        kind, name, after - before, why=why or cause_words(before, after, calls0, calls1)[0], baseline_ns=before,
        candidate_ns=after, baseline_calls=calls0, candidate_calls=calls1,
    )  # fmt: skip


def _by_name(
    rows: Columns, beside: Mapping[str, tuple[float, float]]
) -> Iterable[tuple[str, str, float, float, float, float]]:
    """Name, status, times and calls of both sides, over all shapes; without `beside`, times of a name that count
    elsewhere.
    """
    place, first = number_distinct_rows([rows["name"]])
    sums = [np.nan_to_num(match.sum_exactly(rows[name], place, len(first))).tolist() for name in _NUMBERS]
    statuses = status_of_names(rows)
    for name, before, after, calls0, calls1 in zip(rows["name"][first].tolist(), *sums, strict=True):
        less0, less1 = beside.get(name, (0.0, 0.0))
        yield name, statuses[name], max(before - less0, 0.0), max(after - less1, 0.0), calls0, calls1


def _beside_compute(side: LoadedSide) -> dict[str, float]:
    """Name of an op -> its time in collectives and copies."""
    kernels = side.query(queries.kernels)
    kernels = kernels.taken(is_among(kernels["category"], _BESIDE))
    number, first = number_distinct_rows([kernels["op"]])
    sums = match.reduce_side(side, Numbered(kernels, number, len(first)), ["total_ns"])["total_ns"]
    return dict(zip(kernels["op"][first].tolist(), np.nan_to_num(sums).tolist(), strict=True))


def _host_collectives(sides: tuple[LoadedSide, LoadedSide]) -> list[str]:
    """Return names of the ops in which a host waits for its collectives."""
    known = coverage.blank_unless_both(*sides, coverage.COLLECTIVES)
    tasks = [side.query(queries.communication_tasks) for side in known]
    return sorted({name for table in tasks for name in table.listed("name")})


def _largest_shapes(ops: Columns, causes: Mapping[str, Contribution]) -> dict[str, str]:
    """Name -> the shapes that carry most of its change, where it has others too."""
    deltas: dict[str, list[tuple[float, str]]] = {}
    for name, shapes, delta in ops.rows("name", "input_shapes", "delta_ns"):
        deltas.setdefault(name, []).append((delta or 0.0, shapes or ""))
    found = {}
    for name, own in deltas.items():
        whole = causes[name].delta_ns if name in causes else 0.0
        delta, shapes = max(own, key=lambda one: one[0] * (1 if whole > 0 else -1))
        if len(own) > 1 and whole and delta / whole > 0.5:
            found[name] = shapes
    return found
