"""The overall table: where a step goes on each side, as a tree of metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pandas as pd

from tracker.compare import join, means
from tracker.results import DIFF_COLUMNS
from tracker.store import queries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracker.compare.sides import Loaded


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the table: `name` is a column of the step rows, or `category:<name>` for a sum of kernel time."""

    name: str
    title: str
    level: int = 0
    unit: str = "ns"
    in_e2e: bool = False


_TIMES: Final = (
    Metric("step_ns", "Step time"),
    Metric("e2e_ns", "E2E", in_e2e=True),
    Metric("compute_ns", "Computing", 1, in_e2e=True),
)
_CATEGORIES: Final[Mapping[str, str]] = {
    "flash_attention_forward": "Flash attention (forward)",
    "flash_attention_backward": "Flash attention (backward)",
    "convolution_forward": "Convolution (forward)",
    "convolution_backward": "Convolution (backward)",
    "matmul": "Matmul",
    "page_attention": "Page attention",
    "mc2": "MC2 (compute and communication in one)",
    "vector": "Vector",
    "vector_trans": "Vector (trans)",
    "ai_cpu": "AI CPU",
    "tensor_move": "SDMA (tensor move)",
    "other": "Other (not named)",
}
_REST: Final = (
    Metric("exposed_communication_ns", "Exposed communication", 1, in_e2e=True),
    Metric("exposed_copy_ns", "Exposed copies", 1, in_e2e=True),
    Metric("free_ns", "Free (scheduling)", 1, in_e2e=True),
    Metric("free_share", "Free, share of E2E", 1, unit="ratio"),
    Metric("communication_ns", "Communication, overlapped or not", in_e2e=True),
    Metric("overlap_ns", "Communication overlapped with computing", 1, in_e2e=True),
    Metric("copy_ns", "Copies, overlapped or not", in_e2e=True),
    Metric("operator_ns", "Operator time (sum of compute kernels)"),
    Metric("operator_cube_ns", "Operator time on cube cores", 1),
    Metric("operator_vector_ns", "Operator time on vector cores", 1),
    Metric("communication_total_ns", "Communication kernels (sum)"),
    Metric("kernel_total_ns", "Kernel time (sum)"),
    Metric("kernel_count", "Kernels", unit="count"),
    Metric("unlinked_kernel_total_ns", "Kernel time without a launch in the capture", 1),
    Metric("outside_steps_kernel_total_ns", "Kernel time outside all steps, per rank", 1),
    Metric("data_loading_ns", "Data loading"),
    Metric("bubble_ns", "Pipeline bubble"),
    Metric("preparing_ns", "Preparing"),
    Metric("samples_per_second", "Samples per second", unit="count"),
    Metric("peak_allocated_bytes", "Peak memory allocated", unit="bytes"),
    Metric("peak_reserved_bytes", "Peak memory reserved", unit="bytes"),
)
_DEVICE_ONLY: Final = {
    "communication_total_ns",
    "kernel_total_ns",
    "kernel_count",
    "unlinked_kernel_total_ns",
    "outside_steps_kernel_total_ns",
}
_CUBE_CORES: Final = ("AI_CORE", "MIX_AIC")
_VECTOR_CORES: Final = ("AI_VECTOR_CORE", "MIX_AIV")


def compare(baseline: Loaded, candidate: Loaded) -> pd.DataFrame:
    """The `overall` frame of a Diff; rows that neither side has are left out."""
    categories = [_category_times(side) for side in (baseline, candidate)]
    before, after = step_numbers(baseline) | categories[0], step_numbers(candidate) | categories[1]
    rows = [_row(metric, before.get(metric.name), after.get(metric.name), before, after) for metric in _TIMES]
    for name, (title, level) in _category_order(categories).items():
        metric = Metric(name, title, level, in_e2e=True)
        rows.append(_row(metric, before.get(name), after.get(name), before, after))
    host = "device" not in (baseline.side.timeline, candidate.side.timeline)
    rest = [metric for metric in _REST if not (host and metric.name in _DEVICE_ONLY)]
    rows += [_row(metric, before.get(metric.name), after.get(metric.name), before, after) for metric in rest]
    frame = pd.DataFrame(rows)
    frame = frame[frame["baseline_value"].notna() | frame["candidate_value"].notna()].reset_index(drop=True)
    frame["delta"] = frame["candidate_value"] - frame["baseline_value"]
    frame["diff"] = join.ratio(frame["baseline_value"], frame["candidate_value"])
    return frame[list(DIFF_COLUMNS["overall"])]


def step_numbers(side: Loaded) -> dict[str, float]:
    """Each number of the breakdown: the mean over the steps and ranks of a run, the median over runs; peaks: the
    largest of a run.

    `step_ns` is the marker's duration (without markers the span of the capture). Keys are left out where the source
    does not say.
    """
    medians = run_numbers(side).median(axis=0, skipna=True)
    found = {str(name): float(value) for name, value in medians.items() if not pd.isna(value)}
    if found.get("e2e_ns") and "free_ns" in found:
        found["free_share"] = found["free_ns"] / found["e2e_ns"]
    return found


def run_numbers(side: Loaded) -> pd.DataFrame:
    """The same for each run by itself, as float64; index: run_id."""
    steps = side.steps.drop(columns=["rank", "step", "start_ns", "timeline"]).rename(columns={"duration_ns": "step_ns"})
    numbers = steps.astype({column: "Float64" for column in steps.columns if column != "run_id"})
    by_run = numbers.groupby("run_id").mean()
    peaks = side.captures.groupby("run_id")[["peak_allocated_bytes", "peak_reserved_bytes"]].max()
    by_run[["peak_allocated_bytes", "peak_reserved_bytes"]] = peaks.astype("Float64")
    by_run["outside_steps_kernel_total_ns"] = _outside_steps(side)
    return by_run.astype("float64")


def _outside_steps(side: Loaded) -> pd.Series:
    """Kernel time that belongs to no step (queued before the capture, or between steps), mean per rank of each run."""
    whole = side.captures.groupby("run_id")["kernel_total_ns"].sum()
    inside = side.steps.groupby("run_id")["kernel_total_ns"].sum()
    return (whole - inside).astype("Float64") / side.captures.groupby("run_id")["rank"].nunique()


def _category_times(side: Loaded) -> dict[str, float]:
    """Kernel time per category, and below it per cube and vector cores where the device has them; mean ns per step
    and rank.

    A rank without a category spends 0 there, so the sum is over all ranks of the side.
    """
    frame = queries.kernels(side.store, side.run_ids, by=("run", "stage"), ranks=side.ranks, in_steps=True)
    frame = frame[frame["category"].isin(list(_CATEGORIES))].assign(stage=-1)
    cores = frame["core_type"].map(
        lambda core: "cube" if core in _CUBE_CORES else "vector" if core in _VECTOR_CORES else ""
    )
    split = frame[cores != ""]
    frame = pd.concat(
        [
            frame,
            frame.assign(category="operator_ns"),
            split.assign(category=split["category"] + ":" + cores[cores != ""]),
            split.assign(category="operator_" + cores[cores != ""] + "_ns"),
        ]
    )
    totals = frame.groupby(["run_id", "category"])["total_ns"].sum().astype("float64")
    weight = side.weights.groupby(level="run_id").sum()
    per_step = totals.div(weight.reindex(totals.index.get_level_values("run_id")).to_numpy())
    medians = means.median_over_runs(side, per_step.to_frame("ns"), ["category"])["ns"]
    return {str(name): float(value) for name, value in medians.items()}


def _category_order(categories: list[dict[str, float]]) -> dict[str, tuple[str, int]]:
    found = set().union(*categories)
    ordered: dict[str, tuple[str, int]] = {}
    for name, title in _CATEGORIES.items():
        if name in found:
            ordered[name] = (title, 2)
        for core in ("cube", "vector"):
            if f"{name}:{core}" in found:
                ordered[f"{name}:{core}"] = (f"{title} ({core})", 3)
    return ordered


def _row(
    metric: Metric, baseline: float | None, candidate: float | None, before: dict[str, float], after: dict[str, float]
) -> dict[str, object]:
    def share(value: float | None, numbers: dict[str, float]) -> float | None:
        whole = numbers.get("e2e_ns")
        return value / whole if metric.in_e2e and value is not None and whole else None

    return {
        "metric": metric.name,
        "title": metric.title,
        "level": metric.level,
        "unit": metric.unit,
        "baseline_value": baseline,
        "candidate_value": candidate,
        "baseline_share": share(baseline, before),
        "candidate_share": share(candidate, after),
    }
