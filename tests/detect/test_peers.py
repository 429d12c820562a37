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
