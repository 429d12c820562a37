"""Counts what was judged of what was expected."""

from __future__ import annotations

from typing import Final

import numpy as np

from tracker.columns import I64, Flags
from tracker.detect.series import SeriesTraits
from tracker.detect.thresholds import Thresholds
from tracker.detect.verdicts import CHANGES, JudgedSeries, Reason, Verdict
from tracker.results.coverage import Coverage

_WHY_NOT: Final = {
    "settings": Reason.SETTINGS,
    "lost": Reason.INCOMPLETE,
    "other_work": Reason.OTHER_WORK,
    "other_host": Reason.HOST,
    "throttled": Reason.THROTTLED,
}
"""Field of a Coverage -> the reason that it counts."""


def count_coverage(judged: JudgedSeries, reasons: I64, series: SeriesTraits, limits: Thresholds) -> Coverage:
    """Return how many series were judged. `reasons` (series,): of the verdicts as they are stated."""
    is_change = np.isin(judged.verdict, CHANGES)
    # what the runs of the version do not state of the step, no further run of them would
    is_not_stated = series.of_step & (judged.new_runs == 0) & (reasons == Reason.FEW_NEW)
    is_expected = (judged.verdict != Verdict.ABSENT) & ~is_not_stated
    small = is_expected & ~is_change & _is_small(judged, series, limits)
    left = is_expected & ~small
    counts: dict[str, int] = {"small": int(small.sum())}
    for name, reason in _WHY_NOT.items():
        own = left & ~is_change & (reasons == reason)
        counts[name] = int(own.sum())
        left &= ~own
    waits = (judged.verdict == Verdict.TOO_FEW_RUNS) | (judged.verdict == Verdict.SUSPECT) | (judged.suspect != 0)
    few = left & ~is_change & waits
    return Coverage(judged=int((left & ~few).sum()), few_runs=int(few.sum()), **counts)


def _is_small(judged: JudgedSeries, series: SeriesTraits, limits: Thresholds) -> Flags:
    """Return which series have no verdict since they cost too little of the step."""
    is_compared = (judged.base_runs > 0) & (judged.new_runs > 0)
    with np.errstate(invalid="ignore"):
        is_untested = is_compared & np.isnan(judged.p) & (judged.freedom > 0)
        # of one side alone, the change is all of it
        is_one_sided_and_small = ~is_compared & (np.abs(judged.contribution) < limits.tested)
    # an operator that certainly came or went, and costs too little to be a finding
    comes_or_goes = (judged.verdict == Verdict.TOO_FEW_RUNS) & (judged.reason == Reason.CONTRIBUTION)
    return np.asarray(~series.of_step & (is_untested | is_one_sided_and_small | comes_or_goes))
