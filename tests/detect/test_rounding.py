"""A change within what the sources of both sides round is none."""

from __future__ import annotations

import numpy as np
import pytest

from tracker.detect import Reason, Verdict, judge_version, series_of
from tracker.detect.thresholds import DEFAULTS
from tracker.detect.track import Track
from tracker.schema.series import SeriesKey

STEP = SeriesKey("run", "duration_ns", "step", part="unprofiled")


def judge(before: float, after: float, rounding: float | None) -> tuple[str, str]:
    """Judge three runs of a step that takes so many ms, all alike, after three others; half of its last digit in ms."""
    values = np.array([[before] * 3 + [after] * 3])
    roundings = None if rounding is None else rounding / values
    traits = series_of([STEP], device_timed=False)
    track = Track(values, [1, 1, 1, 2, 2, 2], traits, roundings=roundings)
    places = np.arange(6)
    window, _ = track.window(2, places[:3], places[3:], DEFAULTS)
    found = judge_version(window, traits, (places < 3)[None, :], places > 2)
    return Verdict(int(found.verdict[0])).name, Reason(int(found.reason[0])).name


@pytest.mark.parametrize(
    ("before", "after", "rounding", "expected"),
    [
        (12.0, 13.0, None, ("REGRESSED", "NONE")),
        # one whole ms more: from 12.49 to 12.5 at least
        (12.0, 13.0, 0.5, ("INCONCLUSIVE", "ROUNDING")),
        (13.0, 12.0, 0.5, ("INCONCLUSIVE", "ROUNDING")),
        (12.0, 14.0, 0.5, ("REGRESSED", "NONE")),
        (14.0, 12.0, 0.5, ("IMPROVED", "NONE")),
        (12.0, 13.0, 0.05, ("REGRESSED", "NONE")),
        # 8 % may be hidden
        (12.0, 12.0, 0.5, ("INCONCLUSIVE", "ROUNDING")),
        (120.0, 120.0, 0.5, ("UNCHANGED", "RATIO")),
    ],
)
def test_change_within_two_roundings_has_no_verdict(
    before: float, after: float, rounding: float | None, expected: tuple[str, str]
):
    assert judge(before, after, rounding) == expected
