"""Who waits for whom: by the tasks of collectives, and by who comes last."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from msgspec.structs import replace

from tests.factories import record
from tests.ranks.made import MS, job
from tests.ranks.made import rank as rank_of_job
from tests.store.test_call_splits import EARLY, FORMATS, LATE, rank
from tracker.ranks import cluster
from tracker.store import save_run


def waits(found):
    """(rank, peer, ms of a step, captured, told by) of each row."""
    columns = ("rank", "peer", "wait_ns", "captured", "told_by")
    return [(rank, peer, ns / MS, *more) for rank, peer, ns, *more in found.tables["peers"].rows(*columns)]


def test_ranks_wait_for_the_one_that_comes_last(store):
    """Rank 1 comes 30 ms late to the first call, rank 0 comes 5 ms late to the second."""
    save_run(store, record(), [EARLY, LATE], formats=FORMATS)
    assert waits(cluster(store, "run:1")) == [(0, 1, 30.0, 1, "ranks"), (1, 0, 5.0, 1, "ranks")]


def test_ranks_without_a_common_clock_wait_for_no_named_rank(store):
    undated = [replace(one, started_at_ns=None, ended_at_ns=None) for one in (EARLY, LATE)]
    save_run(store, record(), undated, formats=FORMATS)
    assert waits(cluster(store, "run:1")) == []


def waiting_ranks(*numbers: int):
    """Ranks of a group of 8 that wait 8 ms of a step of 10 for its rank 5, and 1 ms for its rank 3."""
    captures = [rank(number, [(0, 8)], groups=("",), world=8, group_size=8, step_ns=10 * MS) for number in numbers]
    for made in captures:
        waits = {"communication": [0, 0], "peer": [3, 5], "is_global": [0, 0], "calls": [1, 1]}
        waits |= {"total_ns": [MS, 8 * MS], "max_ns": [MS, 8 * MS]}
        made.rows.tables["communication_wait"] = {name: np.array(values) for name, values in waits.items()}
    return captures


def test_rank_that_nobody_captured_has_a_name(store):
    """The tasks name a place in the group; as the group is all of the job, it is not one of the captured ranks."""
    save_run(store, record(), waiting_ranks(0, 1), formats=["ascend_text"])
    found = cluster(store, "run:1")
    name = "rank 5 of the group, which was not captured,"
    assert found.headline == f"{name} is waited for: rank 0 for 8.00 ms, rank 1 for 8.00 ms"
    assert [row[:3] for row in waits(found)] == [(0, 5, 8.0), (1, 5, 8.0), (0, 3, 1.0), (1, 3, 1.0)]


def test_one_captured_rank_says_whom_it_waits_for(store):
    save_run(store, record(), waiting_ranks(0), formats=["ascend_text"])
    found = cluster(store, "run:1")
    assert found.headline == "rank 5 of the group, which was not captured, is waited for: rank 0 for 8.00 ms"
    assert found.remarks == ("One rank is captured: there is no other to compare it with.",)


def test_waiting_of_a_rank_is_the_median_of_its_steps(store):
    """It waits 0, 2 and 40 ms: a pause of one step is not what it usually waits."""
    made = rank_of_job(0, [1] * 3, [50] * 3, communication=[("all_reduce", 49 * MS, {"wait_ns": 0})])
    made.rows.tables["communication"]["wait_ns"] = np.array([0, 2 * MS, 40 * MS])
    save_run(store, record(), [made], formats=["ascend_text"])
    assert cluster(store, "run:1").tables["ranks"].listed("wait_ns") == [2 * MS]


def test_waiting_for_a_peer_in_one_step_is_not_usual(store):
    """Rank 1 comes 800 ms late to the call of step 0, and with rank 0 to those of the two steps behind it."""
    steps = {"steps": 3, "step": [0, 1, 2]}
    early = rank(0, [(0, 801), (1010, 1011), (2010, 2011)], **steps)
    late = rank(1, [(800, 801), (1010, 1011), (2010, 2011)], **steps)
    save_run(store, record(), [early, late], formats=FORMATS)
    found = cluster(store, "run:1")
    (row,) = found.tables["peers"].records()
    assert (row["rank"], row["peer"], row["wait_ns"], row["longest_ns"]) == (0, 1, 0.0, 800 * MS)
    assert (found.headline, found.remarks) == (
        "no rank holds the others back",
        ("In step 0 only, rank 0 waits 800.00 ms for rank 1.",),
    )


def test_tasks_that_wait_in_one_step_are_not_usual(store):
    """The tasks of a call of step 0 wait 40 ms for rank 5 of the group; those of steps 1 and 2 wait for none."""
    made = rank_of_job(0, [1] * 3, [50] * 3, communication=[("all_reduce", 49 * MS, {})])
    one = {
        "communication": [0],
        "peer": [5],
        "is_global": [0],
        "calls": [1],
        "total_ns": [40 * MS],
        "max_ns": [40 * MS],
    }
    made.rows.tables["communication_wait"] = {name: np.array(values) for name, values in one.items()}
    save_run(store, record(), [made], formats=["ascend_text"])
    (row,) = cluster(store, "run:1").tables["peers"].records()
    assert (row["wait_ns"], row["longest_ns"]) == (0.0, 40 * MS)


def test_communication_of_a_role_is_the_median_of_the_steps(store):
    """The collective takes 4, 5 and 90 ms."""
    made = rank_of_job(0, [1] * 3, [100] * 3, communication=[("all_reduce", MS, {"group_role": "dp"})])
    made.rows.tables["communication"]["total_ns"] = np.array([4 * MS, 5 * MS, 90 * MS])
    save_run(store, record(), [made], formats=["ascend_text"])
    (row,) = cluster(store, "run:1").tables["roles"].records()
    assert (row["role"], row["calls"], row["total_ns"]) == ("dp", 1, 5 * MS)


def test_ranks_without_a_common_step_are_not_compared(store):
    captures = [rank_of_job(0, [10] * 3, [20] * 3, world_size=2), rank_of_job(1, [10] * 3, [20] * 3, world_size=2)]
    steps = [replace(row, step=row.step + 5, start_ns=row.start_ns + 10**12) for row in captures[1].rows.steps]
    captures[1] = replace(captures[1], rows=replace(captures[1].rows, steps=tuple(steps)))
    captures[0] = replace(captures[0], rows=replace(captures[0].rows, steps=captures[0].rows.steps[:2]))
    save_run(store, record(), captures, formats=["torch_profiler"])
    found = cluster(store, "run:1")
    assert found.headline == "no step is in all ranks: none can be called slow"
    assert any(one.startswith("Which rank is slow: the ranks have 0 steps in common") for one in found.missing)


@pytest.mark.parametrize("order", list(permutations(range(3)))[1:])
def test_permuted_ranks_have_permuted_answers(store, order):
    own = {0: [10.0, 11, 10, 11, 10, 11], 1: [11.0, 10, 11, 10, 11, 10], 2: [15.0] * 6}
    first = cluster(store, job(store, own))
    second = cluster(store, job(store, {order[rank]: own[rank] for rank in own}, of_run={"version": "v2"}))
    columns = ("own_ns", "own_ratio", "excess_ns", "cost_ns", "slowest_steps", "q", "verdict", "cause")
    answers = [
        {number: values for number, *values in found.tables["ranks"].rows("rank", *columns)}
        for found in (first, second)
    ]
    assert answers[1] == {order[number]: values for number, values in answers[0].items()}
