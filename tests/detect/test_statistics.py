"""Student's t, the prior of variances, rates of false discovery, medians: against tables and identities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.detect.statistics import discovery_rates, median, moderated, polygamma, prior_of, t_above, t_exceeded


@pytest.mark.parametrize(
    ("t", "freedom", "tail"),
    [(12.706205, 1, 0.025), (2.015048, 5, 0.05), (2.228139, 10, 0.025), (3.169273, 10, 0.005), (2.570582, 5, 0.025),
     (1.983972, 100, 0.025), (1.959964, math.inf, 0.025), (6.0, 1e5, 9.9e-10)],
)  # fmt: skip
def test_tails_are_those_of_printed_tables(t, freedom, tail):
    assert t_above(np.array([t]), np.array([freedom]))[0] == pytest.approx(tail, rel=5e-3 if t == 6.0 else 1e-5)


@given(st.floats(-50, 50))
def test_tails_of_one_and_two_degrees_are_elementary(t):
    one, two = t_above(np.array([t, t]), np.array([1.0, 2.0]))
    assert one == pytest.approx(0.5 - math.atan(t) / math.pi, rel=1e-9, abs=1e-13)
    assert two == pytest.approx(0.5 * (1 - t / math.sqrt(2 + t * t)), rel=1e-7, abs=1e-13)


@given(st.floats(1e-6, 0.5), st.floats(0.5, 1e6))
def test_quantile_undoes_the_tail(tail, freedom):
    t = t_exceeded(tail, np.array([freedom]))
    assert t_above(t, np.array([freedom]))[0] == pytest.approx(tail, rel=1e-6)


@given(st.floats(0.01, 1e4))
def test_polygamma_obeys_its_recurrence(x):
    here, above = polygamma(np.array(x)), polygamma(np.array(x + 1))
    assert here[0] + 1 / x == pytest.approx(above[0], rel=1e-9, abs=1e-9)
    assert here[1] - 1 / x**2 == pytest.approx(above[1], rel=1e-9)


def test_polygamma_at_one_half():
    first, second = polygamma(np.array(0.5))
    assert first == pytest.approx(-0.5772156649 - 2 * math.log(2))
    assert second == pytest.approx(math.pi**2 / 2)


def test_prior_is_recovered_from_many_variances():
    draw = np.random.default_rng(1)
    true = 4.0 * 8.0 / draw.chisquare(8, 20_000)
    variance, worth = prior_of(true * draw.chisquare(5, 20_000) / 5, np.full(20_000, 5.0))
    assert variance == pytest.approx(4.0, rel=0.03)
    assert worth == pytest.approx(8.0, rel=0.06)


def test_families_with_few_series_keep_their_variance():
    variance = np.arange(1.0, 6.0)
    kept, freedom = moderated(variance, np.full(5, 4), np.zeros(5, dtype=int), np.ones(5, dtype=bool), 20)
    assert kept.tolist() == variance.tolist()
    assert freedom.tolist() == [4.0] * 5


def test_rates_are_those_of_the_paper():
    # Benjamini and Hochberg (1995), table 1: four of the 15 hypotheses are rejected at 0.05
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590,
         1.0]  # fmt: skip
    assert (discovery_rates(np.array(p), np.zeros(15, dtype=int)) <= 0.05).sum() == 4


@given(st.lists(st.one_of(st.just(math.nan), st.floats(-5, 5)), min_size=1, max_size=9))
def test_median_is_that_of_numpy(values):
    row = np.array([values])
    known = row[~np.isnan(row)]
    expected = np.median(known) if len(known) else np.nan
    assert median(row, axis=1)[0] == pytest.approx(expected, nan_ok=True)
