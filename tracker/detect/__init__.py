"""Judging: pure functions of numbers (series x runs), without a database."""

from tracker.detect.judge import judge_version
from tracker.detect.series import KindCode, SeriesTraits, series_of, traits_of
from tracker.detect.sides import Window, shared_factor
from tracker.detect.thresholds import DEFAULTS, Thresholds, words_of_limits
from tracker.detect.verdicts import CHANGES, JudgedSeries, Reason, Verdict

__all__ = [
    "CHANGES", "DEFAULTS", "JudgedSeries", "KindCode", "Reason", "SeriesTraits", "Thresholds", "Verdict",
    "Window", "judge_version", "series_of", "shared_factor", "traits_of", "words_of_limits",
]  # fmt: skip
