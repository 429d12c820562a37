"""The obvious way to the numbers of a diff: loops and dictionaries over the rows of captures, no SQL and no frames."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from tracker.profile import MISSING, Capture

Run = Sequence[Capture]


def op_times(runs: Sequence[Run]) -> dict[tuple[str, str], float]:
    """(name, input shapes) -> own time in ns: mean per step and rank of each run, then the median over the runs."""
    return _over_runs([_op_times_of_run(run) for run in runs])


def kernel_times(runs: Sequence[Run]) -> dict[tuple[str, str, str], float]:
    """(canonical name, input shapes, category) -> ns, in the same way."""
    return _over_runs([_kernel_times_of_run(run) for run in runs])


def step_time(runs: Sequence[Run]) -> float:
    """Mean duration of a step over all steps and ranks of a run, then the median over the runs, in ns."""
    means = []
    for run in runs:
        durations = [step.breakdown.duration_ns for capture in run for step in capture.rows.steps]
        means.append(sum(durations) / len(durations))
    return median(means)


def _over_runs(means: list[dict]) -> dict:
    keys = set().union(*means)
    return {key: median(mean.get(key, 0.0) for mean in means) for key in keys}


def _op_times_of_run(run: Run) -> dict:
    own = "device_self_ns" if all(capture.rows.overall.timeline == "device" for capture in run) else "host_self_ns"
    total = defaultdict(int)
    for capture in run:
        keys, ops = capture.rows.tables["op_key"], capture.rows.tables["op"]
        for step, key, ns in zip(ops["step"], ops["op_key"], ops[own], strict=True):
            if step >= 0 and ns != MISSING:
                total[keys["name"][key], keys["input_shapes"][key]] += int(ns)
    return _divided(total, run)


def _kernel_times_of_run(run: Run) -> dict:
    total = defaultdict(int)
    for capture in run:
        keys, kernels = capture.rows.tables["kernel_key"], capture.rows.tables["kernel"]
        columns = (kernels["step"], kernels["kernel_key"], kernels["category"], kernels["total_ns"])
        for step, key, category, ns in zip(*columns, strict=True):
            if step >= 0:
                total[keys["canonical_name"][key], keys["input_shapes"][key], category] += int(ns)
    return _divided(total, run)


def _divided(total: dict, run: Run) -> dict:
    rank_steps = sum(len(capture.rows.steps) for capture in run)
    return {key: ns / rank_steps for key, ns in total.items()}
