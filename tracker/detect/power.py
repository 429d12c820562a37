"""How small a change the runs of a version can show, and how many more runs would decide."""

from __future__ import annotations

from functools import cache

import numpy as np
from msgspec.structs import replace

from tracker.columns import F64, I64
from tracker.detect.nights import USUAL
from tracker.detect.sides import LEAST_DECIDING
from tracker.detect.statistics import t_above, t_exceeded
from tracker.detect.thresholds import DEFAULTS, Thresholds
from tracker.detect.verdicts import JudgedSeries

CHANCE_OF_MISSING = 0.2
_DRAWS = 20_000
_LARGEST_CHANGE = np.log(1000.0)
"""The largest smallest change that is stated: runs that would not show this one show nothing."""


def passing_p(p: F64, q: F64, family: I64, alpha: F64) -> F64:
    """Return the p that a series needs to be found: alpha k / m, where k (at least 1) of m in its family are found.

    `alpha` (series,): the largest q that counts.
    """
    count = int(family.max(initial=-1)) + 1
    tested = np.bincount(family[~np.isnan(p)], minlength=count)
    found = np.bincount(family[q <= alpha], minlength=count)
    return np.asarray(alpha * (np.maximum(found, 1) / np.maximum(tested, 1))[family])


def detectable_change(judged: JudgedSeries, family: I64) -> F64:
    """Return the smallest change of each series (a log) that runs like these find in four of five cases.

    nan where it was not tested, and where they would not find a change to a thousand times as much.
    (t of the needed p + t of the chance of missing) x standard error: the usual normal-theory bound.
    """
    needed = passing_p(judged.p, judged.q, family, judged.alpha)
    known = ~np.isnan(judged.p)
    freedom, least = np.maximum(judged.freedom, 1e-9)[known], np.full(len(needed), np.nan)
    least[known] = (t_exceeded(needed[known], freedom) + t_exceeded(CHANCE_OF_MISSING, freedom)) * judged.se[known]
    # its exponential, which callers print, would overflow
    with np.errstate(invalid="ignore"):
        least[least > _LARGEST_CHANGE] = np.nan
    return least


def detectable_with(judged: JudgedSeries, family: I64, ratio: F64, runs: int, limits: Thresholds = DEFAULTS) -> F64:
    """Return the smallest change of each series (a log) that a version of `runs` runs shows in four of five cases.

    It is compared with a full window of versions of as many runs, each of one night; runs vary like those that were
    judged, and nights as they usually do. The change passes the test, is beyond `ratio` (logs), the smallest one that
    counts, and large enough for the runs to lie beyond those before. nan as in `detectable_change`, or where so few
    runs decide nothing.
    """
    if runs < limits.least_new:
        return np.full(len(ratio), np.nan)
    base = limits.window
    deviation = _deviation(judged)
    nights = max(1.0, base / runs)
    se = deviation * np.sqrt(1.0 / base + 1.0 / runs + USUAL * (1.0 / nights + 1.0))
    freedom = np.maximum(judged.freedom - (judged.base_runs + judged.new_runs) + base + runs, 1.0)
    like = replace(judged, se=se, freedom=freedom, q=np.where(np.isnan(judged.p), np.nan, 1.0))
    missed = t_exceeded(CHANCE_OF_MISSING, freedom) * se
    by_test = detectable_change(like, family)
    return np.asarray(np.maximum(by_test, np.fmax(ratio + missed, separation(base, runs) * deviation)))


def _deviation(judged: JudgedSeries) -> F64:
    """Return the standard deviation between runs of one night that the standard error of each change rests on."""
    base, new = np.maximum(judged.base_runs, 1), np.maximum(judged.new_runs, 1)
    return np.asarray(judged.se / np.sqrt(1.0 / base + 1.0 / new + judged.nights))


@cache
def separation(base: int, new: int) -> float:
    """Return how far apart two normal samples must be, in their deviations, to overlap in one case of five at most.

    From 20,000 drawn pairs of samples. They overlap where `sides.mostly_beyond` says so.

    >>> round(separation(1, 1), 1), round(separation(8, 2), 1), round(separation(8, 8), 1)
    (1.2, 2.8, 2.2)
    """
    draw = np.random.default_rng(0)
    bases, news = draw.standard_normal((_DRAWS, base, 1)), draw.standard_normal((_DRAWS, 1, new))
    gaps = (bases - news).reshape(_DRAWS, -1)
    wrong_pairs = max(new - LEAST_DECIDING, 0)
    needed = np.partition(gaps, -1 - wrong_pairs, axis=1)[:, -1 - wrong_pairs]
    return float(np.quantile(needed, 1.0 - CHANCE_OF_MISSING))


def runs_to_decide(judged: JudgedSeries, family: I64, limits: Thresholds = DEFAULTS, most: int = 16) -> I64:
    """Return how many more runs of the version would make the change significant if they are like those that came.

    0: it is, or it is untested; -1: more than `most`, as where nights vary by themselves as much. A version of one run
    needs its confirming runs at least.
    """
    needed = passing_p(judged.p, judged.q, family, judged.alpha)
    known = ~np.isnan(judged.p) & (judged.change != 0)
    base, new = np.maximum(judged.base_runs, 1), np.maximum(judged.new_runs, 1)
    deviation = _deviation(judged)
    more = np.where(known, -1, 0)
    for extra in range(most, -1, -1):
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.abs(judged.change) / (deviation * np.sqrt(1.0 / base + 1.0 / (new + extra) + judged.nights))
        passes = known & (t_above(np.where(known, t, np.nan), np.maximum(judged.freedom + extra, 1e-9)) <= needed)
        more = np.where(passes, extra, more)
    single = known & (judged.new_runs < limits.least_new) & (more >= 0)
    return np.where(single, np.maximum(more, limits.confirm), more)
