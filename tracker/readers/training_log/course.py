"""The course of a run: how even its intervals are, which ones stall, and in which steps it was slow for long."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import lgamma, log, pi
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.readers.training_log.distribution import PieceReader, Pieces, mean_of, median_of, quantiles_of
from tracker.readers.training_log.intervals import Intervals

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Flags = NDArray[np.bool_]

STALL: Final = 3.0
"""An interval of more than so many medians is a stall: noise of a healthy job stays below twice its median."""
_FEWEST: Final = 20
"""With fewer intervals the 99th percentile is the largest value, and a window proves nothing."""
_FEWEST_OF_STALLS: Final = 5
"""With fewer intervals their median is not what a step usually takes."""
_LEAST_INSIDE: Final = 4
_LEAST_OUTSIDE: Final = 5
"""Bins of intervals in a slow window, and outside it, as a late test has runs on either side of a split."""
_LEAST_BESIDE: Final = 4
"""So many bins have to stand before a window, and where as many follow they count too: a run that begins slowly warms
up, and a slow window stands out from what is on either side of it.
"""
_LEAST_STEP: Final = 0.5
"""A side of a window is as fast as the rest where at least this part of the slowdown is gone there."""
_LEAST_RATIO: Final = 0.05
"""Slower by less is not worth a sentence, and is within what clocks of devices do."""
_LARGEST_P: Final = 1e-6
"""One-sided, times the number of windows: over thousands of logs none is reported by chance."""
_BINS: Final = 400
"""Windows are pairs of edges between bins: 80,000 of them are tested in 10 ms."""
_FAR: Final = 5.0 * 1.4826
"""Five standard deviations of normal noise, in units of the median deviation: what is farther counts as so far."""
_LEAST_DEVIATION: Final = 1e-4
"""The noise of times that a log rounds to four digits and that are all alike."""
_MOST_CORRELATED: Final = 0.99


class SlowWindow(Struct, frozen=True):
    """Steps in which the run was slow: the first, the last, how many intervals, and its median by that of the rest."""

    first: int
    last: int
    intervals: int
    ratio: float


class RunCourse(Struct, frozen=True):
    """What the intervals that count say together; times in s.

    `jitter`: the 99th percentile by the median; None with fewer than 20 intervals, and where neighbours share a mean.
    `stalls`: places of the intervals above 3 medians. `window`: the slow window that stands out most, None for none.
    """

    count: int
    mean: float
    p10: float
    p50: float
    p90: float
    p99: float
    jitter: float | None
    stalls: tuple[int, ...]
    window: SlowWindow | None


def course_of(intervals: Intervals) -> RunCourse | None:
    """Return the course of a run; None where no interval has a time."""
    is_timed = intervals.counts & ~intervals.step_s.is_missing()
    if not is_timed.any():
        return None
    count = int(is_timed.sum())

    def timed_pieces() -> Iterator[F64]:
        return intervals.step_s.pieces_where(is_timed)

    p10, p50, p90, p99 = quantiles_of(timed_pieces, [0.1, 0.5, 0.9, 0.99])
    # where neighbours share a mean, their times follow each other: they say nothing of the spread of single intervals
    says_spread = count >= _FEWEST and not intervals.is_smoothed
    stalls: list[int] = []
    if count >= _FEWEST_OF_STALLS and not intervals.is_smoothed:
        begin = 0
        for step_s in intervals.step_s.pieces():
            end = begin + len(step_s)
            stalls.extend((begin + np.flatnonzero((step_s > STALL * p50) & is_timed[begin:end])).tolist())
            begin = end
    return RunCourse(
        count=count,
        mean=mean_of(timed_pieces, count),
        p10=p10,
        p50=p50,
        p90=p90,
        p99=p99,
        jitter=p99 / p50 if says_spread and p50 > 0 else None,
        stalls=tuple(stalls),
        window=_slow_window(intervals, is_timed, timed_pieces, count) if says_spread else None,
    )


def _slow_window(intervals: Intervals, is_timed: Flags, timed_pieces: Pieces, count: int) -> SlowWindow | None:
    """Return the window of neighbouring intervals whose mean stands out most from all others, where that is no chance.

    As in the late test of a history: logs of the times, outliers drawn in, the largest t of all places, and its p times
    their number. A window has two ends, so that the places are pairs. Where the noise of a bin
    follows that of the bin before it, as many bins say less.
    """
    edges = np.unique(np.linspace(0, count, min(_BINS, count) + 1).astype(np.int64))
    reader = PieceReader(timed_pieces())
    bins = np.array([np.median(reader.take(end - start)) for start, end in pairwise(edges.tolist())])
    if not (bins > 0).all():
        return None
    logs = _without_outliers(np.log(bins))
    logs = logs - np.median(logs)
    windows = _windows_of(logs)
    if windows is None:
        return None
    start, end, t = windows
    best = int(np.argmax(t))
    begin, stop = int(start[best]), int(end[best])
    independent = _independent_part(logs, begin, stop)
    freedom = max(2.0, independent * (len(logs) - 2))
    if _log_tail(float(t[best]) * independent**0.5, freedom) + log(len(start)) > log(_LARGEST_P):
        return None
    first, last = int(edges[begin]), int(edges[stop])
    places = np.flatnonzero(is_timed)[[first, last - 1]]
    in_window = np.zeros(len(is_timed), dtype=bool)
    in_window[places[0] : places[1] + 1] = True
    inside = median_of(lambda: intervals.step_s.pieces_where(is_timed & in_window))
    outside = median_of(lambda: intervals.step_s.pieces_where(is_timed & ~in_window))
    assert inside is not None and outside is not None
    ratio = inside / outside
    if ratio < 1 + _LEAST_RATIO:
        return None
    first_end, last_end = intervals.last_step.at(places).values().tolist()
    return SlowWindow(int(first_end - intervals.stride[places[0]]) + 1, int(last_end), last - first, ratio)


def _windows_of(logs: F64) -> tuple[I64, I64, F64] | None:
    """Return first bin, end and t of each window that stands out from what is on either side of it; None for none."""
    count = len(logs)
    sums, squares = np.concatenate([[0.0], np.cumsum(logs)]), np.concatenate([[0.0], np.cumsum(logs * logs)])
    start, end = np.triu_indices(count + 1, k=_LEAST_INSIDE)
    is_place = (count - (end - start) >= _LEAST_OUTSIDE) & (start >= _LEAST_BESIDE)
    start, end = start[is_place], end[is_place]
    if not len(start):
        return None
    inside, after = end - start, count - end
    of_inside = sums[end] - sums[start]
    mean_inside, mean_outside = of_inside / inside, (sums[-1] - of_inside) / (count - inside)
    slowdown = mean_inside - mean_outside
    mean_before = sums[start] / start
    mean_after = (sums[-1] - sums[end]) / np.maximum(after, 1)
    stands_out = (slowdown > 0) & (mean_inside - mean_before >= _LEAST_STEP * slowdown)
    stands_out &= (after < _LEAST_BESIDE) | (mean_inside - mean_after >= _LEAST_STEP * slowdown)
    if not stands_out.any():
        return None
    rest = squares[-1] - mean_inside**2 * inside - mean_outside**2 * (count - inside)
    deviation = np.maximum(np.sqrt(np.maximum(rest, 0.0) / (count - 2)), _LEAST_DEVIATION)
    t = slowdown / (deviation * np.sqrt(1 / inside + 1 / (count - inside)))
    return start[stands_out], end[stands_out], t[stands_out]


def _independent_part(logs: F64, begin: int, stop: int) -> float:
    """Return which part of the bins is independent, by how far the noise of a bin follows that of the bin before it.

    (1 - r) / (1 + r) with the autocorrelation r at lag 1, as for a process of first order; without the window's step.
    """
    noise = logs.copy()
    noise[begin:stop] -= noise[begin:stop].mean()
    outside = np.ones(len(noise), dtype=bool)
    outside[begin:stop] = False
    noise[outside] -= noise[outside].mean()
    variance = float((noise * noise).sum())
    if variance <= 0:
        return 1.0
    correlation = float((noise[1:] * noise[:-1]).sum()) / variance
    correlation = min(max(correlation, 0.0), _MOST_CORRELATED)
    return (1 - correlation) / (1 + correlation)


def _without_outliers(values: F64) -> F64:
    """Return the values with none farther from the median than five deviations: what is farther counts as so far.

    By the median of all and not of its neighbours: where single slow steps come by chance some stand together, and
    drawn to each other they would look like a window.
    """
    centre = float(np.median(values))
    limit = max(_FAR * float(np.median(np.abs(values - centre))), _LEAST_DEVIATION)
    return np.clip(values, centre - limit, centre + limit)


def _log_tail(t: float, freedom: float) -> float:
    """Return an upper bound of the log of the chance of a larger t, for t above 1: that of the density's tail."""
    if t <= 1:
        return 0.0
    # the tail of Student's t is at most its density times (1 + t^2 / f) f / (t (f - 1))
    log_density = (
        lgamma((freedom + 1) / 2)
        - lgamma(freedom / 2)
        - 0.5 * log(freedom * pi)
        - (freedom + 1) / 2 * log(1 + t * t / freedom)
    )
    return log_density + log(1 + t * t / freedom) + log(freedom / (t * max(freedom - 1, 1)))
