"""The gates on made runs: few false findings, most slow-downs found, changes dated; every draw is seeded."""

from __future__ import annotations

import time

import pytest

from tests.detectors import gates
from tests.detectors.made import operators
from tracker.detectors import judge

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs():
    return operators(500, 40)


def test_five_against_three_finds_slow_downs_and_little_else(runs):
    ten, twenty = (gates.judge_rates(runs, factor, draws=20) for factor in (1.10, 1.20))
    assert ten.false_unchanged <= 1
    assert (ten.recall >= 0.60, twenty.recall >= 0.80) == (True, True), (ten, twenty)
    assert max(ten.fdr, twenty.fdr) <= 0.08, (ten, twenty)


def test_a_drifting_machine_costs_nothing(runs):
    still, drifting = (gates.judge_rates(runs, 1.10, drift=drift, draws=20) for drift in (0.0, 0.05))
    assert still.recall - drifting.recall <= 0.03
    assert drifting.false_unchanged <= 1


def test_one_run_and_two_that_confirm_it_raise_few_false_alarms(runs):
    rates = gates.confirmed_rates(runs, 1.10, draws=20)
    assert rates.false_unchanged <= 1
    assert rates.recall >= 0.60
    assert rates.fdr <= 0.10


@pytest.fixture(scope="module")
def dated():
    return gates.noisy_labelled(100, 60)


def test_change_points_are_found_and_dated(dated):
    found = gates.change_point_rates(dated)
    assert found.f1 >= 0.77, found
    assert found.precision >= 0.95, found
    assert found.false_series == 0


@pytest.mark.slow
def test_looking_after_every_run_raises_hardly_a_false_alarm(dated):
    told = sum(len(gates.replayed(unchanged)) for unchanged, _, _ in dated[:20])
    assert told <= 1  # 20 x 60 runs: 0.1 per 100 runs


def test_five_thousand_series_are_judged_in_the_time_of_a_blink():
    values = operators(5000, 10)
    judge(values[:, :5], values[:, 5:])
    best = min(seconds(lambda: judge(values[:, :5], values[:, 5:])) for _ in range(7))
    assert best < 0.15  # 0.02 to 0.03 s on an idle core; the bound leaves room for a busy one


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
