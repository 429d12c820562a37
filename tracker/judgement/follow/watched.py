"""The runs of a line as they are followed: values without what all operators of a run share, and the step of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.detectors import rule
from tracker.detectors.baseline import WINDOW
from tracker.detectors.centre import MIN_SERIES
from tracker.judgement.families import BETTER_IF_MORE, OWN_CLOCK, RUN, WAYS, Family, leaf_of, leaves_of, more_is_better
from tracker.judgement.follow.older import Older
from tracker.judgement.judging import Values
from tracker.judgement.thresholds import NONE, Thresholds
from tracker.profile import median

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
BOOL = NDArray[np.bool_]

NEVER: Final = 2**31 - 1
"""The place of a run that is not there."""


class WatchedRun(Struct, frozen=True):
    """A run of a line. `version`: its place among those of the line, from 0; `label`: its name. `started_at_ns`: None
    where unknown.
    """

    run_id: int
    version: int
    started_at_ns: int | None
    device_timed: bool
    label: str = ""


def versions_of(runs: Sequence[WatchedRun]) -> list[range]:
    """The places of the runs of each version, in order."""
    borders = [at for at in range(1, len(runs)) if runs[at].version != runs[at - 1].version]
    return [range(*bounds) for bounds in pairwise([0, *borders, len(runs)])] if runs else []


class FamilyLimits(Struct, frozen=True):
    """What a change of the series of a family must be: of its times, its calls, its creep; `creep_step`: the step that
    is no creep any more.
    """

    level: rule.Limits
    calls: rule.Limits
    creep: rule.Limits
    creep_step: float | F64


class Watched(Struct, frozen=True):
    """Runs of a line in their order, and what they say of its series: arrays of (series, runs), nan for missing.

    `places`: of each run (column) its place in the line: all of them, or the last ones and before those what is still
    referred to (see `Older`).
    `raw`: what is judged, per step, the inverse where more is better. `centred`: the same without what all operators
    share; of what is no time, and of run-level series, as it is. `shared`: that factor, as a log, per run. `calls`: per
    step. `step`: duration of a step of each run, or the sum of its leaves; nan for neither. `kinds`: rows by family.
    `ways`: rows of the run-level series by how they were measured, a word of WAYS. `limits`: by family, by rows of it.
    `said`: by family, which runs say anything of it. `factors`: of each family whose runs share something of their own,
    that, per run, as `shared`. `came`, `counted`: per series the place of the first run of the line that has it, and
    that counts its calls; NEVER: none. `has_step`: whether any run of the line has a step. `first_read`: the column
    from which on runs were read whole.
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
    places: I64
    factors: dict[Family, F64]
    came: I64
    counted: I64
    has_step: bool
    first_read: int

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
        return family[1].endswith("_ns") and self.has_step

    def place(self, column: int) -> int:
        """The place of a column in the line; of the column after the last one, the place of the next run."""
        return int(self.places[column]) if column < len(self.places) else int(self.places[-1]) + 1

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


def watched_of(
    line: Values, runs: Sequence[WatchedRun], thresholds: Thresholds = NONE, older: Older | None = None
) -> Watched:
    """The runs of a line, ready to be followed. `line`: its values, a column per run of `runs`. `thresholds`: the
    limits that hold in it. `older`: what is kept of the runs before, by the same rows.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        raw = np.where(line.values > 0, line.values, np.nan)
        raw = np.where(more_is_better(line.families)[:, None], 1.0 / raw, raw)
    kinds = dict(line.by_family())
    step = _steps(line, [kinds[family] for family in line.leaves])
    said = {family: np.asarray(~np.isnan(raw[rows]).all(axis=0)) for family, rows in kinds.items()}
    own = {family: rows for family, rows in kinds.items() if family in line.leaves or _has_own_factor(family)}
    before = Older() if older is None else older
    step, read = np.concatenate([before.step, step]), len(runs)
    said = {family: np.concatenate([before.said_of(family), told]) for family, told in said.items()}
    with_older = before.with_cells(raw, before.raw)
    factors = {
        family: factor_run_by_run(with_older[rows], step, said[family], before.factor_of(family))
        for family, rows in own.items()
    }
    # a run has the leaves of one recording, and a factor of 0 in the others
    shared = sum((factors[family] for family in line.leaves), np.zeros(len(step)))
    centred = raw.copy()
    for family, rows in kinds.items():
        if is_centred(family):
            factor = factors[family] if _has_own_factor(family) else shared
            centred[rows] = raw[rows] / np.exp(factor[-read:])
    limits = {family: _limits_of(line, family, rows, thresholds) for family, rows in kinds.items() if family[0] != RUN}
    ways = {way: rows for way in WAYS if len(rows := line.of_way(way))}
    places = np.concatenate([before.places, before.first + np.arange(read)])
    came, counted = (
        _first(~np.isnan(part), places[-read:], of_older)
        for part, of_older in ((line.values, before.came), (line.calls, before.counted))
    )
    return Watched(
        line.families, line.names, [*before.runs, *runs], with_older, before.with_cells(centred, before.centred),
        shared, before.with_cells(line.calls, before.calls), step, kinds, ways, thresholds, limits, said, places,
        factors, came, counted, before.has_step or not bool(np.isnan(step).all()), len(before.places),
    )  # fmt: skip


def _first(there: BOOL, places: I64, before: I64) -> I64:
    """Per row of `there` the place of the first column that is; `before`: what was found before, if anything was."""
    found = np.where(there.any(axis=1), places[there.argmax(axis=1)], NEVER)
    return np.minimum(before, found) if len(before) else found


def _has_own_factor(family: Family) -> bool:
    return is_centred(family) and family[0] in OWN_CLOCK


def is_centred(family: Family) -> bool:
    """Whether what all operators share is taken out of the series of a family."""
    return family[0] != RUN and family[1].endswith("_ns")


def _limits_of(line: Values, family: Family, rows: I64, thresholds: Thresholds) -> FamilyLimits:
    names = [line.names[row] for row in rows]
    level, calls = thresholds.limits(family, names), thresholds.limits_of_calls(family, names)
    return FamilyLimits(level, calls, *thresholds.creep(family, names))


def factor_run_by_run(leaves: F64, step: F64, said: BOOL | None = None, known: F64 | None = None) -> F64:
    """What the leaves (series, runs) of each run share, as a log: 0.05 is a run in which all are 5 % slower.

    The median over series of their distance from their median in the runs before, at most 8 that have leaves, once
    those are freed from their own factors (JUDGEMENT 4.1, run by run). Series count that are in all these runs and at
    least 0.01 % of the step; with fewer than 20 a run keeps the factor of the runs before. The first run has 0, and so
    has a run without leaves.

    `said`: which runs have leaves; None: those with any value. `known`: what is known of the first runs; of those only
    the last 8 that have leaves need values.

    >>> runs = np.full((30, 3), 100.0) * np.array([1.0, 1.0, 1.1])
    >>> factor_run_by_run(runs, runs.sum(axis=0)).round(3).tolist()
    [0.0, 0.0, 0.095]
    """
    known = np.zeros(0) if known is None else known
    shared = np.concatenate([known, np.zeros(leaves.shape[1] - len(known))])
    telling = np.flatnonzero(~np.isnan(leaves).all(axis=0) if said is None else said)
    next_one = max(1, int(np.searchsorted(telling, len(known))))
    if next_one >= len(telling):
        return shared
    start = int(telling[max(0, next_one - WINDOW)])
    logs = np.log(leaves[:, start:])
    for place in range(next_one, len(telling)):
        run = int(telling[place])
        before = telling[max(0, place - WINDOW) : place]
        window, now = logs[:, before - start] - shared[before], logs[:, run - start]
        with np.errstate(invalid="ignore"):
            large = ~(leaves[:, run] < rule.TESTED_SHARE * step[run])
        usable = ~np.isnan(window).any(axis=1) & ~np.isnan(now) & large
        if int(usable.sum()) < MIN_SERIES:
            shared[run] = float(median(shared[before]))
        else:
            shared[run] = float(median(now[usable] - median(window[usable], axis=1)))
    return shared


def _steps(line: Values, leaves: Sequence[I64]) -> F64:
    """The step of every run; where a run states none, the sum of its leaves."""
    step = np.full(line.values.shape[1], np.nan)
    for name in ("step", "e2e"):
        for row in line.run_rows(name):
            step = np.where(np.isnan(step), line.values[row], step)
    for run in np.flatnonzero(np.isnan(step)).tolist() if leaves else ():
        values = line.values[np.concatenate(leaves), run]
        # exactly, so that it makes no difference which other series the line has
        total = math.fsum(values[~np.isnan(values)])
        step[run] = total if total > 0 else np.nan
    return step
