"""Which loss of a job is named first, and in which words: stages, a rank that comes late, waiting."""

from __future__ import annotations

import pytest

from tracker.detect.losses import (
    RankTimes,
    choose_largest,
    find_late_loss,
    find_late_rank,
    find_stage_loss,
    make_loss,
)

MS = 1_000_000


def rank(number: int, **ms: float) -> RankTimes:
    """A rank with a step of 100 ms, and what a test states in ms."""
    stage = ms.pop("stage", None)
    times = {f"{name}_ns": value * MS for name, value in {"step": 100, **ms}.items()}
    return RankTimes(rank=number, stage=None if stage is None else int(stage), **times)


def test_stage_that_waits_is_named_with_the_longest_one():
    ranks = [rank(0, stage=0, own=60, bubble=35), rank(1, stage=0, own=50, bubble=45), rank(2, stage=1, own=90)]
    assert find_stage_loss(ranks).words == "stage 1 takes 90.00 ms, stage 0 55.00: stage 0 waits 40.00 ms (40.0 %)"


def test_times_of_two_units_keep_both():
    ranks = [rank(0, stage=0, own=0.5, bubble=80), rank(1, stage=1, own=90)]
    assert find_stage_loss(ranks).words == "stage 1 takes 90.00 ms, stage 0 500.00 us: stage 0 waits 80.00 ms (80.0 %)"


def test_stages_without_known_waiting_are_compared():
    ranks = [rank(0, stage=0, own=60), rank(1, stage=1, own=90)]
    assert (
        find_stage_loss(ranks).words
        == "stage 1 takes 90.00 ms, stage 0 60.00: 15.00 ms (15.0 %) more than with equal stages"
    )


def test_longest_stage_that_waits_is_not_compared_with_itself():
    ranks = [rank(0, stage=0, own=60, bubble=5), rank(1, stage=1, own=70, bubble=30)]
    assert find_stage_loss(ranks).words == "stage 1 waits 30.00 ms (30.0 %) for other stages of the pipeline"


@pytest.mark.parametrize("stages", [(None, None), (0, 0), (0, None)], ids=["none", "one stage", "one is not known"])
def test_one_stage_loses_nothing_to_others(stages):
    known = [{} if stage is None else {"stage": stage} for stage in stages]
    assert find_stage_loss([rank(at, own=50 + at, **own) for at, own in enumerate(known)]) is None


def test_late_rank_has_the_cause_that_explains_half():
    ranks = [
        rank(0, wait=30, data_loading=1, compute=60),
        rank(1, wait=0, data_loading=26, compute=64),
        rank(2, wait=31, data_loading=3, compute=60),
    ]
    assert find_late_loss(ranks).words == "rank 1 comes late by 30.00 ms (30.0 %): it waits for its data"
    late = find_late_rank(ranks)
    assert (late.cause.part, late.cause.more_ns / MS) == ("its data loading", 24)


def test_late_rank_without_a_cause_says_none():
    ranks = [rank(0, wait=30, compute=60), rank(1, wait=0, compute=70)]
    assert find_late_loss(ranks).words == "rank 1 comes late by 30.00 ms (30.0 %)"


@pytest.mark.parametrize(
    "ranks",
    [
        [rank(0, wait=30), rank(1, wait=16), rank(2, wait=2)],
        [rank(0, wait=1.5), rank(1, wait=0)],
        [rank(0, wait=30), rank(1)],
        [rank(0, wait=30)],
        [rank(0, wait=30, stage=0), rank(1, wait=0, stage=1)],
        [rank(0, wait=0), rank(1, wait=0)],
    ],
    ids=["one explains too little", "2 % of the step", "not known of one", "alone", "pipeline", "no waiting"],
)
def test_rank_is_late_only_where_waiting_proves_it(ranks):
    assert find_late_rank(ranks) is None


def test_order_of_the_ranks_changes_no_loss():
    ranks = [rank(0, wait=30, own=50, stage=0), rank(1, wait=8, own=90, stage=1), rank(2, wait=31, own=60, stage=0)]
    for find in (find_stage_loss, find_late_loss):
        assert find(ranks) == find(ranks[::-1])


def test_headline_is_the_largest_loss_from_5_percent_on():
    losses = [make_loss(name, ns, 100, "{ns}") for name, ns in (("small", 4.9), ("first", 30), ("largest", 40))]
    assert choose_largest([None, *losses]).kind == "largest"
    assert choose_largest(losses[:1]) is None
    assert make_loss("nothing", 0.0, 100, "{ns}") is None
