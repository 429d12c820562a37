"""Which of several equals are slower than the others: by how much, in how many steps, and how often chance does that.

Under "none is special", any k of n equals are the k slowest in a step with probability 1 / C(n, k), independently from
step to step: the number of these steps is binomial, and its tail, times the number of such groups, is q. Who is found
is put aside, and the others are judged again; where no single one is found, groups of two up to half of them are tried
with what the first test leaves of the 5 %, for equally slow ones hide each other.
"""

from __future__ import annotations

from bisect import bisect_left
from math import exp, lgamma, log
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from tracker.results import SLOW, SUSPECT

if TYPE_CHECKING:
    from tracker.columns import F64, I64

SLOWER: Final = 1.05
"""Own time by the median of the peers from which on a rank can be accused; the gate of msprof-analyze, too."""
ERRORS: Final = 0.05
"""How often chance may accuse any rank of a job."""
_MOSTLY: Final = 0.8
"""Share of the steps in which a suspect is the slowest."""
FEWEST_STEPS: Final = 3


class PeerVerdicts(Struct, frozen=True, eq=False):
    """Of each row of a table of own times (rows: equals, columns: steps). `ratio`: median over steps of its time by the
    median of the others that are not slow; `excess`: the same as a difference; `cost`: of those that are slow median
    over steps of the longest time less the longest of all that are not, of others of its own time less the next
    longest; `slowest`: steps in which it, or its group, took longest; `q`: how often chance gives as many, nan with
    too few steps; `verdict`: SLOW, SUSPECT or None. A table without two rows and a step says nothing: nan.
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
    slowest, q = _slowest(own), np.full(count, np.nan)
    verdict: list[str | None] = [None] * count
    if steps >= FEWEST_STEPS:
        q = np.array([_q(1, count, int(number), steps, tables) for number in slowest])
        for rows, number, chance in _found(own, tables):
            for row in rows:
                slowest[row], q[row], verdict[row] = number, chance, SLOW
    is_slow = np.array([word == SLOW for word in verdict])
    others = _others(own, is_slow)
    ratio = np.median(own / np.where(others > 0, others, np.nan), axis=1)
    for row in range(count):
        is_mostly = steps >= FEWEST_STEPS and slowest[row] >= _MOSTLY * steps
        if verdict[row] is None and ratio[row] >= SLOWER and is_mostly:
            verdict[row] = SUSPECT
    longest = own.max(axis=0)
    next_longest = own[~is_slow].max(axis=0) if is_slow.any() else np.sort(own, axis=0)[-2]
    before = np.where((own == longest) | is_slow[:, None], next_longest, longest)
    ends = np.where(is_slow[:, None], longest, own)
    return PeerVerdicts(ratio, np.median(own - others, axis=1), np.median(ends - before, axis=1), slowest, q, verdict)


def _found(own: F64, tables: int) -> list[tuple[list[int], int, float]]:
    """Who is slow, one after the other or as a group: rows, in how many steps they took longest, and q."""
    found: list[tuple[list[int], int, float]] = []
    left = list(range(len(own)))
    while len(left) > 1:
        part = own[left]
        others = median_of_others(part)
        ratio = np.median(part / np.where(others > 0, others, np.nan), axis=1)
        slowest = _slowest(part)
        at = int(slowest.argmax())
        chance = _q(1, len(left), int(slowest[at]), own.shape[1], tables)
        if chance <= ERRORS and ratio[at] >= SLOWER:
            found.append(([left[at]], int(slowest[at]), chance))
            left.pop(at)
            continue
        group = _group(part, tables)
        if group is None:
            break
        rows, number, chance = group
        found.append(([left[row] for row in rows], number, chance))
        left = [row for at, row in enumerate(left) if at not in rows]
    # of more than half it cannot be said who is the exception
    return found if 2 * len(left) >= len(own) else []


def _group(own: F64, tables: int) -> tuple[list[int], int, float] | None:
    """The two or more rows, up to half of all, that are the slowest together in so many steps that chance does not."""
    count, steps = own.shape
    most = count // 2
    if most < 2:
        return None
    middle = np.median(own, axis=0)
    order = np.argsort(-np.median(own / np.where(middle > 0, middle, np.nan), axis=1), kind="stable")
    ordered = own[order]
    least_of_first = np.minimum.accumulate(ordered, axis=0)[1:most]
    most_of_others = np.maximum.accumulate(ordered[::-1], axis=0)[::-1][2 : most + 1]
    numbers = (least_of_first > most_of_others).sum(axis=1)
    chances = [_q(at + 2, count, int(number), steps, tables) for at, number in enumerate(numbers)]
    best = int(np.argmin(chances))
    size = best + 2
    others = np.median(ordered[size:], axis=0)
    ratios = np.median(ordered[:size] / np.where(others > 0, others, np.nan), axis=1)
    least = bisect_left(range(steps + 1), True, key=lambda number: _q(1, count, number, steps, tables) <= ERRORS)
    used = _q(1, count, least, steps, tables) if least <= steps else 0.0
    is_often = numbers[best] * 2 > steps and chances[best] <= (ERRORS - used) / (most - 1)
    if not is_often or not (ratios >= SLOWER).all():
        return None
    return order[:size].tolist(), int(numbers[best]), chances[best]


def _slowest(own: F64) -> I64:
    """In how many steps each row alone took longest."""
    ordered = np.sort(own, axis=0)
    found: I64 = ((own == ordered[-1]) & (ordered[-1] > ordered[-2])).sum(axis=1)
    return found


def _others(own: F64, is_slow: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> F64:
    """Of each row the median of the others that are not slow; of one alone that of the slow ones."""
    if not is_slow.any():
        return median_of_others(own)
    good = own[~is_slow]
    found = np.broadcast_to(np.median(good, axis=0), own.shape).copy()
    found[~is_slow] = median_of_others(good) if len(good) > 1 else np.median(own[is_slow], axis=0)
    return found


def _q(size: int, count: int, at_least: int, steps: int, tables: int) -> float:
    """C(count, size) x P(X >= at_least) of X ~ Bin(steps, 1 / C(count, size)), for each of the tables; at most 1.

    >>> round(_q(1, 2, 6, 6, 1), 3), round(_q(1, 4, 5, 5, 1), 3), round(_q(2, 8, 3, 3, 1), 3), _q(1, 4, 0, 5, 1)
    (0.031, 0.004, 0.001, 1.0)
    """
    if not at_least:
        return 1.0
    groups = _log_choose(count, size)
    other = log(-np.expm1(-groups)) if groups else -np.inf
    whole = 0.0
    for number in range(at_least, steps + 1):
        rest = (steps - number) * other if number < steps else 0.0
        part = exp(min(_log_choose(steps, number) - (number - 1) * groups + rest, 50.0))
        whole += part
        if part < whole * 1e-12:  # the others are smaller still
            break
    return min(1.0, tables * whole)


def _log_choose(count: int, size: int) -> float:
    return lgamma(count + 1) - lgamma(size + 1) - lgamma(count - size + 1)


def median_of_others(own: F64) -> F64:
    """Of each value the median of the others in its column, of two rows or more.

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
