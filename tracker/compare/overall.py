"""The overall table: where a step goes on each side, as a tree of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracker.columns import Columns, objects
from tracker.compare import join, knowing, means
from tracker.compare.categories import category_metrics, category_sums, is_split
from tracker.compare.group_pairs import roles_by_size
from tracker.compare.groups import group_metrics, group_splits, group_sums, with_absent, without_other_splits
from tracker.compare.peaks import component_peaks, peak_metrics
from tracker.compare.sums import Metric, Sum, Sums

if TYPE_CHECKING:
    from tracker.columns import F64
    from tracker.compare.sides import Loaded


_NOTHING: Final = Sum(None)
_TIMES: Final = (
    Metric("step_ns", "Step time"),
    Metric("e2e_ns", "E2E", in_e2e=True),
    Metric("compute_ns", "Computing", 1, in_e2e=True),
)
_EXPOSED: Final = Metric("exposed_communication_ns", "Exposed communication", 1, in_e2e=True)
_REST: Final = (
    Metric("exposed_copy_ns", "Exposed copies (memcpy, SDMA)", 1, in_e2e=True),
    Metric("free_ns", "Idle time", 1, in_e2e=True),
    Metric("free_share", "Idle time, share of E2E", 1, unit="ratio"),
    Metric("communication_ns", "Communication, overlapped or not", in_e2e=True),
    Metric("overlap_ns", "Communication overlapped with computing", 1, in_e2e=True),
    Metric("copy_ns", "Copies, overlapped or not", in_e2e=True),
    Metric("operator_ns", "Operator time (sum of compute kernels)"),
    Metric("operator_cube_ns", "Operator time of cube work", 1),
    Metric("operator_vector_ns", "Operator time of vector work", 1),
    Metric("communication_total_ns", "Communication kernels (sum)"),
    Metric("kernel_total_ns", "Kernel time (sum)"),
    Metric("kernel_count", "Kernels", unit="count"),
    Metric("unlinked_kernel_total_ns", "Kernel time without a launch in the capture", 1),
    Metric("outside_steps_kernel_total_ns", "Kernel time outside all steps, per rank", 1),
    Metric("data_loading_ns", "Data loading"),
    Metric("data_loading_idle_ns", "Data loading while the device idles", 1),
    Metric("bubble_ns", "Pipeline bubble"),
    Metric("preparing_ns", "Preparing"),
    Metric("samples_per_second", "Samples per second", unit="count"),
)
_DEVICE_ONLY: Final = {
    "communication_total_ns",
    "kernel_total_ns",
    "kernel_count",
    "unlinked_kernel_total_ns",
    "outside_steps_kernel_total_ns",
}


def compare(baseline: Loaded, candidate: Loaded) -> Columns:
    """The `overall` rows of a Diff; rows that neither side has are left out."""
    sides = (baseline, candidate)
    peaks = [component_peaks(side) for side in sides]
    numbers = [{**step_numbers(side), **of_side} for side, of_side in zip(sides, peaks, strict=True)]
    split = [is_split(side) for side in sides]
    kernels = [category_sums(side, by_rules=other is True) for side, other in zip(sides, reversed(split), strict=True)]
    named = list(zip(sides, roles_by_size(*sides), strict=True))
    groups = with_absent(
        [
            group_sums(side, of_side.get(_EXPOSED.name), roles)
            for (side, roles), of_side in zip(named, numbers, strict=True)
        ]
    )
    groups = without_other_splits(groups, [group_splits(side, roles) for side, roles in named])
    found = [{**of_kernels, **of_groups} for of_kernels, of_groups in zip(kernels, groups, strict=True)]
    host = "device" not in (baseline.side.timeline, candidate.side.timeline)
    metrics = [
        *_TIMES,
        *category_metrics(kernels),
        _EXPOSED,
        *group_metrics(groups, several_runs=max(side.side.runs for side in sides) > 1),
        *(metric for metric in _REST if not (host and metric.name in _DEVICE_ONLY)),
        *peak_metrics(key for of_side in peaks for key in of_side),
    ]
    rows = [_row(metric, numbers, found) for metric in metrics]
    known = [row for row in rows if row["baseline_value"] is not None or row["candidate_value"] is not None]
    columns: dict[str, Any] = {name: objects([row[name] for row in known]) for name in ("metric", "title", "unit")}
    columns["level"] = np.array([row["level"] for row in known], dtype=np.int64)
    for number in ("value", "share", "calls"):
        for side in ("baseline", "candidate"):
            columns[f"{side}_{number}"] = np.array([row[f"{side}_{number}"] for row in known], dtype=np.float64)
    before, after = columns["baseline_value"], columns["candidate_value"]
    columns |= {"delta": after - before, "diff": join.ratio(before, after)}
    return join.finished("overall", columns)


def step_numbers(side: Loaded) -> dict[str, float]:
    """Each number of the breakdown: the mean over the steps and ranks of a run, the median over runs; peaks: the
    largest of a run.

    All numbers are of the same steps and ranks, those whose times are known, so that they add up. `step_ns` is the
    marker's duration (without markers the span of the capture). Keys are left out where the source does not say.
    """
    found = {name: median(values) for name, values in run_numbers(side).items() if values}
    if found.get("e2e_ns") and "free_ns" in found:
        found["free_share"] = found["free_ns"] / found["e2e_ns"]
    return found


def run_numbers(side: Loaded) -> dict[str, list[float]]:
    """The same for each run by itself, of the runs that know it."""
    return side.once("run_numbers", lambda: _run_numbers(side))


def _run_numbers(side: Loaded) -> dict[str, list[float]]:
    steps = side.that_knows(knowing.TIMES).steps
    names = [name for name in steps.arrays if name not in ("run_id", "rank", "step", "start_ns", "timeline", "steps")]
    numbers = _numbers(steps, names)
    # a row may be the mean of several steps
    weights = np.where(np.isnan(numbers), 0.0, _numbers(steps, ["steps"]))
    sums = np.nan_to_num(numbers) * weights
    peaks = _peaks(side)
    rates = means.rate(steps, ["run_id"]) if steps.known("samples_per_second").any() else {}
    outside = _outside_steps(side) if side.chosen_steps is None else {}
    of_run = steps.integers("run_id")
    found: dict[str, list[float]] = {"step_ns": []}
    for run_id in sorted({*of_run.tolist(), *peaks}):
        own = of_run == run_id
        with np.errstate(invalid="ignore"):  # 0 / 0: nothing is known of it
            row = dict(zip(names, (sums[own].sum(axis=0) / weights[own].sum(axis=0)).tolist(), strict=True))
        row["step_ns"] = row.pop("duration_ns")
        row["samples_per_second"] = rates.get((run_id,), np.nan)
        row |= peaks.get(run_id, {}) | {"outside_steps_kernel_total_ns": outside.get(run_id, np.nan)}
        for name, value in row.items():
            found.setdefault(name, []).extend([] if np.isnan(value) else [value])
    return found


def _numbers(table: Columns, names: Sequence[str]) -> F64:
    """Columns as (rows, columns), nan for missing."""
    return np.column_stack([table.reals(name) for name in names]) if names else np.zeros((len(table), 0))


def _peaks(side: Loaded) -> dict[int, dict[str, float]]:
    """The largest memory of the ranks of each run, nan for unknown."""
    names = ["peak_allocated_bytes", "peak_reserved_bytes"]
    known = side.captures if side.chosen_steps is None else side.steps
    found: dict[int, dict[str, float]] = {}
    for run_id, own in zip(known.listed("run_id"), _numbers(known, names).tolist(), strict=True):
        row = found.setdefault(run_id, dict.fromkeys(names, np.nan))
        for name, value in zip(names, own, strict=True):
            row[name] = float(np.fmax(row[name], value))
    return found


def _outside_steps(side: Loaded) -> dict[int, float]:
    """Kernel time that belongs to no step (queued before the capture, or between steps), mean per rank of each run; of
    the ranks that know both the whole and all their steps.
    """
    inside: dict[tuple[int, int], list[tuple[Any, int]]] = {}
    columns = ("run_id", "rank", "kernel_total_ns", "steps")
    for run_id, rank, ns, steps in side.steps.rows(*columns):
        inside.setdefault((run_id, rank), []).append((ns, steps))
    found: dict[int, list[tuple[int, int]]] = {}
    for run_id, rank, whole in side.captures.rows(*columns[:3]):
        own = inside.get((run_id, rank))
        if own and whole is not None and not any(ns is None for ns, _ in own):
            # the mean of many steps is rounded to whole ns: what that leaves over is nothing outside
            rounding = sum(steps for _, steps in own if steps > 1)
            found.setdefault(run_id, []).append((whole - sum(ns * steps for ns, steps in own), rounding))
    sums = {run_id: [sum(part) for part in zip(*ranks, strict=True)] for run_id, ranks in found.items()}
    return {
        run_id: 0.0 if abs(outside) <= rounding else outside / len(found[run_id])
        for run_id, (outside, rounding) in sums.items()
    }


def _row(metric: Metric, numbers: Sequence[Mapping[str, float]], found: Sequence[Sums]) -> dict[str, object]:
    row: dict[str, object] = {
        "metric": metric.name,
        "title": metric.title,
        "level": metric.level,
        "unit": metric.unit,
    }
    for side, of_steps, summed in zip(("baseline", "candidate"), numbers, found, strict=True):
        of_row = summed.get(metric.name, _NOTHING)
        value, whole = of_steps.get(metric.name, of_row.ns), of_steps.get("e2e_ns")
        row[f"{side}_value"] = value
        row[f"{side}_share"] = value / whole if metric.in_e2e and value is not None and whole else None
        row[f"{side}_calls"] = of_row.calls
    return row
