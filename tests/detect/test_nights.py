"""Runs of one night resemble each other: how much is measured, and what it is worth in a test."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracker.detect import Verdict, Window, judge_version, series_of
from tracker.detect.late import best_splits, neighbour_correlation
from tracker.detect.nights import USUAL, night_effect, variance_of_nights, vary_alone

NIGHTS = np.repeat(np.arange(1, 11), 3)


def draw_nights(effect, *, series=40, versions=NIGHTS, seed=1):
    """Logs of runs whose nights vary by `effect` times the variance of runs of one night, which is 1 % squared."""
    draw = np.random.default_rng(seed)
    nights = draw.normal(0, np.sqrt(effect), (series, versions.max() + 1))
    return 0.01 * (draw.normal(size=(series, len(versions))) + nights[:, versions])


def measured(logs, versions=NIGHTS):
    return night_effect(logs, np.ones(logs.shape, dtype=bool), versions)


@pytest.mark.parametrize("effect", [0.0, 0.25, 1.0])
def test_night_effect_is_measured(effect):
    # nine tenths of it: ten versions beside a usual effect that is worth three
    assert measured(draw_nights(effect, series=400)) == pytest.approx((9 * effect + 3 * USUAL) / 12, abs=0.1)


def test_few_operators_have_the_usual_effect():
    assert measured(draw_nights(1.0, series=19)) == USUAL


def test_versions_of_one_run_say_nothing_of_nights():
    assert measured(draw_nights(1.0, versions=np.arange(30)), np.arange(30)) == USUAL


@given(st.permutations(range(40)), st.floats(0.5, 2.0))
@settings(max_examples=20, deadline=None)
def test_order_and_unit_of_the_series_change_no_night_effect(order, factor):
    logs = draw_nights(0.5)
    assert measured(logs[order] * factor) == pytest.approx(measured(logs), rel=1e-9)


def test_more_runs_of_one_night_leave_its_variance():
    few, many = (1 / 8 + 1 / runs + float(variance_of_nights(np.array(runs), np.array(3), 0.3)) for runs in (3, 300))
    assert few == pytest.approx(1 / 8 + 1 / 3 + 0.3 * (1 / 3 + 1))
    assert many > 0.3 * (1 / 3 + 1)


def test_series_alone_shows_how_its_nights_vary():
    # 2 % from night to night, 0.3 % from run to run
    logs = 0.3 * draw_nights(44.0, series=200)
    found = vary_alone(
        logs, np.ones(logs.shape, dtype=bool), np.zeros(logs.shape, dtype=bool), NIGHTS, np.full(200, np.log1p(0.05))
    )
    assert np.sqrt(np.median(found.within)) == pytest.approx(0.003, rel=0.1)
    assert np.sqrt(found.between.mean()) == pytest.approx(0.02 * np.sqrt(9 / 12), rel=0.15)


def judge_step(logs, versions=NIGHTS):
    """The verdict of a step alone in the newest of these versions."""
    is_new = versions == versions[-1]
    series = series_of([("run", "duration_ns", "step", "", "", "")], device_timed=False)
    row = np.array([logs])
    window = Window(row, np.ones(row.shape, dtype=bool), np.zeros(len(logs)), np.exp(logs), versions=versions)
    base = np.broadcast_to(~is_new & (np.cumsum(~is_new[::-1])[::-1] <= 8), row.shape)
    found = judge_version(window, series, base, is_new, level=np.broadcast_to(~is_new, row.shape))
    return Verdict(found.verdict[0]).name


def test_version_within_its_nights_is_no_finding():
    quiet = [judge_step(0.3 * draw_nights(44.0, series=1, seed=seed)[0]) for seed in range(200)]
    assert quiet.count("REGRESSED") + quiet.count("IMPROVED") <= 2


def test_change_beyond_all_nights_is_found():
    slower = np.where(NIGHTS == 10, np.log(1.2), 0.0)
    found = [judge_step(0.3 * draw_nights(44.0, series=1, seed=seed)[0] + slower) for seed in range(50)]
    assert found.count("REGRESSED") >= 45


def test_neighbours_that_resemble_each_other_are_measured():
    draw = np.random.default_rng(3)
    noise = draw.normal(size=(60, 40))
    for run in range(1, 40):
        noise[:, run] = 0.6 * noise[:, run - 1] + 0.8 * noise[:, run]
    assert np.median(neighbour_correlation(noise)) == pytest.approx(0.6, abs=0.1)


def test_resembling_neighbours_make_a_split_less_sure():
    row = np.array([[0.0, 0.01, -0.01, 0.0, 0.01, 0.2, 0.21, 0.19, 0.2]])
    starts = np.ones(9, dtype=bool)
    # the root of 1.6 / 0.4 is 2
    assert best_splits(row, starts, 0.6).t[0] == pytest.approx(best_splits(row, starts).t[0] / 2)
