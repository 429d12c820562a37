"""Who is called slow: the tables of the design, and laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.detect.peers import judge, median_of_others


@pytest.mark.parametrize(
    ("ranks", "steps", "slowest", "verdict"),
    [
        (2, 6, 6, "SLOW"), (2, 5, 5, "SUSPECT"), (4, 4, 4, "SLOW"), (4, 5, 4, "SUSPECT"), (4, 5, 5, "SLOW"),
        (8, 3, 3, "SLOW"), (8, 2, 2, None),
    ],
)  # fmt: skip
def test_the_fewest_steps_that_convict(ranks, steps, slowest, verdict):
    """Rank 0 takes 12 ms in `slowest` of the steps and 8 in the others, where rank 1 takes 11; all others take 10."""
    own = np.full((ranks, steps), 10.0)
    own[0], own[1, slowest:] = 12.0, 11.0
    own[0, slowest:] = 8.0
    found = judge(own)
    assert (found.slowest[0], found.verdict[0]) == (slowest, verdict)
    assert not any(found.verdict[1:])


def test_ratio_excess_and_cost_are_medians_over_the_steps():
    """Rank 2 takes 15 ms, its peers 10 and 12: 4 more than their median of 11, 3 more than the next."""
    found = judge(np.array([[10.0, 10.0, 10.0], [12.0, 12.0, 12.0], [15.0, 15.0, 15.0]]))
    assert (round(found.ratio[2], 3), found.excess[2], found.cost[2]) == (round(15 / 11, 3), 4.0, 3.0)


def test_equal_ranks_are_never_the_slowest():
    found = judge(np.full((4, 9), 7.0))
    assert (found.slowest.sum(), found.q.tolist(), found.verdict) == (0, [1.0] * 4, [None] * 4)


def test_chance_accuses_at_most_one_of_twenty_jobs():
    """1,000 jobs of 4 equal ranks whose steps vary by a third."""
    draw = np.random.default_rng(7)
    accused = sum("SLOW" in judge(draw.lognormal(0, 0.3, (4, 10))).verdict for _ in range(1000))
    assert accused <= 50


TIMES = st.integers(2, 7).flatmap(
    lambda count: st.lists(st.lists(st.integers(1, 50), min_size=count, max_size=count), min_size=3, max_size=8)
)


@given(TIMES, st.randoms(use_true_random=False))
def test_permuted_ranks_have_permuted_verdicts(times, random):
    own = np.array(times, dtype=float).T
    order = list(range(len(own)))
    random.shuffle(order)
    one, other = judge(own), judge(own[order])
    assert other.ratio.tolist() == one.ratio[order].tolist()
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


@pytest.mark.parametrize(("ranks", "stages", "steps"), [(4, 1, 5), (8, 4, 6), (2, 16, 6), (16, 1, 4)])
def test_chance_accuses_one_of_twenty_jobs_at_most(ranks, stages, steps):
    draw = np.random.default_rng(ranks)
    jobs = 300
    accused = sum(
        any("SLOW" in judge(draw.lognormal(0, 0.3, (ranks, steps)), tables=stages).verdict for _ in range(stages))
        for _ in range(jobs)
    )
    assert accused <= 0.05 * jobs * 1.5


def test_thousands_of_steps_and_ranks_are_no_overflow():
    own = np.random.default_rng(0).normal(10, 0.1, (64, 2000))
    own[5] *= 1.3
    assert [rank for rank, word in enumerate(judge(own).verdict) if word] == [5]
