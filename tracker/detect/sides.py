"""The runs of a version beside those it is compared with: counts, means and variances of both sides."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.detect.statistics import LEAST_VARIANCE

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
BOOL = NDArray[np.bool_]


class Window(Struct, frozen=True):
    """The runs that a version is judged with, in their order.

    `logs` (series, runs): natural logs of the numbers, negated where more is better, nan where a run lacks the series;
    `recorded` (series, runs): whether the run recorded such series at all; `shift` (runs,): common-mode shift, a log;
    `step` (runs,): duration of the step (ns), nan where unknown.
    """

    logs: F64
    recorded: BOOL
    shift: F64
    step: F64

    def centred(self, moves: BOOL) -> F64:
        """The logs, without the common-mode shift in the series that it `moves` (series,)."""
        return np.asarray(self.logs - np.where(moves[:, None], self.shift, 0.0))


class Sides(Struct, frozen=True):
    """The logs of both sides of a comparison, per series: runs, mean, pooled variance with its freedom; `beyond`: 1 or
    -1 where every new run is above or below every base run, else 0.
    """

    base_runs: I64
    new_runs: I64
    base_mean: F64
    new_mean: F64
    variance: F64
    freedom: I64
    beyond: I64

    @property
    def change(self) -> F64:
        """Difference of the means: a log, nan where a side has no run."""
        return self.new_mean - self.base_mean


def sides_of(logs: F64, base: BOOL, new: BOOL) -> Sides:
    """Compare the runs of `base` (series, runs) with those of `new` (runs,); nan is no run."""
    known = ~np.isnan(logs)
    there = known & new
    base = base & known
    values = np.where(known, logs, 0.0)
    runs, means, squares = [], [], np.zeros(len(logs))
    with np.errstate(invalid="ignore", divide="ignore"):
        for side in (base, there):
            count = side.sum(axis=1)
            mean = np.where(side, values, 0.0).sum(axis=1) / count
            squares += np.where(side, (values - np.nan_to_num(mean)[:, None]) ** 2, 0.0).sum(axis=1)
            runs.append(count)
            means.append(mean)
        freedom = np.maximum(runs[0] - 1, 0) + np.maximum(runs[1] - 1, 0)
        variance = np.where(freedom > 0, np.maximum(squares / freedom, LEAST_VARIANCE), np.nan)
    above = np.where(there, values, np.inf).min(axis=1) > np.where(base, values, -np.inf).max(axis=1)
    below = np.where(there, values, -np.inf).max(axis=1) < np.where(base, values, np.inf).min(axis=1)
    beyond = np.where((runs[0] > 0) & (runs[1] > 0), above.astype(np.int64) - below, 0)
    return Sides(runs[0], runs[1], means[0], means[1], variance, freedom, beyond)
