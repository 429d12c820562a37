"""Which of several equals is slower than the others: by how much, in how many steps, and how often chance does that."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from tracker.results import SLOW, SUSPECT

if TYPE_CHECKING:
    from tracker.columns import F64, I64

SLOWER: Final = 1.05
"""Own time by the median of the peers from which on a rank can be accused; the gate of msprof-analyze, too."""
ERRORS: Final = 0.05
"""How often chance may accuse anybody of a stage."""
_MOSTLY: Final = 0.8
"""Share of the steps in which a suspect is the slowest."""
FEWEST_STEPS: Final = 3


class PeerVerdicts(Struct, frozen=True, eq=False):
    """Of each row of a table of own times (rows: equals, columns: steps). `ratio`: median over steps of its time by the
    median of the others; `excess`: the same as a difference; `cost`: median over steps of its time less the next
    longest; `slowest`: steps in which it alone took longest; `q`: how often chance gives any of them as many, nan with
    too few steps; `verdict`: SLOW, SUSPECT or None.
    """

    ratio: F64
    excess: F64
    cost: F64
    slowest: I64
    q: F64
    verdict: list[str | None]


def judge(own: F64) -> PeerVerdicts:
    """Judge the rows of `own`, none of which is nan; with fewer than 3 steps there is no verdict, with one row nothing.

    Under "none is special" each of n rows is the slowest in a step with probability 1 / n: the number of these steps is
    binomial, and its tail, times n, is q.
    """
    count, steps = own.shape
    if count < 2 or not steps:
        nothing = np.full(count, np.nan)
        return PeerVerdicts(nothing, nothing, nothing, np.zeros(count, dtype=np.int64), nothing, [None] * count)
    others = median_of_others(own)
    ordered = np.sort(own, axis=0)
    is_slowest = (own == ordered[-1]) & (ordered[-1] > ordered[-2])
    slowest = is_slowest.sum(axis=1)
    longest_of_others = np.where(is_slowest, ordered[-2], ordered[-1])
    ratio = np.median(own / np.where(others > 0, others, np.nan), axis=1)
    tails = np.array([_tail(int(number), steps, count) for number in slowest])
    q = np.minimum(1.0, count * tails) if steps >= FEWEST_STEPS else np.full(count, np.nan)
    verdict = [_verdict(*one, steps) for one in zip(ratio.tolist(), q.tolist(), slowest.tolist(), strict=True)]
    excess, cost = np.median(own - others, axis=1), np.median(own - longest_of_others, axis=1)
    return PeerVerdicts(ratio, excess, cost, slowest, q, verdict)


def _verdict(ratio: float, q: float, slowest: int, steps: int) -> str | None:
    if not (ratio >= SLOWER) or steps < FEWEST_STEPS:
        return None
    if q <= ERRORS:
        return SLOW
    return SUSPECT if slowest >= _MOSTLY * steps else None


def _tail(at_least: int, steps: int, count: int) -> float:
    """P(X >= at_least) of X ~ Bin(steps, 1 / count).

    >>> round(_tail(6, 6, 2), 4), round(_tail(4, 5, 4), 4), _tail(0, 5, 4)
    (0.0156, 0.0156, 1.0)
    """
    if at_least == 0:
        return 1.0
    part = 1.0 / count
    return sum(comb(steps, n) * part**n * (1.0 - part) ** (steps - n) for n in range(at_least, steps + 1))


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
