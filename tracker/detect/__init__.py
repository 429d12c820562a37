"""Judging: pure functions of numbers (series x runs), without a database."""

from tracker.detect.judge import CHANGES, Judgement, Reason, Verdict, judge_version
from tracker.detect.series import Key, Kind, Series, series_of
from tracker.detect.shared_factor import shared_factor
from tracker.detect.sides import Window
from tracker.detect.thresholds import DEFAULTS, Thresholds

__all__ = [
    "CHANGES",
    "DEFAULTS",
    "Judgement",
    "Key",
    "Kind",
    "Reason",
    "Series",
    "Thresholds",
    "Verdict",
    "Window",
    "judge_version",
    "series_of",
    "shared_factor",
]
