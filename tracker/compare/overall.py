"""The overall table: where a step goes on each side, as a tree of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tracker.compare import join, knowing, means
from tracker.compare.categories import category_metrics, category_sums
from tracker.compare.group_pairs import roles_by_size
from tracker.compare.groups import group_metrics, group_sums, with_absent
from tracker.compare.peaks import component_peaks, peak_metrics
from tracker.compare.sums import Metric, Sum, Sums
from tracker.lazy import pd
from tracker.results import DIFF_COLUMNS

if TYPE_CHECKING:
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
    Metric("free_ns", "Free (scheduling)", 1, in_e2e=True),
    Metric("free_share", "Free, share of E2E", 1, unit="ratio"),
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


def compare(baseline: Loaded, candidate: Loaded) -> pd.DataFrame:
    """The `overall` frame of a Diff; rows that neither side has are left out."""
    sides = (baseline, candidate)
    peaks = [component_peaks(side) for side in sides]
    numbers = [{**step_numbers(side), **of_side} for side, of_side in zip(sides, peaks, strict=True)]
    kernels = [category_sums(side) for side in sides]
    groups = with_absent(
        [
            group_sums(side, of_side.get(_EXPOSED.name), roles)
            for side, of_side, roles in zip(sides, numbers, roles_by_size(*sides), strict=True)
        ]
    )
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
    frame = pd.DataFrame([_row(metric, numbers, found) for metric in metrics])
    frame = frame[frame["baseline_value"].notna() | frame["candidate_value"].notna()].reset_index(drop=True)
    frame["delta"] = frame["candidate_value"] - frame["baseline_value"]
    frame["diff"] = join.ratio(frame["baseline_value"], frame["candidate_value"])
    return join.unjudged(frame)[list(DIFF_COLUMNS["overall"])]


def step_numbers(side: Loaded) -> dict[str, float]:
    """Each number of the breakdown: the mean over the steps and ranks of a run, the median over runs; peaks: the
    largest of a run.

    All numbers are of the same steps and ranks, those whose times are known, so that they add up. `step_ns` is the
    marker's duration (without markers the span of the capture). Keys are left out where the source does not say.
    """
    medians = run_numbers(side).median(axis=0, skipna=True)
    found = {str(name): float(value) for name, value in medians.items() if not pd.isna(value)}
    if found.get("e2e_ns") and "free_ns" in found:
        found["free_share"] = found["free_ns"] / found["e2e_ns"]
    return found


def run_numbers(side: Loaded) -> pd.DataFrame:
    """The same for each run by itself, as float64; index: run_id."""
    return side.once("run_numbers", lambda: _run_numbers(side))


def _run_numbers(side: Loaded) -> pd.DataFrame:
    timed = side.that_knows(knowing.TIMES)
    steps = timed.steps.drop(columns=["rank", "step", "start_ns", "timeline"])
    steps = steps.rename(columns={"duration_ns": "step_ns"})
    names = [name for name in steps.columns if name not in ("run_id", "steps")]
    numbers = steps[names].astype("Float64")
    # a row may be the mean of several steps
    sums = numbers.mul(steps["steps"], axis=0).groupby(steps["run_id"]).sum(min_count=1)
    counts = numbers.notna().mul(steps["steps"], axis=0).groupby(steps["run_id"]).sum()
    by_run = (sums / counts).assign(samples_per_second=means.rate(timed.steps, ["run_id"]))
    peaks = ["peak_allocated_bytes", "peak_reserved_bytes"]
    known = side.captures if side.chosen_steps is None else side.steps
    largest = known.groupby("run_id")[peaks].max().astype("Float64")
    by_run = by_run.reindex(by_run.index.union(largest.index)).assign(**{name: largest[name] for name in peaks})
    by_run["outside_steps_kernel_total_ns"] = _outside_steps(side) if side.chosen_steps is None else float("nan")
    return by_run.astype("float64")


def _outside_steps(side: Loaded) -> pd.Series:
    """Kernel time that belongs to no step (queued before the capture, or between steps), mean per rank of each run; of
    the ranks that know both the whole and all their steps.
    """
    rank = ["run_id", "rank"]
    steps = side.steps.assign(inside=side.steps["kernel_total_ns"] * side.steps["steps"])
    steps["unknown"] = steps["inside"].isna()
    # the mean of many steps is rounded to whole ns: what that leaves over is nothing outside
    steps["rounding"] = steps["steps"].where(steps["steps"] > 1, 0)
    inside = steps.groupby(rank).agg(inside=("inside", "sum"), unknown=("unknown", "any"), rounding=("rounding", "sum"))
    known = side.captures.set_index(rank)["kernel_total_ns"].to_frame("whole").join(inside, how="inner")
    known = known[known["whole"].notna() & ~known["unknown"].astype(bool)]
    outside = (known["whole"] - known["inside"]).groupby("run_id").sum()
    rounding = known["rounding"].groupby("run_id").sum()
    outside = outside.mask((outside.abs() <= rounding).fillna(False), 0)
    return outside.astype("Float64") / known.groupby("run_id").size()


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
