"""Changes that only many runs show together: the best split of the runs of a level."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from tracker.columns import F64, I64, Flags
from tracker.detect.statistics import LEAST_VARIANCE, median, t_above

LEAST_BEFORE: Final = 5
LEAST_AFTER: Final = 4
"""Runs on either side of a split."""
LEAST_AFTER_ALONE: Final = 5
"""Runs after a split of a series alone."""
LEAST_SERIES: Final = 20
"""Series that must show how much neighbouring runs resemble each other."""
LARGEST_CORRELATION: Final = 0.9
_HALF_WINDOW: Final = 3
"""Runs on either side of a run that show whether it is an outlier."""
_FAR: Final = 3.0
"""Robust deviations from the median of those runs at which an outlier is cut."""
_MOST_WRONG: Final = 1 / 8
"""Pairs of runs of both sides that may be the wrong way round."""
_DEVIATION: Final = 1.4826
"""Standard deviation of a normal distribution by its median absolute deviation."""


class Splits(Struct, frozen=True):
    """The best split of each series.

    `place`: the column with which the later side begins, -1 for none; `change`:
    difference of the means, a log; `t`, `freedom`: of its test; `p`: one-sided, times the number of places at which it
    was looked for, nan for none.
    """

    place: I64
    change: F64
    t: F64
    freedom: I64
    p: F64


def neighbour_correlation(values: F64) -> F64:
    """Return how much neighbouring runs of each series resemble each other, at a distance of one.

    From the squares of the differences of neighbours. A correlation that is measured in `n` runs about their own mean
    is too small by 1.5 / n. 0 where too few runs show it. `values` (series, runs): nan for no run.

    >>> alike = np.array([[1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0]])
    >>> by_turns = np.array([[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0]])
    >>> neighbour_correlation(np.concatenate([alike, by_turns])).round(2).tolist()
    [0.9, 0.0]
    """
    known = ~np.isnan(values)
    near = np.where(known, values - np.nan_to_num(mean_of_known(values))[:, None], 0.0)
    pairs = known[:, 1:] & known[:, :-1]
    counts = pairs.sum(axis=1)
    differences = np.where(pairs, near[:, 1:] - near[:, :-1], 0.0)
    variance = (near * near).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    shows = (counts >= LEAST_BEFORE + LEAST_AFTER - 1) & (variance > LEAST_VARIANCE / 100)
    with np.errstate(invalid="ignore", divide="ignore"):
        measured = 1.0 - (differences**2).sum(axis=1) / counts / (2.0 * variance) + 1.5 / known.sum(axis=1)
    return np.where(shows, np.clip(measured, 0.0, LARGEST_CORRELATION), 0.0)


def mean_of_known(values: F64) -> F64:
    """Return the mean of each row without nan; nan where there is nothing else."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis=1) / known.sum(axis=1))


def without_levels(values: F64, splits: Splits) -> F64:
    """Return the values (series, runs) of each series about the mean of their side of its best split."""
    is_after = np.arange(values.shape[1]) >= splits.place[:, None]
    rest = values.copy()
    for side in (is_after, ~is_after):
        own = np.where(side, values, np.nan)
        rest = np.where(side, values - mean_of_known(own)[:, None], rest)
    return rest


def best_splits(values: F64, starts: Flags, correlation: F64 | float = 0.0, least_after: int = LEAST_AFTER) -> Splits:
    """Find where the runs of each series (series, runs) fall into two levels, nan for no run, by the largest t.

    `starts` (runs,): the runs with which a later side may begin. The earlier side has at least 5 runs, the later
    `least_after`.
    `correlation`: of neighbouring runs, phi. Means over runs that resemble their neighbours vary by the root of
    (1 + phi) / (1 - phi) more than those of independent ones (a first-order autoregression).

    >>> found = best_splits(np.array([[0.0, 0.01, -0.01, 0.0, 0.01, 0.2, 0.21, 0.19, 0.2]]), np.ones(9, dtype=bool))
    >>> found.place.tolist(), found.change.round(3).tolist(), bool(found.p[0] < 1e-6)
    ([5], [0.198], True)
    """
    known = ~np.isnan(values)
    # near 0, so that sums of squares keep their digits
    near = np.where(known, values - np.nan_to_num(median(values, axis=1))[:, None], 0.0)
    places = np.flatnonzero(starts & (np.arange(values.shape[1]) > 0))
    nothing = np.full(len(values), np.nan)
    if not len(places) or not len(values):
        none = np.zeros(len(values), dtype=np.int64)
        return Splits(none - 1, nothing, nothing, none, nothing)
    sums = [np.cumsum(part, axis=1) for part in (known.astype(np.float64), near, near * near)]
    before = [part[:, places - 1] for part in sums]
    after = [part[:, -1:] - own for part, own in zip(sums, before, strict=True)]
    is_place = (before[0] >= LEAST_BEFORE) & (after[0] >= least_after)
    with np.errstate(invalid="ignore", divide="ignore"):
        change = after[1] / after[0] - before[1] / before[0]
        squares = sum(square - total * total / count for count, total, square in (before, after))
        freedom = sums[0][:, -1:] - 2
        variance = np.maximum(squares / freedom, LEAST_VARIANCE)
        t = change / np.sqrt(variance * (1.0 / before[0] + 1.0 / after[0]))
    size = np.where(is_place, np.abs(t), -1.0)
    best = np.argmax(size, axis=1)[:, None]
    has_place = is_place.any(axis=1)

    def chosen(table: F64) -> F64:
        return np.where(has_place, np.take_along_axis(table, best, axis=1)[:, 0], np.nan)

    degrees = np.where(has_place, freedom[:, 0], 0).astype(np.int64)
    best_t = chosen(t) / np.sqrt((1.0 + correlation) / (1.0 - correlation))
    p = t_above(np.abs(best_t), np.maximum(degrees, 1)) * is_place.sum(axis=1)
    return Splits(np.where(has_place, places[best[:, 0]], -1), chosen(change), best_t, degrees, np.minimum(p, 1.0))


def without_outliers(values: F64) -> F64:
    """Draw runs that lie 3 robust deviations from the 7 runs around them to that limit, as Hampel's filter finds them.

    A step stays. In place of a run the filter sets the median; that makes noise of two levels look like none.

    >>> row = np.array([[1.0, 1.1, 0.9, 5.0, 1.0, 1.1, 0.9, 1.0, np.nan]])
    >>> without_outliers(row).round(2).tolist()
    [[1.0, 1.1, 0.9, 1.44, 1.0, 1.1, 0.9, 1.0, nan]]
    """
    padded = np.pad(values, ((0, 0), (_HALF_WINDOW, _HALF_WINDOW)), constant_values=np.nan)
    around = np.lib.stride_tricks.sliding_window_view(padded, 2 * _HALF_WINDOW + 1, axis=1)
    centre = median(around, axis=2)
    spread = median(np.abs(around - centre[:, :, None]), axis=2)
    limit = _FAR * np.maximum(_DEVIATION * spread, np.sqrt(LEAST_VARIANCE))
    with np.errstate(invalid="ignore"):
        is_far = np.abs(values - centre) > limit
    return np.where(is_far, np.clip(values, centre - limit, centre + limit), values)


def lie_beyond(before: F64, after: F64, sign: int) -> bool:
    """Return whether the later runs lie beyond the earlier ones, but for one pair in eight.

    >>> lie_beyond(np.array([1.0, 1.1, 1.2]), np.array([1.15, 1.3, 1.4]), 1)
    True
    """
    wrong = sign * (after[None, :] - before[:, None]) <= 0
    return bool(wrong.mean() <= _MOST_WRONG)
