"""Decide which operators of a candidate are slower or faster, from the pairs that decide its step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from tracker.columns import F64, Flags
from tracker.detect.sides import shared_factor
from tracker.detect.statistics import LEAST_VARIANCE, median, prior_of
from tracker.experiment.decide import PAIRS_WITH_HISTORY, PAIRS_WITHOUT_HISTORY, log_e_values

USUAL_CHANGE: Final = 0.08
"""Standard deviation of the changes of an operator that are expected, a log: they are larger than those of a step."""
LEAST_CHANGE: Final = 0.02
"""As ratio - 1: a smaller change of an operator is none."""
LEAST_SHARE: Final = 0.001
"""Of the step: smaller operators are not tested."""
LEAST_FAMILY: Final = 20
"""Operators that together show how much an operator varies."""
MOST_WORTH: Final = 50.0
"""Degrees of freedom that the noise of the family is worth at most."""
FALSE_DISCOVERIES: Final = 0.05
LEAST_MEASURED: Final = 0.5
"""Of a change, as in the judgement of versions: it does not stand on the corrected shift alone."""


class OperatorDecision(Struct, frozen=True):
    """What is decided of an operator.

    `row`: its row in the arrays; `change`: of the candidate, without the shift that all operators share, the median as
    ratio - 1; `log_e`: evidence for a change; `verdict`: "slower" or "faster" where it `is_found`, else "".
    """

    row: int
    change: float
    log_e: float
    is_found: bool
    verdict: str


class _FamilyNoise(Struct, frozen=True, eq=False):
    """Variance of the difference of a pair, of each operator, drawn towards that of all, and its degrees of freedom."""

    variance: F64
    freedom: F64


def decide_operators(
    baseline: F64, candidate: F64, step_ns: F64, history: Sequence[F64] = ()
) -> list[OperatorDecision]:
    """Return what is decided of each operator that is tested, in the order of the rows.

    - `baseline`, `candidate` (operators, pairs): logs of the time of an operator (ns) in the run of each side, nan
      where it is not in that run.
    - `step_ns` (pairs,): the step of both sides, a mean, nan for unknown.
    - `history`: logs (operators, runs) of earlier runs, in the same rows, one array per version and host.

    Tested are operators of 0.1 % of the step or more that both runs of at least 2 pairs have, without a history (of 20
    operators at least) of 4 pairs. A pair counts for an operator where both of its runs have it; what is missing is not
    0. At most 5 of 100 changes that are found are false on average, at whatever pair one looks: Wang and Ramdas (2022),
    False discovery rate control with e-values.
    """
    if not baseline.size:
        return []
    pair_count = (~np.isnan(candidate - baseline)).sum(axis=1)
    is_large = _find_large(baseline, candidate, step_ns)
    rows = np.flatnonzero(is_large & (pair_count >= PAIRS_WITH_HISTORY))
    noise = _noise_of_history([group[rows] for group in history])
    if noise is None:
        rows = np.flatnonzero(is_large & (pair_count >= PAIRS_WITHOUT_HISTORY))
    if not len(rows):
        return []
    measured = candidate[rows] - baseline[rows]
    differences = measured - _shift_of_pairs(baseline[rows], candidate[rows])
    log_e = _evidence_of_operators(differences, noise)
    change = median(differences, axis=1)
    is_enough = np.abs(change) >= math.log1p(LEAST_CHANGE)
    # the e-value is of the mean: where that has the other sign, single runs decide
    is_one_direction = np.sign(np.nanmean(differences, axis=1)) == np.sign(change)
    is_measured = median(measured, axis=1) * np.sign(change) >= LEAST_MEASURED * np.abs(change)
    is_found = find_changed(log_e) & is_enough & is_one_direction & is_measured
    decisions = []
    for place, row in enumerate(rows.tolist()):
        verdict = ""
        if is_found[place]:
            verdict = "slower" if change[place] > 0 else "faster"
        decisions.append(
            OperatorDecision(
                row=row,
                change=math.expm1(change[place]),
                log_e=float(log_e[place]),
                is_found=bool(is_found[place]),
                verdict=verdict,
            )
        )
    return decisions


def _find_large(baseline: F64, candidate: F64, step_ns: F64) -> Flags:
    """Return which operators make up 0.1 % of the step, by the mean of both sides: neither choice of sides matters."""
    times = 0.5 * (np.exp(median(baseline, axis=1)) + np.exp(median(candidate, axis=1)))
    step = float(median(np.asarray(step_ns, dtype=np.float64)[None, :], axis=1)[0])
    return np.asarray(times >= LEAST_SHARE * step)


def _shift_of_pairs(baseline: F64, candidate: F64) -> F64:
    """Return by how much all operators together are longer in the candidate's run of each pair (pairs,), a log."""
    is_candidate = np.repeat([False, True], baseline.shape[1])
    shift = shared_factor(np.hstack([baseline, candidate]), ~is_candidate, is_candidate, LEAST_FAMILY)
    return np.asarray(shift[is_candidate] - shift[~is_candidate])


def _noise_of_history(history: Sequence[F64]) -> _FamilyNoise | None:
    """Return how much the difference of a pair varies, from earlier runs; None where fewer than 20 operators have them.

    Runs of a group are compared with their own mean, without the shift that all operators share in a run.
    """
    if not history:
        return None
    operators = len(history[0])
    squares, freedom = np.zeros(operators), np.zeros(operators)
    for group in history:
        is_run = np.ones(group.shape[1], dtype=bool)
        logs = group - shared_factor(group, is_run, ~is_run, LEAST_FAMILY)
        group_squares, group_freedom = _squares_about_mean(logs)
        squares += group_squares
        freedom += group_freedom
    has_history = freedom > 0
    if has_history.sum() < LEAST_FAMILY:
        return None
    # a pair is two runs
    own = np.maximum(2.0 * squares / np.maximum(freedom, 1.0), LEAST_VARIANCE)
    common, worth = prior_of(own[has_history], freedom[has_history])
    worth = min(worth, MOST_WORTH)
    return _FamilyNoise(variance=(worth * common + freedom * own) / (worth + freedom), freedom=worth + freedom)


def _squares_about_mean(values: F64) -> tuple[F64, F64]:
    """Return the sum of squares of each row about its mean, and its degrees of freedom; nan does not count."""
    is_there = ~np.isnan(values)
    count = is_there.sum(axis=1)
    mean = np.where(is_there, values, 0.0).sum(axis=1) / np.maximum(count, 1)
    squares = np.where(is_there, (values - mean[:, None]) ** 2, 0.0).sum(axis=1)
    return squares, np.maximum(count - 1.0, 0.0)


def _evidence_of_operators(differences: F64, noise: _FamilyNoise | None) -> F64:
    """Return the log of the e-value of each operator (operators, pairs); nan pairs do not count.

    Without a history the pairs themselves show what the operators share, and what each of them adds counts once.
    """
    squares, freedom = _squares_about_mean(differences)
    own = np.maximum(squares / freedom, LEAST_VARIANCE)
    mean = np.nanmean(differences, axis=1)
    if noise is not None:
        spread = noise.freedom * noise.variance + freedom * own
        return log_e_values(freedom + 1.0, mean, spread, USUAL_CHANGE**2 / noise.variance, noise.freedom)
    common, worth = 0.0, 0.0
    if len(differences) >= LEAST_FAMILY:
        common, worth = prior_of(own, freedom)
        worth = min(worth, MOST_WORTH)
    spread = worth * common + freedom * own
    variance = spread / (worth + freedom)
    return log_e_values(freedom + 1.0, mean, spread, USUAL_CHANGE**2 / variance, worth)


def find_changed(log_e: F64) -> Flags:
    """Return which e-values of a family are discoveries, by e-BH: the k largest, for the largest k of which the k-th is
    at least family / (0.05 k). At most 5 of 100 discoveries are false on average, under any dependence.

    >>> find_changed(np.log([30.0, 5.0, 45.0])).tolist()
    [True, False, True]
    """
    order = np.argsort(-log_e, kind="stable")
    ranks = np.arange(1, len(log_e) + 1)
    is_enough = log_e[order] >= np.log(len(log_e) / (FALSE_DISCOVERIES * ranks))
    found = np.zeros(len(log_e), dtype=bool)
    if is_enough.any():
        found[order[: ranks[is_enough][-1]]] = True
    return found
