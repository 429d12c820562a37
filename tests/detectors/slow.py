"""The rule of judging once more, series by series in plain Python: slow and obvious, to hold the fast one against."""

from __future__ import annotations

import math
from statistics import fmean, median

import numpy as np

from tracker.detectors._distributions import digamma, t_above, trigamma, trigamma_inverse


def judged(baseline, candidate, *, min_ratio=0.03, alpha=0.05):
    """(ratio, p, q, verdict) per series and the shift; lists of lists of positive numbers, None for a missing run.

    Both sides have at least two runs with values in every series, and there are 20 to 119 series: one prior.
    """
    x = [[None if value is None else math.log(value) for value in row] for row in baseline]
    y = [[None if value is None else math.log(value) for value in row] for row in candidate]
    x, y, shift = centred(x, y)
    rows = [series(one, other) for one, other in zip(x, y, strict=True)]
    d0, s0 = prior([(variance, freedom) for _, _, variance, freedom in rows])
    tested = [test(row, d0, s0) for row in rows]
    up, down = ([t[name] for t in tested] for name in ("up", "down"))
    q_up, q_down = benjamini_hochberg(up), benjamini_hochberg(down)
    answers = []
    for number, t in enumerate(tested):
        slower = t["d"] >= 0
        p, q = (up[number], q_up[number]) if slower else (down[number], q_down[number])
        answers.append((math.expm1(t["d"]), p, q, word(t, q, min_ratio, alpha)))
    return answers, shift


def centred(x, y):
    complete = [number for number in range(len(x)) if None not in x[number] + y[number]]
    if len(complete) < 20:
        return x, y, 0.0
    first = factors(x, y, complete, fmean)
    x, y = subtract(x, first[0]), subtract(y, first[1])
    second = factors(x, y, complete, median)
    x, y = subtract(x, second[0]), subtract(y, second[1])
    shift = sum(fmean(each[1]) - fmean(each[0]) for each in (first, second))
    return x, y, shift


def factors(x, y, complete, middle):
    level = {number: (middle(x[number]) + middle(y[number])) / 2 for number in complete}
    return [
        [median([side[number][run] - level[number] for number in complete]) for run in range(len(side[0]))]
        for side in (x, y)
    ]


def subtract(rows, factor):
    return [[None if v is None else v - factor[run] for run, v in enumerate(row)] for row in rows]


def series(one, other):
    one, other = ([value for value in side if value is not None] for side in (one, other))
    squares = sum((value - fmean(side)) ** 2 for side in (one, other) for value in side)
    freedom = len(one) + len(other) - 2
    error = math.sqrt(1 / len(one) + 1 / len(other))
    return fmean(other) - fmean(one), error, max(squares / freedom, 1e-6), freedom


def prior(variances):
    number = float
    u = [
        math.log(variance) - number(digamma(np.array([freedom / 2]))[0]) + math.log(freedom / 2)
        for variance, freedom in variances
    ]
    mean = fmean(u)
    expected = fmean(number(trigamma(np.array([freedom / 2]))[0]) for _, freedom in variances)
    left = sum((value - mean) ** 2 for value in u) / (len(u) - 1) - expected
    if left <= 0:
        return math.inf, math.exp(mean)
    half = trigamma_inverse(left)
    return 2 * half, math.exp(mean + number(digamma(np.array([half]))[0]) - math.log(half))


def test(row, d0, s0):
    d, error, variance, freedom = row
    moderated = s0 if math.isinf(d0) else (d0 * s0 + freedom * variance) / (d0 + freedom)
    error *= math.sqrt(moderated)
    up, down = (float(t_above(np.array([t]), np.array([d0 + freedom]))[0]) for t in (d / error, -d / error))
    return {"d": d, "error": error, "freedom": d0 + freedom, "up": up, "down": down}


test.__test__ = False


def benjamini_hochberg(p):
    order = sorted(range(len(p)), key=lambda number: p[number])
    q, smallest = [0.0] * len(p), 1.0
    for place in range(len(p), 0, -1):
        smallest = min(smallest, p[order[place - 1]] * len(p) / place)
        q[order[place - 1]] = smallest
    return q


def word(t, q, min_ratio, alpha):
    limit = math.log(1 + min_ratio)
    if abs(t["d"]) >= limit and q <= alpha:
        return "REGRESSED" if t["d"] > 0 else "IMPROVED"
    if abs(t["d"]) >= limit:
        return "INCONCLUSIVE"
    # 90 % interval inside the limits: both one-sided tests against them pass at 5 %
    tails = [
        float(t_above(np.array([(limit - sign * t["d"]) / t["error"]]), np.array([t["freedom"]]))[0])
        for sign in (1, -1)
    ]
    if max(tails) <= 0.05:
        return "UNCHANGED"
    return "BELOW_LIMIT" if q <= alpha else "INCONCLUSIVE"


def bisected(tail, freedom):
    """The t that is exceeded with probability `tail`, by halving an interval 200 times."""
    low, high = -1e15, 1e15
    for _ in range(200):
        middle = 0.5 * (low + high)
        above = t_above(np.array([middle]), np.array([freedom]))[0] > tail
        low, high = (middle, high) if above else (low, middle)
    return 0.5 * (low + high)
