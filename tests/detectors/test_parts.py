"""Totals, presence, calls, creep, two levels, calibration: small stories."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.detectors.made import family
from tests.detectors.whole import judge_totals
from tracker.detectors import within
from tracker.detectors.calibrate import calibrate, consecutive_splits, random_splits, smallest_ratio
from tracker.detectors.centre import Centre, no_centre
from tracker.detectors.creep import best_version, judge_creep
from tracker.detectors.judging import judge_series
from tracker.detectors.presence import judge_calls, judge_presence, split_by_calls
from tracker.detectors.spread import Spread
from tracker.detectors.totals import Noise

STEP = np.array([[100.0, 101.0, 99.0, 100.0, 100.0]])


def shared(factor):
    """The centre of runs whose operators all got slower by `factor`."""
    values = family(50, 8, noise=0.005)
    return judge_series(values[:, :5], values[:, 5:] * factor).centre


# step time and other numbers of a run


def test_a_step_that_is_slower_than_its_machine_is_regressed():
    table = judge_totals(STEP, STEP[:, :3] * 1.2, no_centre(5, 3), device_timed=True)
    assert table["verdict"].tolist() == ["REGRESSED"]
    assert table["ratio"][0] == pytest.approx(0.2, abs=0.01)


def test_a_step_that_is_slower_with_all_operators_is_machine_drift():
    table = judge_totals(STEP, STEP[:, :3] * 1.2, shared(1.2), device_timed=True)
    assert table["verdict"].tolist() == ["DRIFT"]
    assert table["reason"][0].startswith("machine drift")


def test_named_findings_that_explain_half_make_it_a_finding_all_the_same():
    table = judge_totals(STEP, STEP[:, :3] * 1.2, shared(1.2), explained=np.array([11.0]), device_timed=True)
    assert table["verdict"].tolist() == ["REGRESSED"]
    assert table["explained"][0] == pytest.approx(0.55, abs=0.01)


def test_memory_shares_no_clock_with_the_operators():
    table = judge_totals(STEP, STEP[:, :3] * 1.2, shared(1.2), timed=np.array([False]), device_timed=True)
    assert table["verdict"].tolist() == ["REGRESSED"]


def test_host_timed_steps_need_five_per_cent():
    slower = STEP[:, :3] * 1.035
    verdicts = [
        judge_totals(STEP, slower, no_centre(5, 3), device_timed=timed)["verdict"][0] for timed in (True, False)
    ]
    assert verdicts == ["REGRESSED", "UNCHANGED"]


def test_one_new_step_time_is_a_suspicion_and_one_against_one_nothing():
    assert judge_totals(STEP, STEP[:, :1] * 1.3, no_centre(5, 1), device_timed=True)["verdict"][0] == "SUSPECT"
    alone = judge_totals(STEP[:, :1], STEP[:, :1] * 1.3, no_centre(1, 1), device_timed=True)
    assert alone["verdict"][0] == "TOO_FEW_RUNS"


def test_one_step_time_against_one_is_judged_by_what_older_versions_showed():
    def judged(factor, deviation, timed=True):
        older = Noise(*(Spread(np.array([spread**2]), np.array([6.0])) for spread in (deviation, 0.001)))
        sides = STEP[:, :1], STEP[:, :1] * factor
        clocked = np.array([timed])
        return judge_totals(*sides, no_centre(1, 1), timed=clocked, device_timed=True, older=older)["verdict"][0]

    assert judged(1.3, 0.01) == "SUSPECT"
    assert judged(1.0, 0.005) == "UNCHANGED"
    assert judged(1.3, 0.2) == "TOO_FEW_RUNS"  # as it is, it varies by 20 %
    assert judged(1.3, 0.01, timed=False) == "SUSPECT"


# series that come, go, or are called more often


def test_what_all_new_runs_have_and_no_old_one_is_added():
    nan = math.nan
    before = np.array([[nan, nan], [5.0, 5.0], [nan, nan], [nan, 1.0], [0.0, nan]])
    after = np.array([[8.0, 8.0], [nan, nan], [0.05, 0.05], [8.0, 8.0], [8.0, nan]])
    table = judge_presence(before, after, step=100.0)
    assert table["verdict"].tolist() == ["ADDED", "REMOVED", "BELOW_LIMIT", "", ""]
    assert table["contribution"][:2].tolist() == pytest.approx([0.08, -0.05])
    assert judge_presence(before[:1], after[:1, :1], step=100.0)["verdict"].tolist() == ["SUSPECT"]


def test_four_calls_instead_of_two_are_another_finding_than_slower_calls():
    two, four = np.full((1, 3), 2.0), np.full((1, 3), 4.0)
    time = np.full((1, 3), 10.0)
    more = judge_calls(two, four, time, time * 2.2, step=100.0)
    assert more["verdict"].tolist() == ["REGRESSED"]
    assert (more["by_calls"][0], more["by_time_per_call"][0]) == pytest.approx((10.0, 2.0))
    slower = judge_calls(two, two, time, time * 2.2, step=100.0)
    assert slower["verdict"].tolist() == ["UNCHANGED"]
    assert (slower["by_calls"][0], slower["by_time_per_call"][0]) == pytest.approx((0.0, 12.0))
    assert judge_calls(four, two, time, time / 2, step=100.0)["verdict"].tolist() == ["IMPROVED"]
    assert judge_calls(two, four[:, :1], time, time[:, :1] * 2, step=100.0)["verdict"].tolist() == ["SUSPECT"]


def test_calls_and_price_add_up_also_where_there_were_none():
    split = split_by_calls(
        *[np.array(each) for each in ([0.0, 3.0, math.nan], [0.0, 9.0, 1.0], [2.0, 0.0, 1.0], [8.0, 0.0, 1.0])]
    )
    assert split.by_calls[:2].tolist() == [8.0, -9.0]
    assert split.by_time_per_call[:2].tolist() == [0.0, 0.0]
    assert math.isnan(split.by_calls[2])


# creep


def test_nine_per_cent_in_steps_of_one_is_creep_and_in_one_step_is_not():
    quiet = family(40, 8, noise=0.003)
    best, now = quiet[:, :5], quiet[:, 5:].copy()
    now[[3, 4]] *= 1.09
    steps = np.zeros(40)
    steps[4] = math.log(1.05)
    table = judge_creep(best, now, steps).table
    assert table["verdict"][[3, 4, 5]].tolist() == ["REGRESSED", "UNCHANGED", "UNCHANGED"]
    assert table["reason"][4] == "one step explains it"


def test_what_is_faster_than_the_best_has_not_crept():
    quiet = family(40, 8, noise=0.003)
    now = quiet[:, 5:] * 0.8
    assert set(judge_creep(quiet[:, :5], now, np.zeros(40)).table["verdict"]) == {"UNCHANGED"}


def test_one_lucky_version_is_not_the_best():
    levels = np.array([[0.10, 0.02, 0.03, 0.02, 0.10, -0.5, 0.10], [math.nan] * 7])
    assert best_version(levels).tolist() == [2, -1]
    assert best_version(levels[:, :2]).tolist() == [-1, -1]


# two levels


def test_two_modes_need_a_fifth_of_the_values_each():
    assert within.two_modes(np.array([1.0] * 9 + [2.0])) is None
    assert within.two_modes(np.array([1.0, 1.01] * 4 + [2.0, 2.01])) == within.Modes(1.005, 2.005, 0.2)
    assert within.two_modes(np.random.default_rng(0).normal(10, 1, 200)) is None
    assert within.two_modes(np.array([1.0, 2.0])) is None


def test_a_series_jumps_if_it_came_back_before_and_is_on_one_of_its_levels():
    before = np.array([1.0, 2.0, 1.01, np.nan, 2.01, 1.0, 1.01])
    for level in (1.0, 2.0, 1.5, 2.05):
        assert within.jumps_between(before, np.array([level, level, np.nan]), 0.03) is not None
    for level in (0.9, 2.2):
        assert within.jumps_between(before, np.array([level]), 0.03) is None
    assert within.jumps_between(before, np.array([np.nan]), 0.03) is None
    once = np.array([2.0, 2.01, 2.0, 1.0, 1.01, 1.0])
    assert within.two_modes(once) is not None
    assert within.jumps_between(once, np.array([2.0]), 0.03) is None


# calibration


def test_repeats_of_one_version_give_the_smallest_ratio_that_stays_silent():
    table = calibrate(family(80, 12, noise=0.01), consecutive_splits(12), ratios=(0.01, 0.03, 0.10))
    assert table["splits"].tolist() == [5, 5, 5]
    assert table["worst_false"].is_monotonic_decreasing
    assert smallest_ratio(table) is not None
    assert smallest_ratio(table.assign(worst_false=2)) is None


def test_all_splits_where_they_are_few_else_as_many_as_asked():
    assert len(random_splits(6, 4, 2, most=100, seed=0)) == 15
    drawn = random_splits(20, 5, 3, most=30, seed=0)
    assert len(drawn) == 30
    assert all(not set(one) & set(other) and (len(one), len(other)) == (5, 3) for one, other in drawn)
    assert drawn == random_splits(20, 5, 3, most=30, seed=0)


def test_five_repeats_are_too_few():
    with pytest.raises(ValueError, match="at least 6 repeats"):
        calibrate(family(30, 5), consecutive_splits(5, 3, 2))


def test_a_machine_has_moved_by_two_per_cent_and_four_deviations_of_eight_runs():
    def centre(baseline, candidate):
        return Centre(np.array(baseline), np.array(candidate), 30, 0.0)

    quiet, noisy = [0.0] * 8, [0.02, -0.02] * 4
    assert centre(quiet, [0.03]).moved
    assert not centre(quiet, [0.015]).moved
    assert not centre(noisy, [0.06]).moved, "4 deviations are more than 8 %"
    assert centre(noisy, [0.1]).moved
    assert not centre(quiet[:7], [0.1]).moved, "seven runs do not say how it varies"
