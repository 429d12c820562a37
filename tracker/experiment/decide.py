"""Decide from pairs of runs whether a candidate is slower than its baseline, and whether more pairs are needed.

A pair is one run of each side; its number is y = log(candidate) - log(baseline) of the step. All functions are pure, on
arrays whose last axis is the pairs in order of time; docs/ab.md has the method and how often it is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Final

import numpy as np
from msgspec import Struct

from tracker.columns import F64, I64, Flags
from tracker.detect.statistics import median
from tracker.profile.experiments import MOST_RUNS

ENOUGH: Final = 20.0
"""The e-value that decides: at most 1 of 20 experiments without a change reaches it, however often one looks."""
USUAL_CHANGE: Final = 0.05
"""Standard deviation of the changes that are expected, a log: the e-value finds changes of this size soonest."""
LEAST_NOISE: Final = 0.001
"""Of a log, so that equal numbers prove nothing by themselves."""
HISTORY_FREEDOM: Final = 3.0
"""Degrees of freedom that the noise of the history is worth. With 8, a history that was twice as quiet as today made 13
to 16 of 100 decisions false.
"""
PAIRS_WITH_HISTORY: Final = 2
"""Nothing is decided before."""
PAIRS_WITHOUT_HISTORY: Final = 4
"""Nothing is decided before: these pairs give the noise."""
MOST_PAIRS: Final = MOST_RUNS // 2
LEAST_DIFFERENCES: Final = 3
"""Differences that the noise of a history needs: as many as the degrees of freedom that it counts for."""
_BOUND: Final = 4.0
"""Standard deviations from which a difference is an outlier."""
_DEVIATION: Final = 0.6745
"""Standard deviations within which half of a normal distribution lies."""


class Word(IntEnum):
    """What the pairs so far show; the name of a member in WORDS."""

    UNDECIDED = 0
    NO_DIFFERENCE = 1
    SLOWER = 2
    FASTER = 3


WORDS: Final = ("", "no difference", "slower", "faster")


class Looks(Struct, frozen=True, eq=False):
    """What is known after each pair; all arrays (..., pairs).

    `change`: the median of y as measured, a log; `low`, `high`: the interval of the change, logs, -inf and inf where it
    is open; `log_e`: evidence for a change; `bounded`: how many y so far were bounded; `words`: as in Word.
    """

    change: F64
    low: F64
    high: F64
    log_e: F64
    bounded: I64
    words: I64


class Decision(Struct, frozen=True):
    """What is decided after some pairs.

    `word`: "slower", "faster", "no difference", or "" for not decided; `change`: of the candidate, the median as
    measured, as ratio - 1; `low`, `high`: its interval as ratio - 1, None where that end is not known yet, or lies
    beyond the bound of single pairs; `bounded`: how many pairs were bounded; `limit`: that of "no difference", as ratio
    - 1; `noise_sd`: of a pair, a log, None where it is not known yet; `has_history`: whether that is from earlier runs.
    """

    word: str
    change: float
    low: float | None
    high: float | None
    pairs: int
    bounded: int
    log_e: float
    limit: float
    noise_sd: float | None
    has_history: bool

    @property
    def leaves_out_zero(self) -> bool:
        """Whether the interval excludes "no change at all", as in "1.2 % slower, less than the limit of 5 %"."""
        is_above = self.low is not None and self.low > 0
        is_below = self.high is not None and self.high < 0
        return is_above or is_below


def noise_of_history(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the noise of a pair from earlier runs, the standard deviation of y; None with fewer than 3 differences.

    `groups`: logs of step times of the last runs of a track, one list per version and host, in order of time. Runs are
    compared with their neighbours alone, as the runs of a pair are: a slow drift and another version are no noise. The
    larger of two estimates counts: median absolute difference / 0.6745, and the root mean square of the differences,
    bounded at 4 of the former. At least 0.1 %.

    >>> round(noise_of_history([[4.60, 4.63, 4.59], [4.70, 4.72]]), 3)
    0.044
    """
    differences = np.concatenate([np.zeros(0), *(np.diff(np.asarray(group, dtype=np.float64)) for group in groups)])
    if len(differences) < LEAST_DIFFERENCES:
        return None
    return float(noise_of_differences(differences))


def noise_of_differences(differences: F64) -> F64:
    """Return the noise of a pair from differences of neighbouring runs (..., differences), as `noise_of_history`."""
    robust = np.median(np.abs(differences), axis=-1) / _DEVIATION
    # half of the runs may be equal, where their source rounds
    bound = _BOUND * np.maximum(robust, LEAST_NOISE)[..., None]
    bounded = np.clip(differences, -bound, bound)
    root_mean_square = np.sqrt(np.mean(bounded**2, axis=-1))
    return np.asarray(np.maximum(np.maximum(robust, root_mean_square), LEAST_NOISE))


def noise_of_pairs(log_ratios: Sequence[float] | F64) -> float | None:
    """Return the noise of a pair from the first 4 pairs, their standard deviation; None with fewer. At least 0.1 %.

    >>> round(noise_of_pairs([0.02, 0.06, 0.02, 0.06, 0.9]), 4)
    0.0231
    """
    pairs = np.asarray(log_ratios, dtype=np.float64)
    if len(pairs) < PAIRS_WITHOUT_HISTORY:
        return None
    return float(_noise_of_first_pairs(pairs))


def _noise_of_first_pairs(log_ratios: F64) -> F64:
    """Return the noise of each row by its first 4 pairs (..., pairs); inf of fewer: nothing is bounded or decided."""
    if log_ratios.shape[-1] < PAIRS_WITHOUT_HISTORY:
        return np.full(log_ratios.shape[:-1], np.inf)
    deviation = np.std(log_ratios[..., :PAIRS_WITHOUT_HISTORY], axis=-1, ddof=1)
    return np.asarray(np.maximum(deviation, LEAST_NOISE))


def log_e_values(count: F64 | I64, mean: F64, spread: F64, gain: F64 | float, freedom: F64 | float) -> F64:
    """Return the log of the e-value against "no change" of pairs with this mean.

    Normal noise of unknown variance, about which a prior is worth `freedom` degrees; changes of which the variance is
    `gain` times that of the noise. `spread`: that freedom times the prior variance, and the sum of squares about the
    mean. An e-value of 20 or more is reached by chance in at most 5 of 100 sequences of pairs.

    >>> y, count = np.array([0.06, 0.05, 0.07]), np.arange(1, 4)
    >>> mean = y.cumsum() / count
    >>> spread = 3 * 0.02**2 + (y**2).cumsum() - count * mean**2
    >>> log_e = log_e_values(count, mean, spread, (0.05 / 0.02) ** 2, 3.0)
    >>> [f"{e_value:.1f}" for e_value in np.exp(log_e)]
    ['3.0', '10.4', '55.4']
    """
    squares = count * mean**2
    growth = 1.0 + count * gain
    evidence = 0.5 * (freedom + count) * (np.log(spread + squares) - np.log(spread + squares / growth))
    return np.asarray(evidence - 0.5 * np.log(growth))


def half_widths(count: F64 | I64, spread: F64, gain: F64 | float, freedom: F64 | float) -> F64:
    """Return the distance from the mean of the changes that an e-value of 20 rules out; inf where it rules out none.

    As `log_e_values`, solved for the mean.
    """
    growth = 1.0 + count * gain
    ratio = np.exp(2.0 / (freedom + count) * (math.log(ENOUGH) + 0.5 * np.log(growth)))
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = spread * (ratio - 1.0) / (1.0 - ratio / growth)
    return np.asarray(np.sqrt(np.where(ratio < growth, squares, np.inf) / count))


def look_after_each_pair(log_ratios: F64, limit: float, noise_sd: F64 | None) -> Looks:
    """Return what is known of experiments after each of their pairs.

    `log_ratios` (..., pairs): y, finite; `limit`: of "no difference", as ratio - 1; `noise_sd` (...): from the history;
    None without, then the first 4 pairs give it, and count once, as pairs.

    A y beyond 4 `noise_sd` and beyond twice the limit counts as at that bound, so that one bad run decides nothing. The
    interval is that of the bounded y of all pairs so far, not of what earlier looks leave: it is never empty, and is
    above 0 where the e-value is 20. Where it does not reach the median as measured, which is what is printed, it is
    extended to it; where the median itself lies beyond the bound, that end is open. So nothing is decided that the
    printed change contradicts.
    """
    if noise_sd is None:
        noise, freedom, first = _noise_of_first_pairs(log_ratios), 0.0, PAIRS_WITHOUT_HISTORY
    else:
        noise, freedom, first = np.maximum(noise_sd, LEAST_NOISE), HISTORY_FREEDOM, PAIRS_WITH_HISTORY
    noise = noise[..., None]
    # In logs the bound and the limit are the same on both sides, so that swapped sides give the mirrored answer.
    log_limit = math.log1p(limit)
    bound = np.maximum(_BOUND * noise, 2.0 * log_limit)
    values = np.clip(log_ratios, -bound, bound)
    count = np.arange(1, log_ratios.shape[-1] + 1)
    mean = np.cumsum(values, axis=-1) / count
    squares = np.cumsum(values**2, axis=-1) - count * mean**2
    # rounded times may be equal
    spread = np.maximum(squares, LEAST_NOISE**2 * (count - 1))
    if noise_sd is not None:
        spread = spread + freedom * noise**2
    gain = (USUAL_CHANGE / noise) ** 2
    # Without history the first pairs are measured once there are enough of them to say how they vary.
    is_measured = (count >= first) | (noise_sd is not None)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_e = np.where(is_measured, log_e_values(count, mean, spread, gain, freedom), 0.0)
        half = np.where(is_measured, half_widths(count, spread, gain, freedom), np.inf)
    change = _running_median(log_ratios)
    low = np.where(change < -bound, -np.inf, np.minimum(mean - half, change))
    high = np.where(change > bound, np.inf, np.maximum(mean + half, change))
    may_decide = count >= first
    is_within = (low > -log_limit) & (high < log_limit)
    words = np.select(
        [may_decide & is_within, may_decide & (low > 0), may_decide & (high < 0)],
        [int(Word.NO_DIFFERENCE), int(Word.SLOWER), int(Word.FASTER)],
        int(Word.UNDECIDED),
    )
    bounded = np.where(is_measured, np.cumsum(values != log_ratios, axis=-1), 0)
    return Looks(change=change, low=low, high=high, log_e=log_e, bounded=bounded, words=words)


def _running_median(values: F64) -> F64:
    """Return the median of the first values of each row, up to each (..., pairs)."""
    medians = np.empty_like(values)
    for count in range(1, values.shape[-1] + 1):
        medians[..., count - 1] = median(values[..., :count], axis=-1)
    return medians


def decide(log_ratios: Sequence[float] | F64, *, limit: float, noise_sd: float | None) -> Decision:
    """Return what is decided after these pairs, at least one.

    `log_ratios`: y of each pair, in order of time; `limit` > 0: a difference below it is none that matters, as ratio -
    1; `noise_sd`: from `noise_of_history`, None without one. In this order: the interval lies within the limit, "no
    difference"; it lies above or below 0, "slower" or "faster" (the e-value is 20 or more); else "". Nothing is decided
    before the second pair, without history before the fourth. `look_after_each_pair` has the interval.

    >>> decide([0.06, 0.05, 0.07], limit=0.05, noise_sd=0.02).word
    'slower'
    >>> decide([0.001, -0.002, 0.002], limit=0.05, noise_sd=0.002).word
    'no difference'
    """
    pairs = np.asarray(log_ratios, dtype=np.float64)
    history = None if noise_sd is None else np.asarray(noise_sd, dtype=np.float64)
    looks = look_after_each_pair(pairs, limit, history)
    low, high = float(looks.low[-1]), float(looks.high[-1])
    return Decision(
        word=WORDS[looks.words[-1]],
        change=math.expm1(looks.change[-1]),
        low=math.expm1(low) if math.isfinite(low) else None,
        high=math.expm1(high) if math.isfinite(high) else None,
        pairs=len(pairs),
        bounded=int(looks.bounded[-1]),
        log_e=float(looks.log_e[-1]),
        limit=limit,
        noise_sd=noise_of_pairs(pairs) if noise_sd is None else max(noise_sd, LEAST_NOISE),
        has_history=noise_sd is not None,
    )


def expected_pairs(noise_sd: float, limit: float, *, has_history: bool = True, most: int = MOST_PAIRS) -> int:
    """Return after how many pairs an experiment of two equal builds is expected to be decided; at most `most`.

    The first number of pairs after which the interval about a mean that is as far from 0 as half of all means lies
    within the limit. A change as large as the limit is found a little sooner.

    >>> [expected_pairs(noise, 0.05) for noise in (0.003, 0.02, 0.05)]
    [2, 5, 18]
    """
    noise = max(noise_sd, LEAST_NOISE)
    first = PAIRS_WITH_HISTORY if has_history else PAIRS_WITHOUT_HISTORY
    counts = np.arange(float(first), most + 1.0)
    typical_mean = _DEVIATION * noise / np.sqrt(counts)
    half = _expected_half_widths(counts, noise, noise, has_history=has_history)
    return _first_count(counts, half + typical_mean < math.log1p(limit))


def _expected_half_widths(counts: F64, noise: float, prior_noise: float, *, has_history: bool) -> F64:
    """Return half of the interval after `counts` pairs that vary by `noise`."""
    freedom = HISTORY_FREEDOM if has_history else 0.0
    spread = noise**2 * (freedom + counts - 1.0)
    return half_widths(counts, spread, (USUAL_CHANGE / prior_noise) ** 2, freedom)


def _first_count(counts: F64, is_decided: Flags) -> int:
    """Return the first number of pairs at which something is decided, else the last."""
    if not is_decided.any():
        return int(counts[-1])
    return int(counts[is_decided.argmax()])


def expected_pairs_left(decision: Decision, *, most: int = MOST_PAIRS) -> int:
    """Return how many more pairs are expected until a decision: 0 where there is one, or after `most` pairs.

    Further pairs vary as those so far, and their mean stays: until the interval leaves out 0 or lies within the limit,
    whichever is sooner. Where an end of the interval is not known, as `expected_pairs`; where not even the noise is,
    the pairs until then.
    """
    pairs = decision.pairs
    remaining = max(most - pairs, 0)
    if decision.word or not remaining:
        return 0
    if decision.noise_sd is None:
        return min(remaining, PAIRS_WITHOUT_HISTORY - pairs)
    has_history = decision.has_history
    if decision.low is None or decision.high is None:
        expected = expected_pairs(decision.noise_sd, decision.limit, has_history=has_history, most=most)
        return min(remaining, max(expected - pairs, 1))
    low, high = math.log1p(decision.low), math.log1p(decision.high)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    needed = max(abs(middle), math.log1p(decision.limit) - abs(middle))
    counts = np.arange(float(pairs), most + 1.0)
    # the width of an interval is proportional to the noise of its pairs
    unit_half = _expected_half_widths(counts, 1.0, decision.noise_sd, has_history=has_history)
    expected = _first_count(counts, unit_half * (half / unit_half[0]) < needed)
    return min(remaining, max(expected - pairs, 1))
