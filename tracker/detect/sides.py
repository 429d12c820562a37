"""The runs of a version beside those it is compared with: the common-mode shift of each, counts, means and variances of
both sides, and what is certain without a test.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import F64, I64, Flags
from tracker.detect.known_hosts import HostLevels
from tracker.detect.statistics import LEAST_VARIANCE, median
from tracker.detect.thresholds import Thresholds
from tracker.profile.arrays import median as strict_median
from tracker.table import sort_distinct

LEAST_EXACT = 2
"""Runs of a level from which something counts as constant in it."""
ROUNDS = 2
"""Of the median polish."""
LEAST_DECIDING = 2
"""New runs of which every one must lie beyond every base run."""
LEAST_TO_CHOOSE = 4
"""Runs of a level from which a statistic is chosen by how much it varied."""
LEAST_OTHERS = 5
"""Base runs beside which one of them can be called an outlier."""
FAR = 5.0
"""Robust deviations of the other runs from which a run is an outlier."""
NEAR = 0.01
"""A base run that is as near to the new ones, a log, shows the level of the new ones."""
LEVEL_WIDTH = 8
"""By so much the distance between two levels is larger than how far a run may be from one that is at it."""
_DEVIATION = 1.4826
"""Standard deviation of a normal distribution by its median absolute deviation."""


class Statistic(IntEnum):
    """The numbers that a run has of one series. The judge takes one of them."""

    PRINTED = 0
    """The median over its steps."""
    CALL_QUARTILE = 1
    """The same, had each call taken the lower quartile of the calls of its step."""
    CALL_MEDIAN = 2
    """The same, had each call taken the median of the calls of its step."""


class Window(Struct, frozen=True):
    """The runs that a version is judged with, in their order.

    `logs` (series, runs): natural logs of the numbers, negated where more is better, nan where a run lacks the series;
    `recorded` (series, runs): whether the run recorded such series at all; `shift` (runs,): common-mode shift, a log;
    `step` (runs,): duration of the step (ns), nan where unknown. `by_calls` (2, series, runs), `by_calls_shift`
    (2, runs): as `logs` and `shift`, of `Statistic.CALL_QUARTILE` and `CALL_MEDIAN`; None where no call is known by
    itself. `past` (runs,): the version of each run of the look-back, 0 of all others; None: not known. `versions`
    (runs,): of all runs; None: not known, or all of one night. `hosts`: what was taken out of `logs` and `shift` since
    the hosts of the runs differ by it, None: nothing; `measured`: the logs with it, None: these are. `roundings`
    (series, runs): how far a number may be from what its source printed, as a part of it; None: nothing was rounded.
    """

    logs: F64
    recorded: Flags
    shift: F64
    step: F64
    by_calls: F64 | None = None
    by_calls_shift: F64 | None = None
    past: I64 | None = None
    versions: I64 | None = None
    hosts: HostLevels | None = None
    measured: F64 | None = None
    roundings: F64 | None = None

    def centred(self, moves: Flags) -> F64:
        """Return the logs, without the common-mode shift in the series that it `moves` (series,)."""
        return np.asarray(self.logs - np.where(moves[:, None], self.shift, 0.0))


class Sides(Struct, frozen=True):
    """The logs of both sides of a comparison, per series: runs, mean, pooled variance with its freedom; `beyond`: 1 or
    -1 where every new run is above or below every base run, else 0; `nights`: what nights add to the variance of the
    change, as a share of that between runs of one.
    """

    base_runs: I64
    new_runs: I64
    base_mean: F64
    new_mean: F64
    variance: F64
    freedom: I64 | F64
    beyond: I64
    nights: F64 | float = 0.0

    @property
    def change(self) -> F64:
        """Difference of the means: a log, nan where a side has no run."""
        return self.new_mean - self.base_mean


def newest(chosen: Flags, count: int) -> Flags:
    """Return the last `count` of the chosen columns of each row.

    >>> newest(np.array([[True, False, True, True]]), 2).tolist()
    [[False, False, True, True]]
    """
    from_end = np.cumsum(chosen[:, ::-1], axis=1)[:, ::-1]
    return chosen & (from_end <= count)


def sides_of(logs: F64, base: Flags, new: Flags) -> Sides:
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


def with_noise_of(sides: Sides, logs: F64, beside: Flags) -> Sides:
    """Take the variance of the runs `beside` (series, runs) into that of both sides, each around their own mean.

    >>> row = np.log([[100.0, 101.0, 99.0, 130.0, 131.0, 130.0, 131.0]])
    >>> places = np.arange(7)
    >>> both = sides_of(row, ((places == 3) | (places == 4))[None, :], places > 4)
    >>> int(both.freedom[0]), int(with_noise_of(both, row, (places < 3)[None, :]).freedom[0])
    (2, 4)
    """
    beside = beside & ~np.isnan(logs)
    count = beside.sum(axis=1)
    more = np.maximum(count - 1, 0)
    values = np.where(beside, logs, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = values.sum(axis=1) / count
        squares = np.where(beside, (values - np.nan_to_num(mean)[:, None]) ** 2, 0.0).sum(axis=1)
        freedom = sides.freedom + more
        squares += np.nan_to_num(sides.variance) * sides.freedom
        variance = np.where(freedom > 0, np.maximum(squares / freedom, LEAST_VARIANCE), np.nan)
    return replace(sides, variance=variance, freedom=freedom)


def choose_steadiest(window: Window, centred: F64, moves: Flags, base: Flags, new: Flags) -> tuple[I64, F64]:
    """Return for each series the `Statistic` that varied least over the base runs, and the logs of it.

    `centred`: the logs that are printed, without the common-mode shift; each statistic has a shift of its own. There is
    a choice in the series that the shift `moves` (series,), with at least 4 base runs, of statistics that every base
    and new run has.
    """
    printed = np.full(len(base), int(Statistic.PRINTED))
    if window.by_calls is None or window.by_calls_shift is None:
        return printed, centred
    compared = (base | new) & ~np.isnan(centred)
    base = base & compared
    may_choose = moves & (base.sum(axis=1) >= LEAST_TO_CHOOSE)
    statistics = [centred]
    squares = [_squares_about_mean(centred, base)]
    for times, shift in zip(window.by_calls, window.by_calls_shift, strict=True):
        logs = times - np.where(moves[:, None], shift, 0.0)
        is_known = ~(compared & np.isnan(logs)).any(axis=1)
        statistics.append(logs)
        squares.append(np.where(is_known, _squares_about_mean(logs, base), np.inf))
    # of equal ones argmin takes the first: what is printed stands where none varied less
    chosen = np.where(may_choose, np.argmin(squares, axis=0), printed)
    return chosen, np.choose(chosen[:, None], statistics)


def _squares_about_mean(logs: F64, runs: Flags) -> F64:
    """Return the sum of the squared distances from the mean of each row over its `runs` (series, runs)."""
    values = np.where(runs, logs, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = values.sum(axis=1) / runs.sum(axis=1)
        return np.asarray(np.where(runs, (values - mean[:, None]) ** 2, 0.0).sum(axis=1))


def mostly_beyond(logs: F64, base: Flags, new: Flags) -> I64:
    """Return where the new runs lie on one side of the base runs: 1 or -1 where they are above or below.

    Of the pairs of a new and a base run, as many as there are new runs beyond the second may be the wrong way round:
    beside eight base runs less than one in eight. Otherwise a version of many runs would be found less often than one
    of few, since the more runs there are, the sooner one of them comes to lie among those of the other side.

    >>> row = np.log([[100.0, 101.0, 99.0, 100.0, 105.0, 104.0, 105.5, 106.0]])
    >>> base = np.array([[True] * 5 + [False] * 3])
    >>> mostly_beyond(row, base, ~base[0]).tolist()
    [1]
    """
    known = ~np.isnan(logs)
    base, new = base & known, known & new
    bases, news = base.sum(axis=1), new.sum(axis=1)
    allowed = np.where(bases > 0, np.maximum(news - LEAST_DECIDING, 0), -1)
    lower, upper = np.where(base, logs, np.inf), np.where(base, logs, -np.inf)
    above, below = np.zeros((2, len(logs)), dtype=np.int64)
    for column in np.flatnonzero(np.any(new, axis=0)).tolist():
        value, counts = logs[:, column, None], new[:, column]
        above += np.where(counts, (upper >= value).sum(axis=1), 0)
        below += np.where(counts, (lower <= value).sum(axis=1), 0)
    some = news > 0
    return np.asarray((some & (above <= allowed)).astype(np.int64) - (some & (below <= allowed) & (above > allowed)))


def jumping(logs: F64, past: I64, new: Flags, change: F64) -> Flags:
    """Return which series jump between two levels: a run of the look-back lies where the new ones are, while another
    run of its own version does not.

    `past`: as in `Window`. `change` (series,): of the new runs, a log. Where the new ones are is within 1 % of their
    median, or an eighth of the change: with a quarter, eight of 91 operators that were 10 % slower were taken for such
    ones. A run that is away by half of the change or more is not there.

    >>> row = np.log([[100.0, 130.0, 100.0, 100.0, 131.0, 130.0]])
    >>> is_new = np.arange(6) > 3
    >>> [jumping(row, np.array([*past, 0, 0]), is_new, np.log([1.3])).item() for past in ((1, 1, 2, 2), (1, 2, 3, 3))]
    [True, False]
    """
    middle = median(np.where(new, logs, np.nan), axis=1)[:, None]
    width = np.maximum(NEAR, np.abs(change) / LEVEL_WIDTH)[:, None]
    found = np.zeros(len(logs), dtype=bool)
    with np.errstate(invalid="ignore"):
        away = np.where(new | (past <= 0), np.nan, np.abs(logs - middle))
        near, far = away <= width, away >= LEVEL_WIDTH / 2 * width
    for version in sort_distinct(past[past > 0]).tolist():
        own = past == version
        found |= near[:, own].any(axis=1) & far[:, own].any(axis=1)
    return found


def lone_outliers(logs: F64, base: Flags, least: F64) -> Flags:
    """Find the base run of each series that alone lies far from all others, (series, runs).

    Far is 5 robust deviations of the other runs, at least 5, and no less than `least` (series,), the smallest change
    that counts. Where a second run is as far, the two are a level of their own and neither is an outlier.

    >>> row = np.log([[100.0, 101.0, 99.0, 100.5, 99.5, 100.0, 160.0, 100.0]])
    >>> np.flatnonzero(lone_outliers(row, np.ones(row.shape, dtype=bool), np.array([0.03]))).tolist()
    [6]
    """
    found = np.zeros(base.shape, dtype=bool)
    values = np.where(base, logs, np.nan)
    known = ~np.isnan(values)
    highest = np.where(known, values, -np.inf).max(axis=1, initial=-np.inf)
    lowest = np.where(known, values, np.inf).min(axis=1, initial=np.inf)
    # a cheap test first: most series are too steady to have an outlier
    rows = np.flatnonzero((known.sum(axis=1) > LEAST_OTHERS) & (highest - lowest >= least))
    if not len(rows):
        return found
    own = values[rows]
    away = np.abs(own - median(own, axis=1)[:, None])
    farthest = np.nanargmax(away, axis=1)
    others, place = own.copy(), np.arange(len(rows))
    others[place, farthest] = np.nan
    centre = median(others, axis=1)
    away = np.abs(others - centre[:, None])
    spread = np.maximum(_DEVIATION * median(away, axis=1), np.sqrt(LEAST_VARIANCE))
    limit = np.maximum(FAR * spread, least[rows])
    is_far = np.abs(own[place, farthest] - centre) > limit
    is_alone = ~(away > limit[:, None]).any(axis=1)
    chosen = is_far & is_alone
    found[rows[chosen], farthest[chosen]] = True
    return found


def shared_factor(leaves: F64, before: Flags, new: Flags, least: int = 20) -> F64:
    """Return the common-mode shift of each run as a log: 0.05 is a run in which all operators take 5 % longer.

    `leaves` (series, runs): logs of times, nan for missing. `before`, `new`: the compared runs, of which every series
    that counts must have all. Median polish (Tukey 1977) over them gives a level per series; the shift of any run is
    the median distance from those. It is 0 at the median of `before`, and 0 throughout with fewer than `least` series.

    The polish begins with the runs, so that a run times k moves its own shift by log k and no level.

    >>> runs = np.log(np.full((30, 3), 100.0) * np.array([1.0, 1.0, 1.1]))
    >>> shared_factor(runs, np.array([True, True, False]), np.array([False, False, True])).round(3).tolist()
    [0.0, 0.0, 0.095]
    """
    compared = before | new
    complete = ~np.isnan(leaves[:, compared]).any(axis=1)
    if complete.sum() < least or not compared.any():
        return np.zeros(leaves.shape[1])
    table = leaves[complete]
    rest, level = table[:, compared], np.zeros((len(table), 1))
    for _ in range(ROUNDS):
        rest = rest - median(rest, axis=0)
        by_row = median(rest, axis=1)[:, None]
        rest, level = rest - by_row, level + by_row
    distance = table - level
    shift = np.where((~np.isnan(distance)).sum(axis=0) >= least, median(distance, axis=0), np.nan)
    anchor = strict_median(shift[before if before.any() else new])
    return np.asarray(np.nan_to_num(shift - anchor))


def presence_of(
    window: Window, base: Flags, new: Flags, level: Flags, limits: Thresholds
) -> tuple[Flags, Flags, Flags]:
    """Return which series are in all new runs and in none of their base, which the other way round, and which have runs
    enough to decide: one new run where presence never varied in the level.

    A run that did not record such series says nothing of their presence.
    """
    there = ~np.isnan(window.logs)
    base, level, new_runs = base & window.recorded, level & window.recorded, new & window.recorded
    bases, news = base.sum(axis=1), new_runs.sum(axis=1)
    in_base, in_new = (base & there).sum(axis=1), (new_runs & there).sum(axis=1)
    in_level, levels = (level & there).sum(axis=1), level.sum(axis=1)
    constant = ((in_level == 0) | (in_level == levels)) & (levels >= LEAST_EXACT)
    enough = (bases >= limits.least_base) & (news >= limits.least_new)
    some = (bases > 0) & (news > 0)
    added, removed = some & (in_base == 0) & (in_new == news), some & (in_base == bases) & (in_new == 0)
    return added, removed, (constant & (news > 0)) | enough


def exact_changes(numbers: F64, level: Flags, new: Flags) -> tuple[I64, F64, F64]:
    """Find numbers that are constant in the level (at least 2 runs) and have another constant value in the new runs.

    Returns the places of their series, and the number before and after.

    `numbers` (series, runs): calls per step, bytes of collectives, peak memory; nan for absent, which counts as 0.
    `level` (series, runs), `new` (runs,): recorded runs.

    >>> calls = np.array([[129.0, 129.0, 135.0], [4.0, 5.0, 6.0]])
    >>> found = exact_changes(calls, np.array([[True, True, False]] * 2), np.array([False, False, True]))
    >>> [part.tolist() for part in found]
    [[0], [129.0], [135.0]]
    """
    values = np.nan_to_num(numbers)
    before, after = (
        (np.where(side, values, np.inf).min(axis=1), np.where(side, values, -np.inf).max(axis=1))
        for side in (level, np.broadcast_to(new, values.shape))
    )
    is_constant = (before[0] == before[1]) & (after[0] == after[1]) & (level.sum(axis=1) >= LEAST_EXACT)
    rows = np.flatnonzero(is_constant & (before[0] != after[0]))
    return rows, before[0][rows], after[0][rows]
