"""How small a change the runs of a version can show, and how many more runs would decide."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracker.detect.judge import JudgedSeries
from tracker.detect.statistics import t_above, t_exceeded
from tracker.detect.thresholds import DEFAULTS, Thresholds

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

CHANCE_OF_MISSING = 0.2


def passing_p(p: F64, q: F64, family: I64, alpha: float) -> F64:
    """The p that a series would need to be found, alpha k / m: k series of its family are found (at least 1), of m."""
    count = int(family.max(initial=-1)) + 1
    tested = np.bincount(family[~np.isnan(p)], minlength=count)
    found = np.bincount(family[q <= alpha], minlength=count)
    return np.asarray((alpha * np.maximum(found, 1) / np.maximum(tested, 1))[family])


def detectable_change(judged: JudgedSeries, family: I64, limits: Thresholds = DEFAULTS) -> F64:
    """The smallest change of each series (a log) that runs like these find in four of five cases; nan where untested.

    (t of the needed p + t of the chance of missing) x standard error: the usual normal-theory bound.
    """
    needed = passing_p(judged.p, judged.q, family, limits.alpha)
    freedom = np.maximum(judged.freedom, 1e-9)
    known = ~np.isnan(judged.p)
    least = np.full(len(needed), np.nan)
    t = t_exceeded(needed[known], freedom[known]) + t_exceeded(CHANCE_OF_MISSING, freedom[known])
    least[known] = t * judged.se[known]
    return least


def runs_to_decide(judged: JudgedSeries, family: I64, limits: Thresholds = DEFAULTS, most: int = 16) -> I64:
    """How many more runs of the version would make the change significant if they are like those that came.

    0: it is, or it is untested; -1: more than `most`. A version of one run needs its confirming runs at least.
    """
    needed = passing_p(judged.p, judged.q, family, limits.alpha)
    known = ~np.isnan(judged.p) & (judged.change != 0)
    base, new = np.maximum(judged.base_runs, 1), np.maximum(judged.new_runs, 1)
    deviation = judged.se / np.sqrt(1.0 / base + 1.0 / new)
    more = np.where(known, -1, 0)
    for extra in range(most, -1, -1):
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.abs(judged.change) / (deviation * np.sqrt(1.0 / base + 1.0 / (new + extra)))
        passes = known & (t_above(np.where(known, t, np.nan), np.maximum(judged.freedom + extra, 1e-9)) <= needed)
        more = np.where(passes, extra, more)
    single = known & (judged.new_runs < limits.least_new) & (more >= 0)
    return np.where(single, np.maximum(more, limits.confirming), more)
