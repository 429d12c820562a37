"""Who is called slow: the tables of the design, and laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.detect.peers import judge, median_of_others


@pytest.mark.parametrize(("steps", "verdict"), [(2, None), (3, "SUSPECT"), (6, "SLOW")])
def test_noisy_steps_need_more_of_them_to_convict(steps, verdict):
    """Rank 3 takes 28 ms where the others take 7 to 16 (those of tests/data/cluster)."""
    own = np.array(
        [
            [14.3, 9.9, 9.8, 14.1, 10.7, 11.8],
            [10.3, 15.0, 8.0, 16.3, 11.4, 12.5],
            [11.6, 14.0, 8.4, 6.8, 11.7, 7.2],
            [28.9, 28.4, 29.1, 31.9, 28.6, 28.9],
        ]
    )
    assert judge(own[:, :steps]).verdict == [None, None, None, verdict]


def test_steady_steps_convict_after_three():
    """Ranks of 10.0 and 10.1 ms in turn; rank 2 takes 12."""
    own = np.array([[10.0, 10.1, 10.0], [10.1, 10.0, 10.1], [12.0, 12.1, 12.0], [10.0, 10.1, 10.1]])
    assert judge(own).verdict == [None, None, "SLOW", None]


def test_slowest_in_most_steps_is_no_suspect_where_chance_does_it():
    """Rank 1 is the slowest in 4 of 5 steps, by 1 to 9 ms of 30: q is above 0.05."""
    own = np.array([[30.0, 30, 30, 30, 30], [39, 31, 38, 27, 33]])
    found = judge(own)
    assert (found.slowest[1], found.verdict) == (4, [None, None])
    assert found.q[1] > 0.05


def test_suspect_need_not_be_the_slowest_of_most_steps():
    """Rank 3 takes 20 ms in each of 4 steps, its peers 10; rank 1 takes 21 in two of them."""
    own = np.array([[10.0, 10.5, 10, 10.2], [10.2, 10, 21, 21], [10, 10, 10.3, 10], [20.0] * 4])
    found = judge(own)
    assert (found.slowest[3], found.verdict) == (2, [None, None, None, "SUSPECT"])


def test_less_than_5_per_cent_is_not_slow():
    own = np.array([[10.0] * 9, [10.0] * 9, [10.4] * 9])
    assert judge(own).verdict == [None, None, None]


def test_steps_that_follow_each_other_count_as_fewer():
    """Rank 0 takes 12 ms for ten steps and 10 for ten others; in turns that would be x1.1 of the others for sure."""
    own = np.full((4, 20), 10.0)
    own[0, :10] = 12.0
    in_turn = own.copy()
    in_turn[0] = [12.0, 10.0] * 10
    assert judge(in_turn).q[0] < 0.01 < judge(own).q[0]


def test_a_pause_of_an_innocent_rank_hides_no_slow_one():
    """Rank 1 pauses for 90 ms in one step of six; rank 3 takes 13 ms instead of 10 in all of them."""
    own = np.random.default_rng(2).normal(10, 0.2, (4, 6))
    own[3] *= 1.3
    own[1, 2] += 90
    assert judge(own).verdict == [None, None, None, "SLOW"]


@pytest.mark.parametrize(("ranks", "steps", "slow"), [(4, 6, 1), (8, 10, 2), (16, 6, 1)])
def test_slow_ranks_are_named_in_95_of_100_jobs_and_innocents_in_1(ranks, steps, slow):
    """x1.3 with a noise of 5 %: a corner of the table that scripts/simulate_slow_ranks.py prints."""
    jobs = 150
    found = [simulated_slow(ranks, steps, slow, rho=0.0, seed=seed) for seed in range(jobs)]
    assert sum(of_job[:slow].all() for of_job in found) >= 0.95 * jobs
    assert sum(of_job[slow:].any() for of_job in found) <= 0.01 * jobs


@pytest.mark.parametrize(("ranks", "steps", "slow"), [(4, 3, 0), (4, 3, 1), (4, 10, 0), (4, 10, 2), (16, 4, 1)])
def test_innocents_are_accused_in_1_of_100_correlated_jobs(ranks, steps, slow):
    jobs = 150
    found = [simulated_slow(ranks, steps, slow, rho=0.5, seed=seed) for seed in range(jobs)]
    assert sum(of_job[slow:].any() for of_job in found) <= 0.01 * jobs


def simulated_slow(ranks: int, steps: int, slow: int, *, rho: float, seed: int) -> np.ndarray:
    """Return which ranks of a job are SLOW, of which the first ones are slower by 30 %."""
    draw = np.random.default_rng([ranks, steps, seed])
    delay = draw.normal(size=(ranks, steps))
    for step in range(1, steps):
        delay[:, step] = rho * delay[:, step - 1] + np.sqrt(1 - rho**2) * delay[:, step]
    own = np.exp(0.05 * delay)
    own[:slow] *= 1.3
    return np.array([verdict == "SLOW" for verdict in judge(own).verdict])


def test_ratio_excess_and_cost_are_medians_over_the_steps():
    """Rank 2 takes 15 ms, its peers 10 and 12: 4 more than their median of 11, 3 more than the next."""
    found = judge(np.array([[10.0, 10.0, 10.0], [12.0, 12.0, 12.0], [15.0, 15.0, 15.0]]))
    assert (round(found.ratio[2], 3), found.excess[2], found.cost[2]) == (round(15 / 11, 3), 4.0, 3.0)


def test_equal_ranks_are_never_the_slowest():
    found = judge(np.full((4, 9), 7.0))
    assert (found.slowest.sum(), found.q.tolist(), found.verdict) == (0, [1.0] * 4, [None] * 4)


TIMES = st.integers(2, 7).flatmap(
    lambda count: st.lists(st.lists(st.integers(1, 50), min_size=count, max_size=count), min_size=3, max_size=8)
)


@given(TIMES, st.randoms(use_true_random=False))
def test_permuted_ranks_have_permuted_verdicts(times, random):
    own = np.array(times, dtype=float).T
    order = list(range(len(own)))
    random.shuffle(order)
    one, other = judge(own), judge(own[order])
    for name in ("ratio", "excess", "cost", "slowest", "q"):
        assert getattr(other, name).tolist() == getattr(one, name)[order].tolist()
    assert other.verdict == [one.verdict[place] for place in order]


@given(TIMES)
def test_the_median_of_the_others_is_that_without_a_row(times):
    own = np.array(times, dtype=float).T
    plain = [np.median(np.delete(own, row, axis=0), axis=0) for row in range(len(own))]
    assert median_of_others(own).tolist() == np.array(plain).tolist()


def test_equally_slow_ranks_do_not_hide_each_other():
    """Ranks 3 and 7 of 8 take 20 ms, now the one and now the other a little longer: 10 more than all others."""
    own = np.full((8, 6), 10.0)
    own[3], own[7] = [20, 21] * 3, [21, 20] * 3
    found = judge(own)
    assert [rank for rank, word in enumerate(found.verdict) if word] == [3, 7]
    assert (found.ratio[3], found.cost[3], found.cost[7], found.slowest[3]) == (2.05, 11.0, 11.0, 6)


def test_ranks_without_any_own_time_are_not_judged():
    found = judge(np.zeros((4, 6)))
    assert (found.verdict, found.slowest.tolist()) == ([None] * 4, [0] * 4)


def test_half_of_the_ranks_are_slow_together_and_more_are_not():
    own = np.random.default_rng(1).normal(10, 0.2, (8, 8))
    own[:4] *= 1.5
    assert judge(own).verdict == ["SLOW"] * 4 + [None] * 4
    own[4] *= 1.5  # five of eight: which of them are the exception?
    assert not any(judge(own).verdict)


def test_each_stage_of_a_job_may_accuse_less_often():
    """The more tables are judged, the surer each accusation has to be."""
    own = np.random.default_rng(1).normal(10, 0.2, (4, 6))
    one, of_sixteen = judge(own), judge(own, tables=16)
    assert of_sixteen.q.tolist() == np.minimum(1.0, 16 * one.q).tolist()


def test_thousands_of_steps_and_ranks_are_no_overflow():
    own = np.random.default_rng(0).normal(10, 0.1, (64, 2000))
    own[5] *= 1.3
    assert [rank for rank, word in enumerate(judge(own).verdict) if word] == [5]
