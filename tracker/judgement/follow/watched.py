"""The runs of a line as they are followed: values without what all operators of a run share, and the step of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.detectors import rule
from tracker.detectors.baseline import WINDOW
from tracker.detectors.centre import MIN_SERIES
from tracker.judgement.families import BETTER_IF_MORE, OWN_CLOCK, RUN, WAYS, Family, leaf_of, leaves_of, more_is_better
from tracker.judgement.judging import Values
from tracker.judgement.thresholds import NONE, Thresholds
from tracker.profile import median

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
BOOL = NDArray[np.bool_]


class WatchedRun(Struct, frozen=True):
    """A run of a line. `version`: its place among those of the line, from 0; `label`: its name. `started_at_ns`: None
    where unknown.
    """

    run_id: int
    version: int
    started_at_ns: int | None
    device_timed: bool
    label: str = ""


class FamilyLimits(Struct, frozen=True):
    """What a change of the series of a family must be: of its times, its calls, its creep; `creep_step`: the step that
    is no creep any more.
    """

    level: rule.Limits
    calls: rule.Limits
    creep: rule.Limits
    creep_step: float | F64


class Watched(Struct, frozen=True):
    """The runs of a line in their order, and what they say of its series: arrays of (series, runs), nan for missing.

    `raw`: what is judged, per step, the inverse where more is better. `centred`: the same without what all operators
    share; of what is no time, and of run-level series, as it is. `shared`: that factor, as a log, per run. `calls`: per
    step. `step`: duration of a step of each run, or the sum of its leaves; nan for neither. `kinds`: rows by family.
    `ways`: rows of the run-level series by how they were measured, a word of WAYS. `limits`: by family, by rows of it.
    `said`: by family, which runs say anything of it.
    """

    families: Sequence[Family]
    names: Sequence[str]
    runs: Sequence[WatchedRun]
    raw: F64
    centred: F64
    shared: F64
    calls: F64
    step: F64
    kinds: dict[Family, I64]
    ways: dict[str, I64]
    thresholds: Thresholds
    limits: dict[Family, FamilyLimits]
    said: dict[Family, BOOL]

    @property
    def leaf(self) -> Family | None:
        """The family whose series say what all of them share."""
        return leaf_of(self.families)

    @property
    def leaves(self) -> list[Family]:
        """That family, of each recording that has its own."""
        return leaves_of(self.families)

    def step_row(self, run: int) -> int | None:
        """The series in which a run says how long its step takes; None: it does not say."""
        own = [int(row) for way in WAYS if way in self.ways for row in self.ways[way]]
        told = [row for row in own if not np.isnan(self.raw[row, run])]
        return next((row for name in ("step", "e2e") for row in told if self.names[row] == name), None)

    def is_time(self, family: Family) -> bool:
        """Whether a family is part of the step, so that its changes have a contribution."""
        return family[1].endswith("_ns") and not bool(np.isnan(self.step).all())

    def tells(self, row: int, run: int) -> bool:
        """Whether a run says anything of the family of a series: what was not recorded is not gone."""
        return bool(self.said[self.families[row]][run])

    def is_clocked(self, row: int) -> bool:
        """Whether the machine moves a run-level series with the operators: times and throughput, but not memory."""
        metric = self.families[row][1]
        return metric.endswith("_ns") or metric in BETTER_IF_MORE

    def larger_step(self, baseline: Sequence[int] | I64, candidate: Sequence[int] | I64) -> float:
        """The larger mean step of two sets of runs; nan where neither knows it."""
        sides = [self.step[np.asarray(side, dtype=np.int64)] for side in (baseline, candidate)]
        means = [side[~np.isnan(side)].mean() for side in sides if (~np.isnan(side)).any()]
        return float(max(means)) if means else float("nan")


def watched_of(line: Values, runs: Sequence[WatchedRun], thresholds: Thresholds = NONE) -> Watched:
    """The runs of a line, ready to be followed. `line`: its values, a column per run of `runs`. `thresholds`: the
    limits that hold in it.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        raw = np.where(line.values > 0, line.values, np.nan)
        raw = np.where(more_is_better(line.families)[:, None], 1.0 / raw, raw)
    kinds = dict(line.by_family())
    leaves = [kinds[family] for family in line.leaves]
    step = _steps(line, np.concatenate(leaves) if leaves else None)
    # a run has the leaves of one recording, and a factor of 0 in the others
    shared = sum((factor_run_by_run(raw[rows], step) for rows in leaves), np.zeros(len(runs)))
    centred = raw.copy()
    for family, rows in kinds.items():
        if not is_centred(family):
            continue
        own = factor_run_by_run(raw[rows], step) if family[0] in OWN_CLOCK else shared
        centred[rows] = raw[rows] / np.exp(own)
    limits = {family: _limits_of(line, family, rows, thresholds) for family, rows in kinds.items() if family[0] != RUN}
    ways = {way: rows for way in WAYS if len(rows := line.of_way(way))}
    said = {family: np.asarray(~np.isnan(raw[rows]).all(axis=0)) for family, rows in kinds.items()}
    return Watched(
        line.families, line.names, runs, raw, centred, shared, line.calls, step, kinds, ways, thresholds, limits, said
    )  # fmt: skip


def is_centred(family: Family) -> bool:
    """Whether what all operators share is taken out of the series of a family."""
    return family[0] != RUN and family[1].endswith("_ns")


def _limits_of(line: Values, family: Family, rows: I64, thresholds: Thresholds) -> FamilyLimits:
    names = [line.names[row] for row in rows]
    level, calls = thresholds.limits(family, names), thresholds.limits_of_calls(family, names)
    return FamilyLimits(level, calls, *thresholds.creep(family, names))


def factor_run_by_run(leaves: F64, step: F64) -> F64:
    """What the leaves (series, runs) of each run share, as a log: 0.05 is a run in which all are 5 % slower.

    The median over series of their distance from their median in the runs before, at most 8 that have leaves, once
    those are freed from their own factors (JUDGEMENT 4.1, run by run). Series count that are in all these runs and at
    least 0.01 % of the step; with fewer than 20 a run keeps the factor of the runs before. The first run has 0, and so
    has a run without leaves.

    >>> runs = np.full((30, 3), 100.0) * np.array([1.0, 1.0, 1.1])
    >>> factor_run_by_run(runs, runs.sum(axis=0)).round(3).tolist()
    [0.0, 0.0, 0.095]
    """
    logs = np.log(leaves)
    with np.errstate(invalid="ignore"):
        large = ~(leaves < rule.TESTED_SHARE * step)
    shared = np.zeros(leaves.shape[1])
    telling = np.flatnonzero(~np.isnan(leaves).all(axis=0))
    for place, run in enumerate(telling[1:].tolist(), start=1):
        before = telling[max(0, place - WINDOW) : place]
        window = logs[:, before] - shared[before]
        usable = ~np.isnan(window).any(axis=1) & ~np.isnan(logs[:, run]) & large[:, run]
        if int(usable.sum()) < MIN_SERIES:
            shared[run] = float(median(shared[before]))
        else:
            shared[run] = float(median(logs[usable, run] - median(window[usable], axis=1)))
    return shared


def _steps(line: Values, leaves: I64 | None) -> F64:
    """The step of every run; where a run states none, the sum of its leaves."""
    step = np.full(line.values.shape[1], np.nan)
    for name in ("step", "e2e"):
        for row in line.run_rows(name):
            step = np.where(np.isnan(step), line.values[row], step)
    if leaves is None:
        return step
    total = np.nansum(line.values[leaves], axis=0)
    return np.where(np.isnan(step) & (total > 0), total, step)
