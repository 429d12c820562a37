"""The overall table: where a step goes on each side, as a tree of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracker.columns import Columns, objects
from tracker.compare import join, reduction
from tracker.compare.categories import category_metrics, category_sums, is_split
from tracker.compare.group_pairs import roles_by_size
from tracker.compare.groups import group_metrics, group_splits, group_sums, with_absent, without_other_splits
from tracker.compare.metric import Metric, Sum, Sums
from tracker.compare.outside import kernel_time_outside_steps
from tracker.compare.peaks import component_peaks, peak_metrics
from tracker.compare.slow_steps import slow_steps
from tracker.store import queries
from tracker.store.samples.statistics import over_ranks, over_runs
from tracker.units import name_throughput

if TYPE_CHECKING:
    from tracker.columns import F64
    from tracker.compare.sides import Loaded
    from tracker.results.diff import Runs


PARTS: Final = ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")
"""What a step consists of."""
ROUNDING: Final = 1e-9
"""Part of a time below which a rest is none of medians."""
_PEAKS: Final = ("peak_allocated_bytes", "peak_reserved_bytes")
_NOTHING: Final = Sum(None)
_TIMES: Final = (
    Metric("step_ns", "Step time"),
    Metric("mean_step_ns", "Mean step", 1),
    Metric("marker_ns", "Marker of the step on the host", 1),
    Metric("slow_steps", "Slow steps (above 1.2 times the median)", 1, unit="count"),
    Metric("e2e_ns", "E2E"),
    Metric("compute_ns", "Computing", 1, in_step=True),
)
_EXPOSED: Final = Metric("exposed_communication_ns", "Exposed communication", 1, in_step=True)
_REST: Final = (
    Metric("exposed_copy_ns", "Exposed copies (memcpy, SDMA)", 1, in_step=True),
    Metric("idle_ns", "Idle time", 1, in_step=True),
    Metric("host_idle_ns", "Idle, with nothing launched", 2, in_step=True),
    Metric("rest_ns", "Rest (of medians)", 1, in_step=True),
    Metric("idle_share", "Idle share of the step", 1, unit="ratio"),
    Metric("communication_ns", "Communication, overlapped or not", in_step=True),
    Metric("overlap_ns", "Communication overlapped with computing", 1, in_step=True),
    Metric("copy_ns", "Copies, overlapped or not", in_step=True),
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
    if has_other_units(baseline, candidate):
        for of_side in numbers:
            of_side.pop("samples_per_second", None)
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
        *group_metrics(groups),
        *(metric for metric in _REST if not (host and metric.name in _DEVICE_ONLY)),
        _throughput(sides),
        *peak_metrics(key for of_side in peaks for key in of_side),
    ]
    rows = [_row(metric, numbers, found) for metric in metrics]
    values = {row["metric"]: (row["baseline_value"], row["candidate_value"]) for row in rows}
    idle = {name for name in ("rest_ns", "slow_steps") if not any(values[name])}
    # what says the same as the step is no row of its own
    idle |= {name for name in ("mean_step_ns", "marker_ns") if values[name] == values["step_ns"]}
    known = [row for row in rows if values[row["metric"]] != (None, None) and row["metric"] not in idle]
    columns: dict[str, Any] = {name: objects([row[name] for row in known]) for name in ("metric", "title", "unit")}
    columns["level"] = np.array([row["level"] for row in known], dtype=np.int64)
    for number in ("value", "share", "calls"):
        for side in ("baseline", "candidate"):
            columns[f"{side}_{number}"] = np.array([row[f"{side}_{number}"] for row in known], dtype=np.float64)
    before, after = columns["baseline_value"], columns["candidate_value"]
    diff = np.where(columns["metric"] == "rest_ns", np.nan, join.ratio(before, after))
    columns |= {"delta": after - before, "diff": diff}
    return join.finished("overall", Columns(columns))


def step_numbers(side: Loaded) -> dict[str, float]:
    """Each number of the breakdown, by its name; peaks: the largest of a run. Each is of the ranks that report it.

    `step_ns` is the step (without markers the span of the capture), `whole_ns` what its parts add up to, `rest_ns` what
    the medians of the parts lack to sum to it. Keys are left out where the source does not say.
    """
    found = {name: float(over_runs(np.array([values]))[0]) for name, values in run_numbers(side).items()}
    if found.get("whole_ns") and "idle_ns" in found:
        found["idle_share"] = found["idle_ns"] / found["whole_ns"]
    if "slow_steps" in found:  # no time: a run without any counts
        found["slow_steps"] = fmean(run_numbers(side)["slow_steps"])
    if {"whole_ns", "compute_ns", "idle_ns"} <= found.keys():
        rest = fsum([found["whole_ns"], *(-found[name] for name in PARTS if name in found)])
        found["rest_ns"] = rest if abs(rest) > ROUNDING * found["whole_ns"] else 0.0
    return found


def run_numbers(side: Loaded) -> dict[str, list[float]]:
    """The same for each run by itself, of the runs that report it."""
    return side.once("run_numbers", lambda: _run_numbers(side))


def runs(baseline: Loaded, candidate: Loaded) -> dict[str, Runs]:
    """The numbers of single runs, of the metrics that both sides have."""
    before, after = run_numbers(baseline), run_numbers(candidate)
    other_units = has_other_units(baseline, candidate)
    shared = [name for name in before if name in after and not (other_units and name == "samples_per_second")]
    return {name: (tuple(before[name]), tuple(after[name])) for name in shared}


def names_of_throughput(side: Loaded) -> set[str]:
    """Return what the captures of a side count as throughput, with its scope where they say it: `tokens/s per rank`."""
    settings = [queries.settings_of(text) for text in set(side.captures.listed("settings"))]
    return {
        name_throughput(one["throughput_unit"], one.get("throughput_scope", ""))
        for one in settings
        if one.get("throughput_unit")
    }


def has_other_units(baseline: Loaded, candidate: Loaded) -> bool:
    """Whether the two sides count their throughput in other things: images of one are no tokens of the other, and what
    a rank makes is not what the job makes.
    """
    before, after = names_of_throughput(baseline), names_of_throughput(candidate)
    return before != after and bool(before) and bool(after)


def _throughput(sides: Sequence[Loaded]) -> Metric:
    """Return the metric of the throughput, by its name where all sides state the same one: what one side does not say
    is not known to be what the other one counts.
    """
    stated = [names_of_throughput(side) for side in sides]
    name = name_throughput("", "")
    if len(stated[0]) == 1 and all(names == stated[0] for names in stated):
        (name,) = stated[0]
    return Metric("samples_per_second", name, unit="count")


def _run_numbers(side: Loaded) -> dict[str, list[float]]:
    others = ("run_id", "rank", "step", "start_ns", "timeline", "steps", *_PEAKS)
    names = [name for name in side.steps.arrays if name not in others]
    numbers = reduction.of_steps(side, names)
    slow = slow_steps(side)
    numbers |= {"step_ns": numbers.pop("duration_ns"), "mean_step_ns": slow.mean_ns, "slow_steps": slow.count}
    rates = numbers["samples_per_second"]
    numbers["samples_per_second"] = np.where(np.isnan(rates), _rates_of_captures(side), rates)
    numbers |= _peaks(side)
    if side.chosen_steps is None:
        outside = kernel_time_outside_steps(side)
        numbers["outside_steps_kernel_total_ns"] = np.array([outside.get(run_id, np.nan) for run_id in side.run_ids])
    known = {name: values[~np.isnan(values)].tolist() for name, values in numbers.items()}
    return {name: values for name, values in known.items() if values}


def _rates_of_captures(side: Loaded) -> F64:
    """Samples per second of each run, as its captures state it, not of chosen steps."""
    found = np.full(len(side.run_ids), np.nan)
    for at, run_id in enumerate(side.run_ids if side.chosen_steps is None else ()):
        own = side.captures.taken(side.captures.integers("run_id") == run_id)
        (found[at],) = over_ranks(own.reals("samples_per_second")[None, :], own.integers("stage"))
    return found


def _peaks(side: Loaded) -> dict[str, F64]:
    """The largest memory of the ranks of each run, nan for unknown."""
    table = side.captures if side.chosen_steps is None else side.steps
    place = {run_id: at for at, run_id in enumerate(side.run_ids)}
    run = np.array([place[run_id] for run_id in table.listed("run_id")], dtype=np.int64)
    found = {name: np.full(len(side.run_ids), np.nan) for name in _PEAKS}
    for name, values in found.items():
        np.fmax.at(values, run, table.reals(name))
    return found


def _row(metric: Metric, numbers: Sequence[Mapping[str, float]], found: Sequence[Sums]) -> dict[str, object]:
    row: dict[str, object] = {
        "metric": metric.name,
        "title": metric.title,
        "level": metric.level,
        "unit": metric.unit,
    }
    for side, of_steps, summed in zip(("baseline", "candidate"), numbers, found, strict=True):
        of_row = summed.get(metric.name, _NOTHING)
        value, whole = of_steps.get(metric.name, of_row.ns), of_steps.get("whole_ns")
        row[f"{side}_value"] = value
        row[f"{side}_share"] = value / whole if metric.in_step and value is not None and whole else None
        row[f"{side}_calls"] = of_row.calls
    return row
