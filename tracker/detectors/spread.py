"""How much a series varies from run to run: its own variance, moderated by what all series say."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from msgspec import Struct

from tracker.detectors import _distributions as distributions
from tracker.detectors.arrays import BOOL, F64, counts, squares_about_mean
from tracker.profile import quantiles

MIN_SERIES: Final = 20
"""Series that a prior needs (JUDGEMENT 4.3); with fewer, every series stands for itself."""

SERIES_PER_BIN: Final = 60
MAX_BINS: Final = 4
FLOOR: Final = 1e-3
"""Smallest believed standard deviation of a log: 0.1 %, so that a run of equal values proves nothing by itself."""


class Spread(Struct, frozen=True):
    """Variance of one run of each series about its side's level, as logs, and the degrees of freedom behind it.

    nan variance where the freedom is 0.
    """

    variance: F64
    freedom: F64


class Prior(Struct, frozen=True):
    """What the variances of similar series look like: `variance` with the weight of `freedom` runs; 0 is no prior."""

    variance: float
    freedom: float


def pooled(*sides: F64, older: Spread | None = None) -> Spread:
    """The variance within the sides, pooled over them: (n, runs) logs with nan for missing.

    `older`: what earlier versions of the same series showed; it adds to the freedom, so that even one run against one
    can be judged.
    """
    squares = np.sum([squares_about_mean(side) for side in sides], axis=0)
    freedom = np.sum([np.maximum(counts(side) - 1, 0) for side in sides], axis=0).astype(np.float64)
    if older is not None:
        squares = squares + np.where(older.freedom > 0, older.variance * older.freedom, 0.0)
        freedom = freedom + older.freedom
    variance = np.divide(squares, freedom, out=np.full(len(squares), np.nan), where=freedom > 0)
    return Spread(variance, freedom)


def floored(spread: Spread, resolution: F64 | float = 0.0) -> Spread:
    """No variance below that of a 0.1 % deviation, nor below that of the timer: `resolution` = its tick / the time."""
    least = np.maximum(FLOOR, resolution) ** 2
    return Spread(np.maximum(spread.variance, least), spread.freedom)


def fit_prior(spread: Spread) -> Prior:
    """The prior behind the variances of many series, from those with at least one degree of freedom.

    Smyth (2004), Linear models and empirical Bayes methods for assessing differential expression, section 6.2: the mean
    and the variance of ln s^2 give the scale and the freedom. `freedom` is infinite where the variances differ no more
    than chance lets them. Fewer than 20 series: no prior (freedom 0).
    """
    known = spread.freedom > 0
    n = int(known.sum())
    if n < MIN_SERIES:
        return Prior(float("nan"), 0.0)
    half = 0.5 * spread.freedom[known]
    u = np.log(spread.variance[known]) - distributions.digamma(half) + np.log(half)
    mean = float(u.mean())
    left = float(u.var(ddof=1)) - float(distributions.trigamma(half).mean())
    if left <= 0:
        return Prior(math.exp(mean), math.inf)
    half_prior = distributions.trigamma_inverse(left)
    correction = float(distributions.digamma(np.array([half_prior]))[0]) - math.log(half_prior)
    return Prior(math.exp(mean + correction), 2.0 * half_prior)


def moderate(spread: Spread, level: F64) -> Spread:
    """The variances drawn towards those of series of like duration: (d0 s0^2 + d s^2) / (d0 + d), on d0 + d degrees.

    `level`: log duration of each series; with enough series the prior is fitted in up to 4 bins of it, since short
    kernels are noisier. Series without a degree of freedom of their own get the prior alone.
    """
    variance, freedom = spread.variance.copy(), spread.freedom.copy()
    for members in duration_bins(level):
        prior = fit_prior(Spread(spread.variance[members], spread.freedom[members]))
        if prior.freedom == 0.0:
            prior = fit_prior(spread)
        if prior.freedom == 0.0:
            continue
        own, s2 = spread.freedom[members], np.nan_to_num(spread.variance[members])
        if math.isinf(prior.freedom):
            variance[members] = prior.variance
        else:
            variance[members] = (prior.freedom * prior.variance + own * s2) / (prior.freedom + own)
        freedom[members] = prior.freedom + own
    return Spread(variance, freedom)


def duration_bins(level: F64) -> list[BOOL]:
    """Masks that split the series into bins of like duration, at least 60 series each; one bin where there are fewer.

    Equal durations share a bin, so the order of the series does not matter. Series of unknown duration are in none.
    """
    known = ~np.isnan(level)
    number = max(1, min(MAX_BINS, int(known.sum()) // SERIES_PER_BIN))
    if number == 1:
        return [known]
    edges = quantiles(level[known], np.arange(1, number) / number)
    place = np.searchsorted(edges, level)
    return [known & (place == number_of_bin) for number_of_bin in range(number)]
