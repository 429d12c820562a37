"""Waiting and transmitting of a collective, with all ranks at hand."""

from __future__ import annotations

from tests.timeline.made_events import Made, records
from tracker.profile import MISSING, Capture
from tracker.timeline import build, split_wait

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(X)"


def rank(number: int, elapses: tuple[int, ...], world_size: int | None = 2, size: int = MISSING) -> Capture:
    made = Made()
    reduce = made.collective("all_reduce", bytes=64, group_size=size)
    made.step(1, 0, 1000)
    made.launch(0, 1)
    for index, elapse in enumerate(elapses):
        made.kernel(REDUCE, 100 * index, 100 * index + elapse, 1, collective=reduce)
    return build(made.capture(number, world_size))


def waits(captures: list[Capture]) -> list[list[tuple[int, ...]]]:
    return [records(c.rows.tables["communication"], "total_ns", "transit_ns", "wait_ns") for c in captures if c.rows]


def test_the_shortest_elapse_is_the_transmission_and_the_rest_is_waiting():
    assert waits(split_wait([rank(0, (10, 40)), rank(1, (30, 25))])) == [[(50, 35, 15)], [(55, 35, 20)]]


def test_unequal_numbers_of_calls_or_missing_ranks_leave_it_open():
    unknown = [[(10, MISSING, MISSING)]]
    assert waits(split_wait([rank(0, (10,))])) == unknown
    assert waits(split_wait([rank(0, (10,)), rank(1, (4, 6))])) == [*unknown, *unknown]
    assert waits(split_wait([rank(0, (10,), 8), rank(1, (10,), 8)])) == [*unknown, *unknown]
    assert waits(split_wait([rank(0, (10,)), rank(0, (10,))])) == [*unknown, *unknown]


def test_a_rank_that_says_how_long_it_waited_keeps_that_and_what_it_says_of_transmitting():
    made = Made()
    call = made.hcom("hcom_allReduce__501_0_1", 0, 100, group_size=2)
    made.task(call, "Notify_Wait", 0, 60)
    other = Made()
    other.hcom("hcom_allReduce__501_0_1", 0, 50, group_size=2)
    # 50 of transmitting and 60 of waiting do not fit into 100
    split = split_wait([build(made.capture(0, 2)), build(other.capture(1, 2))])
    assert waits(split) == [[(100, MISSING, 60)], [(50, 50, 0)]]


def test_a_group_smaller_than_the_run_stays_open_since_its_members_are_not_known():
    unknown = [[(10, MISSING, MISSING)]]
    assert waits(split_wait([rank(number, (10,), 4, size=2) for number in range(4)])) == unknown * 4


def test_the_size_of_the_group_goes_before_that_of_the_world():
    assert waits(split_wait([rank(0, (10,), 8, size=2), rank(1, (14,), 8, size=2)])) == [[(10, 10, 0)], [(14, 10, 4)]]
