"""Series that came, went, or are called more often: findings that no test of durations can make."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from tracker.detectors import arrays, rule
from tracker.detectors.arrays import BOOL, F64, I64, Columns, counts, mean_of_rows
from tracker.detectors.verdicts import Rung, ladder
from tracker.results.verdicts import BELOW_FLOOR


class CallSplit(Struct, frozen=True):
    """A change of time in two parts that add up exactly: `by_calls` + `by_time_per_call` = after - before."""

    by_calls: F64
    by_time_per_call: F64


def split_by_calls(calls0: F64, time0: F64, calls1: F64, time1: F64) -> CallSplit:
    """More calls or slower calls: dt = dn * t0 + n1 * dt_mean (JUDGEMENT 1), per series.

    t0 is the time per call before. Where there were no calls before or are none after, all of it is by calls; nan where
    a count or a time is unknown.

    >>> split = split_by_calls(np.array([2.0]), np.array([10.0]), np.array([4.0]), np.array([24.0]))
    >>> split.by_calls.tolist(), split.by_time_per_call.tolist()
    ([10.0], [4.0])
    """
    both = (calls0 > 0) & (calls1 > 0)
    per_call = np.divide(time0, calls0, out=np.zeros_like(time0), where=both)
    by_calls = np.where(both, (calls1 - calls0) * per_call, time1 - time0)
    unknown = np.isnan(calls0) | np.isnan(calls1) | np.isnan(time0) | np.isnan(time1)
    by_calls = np.where(unknown, np.nan, by_calls)
    return CallSplit(by_calls, time1 - time0 - by_calls)


def judge_presence(
    baseline: F64, candidate: F64, step: float, *, min_contribution: float | F64 = rule.MIN_CONTRIBUTION
) -> Columns:
    """Which series are in all runs of one side and in none of the other (JUDGEMENT 4.10): ADDED or REMOVED.

    `baseline` (n, A), `candidate` (n, B): time per step of each run; nan or 0: the run does not have it. `step`: the
    larger step of the two sides, same unit. Judged by contribution alone: below `min_contribution` of the step the
    verdict is BELOW_LIMIT. One candidate run may lack anything by chance: it gives SUSPECT. Series that both sides
    have, or that only some runs of a side have, get verdict "" and are judged by their time.

    Columns: `contribution` (signed fraction of the step), `verdict`, `reason`.
    """
    one, other = arrays.pair(baseline, candidate)
    runs = [counts(np.where(side > 0, side, np.nan)) for side in (one, other)]
    added = (runs[0] == 0) & (runs[1] == other.shape[1]) & (runs[1] > 0) & (one.shape[1] > 0)
    removed = (runs[1] == 0) & (runs[0] == one.shape[1]) & (runs[0] > 0) & (other.shape[1] > 0)
    time = np.where(added, mean_of_rows(other), np.where(removed, -mean_of_rows(one), np.nan))
    contribution = time / step
    matters = np.abs(contribution) >= min_contribution - rule.ROUNDING
    single = min(one.shape[1], other.shape[1]) < rule.FINDING_RUNS
    word = np.where(added, rule.ADDED, rule.REMOVED)
    found = added | removed
    verdict = np.where(~found, "", np.where(~matters, rule.BELOW_LIMIT, rule.SUSPECT if single else word))
    side = np.where(added, "only the candidate has it", "only the baseline has it")
    reason = np.where(~found, "", np.where(matters, side, BELOW_FLOOR))
    return {"contribution": contribution, "verdict": verdict, "reason": reason}


def judge_calls(
    baseline_calls: F64,
    candidate_calls: F64,
    baseline_time: F64,
    candidate_time: F64,
    step: float,
    *,
    limits: rule.Limits | None = None,
) -> Columns:
    """Which series are called more or less often: another finding than slower calls.

    `..._calls`, `..._time` (n, runs): calls and time per step of each run, nan for a run without the series. `step`:
    the larger step, in the unit of the times. Counts hardly vary: no test is needed. REGRESSED (more calls) or IMPROVED
    (fewer) when every candidate count lies beyond every baseline count, the median count differs by `min_ratio`, and
    the part of the change of time that the calls make is at least `min_contribution` of the step. One run on a side
    gives SUSPECT. Else UNCHANGED; TOO_FEW_RUNS where a side has no run.

    Columns: `baseline_calls`, `candidate_calls` (medians), `by_calls`, `by_time_per_call` (unit of the times),
    `contribution` (of the calls, signed fraction of the step), `verdict`, `reason`.
    """
    limits = limits or rule.Limits()
    calls0, calls1 = arrays.pair(baseline_calls, candidate_calls)
    time0, time1 = arrays.pair(baseline_time, candidate_time)
    before, after = (arrays.median_of_rows(side) for side in (calls0, calls1))
    split = split_by_calls(before, mean_of_rows(time0), after, mean_of_rows(time1))
    contribution = split.by_calls / step
    more, fewer = beyond(calls0, calls1), beyond(calls1, calls0)
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = np.abs(np.log(after / before)) >= limits.effect - rule.ROUNDING
    matters = np.abs(contribution) >= limits.min_contribution - rule.ROUNDING
    runs: tuple[I64, I64] = (counts(calls0), counts(calls1))
    few = (runs[0] == 0) | (runs[1] == 0)
    single = np.minimum(*runs) < rule.FINDING_RUNS
    found = (more | fewer) & effect & matters
    rungs: list[Rung] = [
        (few, rule.TOO_FEW_RUNS, "a side without the series"),
        (found & single & more, rule.SUSPECT, "more calls"),
        (found & single, rule.SUSPECT, "fewer calls"),
        (found & more, rule.REGRESSED, "more calls"),
        (found, rule.IMPROVED, "fewer calls"),
        (before == after, rule.UNCHANGED, "as many calls"),
        (matters, rule.UNCHANGED, "fewer or more calls, but not in every run or by too little"),
    ]
    verdict, reason = ladder(rungs, rule.UNCHANGED, BELOW_FLOOR)
    return {
        "baseline_calls": before,
        "candidate_calls": after,
        "by_calls": split.by_calls,
        "by_time_per_call": split.by_time_per_call,
        "contribution": contribution,
        "verdict": verdict,
        "reason": reason,
    }


def beyond(low: F64, high: F64) -> BOOL:
    """Whether every known value of a row of `high` is larger than every one of `low`."""
    top = np.where(np.isnan(low), -np.inf, low).max(axis=1, initial=-np.inf)
    bottom = np.where(np.isnan(high), np.inf, high).min(axis=1, initial=np.inf)
    return np.asarray(np.isfinite(top) & np.isfinite(bottom) & (bottom > top))
