"""Operators of pairs of runs: what is found, what is left out, and what changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.experiment.decide_operators import decide_operators, find_changed

OPERATORS = 30
SLOWED = 7
STEP_NS = 30e6


def draw_sides(pairs=8, *, change=0.2, operators=OPERATORS, noise=0.02, seed=1, level_ns=1e6):
    """Logs of both sides, of operators of a millisecond; one of them is slower in the candidate."""
    draw = np.random.default_rng(seed)
    levels = np.log(level_ns) + np.linspace(-0.5, 0.5, operators)[:, None]
    baseline, candidate = levels + draw.normal(0, noise, (2, operators, pairs))
    candidate[SLOWED] += np.log1p(change)
    return baseline, candidate


def draw_history(runs=8, *, seed=2):
    return [draw_sides(runs, change=0.0, seed=seed)[0]]


def decided(baseline, candidate, history=(), step_ns=STEP_NS):
    return decide_operators(baseline, candidate, np.full(baseline.shape[1], step_ns), history)


def verdicts_of(decisions):
    return {one.row: one.verdict for one in decisions if one.is_found}


def test_slower_operator_is_found():
    decisions = decided(*draw_sides())
    assert verdicts_of(decisions) == {SLOWED: "slower"}
    assert [one.row for one in decisions] == list(range(OPERATORS))
    assert decisions[SLOWED].change == pytest.approx(0.2, abs=0.02)


def test_history_finds_it_after_two_pairs():
    sides = draw_sides(2)
    assert verdicts_of(decided(*sides, draw_history())) == {SLOWED: "slower"}
    assert decided(*sides) == []


def test_operators_alike_but_for_noise_are_no_finding():
    found = [verdicts_of(decided(*draw_sides(change=0.0, seed=seed), draw_history(seed=seed))) for seed in range(50)]
    assert sum(map(len, found)) <= 2


def test_change_below_two_percent_is_none():
    decisions = decided(*draw_sides(20, change=0.015, noise=0.001))
    assert decisions[SLOWED].log_e > 10
    assert verdicts_of(decisions) == {}


def test_shift_that_all_operators_share_is_none():
    """Per run, as a clock that changes from run to run; larger than the change of the one operator."""
    baseline, candidate = draw_sides(12)
    shift = np.random.default_rng(3).normal(0, 0.3, (2, 12))
    decisions = decided(baseline + shift[0], candidate + shift[1] - np.median(shift[1] - shift[0]))
    assert verdicts_of(decisions) == {SLOWED: "slower"}
    assert decisions[SLOWED].change == pytest.approx(0.2, abs=0.03)


def test_unchanged_operator_among_slower_ones_is_not_faster():
    """It is faster only than what all share: as measured it did not change."""
    baseline, candidate = draw_sides(20, change=-0.09)
    assert verdicts_of(decided(baseline, candidate + np.log(1.1))) == {}


def test_missing_operator_is_not_zero():
    baseline, candidate = draw_sides(8, change=0.0)
    candidate[3, :4] = np.nan
    baseline[4] = np.nan
    decisions = decided(baseline, candidate)
    assert verdicts_of(decisions) == {}
    assert 4 not in [one.row for one in decisions]
    assert abs(decisions[3].change) < 0.05


def test_pairs_that_lack_an_operator_do_not_count_for_it():
    baseline, candidate = draw_sides(12)
    lacking = baseline.copy()
    lacking[SLOWED, 8:] = np.nan
    less, more = decided(lacking, candidate), decided(baseline, candidate)
    assert less[SLOWED].verdict == more[SLOWED].verdict == "slower"
    assert less[SLOWED].log_e < more[SLOWED].log_e


def test_small_operators_are_not_tested():
    baseline, candidate = draw_sides()
    small = baseline.copy()
    small[5] -= 8.0
    candidate[5] -= 8.0
    assert 5 not in [one.row for one in decided(small, candidate)]


def test_operator_that_is_large_on_one_side_is_tested():
    baseline, candidate = draw_sides()
    baseline[5] -= 8.0
    assert verdicts_of(decided(baseline, candidate)) == {5: "slower", SLOWED: "slower"}


def test_few_operators_are_tested_each_by_its_own_noise():
    baseline, candidate = draw_sides(10, operators=9, noise=0.005)
    assert verdicts_of(decided(baseline, candidate)) == {SLOWED: "slower"}


def test_no_operator_gives_no_row():
    assert decided(np.zeros((0, 5)), np.zeros((0, 5))) == []
    assert decided(*(side[:, :0] for side in draw_sides())) == []


@given(st.integers(0, 99), st.booleans())
def test_swapped_sides_give_the_mirrored_verdicts(seed, has_history):
    baseline, candidate = draw_sides(seed=seed)
    history = draw_history() if has_history else ()
    found, swapped = decided(baseline, candidate, history), decided(candidate, baseline, history)
    words = {"slower": "faster", "faster": "slower", "": ""}
    assert [words[one.verdict] for one in found] == [one.verdict for one in swapped]
    np.testing.assert_allclose([one.log_e for one in found], [one.log_e for one in swapped], atol=1e-6)


@given(st.floats(1e-6, 1e6), st.permutations(range(OPERATORS)), st.booleans())
def test_unit_and_order_of_the_operators_change_nothing(unit, order, has_history):
    baseline, candidate = draw_sides()
    history = draw_history() if has_history else ()
    found = decided(baseline, candidate, history)
    moved_history = [group[order] + np.log(unit) for group in history]
    moved = decided(baseline[order] + np.log(unit), candidate[order] + np.log(unit), moved_history, STEP_NS * unit)
    assert [found[row].verdict for row in order] == [one.verdict for one in moved]
    np.testing.assert_allclose([found[row].log_e for row in order], [one.log_e for one in moved], atol=1e-6)


def test_discoveries_are_those_of_the_definition():
    """The largest k of which the k-th e-value is at least family / (0.05 k)."""
    draw = np.random.default_rng(4)
    for _ in range(50):
        e_values = np.exp(draw.normal(3, 3, 12))
        ordered = np.sort(e_values)[::-1]
        most = max([k for k in range(1, 13) if ordered[k - 1] >= 12 / (0.05 * k)], default=0)
        assert find_changed(np.log(e_values)).sum() == most
        assert set(e_values[find_changed(np.log(e_values))]) == set(ordered[:most])
