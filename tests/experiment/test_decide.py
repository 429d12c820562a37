"""A decision from pairs of runs: its formulas, and what holds for any pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.experiment.decide import (
    MOST_PAIRS,
    Decision,
    decide,
    expected_pairs,
    expected_pairs_left,
    log_e_values,
    look_after_each_pair,
    noise_of_history,
    noise_of_pairs,
)

LIMIT = 0.05
LOG_RATIOS = st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=MOST_PAIRS)
LIMITS = st.floats(0.005, 0.5)
NOISES = st.none() | st.floats(0.0005, 0.5)


def mirror(ratio):
    """Return a change as ratio - 1 with the sides swapped; None stays None."""
    return None if ratio is None else 1.0 / (1.0 + ratio) - 1.0


# ---- the e-value ----


def test_evidence_of_three_pairs_is_that_of_the_formula():
    found = [decide([0.06, 0.05, 0.07][:pairs], limit=LIMIT, noise_sd=0.02).log_e for pairs in (1, 2, 3)]
    assert np.exp(found).round(1).tolist() == [3.0, 10.4, 55.4]


def test_e_value_is_a_ratio_of_likelihoods():
    """Of y and the noise of one pair: integrated over changes and variances on a grid, by brute force."""
    y, noise, freedom, change_sd = 0.05, 0.02, 3.0, 0.05
    variances = np.exp(np.linspace(np.log(1e-7), np.log(1.0), 6000))
    prior = variances ** (-freedom / 2) * np.exp(-freedom * noise**2 / (2 * variances))
    changed = variances * (1 + (change_sd / noise) ** 2)
    same_likelihood = (prior * np.exp(-(y**2) / (2 * variances)) / np.sqrt(variances)).sum()
    changed_likelihood = (prior * np.exp(-(y**2) / (2 * changed)) / np.sqrt(changed)).sum()
    log_e = log_e_values(np.array([1.0]), np.array([y]), np.array([freedom * noise**2]), (change_sd / noise) ** 2, 3.0)
    assert np.exp(log_e[0]) == pytest.approx(changed_likelihood / same_likelihood, rel=1e-3)


@given(st.lists(st.floats(-0.08, 0.08), min_size=2, max_size=20), st.floats(0.02, 0.1))
def test_ends_of_the_interval_have_an_e_value_of_20(log_ratios, noise):
    looks = look_after_each_pair(np.array(log_ratios), LIMIT, np.array(noise))
    count, mean = len(log_ratios), np.mean(log_ratios)
    if not math.isfinite(looks.high[-1]) or np.isclose(looks.high[-1], looks.change[-1]):
        return
    squares = max(np.sum((np.array(log_ratios) - mean) ** 2), 1e-6 * (count - 1))
    spread = 3.0 * noise**2 + squares
    log_e = log_e_values(np.array([count]), np.array([mean - looks.high[-1]]), spread, (0.05 / noise) ** 2, 3.0)
    assert np.exp(log_e[0]) == pytest.approx(20.0, rel=1e-6)


# ---- laws ----


@given(
    st.floats(0.0005, 1.0),
    st.floats(0.3, 3.0),
    LIMITS,
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.booleans(),
)
def test_candidate_three_limits_slower_is_never_no_difference(noise, mistaken, limit, seed, has_history, heavy):
    """At any noise, at every pair, also where the history was three times as quiet as today, or as noisy."""
    draw = np.random.default_rng(seed)
    steps = draw.standard_t(3, MOST_PAIRS) if heavy else draw.standard_normal(MOST_PAIRS)
    log_ratios = math.log1p(3 * limit) + noise * steps
    history = np.array(noise * mistaken) if has_history else None
    looks = look_after_each_pair(log_ratios, limit, history)
    assert not (looks.words == 1).any()


@given(LOG_RATIOS, LIMITS, NOISES)
def test_median_beyond_the_limit_is_never_no_difference(log_ratios, limit, noise):
    found = decide(log_ratios, limit=limit, noise_sd=noise)
    if found.word == "no difference":
        assert abs(np.median(log_ratios)) < math.log1p(limit)


@given(LOG_RATIOS, LIMITS, NOISES)
def test_word_agrees_with_the_printed_change(log_ratios, limit, noise):
    found = decide(log_ratios, limit=limit, noise_sd=noise)
    assert found.low is None or found.low <= found.change * (1 - 1e-12) + 1e-12
    assert found.high is None or found.high >= found.change * (1 - 1e-12) - 1e-12
    if found.word == "slower":
        assert found.change > 0
        assert found.leaves_out_zero
    if found.word == "faster":
        assert found.change < 0
        assert found.leaves_out_zero


@given(LOG_RATIOS, LIMITS, NOISES)
def test_swapped_sides_give_the_mirrored_decision(log_ratios, limit, noise):
    found = decide(log_ratios, limit=limit, noise_sd=noise)
    swapped = decide([-y for y in log_ratios], limit=limit, noise_sd=noise)
    words = {"slower": "faster", "faster": "slower"}
    assert swapped.word == words.get(found.word, found.word)
    assert swapped.log_e == found.log_e
    assert swapped.bounded == found.bounded
    assert swapped.change == pytest.approx(mirror(found.change))
    assert swapped.low == (None if found.high is None else pytest.approx(mirror(found.high)))
    assert swapped.high == (None if found.low is None else pytest.approx(mirror(found.low)))


@given(LOG_RATIOS, LIMITS, st.floats(0.0005, 0.5), st.randoms())
def test_order_of_the_pairs_changes_nothing(log_ratios, limit, noise, order):
    shuffled = list(log_ratios)
    order.shuffle(shuffled)
    found, again = (decide(pairs, limit=limit, noise_sd=noise) for pairs in (log_ratios, shuffled))
    assert (found.word, found.bounded) == (again.word, again.bounded)
    assert found.log_e == pytest.approx(again.log_e, rel=1e-6, abs=1e-6)


@given(st.integers(1, 5), st.integers(1, 12), LIMITS, st.booleans(), st.integers(0, 999))
def test_looks_of_many_experiments_are_their_decisions(experiments, pairs, limit, has_history, seed):
    log_ratios = np.random.default_rng(seed).normal(0.03, 0.03, (experiments, pairs))
    noises = np.full(experiments, 0.03) if has_history else None
    looks = look_after_each_pair(log_ratios, limit, noises)
    for experiment in range(experiments):
        for count in range(1, pairs + 1):
            one = decide(log_ratios[experiment, :count], limit=limit, noise_sd=0.03 if has_history else None)
            assert one.log_e == pytest.approx(looks.log_e[experiment, count - 1], rel=1e-9, abs=1e-9)
            assert (one.word, one.bounded) == (
                ("", "no difference", "slower", "faster")[looks.words[experiment, count - 1]],
                looks.bounded[experiment, count - 1],
            )


# ---- single cases ----


def test_nothing_is_decided_before_the_second_pair():
    assert decide([0.5], limit=LIMIT, noise_sd=0.001).word == ""
    assert decide([0.5, 0.5], limit=LIMIT, noise_sd=0.001).word == "slower"


def test_nothing_is_decided_before_the_fourth_pair_without_history():
    three, four = (decide([0.3, 0.31, 0.29, 0.3][:pairs], limit=LIMIT, noise_sd=None) for pairs in (3, 4))
    assert (three.word, three.noise_sd, three.low, three.high, three.log_e) == ("", None, None, None, 0.0)
    assert (four.word, four.noise_sd) == ("slower", pytest.approx(np.std([0.3, 0.31, 0.29, 0.3], ddof=1)))


def test_large_change_on_a_quiet_machine_is_printed_as_measured():
    """The bound of 4 standard deviations alone, 0.4 %, would make +10 % a +0.4 %."""
    found = decide([math.log(1.1)] * 4, limit=LIMIT, noise_sd=0.001)
    assert found.word == "slower"
    assert found.change == pytest.approx(0.1)
    assert found.low > 0.09


def test_end_beyond_the_bound_is_open():
    found = decide([math.log(1.5)] * 3, limit=LIMIT, noise_sd=0.001)
    assert (found.word, found.bounded, found.high) == ("slower", 3, None)
    assert found.change == pytest.approx(0.5)
    assert 0.09 < found.low < 0.11


def test_one_bad_run_decides_nothing():
    found = decide([0.002, -0.001, 0.001, 0.9], limit=LIMIT, noise_sd=0.005)
    assert (found.word, found.bounded) == ("", 1)
    assert abs(found.change) < 0.002


def test_small_change_is_no_difference_that_leaves_out_zero():
    found = decide([0.012, 0.011, 0.013, 0.012, 0.012, 0.0115], limit=LIMIT, noise_sd=0.002)
    assert found.word == "no difference"
    assert found.leaves_out_zero


def test_equal_numbers_prove_no_more_than_a_thousandth():
    """Logs that print few digits repeat themselves."""
    found = decide([0.0] * 10, limit=0.0005, noise_sd=None)
    assert found.word == ""
    assert found.noise_sd == 0.001


# ---- noise ----


@pytest.mark.parametrize("groups", [[], [[]], [[1.0], [2.0], [3.0], [4.0]], [[1.0, 1.1], [1.0, 1.2]]])
def test_history_with_fewer_than_three_differences_gives_none(groups):
    assert noise_of_history(groups) is None


def test_noise_of_history_is_that_of_a_pair():
    runs = np.random.default_rng(1).normal(0.0, 0.03, 4000)
    assert noise_of_history([runs]) == pytest.approx(0.03 * math.sqrt(2), rel=0.05)


@given(st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=6), min_size=2, max_size=4), st.floats(-5, 5))
def test_level_of_a_version_is_no_noise(groups, unit):
    """Neither another unit of all runs, nor a version or a host that is slower."""
    moved = [[run + unit * (place + 1) for run in group] for place, group in enumerate(groups)]
    assert noise_of_history(moved) == pytest.approx(noise_of_history(groups), abs=1e-9)


def test_one_bad_run_of_the_history_counts_bounded():
    quiet = [0.0, 0.01] * 10
    noisy = [*quiet[:10], 1.0, *quiet[10:]]
    assert noise_of_history([noisy]) < 2.5 * noise_of_history([quiet])


def test_equal_runs_have_the_least_noise():
    assert noise_of_history([[4.0] * 5]) == noise_of_pairs([0.1] * 4) == 0.001


# ---- expected pairs ----


@given(st.floats(0.001, 0.2), st.floats(0.001, 0.2), LIMITS, LIMITS, st.booleans())
def test_more_noise_or_a_smaller_limit_takes_no_fewer_pairs(noise, other_noise, limit, other_limit, has_history):
    (low, high), (small, large) = sorted([noise, other_noise]), sorted([limit, other_limit])
    easy = expected_pairs(low, large, has_history=has_history)
    hard = expected_pairs(high, small, has_history=has_history)
    assert (2 if has_history else 4) <= easy <= hard <= MOST_PAIRS


@given(LOG_RATIOS, LIMITS, NOISES)
def test_pairs_left_are_none_once_decided_and_never_beyond_the_most(log_ratios, limit, noise):
    found = decide(log_ratios, limit=limit, noise_sd=noise)
    left = expected_pairs_left(found)
    assert (left == 0) == (found.word != "" or found.pairs == MOST_PAIRS)
    assert 0 <= left <= MOST_PAIRS - found.pairs


def test_pairs_left_before_the_noise_is_known_are_those_until_then():
    undecided = Decision("", 0.0, None, None, 1, 0, 0.0, LIMIT, None, has_history=False)
    assert expected_pairs_left(undecided) == 3


def test_change_that_stays_is_decided_when_expected():
    log_ratios = [0.07, 0.01, 0.08, 0.02, 0.06, 0.03] * 6
    found = decide(log_ratios[:4], limit=LIMIT, noise_sd=0.04)
    expected = 4 + expected_pairs_left(found)
    looks = look_after_each_pair(np.array(log_ratios), LIMIT, np.array(0.04))
    assert found.word == ""
    assert (looks.words != 0).argmax() + 1 == pytest.approx(expected, abs=3)
