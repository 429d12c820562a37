"""The largest known loss of a step is the headline of a cluster, and none is counted twice."""

from __future__ import annotations

import pytest

from tests.factories import record
from tests.ranks.made import MS, job
from tests.ranks.test_cluster import EVEN, SLOW
from tests.store.test_call_splits import FORMATS, rank
from tracker.ranks import cluster
from tracker.store import save_run


def pipeline(waits_ms: dict[int, int]):
    """What else `rank` takes of ranks in stages of two, which wait so long for the other stage."""
    return {
        number: {
            "stage": number // 2,
            "communication": [("send_recv", 20 * MS, {"group_role": "pp", "wait_ns": ms * MS})],
        }
        for number, ms in waits_ms.items()
    }


def test_unequal_stages_stand_before_too_few_steps(store):
    """Stage 1 takes 20 ms, stage 0 takes 10 and waits 9 of a step of 20."""
    own = {0: [10], 1: [10], 2: [20], 3: [20]}
    found = cluster(store, job(store, own, pipeline({0: 9, 1: 9, 2: 0, 3: 0})))
    assert found.headline == "stage 1 takes 20.00 ms, stage 0 10.00: stage 0 waits 9.00 ms (45.0 %)"
    assert found.remarks == ("1 step is too few to call a rank slow: record 3 or more.",)


def test_equal_stages_that_wait_are_a_bubble(store):
    own = {number: [10] * 5 for number in range(4)}
    found = cluster(store, job(store, own, pipeline(dict.fromkeys(own, 3))))
    assert found.headline == "stage 0 waits 3.00 ms (30.0 %) for other stages of the pipeline"


def test_waiting_for_a_slow_rank_of_a_stage_is_its_cost(store):
    """Rank 3 takes 20 ms instead of 12: of the 9 ms that stage 0 waits, 8 are for it."""
    own = {0: [10] * 5, 1: [10] * 5, 2: [12] * 5, 3: [20] * 5}
    found = cluster(store, job(store, own, pipeline({0: 9, 1: 9, 2: 0, 3: 0})))
    assert (found.verdict, found.headline[:43]) == ("SLOW", "rank 3 holds the job back by 8.00 ms a step")


def test_slow_rank_keeps_its_word_below_a_larger_loss(store):
    """Stage 0 waits 16 ms, of which rank 3 costs 4."""
    own = {0: [10] * 5, 1: [10] * 5, 2: [22] * 5, 3: [26] * 5}
    found = cluster(store, job(store, own, pipeline({0: 16, 1: 16, 2: 0, 3: 0})))
    assert (found.verdict, found.headline) == (
        "SLOW",
        "stage 1 takes 24.00 ms, stage 0 10.00: stage 0 waits 16.00 ms (61.5 %)",
    )
    assert found.remarks[0].startswith("Rank 3 holds the job back by 4.00 ms a step")


@pytest.mark.parametrize(("idle_ms", "headline"), [
    (4, "in the median the devices idle 4.00 ms a step (38.1 %)"), (0.2, "no rank holds the others back"),
])  # fmt: skip
def test_idle_time_is_a_loss_from_5_per_cent_of_the_step(store, idle_ms, headline):
    of = {number: {"idle_ms": idle_ms} for number in EVEN}
    assert cluster(store, job(store, EVEN, of)).headline == headline


def test_idle_time_of_a_slow_rank_is_its_cost(store):
    """Rank 3 idles for 12 of 20 ms, the others do not."""
    found = cluster(store, job(store, SLOW, {3: {"idle_ms": 12}}))
    assert found.headline.startswith("rank 3 holds the job back by 9.50 ms a step: its CPU side takes longer")


def test_rank_that_chance_may_make_slowest_is_no_slow_rank(store):
    """27, 60 and 18 ms beside 10, 16 and 10: two ranks in three steps."""
    found = cluster(store, job(store, {0: [10, 16, 10], 1: [27, 60, 18]}))
    assert (found.verdict, found.headline) == (
        "",
        "rank 1 was slowest in 3 of 3 steps, x2.70: too few steps to call it slow",
    )


def test_many_steps_that_vary_are_not_called_too_few(store):
    """Rank 1 takes 11 ms in five steps and 40 in eleven: always the slowest, but now by little and now by much."""
    found = cluster(store, job(store, {0: [10] * 16, 1: [11] * 5 + [40] * 11}))
    assert found.headline == "rank 1 was slowest in 16 of 16 steps, x4.00: its steps vary too much to call it slow"


def test_one_rank_slowest_in_all_steps_is_no_uneven_work(store):
    """Their work differs, but it is always rank 1 that takes longer."""
    sizes = {number: {"kernels": [("gemm", MS, {"input_shapes": f"[[{16 + number}]]"})]} for number in range(2)}
    found = cluster(store, job(store, {0: [10, 16, 10], 1: [27, 60, 18]}, sizes))
    assert (found.verdict, found.tables["stages"].listed("verdict")) == ("", [None])


def test_waiting_for_a_captured_rank_is_a_loss(store):
    """Rank 1 comes 30 ms late to the call of a step of 100 ms; what it does meanwhile is as long."""
    early, late = rank(0, [(0, 40)], step_ns=100 * MS), rank(1, [(30, 40)], step_ns=70 * MS)
    save_run(store, record(), [early, late], formats=FORMATS)
    found = cluster(store, "run:1")
    assert found.headline == "in collectives rank 0 waits 30.00 ms a step for rank 1"


def test_one_long_step_is_named_where_nothing_else_is_lost(store):
    """Rank 1 takes 210 ms instead of 10 in one step of eight: 25 a step on the mean, and 0 in the median."""
    found = cluster(store, job(store, {0: [10] * 8, 1: [10] * 5 + [210] + [10] * 2}))
    assert found.headline == "in step 5 only rank 1 takes 200.00 ms longer: 25.00 ms a step on the mean"


def test_suspected_host_may_hold_the_job_back(store):
    """Ranks 2 and 3 of node1 take 14 to 22 ms instead of 10, in three steps."""
    own = {0: [10, 10.5, 10], 1: [10.5, 10, 10], 2: [15, 20, 15], 3: [19, 14, 22]}
    found = cluster(store, job(store, own, {number: {"host": f"node{number // 2}"} for number in own}))
    assert found.tables["hosts"].listed("verdict") == ["SUSPECT", None]
    assert found.headline.startswith("host node1 may hold the job back: the own time of its 2 ranks is x")
