"""Which of several equals are slower than the others: by how much, in how many steps, and how often chance does that.

Each row is compared with the median of the others, step by step, as the logarithm of the quotient. Up to half of the
rows can be slow together without hiding each other, for the median of the others is then still that of an innocent one;
and no row is accused because another one is slow, for a slow one makes that median only longer.

What chance does is measured in the table itself: how much the quotient of a row varies from step to step, and, with six
rows or more, how much the rows differ from each other. Steps follow each other: what delays one often delays the next.
So their number counts as if neighbours were correlated by 0.5, or by as much as they are. docs/statistics.md has tables
of simulated jobs, made by scripts/simulate_slow_ranks.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from tracker.detect.statistics import LEAST_VARIANCE, t_above
from tracker.results import SLOW, SUSPECT

if TYPE_CHECKING:
    from tracker.columns import F64, I64, Flags

SLOWER: Final = 1.05
"""Own time by the median of the peers from which on a rank can be accused; the gate of msprof-analyze, too."""
ERRORS: Final = 0.01
"""How often chance may accuse any rank of a job."""
SUSPICIONS: Final = 0.05
"""How often chance may make any rank of a job suspect."""
FEWEST_STEPS: Final = 3
_CORRELATION: Final = 0.5
"""Of neighbouring steps, assumed where no more is measured: few steps cannot show that it is less."""
_LARGEST_CORRELATION: Final = 0.95
_FEWEST_ROWS_TO_COMPARE: Final = 6
"""Of fewer rows it is not known how much innocent ones differ from each other."""
_MOST_ROWS: Final = 6
"""Rows that count for how well the variance is known."""
_MANY_STEPS: Final = 64
"""Steps from which on the usual and the exact degrees of freedom are alike: 37.8 and 38.4 here."""
_MAD: Final = 1.4826
"""Median absolute deviation -> standard deviation of a normal distribution."""
_CUT: Final = 3.0
"""Standard deviations from which on a step counts as a pause: it says nothing of the usual noise of all rows."""


class PeerVerdicts(Struct, frozen=True, eq=False):
    """Of each row of a table of own times (rows: equals, columns: steps). `ratio`: median over steps of its time by the
    median of the others that are not slow; `excess`: the same as a difference; `cost`: of those that are slow median
    over steps of the longest time less the longest of all that are not, of others of its own time less the next
    longest; `slowest`: steps in which it took longest, of slow ones longer than all that are not; `q`: how often chance
    makes any row that much longer, nan with too few steps; `verdict`: SLOW, SUSPECT or None. A table without two rows
    and a step says nothing: nan.
    """

    ratio: F64
    excess: F64
    cost: F64
    slowest: I64
    q: F64
    verdict: list[str | None]


def judge(own: F64, *, tables: int = 1) -> PeerVerdicts:
    """Judge the rows of `own`, none of which is nan; with fewer than 3 steps there is no verdict. `tables`: how many
    are judged of one job, each of which chance may accuse.
    """
    count, steps = own.shape
    if count < 2 or not steps:
        nothing = np.full(count, np.nan)
        return PeerVerdicts(nothing, nothing, nothing, np.zeros(count, dtype=np.int64), nothing, [None] * count)
    q = np.full(count, np.nan)
    is_slow = np.zeros(count, dtype=bool)
    if steps >= FEWEST_STEPS:
        q = np.minimum(1.0, tables * count * _chance(own))
        is_slow = (q <= ERRORS) & (_ratio(own, median_of_others(own)) >= SLOWER)
        if 2 * is_slow.sum() > count:
            # of more than half it cannot be said who is the exception
            is_slow[:] = False
    others = _others(own, is_slow)
    ratio = _ratio(own, others)
    slowest = _slowest(own, is_slow)
    is_suspect = ~is_slow & (q <= SUSPICIONS) & (ratio >= SLOWER)
    if 2 * (is_slow | is_suspect).sum() > count:
        is_suspect[:] = False
    verdict: list[str | None] = [None] * count
    for row in range(count):
        if is_slow[row]:
            verdict[row] = SLOW
        elif is_suspect[row]:
            verdict[row] = SUSPECT
    longest = own.max(axis=0)
    next_longest = own[~is_slow].max(axis=0) if is_slow.any() else np.sort(own, axis=0)[-2]
    before = np.where((own == longest) | is_slow[:, None], next_longest, longest)
    ends = np.where(is_slow[:, None], longest, own)
    return PeerVerdicts(ratio, np.median(own - others, axis=1), np.median(ends - before, axis=1), slowest, q, verdict)


def _ratio(own: F64, others: F64) -> F64:
    """Return of each row the median over the steps of its time by that of the others; nan where those take none."""
    ratio: F64 = np.median(own / np.where(others > 0, others, np.nan), axis=1)
    return ratio


def _chance(own: F64) -> F64:
    """Return of each row how often chance makes it so much longer than the others; 1 where any time is not above 0.

    Student's t of the mean over the steps of ln(own / others). Its variance is that of a row, half its own and half
    that of all rows, times 1 + 2 sum (1 - k / steps) rho^k for steps that are correlated by rho^k at a distance of k
    (Priestley, Spectral Analysis and Time Series, 5.3.2). A variance of correlated steps is worth
    (1 - rho^2) / (1 + rho^2) of the degrees of freedom of independent ones (Bayley and Hammersley, 1946).
    """
    count, steps = own.shape
    if not (own > 0).all():
        return np.ones(count)
    longer = np.log(own) - np.log(median_of_others(own))
    mean = longer.mean(axis=1)
    noise = longer - mean[:, None]
    correlation = _correlation(noise)
    distance = np.arange(1, steps)
    factor = 1 + 2 * float(((1 - distance / steps) * correlation**distance).sum())
    of_all = _usual_squares(longer - np.median(longer, axis=1)[:, None]) / (count * (steps - 1))
    of_row = (noise**2).sum(axis=1) / (steps - 1)
    # the mean follows correlated steps, so that they vary less around it than they do from run to run
    variance = (of_row + of_all) / 2 * (steps - 1) / (steps - factor)
    variance = np.maximum(variance, LEAST_VARIANCE) * factor / steps
    if count >= _FEWEST_ROWS_TO_COMPARE:
        variance = np.maximum(variance, _variance_between(np.median(longer, axis=1)))
    chance: F64 = t_above(mean / np.sqrt(variance), np.full(count, _freedom(count, steps)))
    return chance


def _freedom(count: int, steps: int) -> float:
    """Return the degrees of freedom of the variance of a row, of `count` rows, in correlated steps.

    The usual ones hold for many steps. Of three they are 1.2, which calls no rank of two slow that takes twice as long,
    where the exact ones are 1.85 (Satterthwaite, 1946). Two rows have the mean of both: by the exact ones alone an
    innocent is accused in just 1 of 100 jobs, with no margin. More rows know each other's variance, and need none.
    """
    usual = (steps - 1) * (1 - _CORRELATION**2) / (1 + _CORRELATION**2)
    if count > 2 or steps > _MANY_STEPS:
        # the half that is a row's own is no better known among more rows
        return (min(count, _MOST_ROWS) - 1) * usual
    at = np.arange(steps)
    correlated = _CORRELATION ** np.abs(at[:, None] - at)
    # of the steps without their mean
    around = correlated - correlated.mean(axis=0)
    around -= around.mean(axis=1)[:, None]
    exact = float(np.trace(around)) ** 2 / _sum(around**2)
    return (usual + exact) / 2


def _usual_squares(noise: F64) -> float:
    """Return the sum of the squares of `noise`, in which a pause counts as the longest usual delay."""
    usual = _CUT * _MAD * float(np.median(np.abs(noise)))
    return _sum(np.clip(noise, -usual, usual) ** 2 if usual else noise**2)


def _correlation(noise: F64) -> float:
    """Return the correlation of neighbouring steps to reckon with."""
    squares = _sum(noise**2)
    measured = _sum(noise[:, 1:] * noise[:, :-1]) / squares if squares else 0.0
    return min(max(_CORRELATION, measured), _LARGEST_CORRELATION)


def _variance_between(middle: F64) -> float:
    """Return how much innocent rows differ from each other: by the lower half, in which no row is slow."""
    lower = np.sort(middle)[: (len(middle) + 1) // 2]
    return float(_MAD * (lower[-1] - np.median(lower))) ** 2


def _sum(values: F64) -> float:
    """Return the sum of all values, the same for each order of the rows."""
    return float(np.sort(values, axis=None).sum())


def _slowest(own: F64, is_slow: Flags) -> I64:
    """Return in how many steps each row alone took longest, of slow ones longer than all that are not."""
    ordered = np.sort(own, axis=0)
    slowest: I64 = ((own == ordered[-1]) & (ordered[-1] > ordered[-2])).sum(axis=1)
    if is_slow.any():
        longer: I64 = (own > own[~is_slow].max(axis=0)).sum(axis=1)
        slowest = np.where(is_slow, longer, slowest)
    return slowest


def _others(own: F64, is_slow: Flags) -> F64:
    """Return of each row the median of the others that are not slow; of one alone that of the slow ones."""
    if not is_slow.any():
        return median_of_others(own)
    good = own[~is_slow]
    others = np.broadcast_to(np.median(good, axis=0), own.shape).copy()
    others[~is_slow] = median_of_others(good) if len(good) > 1 else np.median(own[is_slow], axis=0)
    return others


def median_of_others(own: F64) -> F64:
    """Return for each value the median of the others in its column, of two rows or more.

    >>> median_of_others(np.array([[1.0], [2.0], [4.0]])).ravel().tolist()
    [3.0, 2.5, 1.5]
    """
    count = len(own)
    order = np.argsort(own, axis=0, kind="stable")
    place = np.argsort(order, axis=0, kind="stable")
    ordered = np.take_along_axis(own, order, axis=0)
    ends = (count - 2) // 2, (count - 1) // 2  # of the others, which are one fewer
    low, high = (np.where(place > end, ordered[end], ordered[end + 1]) for end in ends)
    found: F64 = (low + high) / 2
    return found
