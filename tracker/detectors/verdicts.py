"""From the evidence of a family to one word and one reason per series."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.detectors import rule
from tracker.detectors._distributions import t_exceeded
from tracker.detectors.arrays import BOOL, F64, I64, Columns
from tracker.detectors.rule import Limits
from tracker.results.verdicts import BELOW_FLOOR, TOO_NOISY

Rung = tuple[BOOL, str, str]
"""Where it holds, and the verdict and the reason that it gives: see `ladder`."""


class Evidence(Struct, frozen=True):
    """What the runs say of each series; one element per series in every field.

    `d`, `standard_error`, `freedom`: change as a log, its error (nan: unknown) and degrees of freedom. `p`, `q`: in the
    direction of d, nan where not tested. `contribution`: signed fraction of the step. `large`: at least 0.01 % of the
    step on either side. `apart`: all candidate runs lie beyond all baseline runs, on the side that d points to.
    """

    d: F64
    standard_error: F64
    freedom: F64
    p: F64
    q: F64
    contribution: F64
    large: BOOL
    apart: BOOL
    baseline_runs: I64
    candidate_runs: I64


def verdicts(evidence: Evidence, limits: Limits, *, called_only: bool = False) -> Columns:
    """One row per series: the value of every gate, the verdict and the reason (JUDGEMENT 4.7 and 4.8).

    The columns are those of `judging.Judged`. `called_only`: of series that are no finding and no suspicion, interval
    and detectable change are left nan, and UNCHANGED is not told from INCONCLUSIVE: most of the work goes into those.
    """
    e = evidence
    size = np.abs(e.d)
    effect = size >= limits.effect - rule.ROUNDING
    significant = e.q <= limits.alpha
    matters = e.large & (np.abs(e.contribution) >= limits.min_contribution - rule.ROUNDING)
    freedom = np.where(effect & matters & (significant | e.apart), e.freedom, 0.0) if called_only else e.freedom
    interval, chance, power = exceeded(freedom, 0.05, _tail_of_discoveries(e, limits.alpha), 1.0 - rule.POWER)
    half_width = interval * e.standard_error
    # the smallest slow-down that these runs would show four times in five: (t_{1-a} + t_{0.8}) standard errors
    detectable = np.full(len(size), np.nan) if np.isnan(e.q).all() else np.expm1((chance + power) * e.standard_error)
    inside = size + half_width <= limits.effect + rule.ROUNDING
    verdict, reason = _ladder(e, effect, significant, matters, inside)
    return {
        "ratio": np.expm1(e.d),
        "low": np.expm1(e.d - half_width),
        "high": np.expm1(e.d + half_width),
        "t": e.d / e.standard_error,
        "freedom": e.freedom,
        "p": e.p,
        "q": e.q,
        "contribution": e.contribution,
        "detectable": detectable,
        "effect_passes": effect,
        "q_passes": significant,
        "contribution_passes": matters,
        "baseline_runs": e.baseline_runs,
        "candidate_runs": e.candidate_runs,
        "verdict": verdict,
        "reason": reason,
    }


def _ladder(
    e: Evidence, effect: BOOL, significant: BOOL, matters: BOOL, inside: BOOL
) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Verdict and reason per series: the first rung whose condition holds."""
    fewer, more = np.minimum(e.baseline_runs, e.candidate_runs), np.maximum(e.baseline_runs, e.candidate_runs)
    unknown = np.isnan(e.standard_error)
    passes = effect & matters
    single = fewer < rule.FINDING_RUNS
    rungs: list[Rung] = [
        (e.baseline_runs == 0, rule.TOO_FEW_RUNS, "no baseline run has it"),
        (e.candidate_runs == 0, rule.TOO_FEW_RUNS, "no candidate run has it"),
        (unknown, rule.TOO_FEW_RUNS, "one run against one: nothing says how much it varies"),
        (passes & significant & ~single & (e.d > 0), rule.REGRESSED, "effect, q and contribution pass"),
        (passes & significant & ~single, rule.IMPROVED, "effect, q and contribution pass"),
        (passes & significant & single, rule.SUSPECT, "effect, q and contribution pass, on a single run"),
        (passes & e.apart & single & (more > 1), rule.SUSPECT, "beyond all runs of the other side, on a single run"),
        (passes & (more == 1), rule.TOO_FEW_RUNS, "effect and contribution pass, q does not, on one run each"),
        (passes, rule.INCONCLUSIVE, "effect and contribution pass, q does not"),
        (inside, rule.UNCHANGED, "the 90 % interval lies within the smallest change that matters"),
        (effect & significant, rule.BELOW_LIMIT, BELOW_FLOOR),
        (significant, rule.BELOW_LIMIT, "q passes, but the change is smaller than what matters"),
    ]
    return ladder(rungs, rule.INCONCLUSIVE, TOO_NOISY)


def ladder(rungs: Sequence[Rung], verdict: str, reason: str) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Verdict and reason per series, of the first rung whose condition holds; `verdict`, `reason`: where none does."""
    first = np.select([condition for condition, _, _ in rungs], range(len(rungs)), len(rungs))
    words = [(word, why) for _, word, why in rungs] + [(verdict, reason)]
    verdicts_of, reasons_of = (np.array(column, dtype=object) for column in zip(*words, strict=True))
    return verdicts_of[first], reasons_of[first]


def _tail_of_discoveries(e: Evidence, alpha: float) -> float:
    """The p that a discovery must reach: alpha k / m, with m tests and k discoveries, at least one (JUDGEMENT 4.7)."""
    tests, found = int((~np.isnan(e.q)).sum()), e.q <= alpha
    discoveries = max(1, int((found & (e.d > 0)).sum()), int((found & (e.d < 0)).sum()))
    return alpha * discoveries / max(1, tests)


def exceeded(freedom: F64, *tails: float) -> list[F64]:
    """For each of `tails` the t that is exceeded with that probability, per freedom; nan where that is 0."""
    # freedoms repeat, so few quantiles are computed; whole ones, without a prior, come again and again
    distinct, place = np.unique(freedom, return_inverse=True)
    values = np.full((len(tails), len(distinct)), np.nan)
    whole = np.array([number.is_integer() for number in distinct.tolist()], dtype=bool) & (distinct > 0)
    values[:, whole] = [[_exceeded_once(tail, number) for number in distinct[whole].tolist()] for tail in tails]
    rest = (distinct > 0) & ~whole
    if rest.any():
        values[:, rest] = t_exceeded(np.array(tails)[:, None], distinct[rest])
    return list(values[:, place])


@lru_cache(maxsize=4096)
def _exceeded_once(tail: float, freedom: float) -> float:
    return float(t_exceeded(tail, np.array([freedom]))[0])
