"""The obvious way to the numbers of a diff: loops and dictionaries over the rows of captures, no SQL and no frames."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import geometric_mean, mean, median

from tracker.profile import MISSING, Capture

Run = Sequence[Capture]


def op_times(runs: Sequence[Run], *, by_name: bool = False) -> dict[tuple[str, ...], float]:
    """(name, input shapes), or (name,) -> own time in ns."""
    return _over_runs([_of_run(run, _ops_of(run, by_name=by_name)) for run in runs])


def kernel_times(runs: Sequence[Run], *, by_name: bool = False) -> dict[tuple[str, ...], float]:
    """(canonical name, input shapes, category), or (canonical name, category) -> ns."""
    return _over_runs([_of_run(run, [_kernels(capture, by_name=by_name) for capture in run]) for run in runs])


def step_time(runs: Sequence[Run]) -> float:
    """The duration of a step in ns."""
    return geometric_mean(
        median(median(step.breakdown.duration_ns for step in capture.rows.steps) for capture in run) for run in runs
    )


def _over_runs(found: list[dict]) -> dict:
    keys = set().union(*found)
    known = {key: [run[key] for run in found if key in run] for key in keys}
    return {key: geometric_mean(filter(None, own)) if any(own) else 0.0 for key, own in known.items()}


def _of_run(run: Run, rows_of_ranks: Iterable) -> dict:
    """The median over the steps (the mean where it is 0, but 0 for what comes in one of three or more), the median over
    the ranks that have it; one stage.
    """
    of_ranks = defaultdict(list)
    for capture, rows in zip(run, rows_of_ranks, strict=True):
        steps = [step.step for step in capture.rows.steps]
        of_steps = defaultdict(lambda steps=steps: dict.fromkeys(steps, 0))
        for key, step, ns in rows:
            if step in steps and ns != MISSING:
                of_steps[key][step] += int(ns)
        for key, own in of_steps.items():
            is_once = len(own) >= 3 and sum(value > 0 for value in own.values()) == 1
            usual = median(own.values()) or mean(own.values())
            of_ranks[key].append(usual * (not is_once))
    return {key: median(filter(None, own)) if any(own) else 0.0 for key, own in of_ranks.items()}


def _ops_of(run: Run, *, by_name: bool) -> Iterator:
    own = "device_self_ns" if all(capture.rows.overall.timeline == "device" for capture in run) else "host_self_ns"
    for capture in run:
        keys, ops = capture.rows.tables["op_key"], capture.rows.tables["op"]
        columns = ("name",) if by_name else ("name", "input_shapes")
        names = [tuple(keys[column][key] for column in columns) for key in ops["op_key"]]
        yield zip(names, ops["step"], ops[own], strict=True)


def _kernels(capture: Capture, *, by_name: bool) -> Iterator:
    keys, kernels = capture.rows.tables["kernel_key"], capture.rows.tables["kernel"]
    columns = ("canonical_name",) if by_name else ("canonical_name", "input_shapes")
    names = [
        (*(keys[column][key] for column in columns), category)
        for key, category in zip(kernels["kernel_key"], kernels["category"], strict=True)
    ]
    yield from zip(names, kernels["step"], kernels["total_ns"], strict=True)
