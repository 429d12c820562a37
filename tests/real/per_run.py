"""Per-run numbers of real captures, straight from reader and timeline: what the judgement reads of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tracker import readers, timeline
from tracker.profile import NO_STEP


@dataclass(frozen=True, slots=True)
class Run:
    """Medians over the steps: self time (ns) and calls per (name, shapes), and the numbers of the whole run."""

    self_ns: dict
    calls: dict
    step_ns: float
    free_ns: float
    peak_bytes: float


def run_of(path: Path, metric: str = "host_self_ns") -> Run:
    """The numbers of the one rank in `path`; a step without an op counts 0 for it. `metric`: host or device time."""
    (capture,) = [timeline.build(capture) for found in readers.find(path) for capture in readers.read(found).captures]
    op, key = capture.rows.tables["op"], capture.rows.tables["op_key"]
    place = {row.step: number for number, row in enumerate(capture.rows.steps) if row.step != NO_STEP}
    sums = {}
    columns = [op[name].tolist() for name in ("step", "op_key", "calls", metric)]
    for step, code, calls, own in zip(*columns, strict=True):
        if step in place:
            name = (key["name"][code], key["input_shapes"][code])
            sums.setdefault(name, np.zeros((2, len(place))))[:, place[step]] += (own, calls)
    parts = [row.breakdown for row in capture.rows.steps if row.step in place]
    peaks = [part.peak_allocated_bytes for part in parts]
    return Run(
        {name: float(np.median(both[0])) for name, both in sums.items()},
        {name: float(np.median(both[1])) for name, both in sums.items()},
        float(np.median([part.duration_ns for part in parts])),
        float(np.median([part.free_ns for part in parts])),
        float("nan") if None in peaks else float(np.median(peaks)),
    )


def by_name(run: Run) -> Run:
    """The same with shapes summed up: the roll-up to the op name."""
    own, calls = {}, {}
    for (name, _), value in run.self_ns.items():
        own[name, ""] = own.get((name, ""), 0.0) + value
    for (name, _), value in run.calls.items():
        calls[name, ""] = calls.get((name, ""), 0.0) + value
    return Run(own, calls, run.step_ns, run.free_ns, run.peak_bytes)


def table(runs, keys, what="self_ns") -> np.ndarray:
    """(keys, runs) of `what`, nan where a run does not have the key or its median is 0."""
    values = np.array([[getattr(run, what).get(key, 0.0) for run in runs] for key in keys], dtype=np.float64)
    return np.where(values > 0, values, np.nan)


def keys_of(*sides) -> list:
    """All keys of all runs of all sides, sorted."""
    return sorted({key for side in sides for run in side for key in run.self_ns})
