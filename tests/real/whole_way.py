"""Real repeats the whole way: runs of one code as versions, as they are and with slow-downs of their operators.

The captures of the nightly training in which nothing was changed, and the repeats, ran the same code on the same
machine, on two days: 41 runs whose every finding is false.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from msgspec.structs import replace

import tracker
from tests.detectors.made_lines import LARGE
from tests.detectors.stories import Story, taken_back, unchanged
from tests.detectors.whole_rates import Alarms, Found, alarms_of, found_of
from tests.detectors.whole_way import judged, told
from tests.factories import EPOCH_NS, record
from tests.real.gates import nightly_versions
from tracker import readers, timeline
from tracker.profile import Capture
from tracker.store import save_run

SAME_CODE = ("v01", "v02", "v03", "v04", "v07", "v09", "v12")
"""Versions of nightly_gpt that ran the code of the first one."""

Days = Sequence[Sequence[Capture]]
"""Captures of one code, in order, by the day on which they ran."""


def same_code(captures: Path) -> Days:
    """The runs of one code below the folder torch_cpu: 21 of the nightly training, 20 repeats."""
    nightly = nightly_versions(captures / "nightly_gpt")
    days = [path for label in SAME_CODE for path in nightly[label]], sorted((captures / "repeats_gpt").glob("*.gz"))
    return [[capture_of(path) for path in day] for day in days]


def capture_of(path: Path) -> Capture:
    """The one rank that a file holds."""
    (found,) = [timeline.build(capture) for one in readers.find(path) for capture in readers.read(one).captures]
    return found


def drawn(days: Days, seed: int | None) -> list[Capture]:
    """All captures, the days in their order; with a `seed`, the runs of each day in another order."""
    if seed is None:
        return [capture for day in days for capture in day]
    draw = np.random.default_rng(seed)
    return [day[place] for day in days for place in draw.permutation(len(day))]


def slowed(capture: Capture, slower: Mapping[str, float]) -> Capture:
    """The same run, in which these operators take so many times as long on the host, and the steps with them."""
    if not slower:
        return capture
    op, names = dict(capture.rows.tables["op"]), capture.rows.tables["op_key"]["name"]
    factor = np.array([slower.get(name, 1.0) for name in names])[op["op_key"]]
    more = (op["host_self_ns"] * (factor - 1.0)).astype(np.int64)
    for column in ("host_self_ns", "host_total_ns"):
        op[column] = op[column] + more
    steps = tuple(
        replace(row, breakdown=_longer(row.breakdown, int(more[op["step"] == row.step].sum())))
        for row in capture.rows.steps
    )
    whole = _longer(capture.rows.overall, int(more.sum()))
    rows = replace(capture.rows, overall=whole, steps=steps, tables={**capture.rows.tables, "op": op})
    return replace(capture, rows=rows)


def _longer(breakdown, more_ns: int):
    known = {name: getattr(breakdown, name) for name in ("duration_ns", "e2e_ns", "compute_ns")}
    return replace(breakdown, **{name: value + more_ns for name, value in known.items() if value is not None})


def large(days: Days, ratio: float) -> list[str]:
    """Names of operators of which a slow-down by `ratio` makes more than LARGE of the step."""
    totals: dict[str, int] = {}
    capture = days[0][0]
    op, names = capture.rows.tables["op"], capture.rows.tables["op_key"]["name"]
    for code, own in zip(op["op_key"].tolist(), op["host_self_ns"].tolist(), strict=True):
        totals[names[code]] = totals.get(names[code], 0) + own
    least = LARGE * (capture.rows.overall.duration_ns or 0)
    return sorted(name for name, total in totals.items() if total * ratio >= least)


@contextmanager
def line_of(story: Story, captures: Sequence[Capture]):
    """A database in memory with captures as the runs of a story, judged."""
    left = iter(captures)
    with tracker.open_store("sqlite://") as store:
        for place, version in enumerate(own for own in story for _ in range(own.runs)):
            capture = slowed(next(left), version.slower)
            at = {"started_at_ns": EPOCH_NS + place * 10**12, "device": capture.device}
            capture = replace(capture, started_at_ns=at["started_at_ns"], ended_at_ns=at["started_at_ns"] + 10**9)
            save_run(store, record(version.label, **at), [capture], formats=["torch_profiler"])
        judged(store)
        yield store


def false_alarms(days: Days, versions: int, runs: int, *, seeds: Sequence[int | None] = (None,)) -> Alarms:
    """What is told of so many versions of so many runs of one code; a seed shuffles the runs of each day."""
    found = Alarms()
    for seed in seeds:
        captures = drawn(days, seed)[-versions * runs :]
        with line_of(unchanged(versions, runs), captures) as store:
            found += alarms_of(told(store))
    return found


def slow_downs(days: Days, ratio: float, *, runs: int, seeds: Sequence[int]) -> Found:
    """Slow-downs by `ratio` of real operators in versions of so many runs;"""
    found, counted = Found(), large(days, ratio)
    for seed in seeds:
        story = taken_back(np.random.default_rng(seed), counted, ratio, runs=runs)
        with line_of(story, drawn(days, seed)) as store:
            found += found_of(told(store), story)
    return found
