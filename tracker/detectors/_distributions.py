"""Student's t, its quantiles, and the functions that fitting a prior needs; arrays in, arrays out.

Written out here so that judging loads nothing heavier than NumPy. Sources: Abramowitz and Stegun, Handbook of
Mathematical Functions (A&S), with the number of the formula; DiDonato and Morris (1992), Algorithm 708: significant
digit computation of the incomplete beta function ratios, for its continued fraction.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

_CONVERGED: Final = 1e-14
_EXACT_ENOUGH: Final = 1e-6  # of a Newton step: the next one would change t by its square
_MAX_TERMS: Final = 2000
_ALMOST_NORMAL: Final = 2e4  # above, the normal approximation of t is exact to 1e-9 of the probability at |t| < 10
_ASYMPTOTIC: Final = 8.0

_erfc = np.frompyfunc(math.erfc, 1, 1)
_lgamma = np.frompyfunc(math.lgamma, 1, 1)
_normal_quantile = np.frompyfunc(NormalDist().inv_cdf, 1, 1)


def digamma(x: F64) -> F64:
    """Derivative of ln Gamma(x) for x > 0; relative error below 1e-12. Infinity at infinity.

    A&S 6.3.6 (recurrence), then 6.3.18 (asymptotic series).

    >>> digamma(np.array([1.0, 0.5])).round(10).tolist()
    [-0.5772156649, -1.963510026]
    """
    x, total = _raised(x, 1)
    square = 1.0 / (x * x)
    series = square * (
        1 / 12
        - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square * (1 / 132 - square * 691 / 32760))))
    )
    return np.asarray(np.log(x) - 0.5 / x - series - total)


def trigamma(x: F64) -> F64:
    """Second derivative of ln Gamma(x) for x > 0; relative error below 1e-12. 0 at infinity.

    A&S 6.4.6 (recurrence), then 6.4.12 (asymptotic series).

    >>> trigamma(np.array([1.0, 0.5])).round(10).tolist()
    [1.6449340668, 4.9348022005]
    """
    x, total = _raised(x, 2)
    inverse = 1.0 / x
    square = inverse * inverse
    series = 1 / 6 - square * (1 / 30 - square * (1 / 42 - square * (1 / 30 - square * (5 / 66 - square * 691 / 2730))))
    return np.asarray(total + inverse + 0.5 * square + inverse * square * series)


def _raised(x: F64, power: int) -> tuple[F64, F64]:
    """x + 8, and the sum over x, x + 1 to x + 7: of 1/x (power 1) or of 1/x^2 (power 2)."""
    steps = np.asarray(x, dtype=np.float64)[..., np.newaxis] + np.arange(_ASYMPTOTIC)
    return x + _ASYMPTOTIC, (1.0 / steps**power).sum(axis=-1)


def trigamma_inverse(y: float) -> float:
    """The x > 0 with trigamma(x) = y, for y > 0.

    Newton on 1 / trigamma, which is convex and nearly linear, so that it converges from below without overshooting:
    Smyth (2004), Linear models and empirical Bayes methods, appendix.

    >>> round(trigamma_inverse(1.6449340668482264), 9)
    1.0
    """
    if y <= 0:
        raise ValueError(f"trigamma takes only positive values, not {y}")
    if y > 1e7:
        return 1.0 / math.sqrt(y)
    if y < 1e-6:
        return 1.0 / y
    x = 0.5 + 1.0 / y
    for _ in range(50):
        value = float(trigamma(np.array([x]))[0])
        step = value * (1.0 - value / y) / _tetragamma(x)
        x += step
        if -step / x < 1e-10:
            break
    return x


def _tetragamma(x: float) -> float:
    """Third derivative of ln Gamma(x), x > 0: A&S 6.4.6 and 6.4.13."""
    total = 0.0
    while x < _ASYMPTOTIC:
        total -= 2.0 / x**3
        x += 1.0
    square = 1.0 / (x * x)
    series = 1 / 2 - square * (1 / 6 - square * (1 / 6 - square * (3 / 10 - square * 5 / 6)))
    return total - square - square / x - square * square * series


def t_above(t: F64, freedom: F64) -> F64:
    """P(T > t) for Student's t with `freedom` > 0 degrees of freedom, infinity being the normal; nan where t is nan.

    A&S 26.7.1 through the incomplete beta function; above 20,000 degrees 26.7.8.

    >>> t_above(np.array([2.015, 0.0]), np.array([5.0, 5.0])).round(4).tolist()
    [0.05, 0.5]
    """
    t, freedom = np.broadcast_arrays(np.asarray(t, dtype=np.float64), np.asarray(freedom, dtype=np.float64))
    above = np.full(t.shape, np.nan)
    known = ~np.isnan(t)
    normal = known & (freedom > _ALMOST_NORMAL)
    exact = known & ~normal
    if normal.any():
        nu = freedom[normal]
        z = t[normal] * (1.0 - 0.25 / nu) / np.sqrt(1.0 + t[normal] ** 2 * (0.5 / nu))
        above[normal] = 0.5 * np.asarray(_erfc(z / math.sqrt(2.0)), dtype=np.float64)
    if exact.any():
        nu, square = freedom[exact], t[exact] ** 2
        tail = 0.5 * _incomplete_beta(0.5 * nu, square, nu)
        above[exact] = np.where(t[exact] > 0, tail, 1.0 - tail)
    return above


def _incomplete_beta(a: F64, square: F64, nu: F64) -> F64:
    """I_x(a, 1/2) at x = nu / (nu + square); x and 1 - x are formed without cancellation."""
    b = np.full_like(a, 0.5)
    x, rest = nu / (nu + square), square / (nu + square)
    with np.errstate(divide="ignore"):
        log_front = _log_gamma(a + b) - _log_gamma(a) - _log_gamma(b) + a * np.log(x) + b * np.log(rest)
    front = np.exp(log_front)  # 0 where square is 0; the tail is then 1 / 2 of 1
    swapped = x > (a + 1.0) / (a + b + 2.0)
    first, second = np.where(swapped, b, a), np.where(swapped, a, b)
    part = front / _continued_fraction(first, second, np.where(swapped, rest, x), np.where(swapped, x, rest))
    return np.where(swapped, 1.0 - part, part)


def _log_gamma(x: F64) -> F64:
    return np.asarray(_lgamma(x), dtype=np.float64)


def _continued_fraction(a: F64, b: F64, x: F64, rest: F64) -> F64:
    """What x^a rest^b / B(a, b), rest = 1 - x, is divided by to give I_x(a, b), for x up to about a / (a + b): the
    continued fraction of Algorithm 708, (9), by Lentz's method. Each term does what two do of A&S 26.5.8.
    """
    slope = a * rest - b * x + 1.0
    value = c = a * slope / (a + 1.0)
    d = np.zeros_like(x)
    for n in range(1, _MAX_TERMS):
        part = x / (a + (2 * n - 1))
        odd = n * (b - n) * part
        above = (a + (n - 1)) * (a + b + (n - 1)) * part * odd
        below = n + odd + (a + n) * (slope + n * (1.0 + rest)) / (a + (2 * n + 1))
        d, c = 1.0 / (below + above * d), below + above / c
        value = value * c * d
        if np.abs(c * d - 1.0).max() < _CONVERGED:
            break
    return value


def t_exceeded(tail: F64 | float, freedom: F64) -> F64:
    """The t that is exceeded with probability `tail`, 0 < tail < 1, at `freedom` > 0, infinity being the normal.

    Newton's method on ln `t_above`, kept inside a bracket by bisection.

    >>> t_exceeded(0.05, np.array([5.0])).round(3).tolist(), t_exceeded(0.2, np.array([math.inf])).round(4).tolist()
    ([2.015], [0.8416])
    """
    tail, nu = np.broadcast_arrays(np.asarray(tail, dtype=np.float64), np.asarray(freedom, dtype=np.float64))
    if not ((tail > 0.0) & (tail < 1.0)).all():
        raise ValueError(f"a probability lies between 0 and 1; these are {np.unique(tail)}")
    sign, tail = np.where(tail > 0.5, -1.0, 1.0), np.minimum(tail, 1.0 - tail)
    low, high, t = np.zeros_like(nu), np.full_like(nu, np.inf), _near(tail, nu)
    for _ in range(_MAX_TERMS):
        above = t_above(t, nu)
        low, high = np.where(above > tail, t, low), np.where(above > tail, high, t)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            better = t + np.log(above / tail) * above / _density(t, nu)
        halved = np.where(np.isinf(high), 4.0 * t + 1.0, 0.5 * (low + high))
        better = np.where((better >= low) & (better <= high), better, halved)
        moved, t = np.abs(better - t), better
        if (moved <= _EXACT_ENOUGH * np.maximum(1.0, t)).all():
            break
    return sign * t


def _near(tail: F64, nu: F64) -> F64:
    """A first guess: A&S 26.7.5, from the quantile of the normal."""
    z = -np.asarray(_normal_quantile(tail), dtype=np.float64)
    terms = (z, (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    return np.asarray(sum(term / nu**power for power, term in enumerate(terms)), dtype=np.float64)


def _density(t: F64, nu: F64) -> F64:
    """The density of Student's t; of the normal where the freedom is too large to tell."""
    finite = np.where(nu > _ALMOST_NORMAL, 1.0, nu)
    front = np.exp(_log_gamma(0.5 * (finite + 1.0)) - _log_gamma(0.5 * finite)) / np.sqrt(finite * math.pi)
    student = front * np.exp(-0.5 * (finite + 1.0) * np.log1p(t * t / finite))
    normal = np.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)
    return np.asarray(np.where(nu > _ALMOST_NORMAL, normal, student))
