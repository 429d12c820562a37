"""Functions against printed tables, and laws that tie them together."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.detectors.slow import bisected
from tracker.detectors import _distributions
from tracker.detectors._distributions import digamma, t_above, t_exceeded, trigamma, trigamma_inverse

pytestmark = pytest.mark.slow

# Abramowitz and Stegun, table 26.10: t that is exceeded with the given probability
TABLE = [
    (0.05, 1, 6.314), (0.025, 1, 12.706), (0.005, 3, 5.841), (0.05, 5, 2.015), (0.025, 6, 2.447), (0.001, 10, 4.144),
    (0.0005, 20, 3.850), (0.05, 30, 1.697), (0.025, 120, 1.980), (0.025, math.inf, 1.960), (0.0005, math.inf, 3.291),
]  # fmt: skip


@pytest.mark.parametrize(("tail", "freedom", "t"), TABLE)
def test_quantiles_are_those_of_the_table(tail, freedom, t):
    assert t_exceeded(tail, np.array([freedom]))[0] == pytest.approx(t, abs=5e-4)


def test_one_and_two_degrees_have_closed_forms():
    t = np.array([-3.0, 0.0, 0.5, 40.0, 1e6])
    cauchy = 0.5 - np.arctan(t) / np.pi
    assert t_above(t, np.full(5, 1.0)) == pytest.approx(cauchy, rel=1e-9)
    assert t_above(t, np.full(5, 2.0)) == pytest.approx(0.5 - t / (2 * np.sqrt(2 + t**2)), abs=1e-15)


def test_far_tails_do_not_cancel():
    # P(T > t) of 3 degrees falls with (2 sqrt 3 / pi) t^-3 for large t
    t = 1e5
    assert t_above(np.array([t]), np.array([3.0]))[0] == pytest.approx(2 * math.sqrt(3) / math.pi * t**-3, rel=1e-6)


@given(st.floats(-50, 50), st.floats(0.5, 1e6))
def test_the_two_tails_add_up_to_one(t, freedom):
    both = t_above(np.array([t, -t]), np.array([freedom, freedom]))
    assert both.sum() == pytest.approx(1.0, abs=1e-12)


@given(st.floats(1e-9, 0.999), st.floats(0.7, 1e6))
def test_the_quantile_is_exceeded_with_its_probability(tail, freedom):
    t = t_exceeded(tail, np.array([freedom]))
    assert t_above(t, np.array([freedom]))[0] == pytest.approx(tail, rel=1e-6)


def test_the_quantile_is_that_of_plain_bisection():
    freedom = np.array([0.7, 1.0, 2.5, 8.0, 300.0, 25_000.0, math.inf])
    for tail in (1e-9, 1e-4, 0.05, 0.2, 0.4999, 0.5, 0.7):
        slow = [bisected(tail, number) for number in freedom]
        assert t_exceeded(tail, freedom) == pytest.approx(slow, rel=1e-9, abs=1e-9)


def test_a_quantile_takes_few_steps(monkeypatch):
    # Newton's method lands on it; what lands exactly on the end of its bracket has arrived, too
    asked = []
    monkeypatch.setattr(_distributions, "t_above", lambda t, freedom: asked.append(t) or t_above(t, freedom))
    t_exceeded(0.2, np.array([25.1, 27.7, 29.9, 31.3]))
    assert len(asked) <= 4


@given(st.floats(0.05, 1e4))
def test_digamma_and_trigamma_obey_their_recurrences(x):
    at, after = np.array([x]), np.array([x + 1.0])
    assert digamma(after)[0] - digamma(at)[0] == pytest.approx(1 / x, rel=1e-7)
    assert trigamma(at)[0] - trigamma(after)[0] == pytest.approx(1 / x**2, rel=1e-4)


@given(st.floats(1e-5, 1e5))
def test_trigamma_inverse_inverts(y):
    assert trigamma(np.array([trigamma_inverse(y)]))[0] == pytest.approx(y, rel=1e-7)


def test_the_normal_takes_over_without_a_jump():
    around = t_above(np.array([3.0, 3.0]), np.array([19_999.0, 20_001.0]))
    assert around[0] == pytest.approx(around[1], rel=1e-6)
