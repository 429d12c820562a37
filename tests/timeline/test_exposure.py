"""How much of the time of collectives is exposed, and how much of that is waiting."""

from __future__ import annotations

from tests.timeline.made_events import Made, records
from tracker.profile import MISSING

HCOM = "hcom_allReduce__501_0_1"


def exposure(made):
    return records(made.built().tables["communication"], "exposed_ns", "exposed_wait_ns")


def test_exposed_waiting_is_what_of_the_waiting_tasks_no_compute_hides():
    made = Made()
    made.kernel("Add1", 0, 30, type="Add")
    call = made.hcom(HCOM, 10, 100)
    made.task(call, "Notify_Wait", 10, 50)  # 10 to 30 is hidden
    made.task(call, "Memcpy", 50, 90)
    made.task(call, "Notify_Wait", 90, 95)
    assert exposure(made) == [(70, 25)]


def test_only_the_first_plane_that_waits_counts_the_others_wait_for_it():
    made = Made()
    call = made.hcom(HCOM, 0, 100)
    made.task(call, "Memcpy", 0, 10, plane="0")
    made.task(call, "Notify_Wait", 10, 20, plane="2")
    made.task(call, "Notify_Wait", 0, 90, plane="10")
    assert exposure(made) == [(100, 10)]


def test_a_wait_behind_two_sends_is_for_the_data():
    made = Made()
    call = made.hcom(HCOM, 0, 100)
    for at, name in enumerate(["Notify_Wait", "RDMASend", "RDMASend", "Notify_Wait", "RDMASend", "Notify_Wait"]):
        made.task(call, name, at * 10, at * 10 + 10)
    made.task(call, "Notify_Wait", 60, 63)
    assert exposure(made) == [(100, 13)]


def test_without_tasks_a_call_that_is_exposed_as_a_whole_waits_as_long_as_the_profiler_says():
    made = Made()
    made.times(made.hcom(HCOM, 0, 100), wait_ns=60)
    assert exposure(made) == [(100, 60)]


def test_without_tasks_the_waiting_of_a_call_that_is_hidden_in_part_is_not_known():
    made = Made()
    made.kernel("Add1", 0, 30, type="Add")
    made.times(made.hcom(HCOM, 0, 100), wait_ns=60)
    assert exposure(made) == [(70, MISSING)]


def test_a_call_that_is_hidden_as_a_whole_has_no_exposed_waiting():
    made = Made()
    made.kernel("Add1", 0, 100, type="Add")
    made.hcom(HCOM, 10, 90)
    assert exposure(made) == [(0, 0)]


def test_one_call_of_unknown_waiting_leaves_that_of_its_row_unknown():
    made = Made()
    made.times(made.hcom(HCOM, 0, 100), wait_ns=60)
    made.hcom(HCOM, 200, 300)
    assert exposure(made) == [(200, MISSING)]


def test_calls_that_overlap_do_not_wait_longer_than_they_are_exposed():
    made = Made()
    # on two streams at once: what they say of waiting may be the same time
    made.times(made.hcom(HCOM, 0, 100), wait_ns=80)
    made.times(made.hcom(HCOM, 0, 100, stream=8), wait_ns=80)
    assert exposure(made) == [(100, MISSING)]


def test_a_call_with_tasks_beside_one_that_the_profiler_tells_of_may_wait_at_the_same_time():
    made = Made()
    made.task(made.hcom(HCOM, 0, 100), "Notify_Wait", 0, 80)
    made.times(made.hcom(HCOM, 50, 150, stream=8), wait_ns=80)
    assert exposure(made) == [(150, MISSING)]


def test_calls_that_overlap_wait_as_long_as_the_union_of_their_waiting_tasks():
    made = Made()
    made.task(made.hcom(HCOM, 0, 100), "Notify_Wait", 0, 80)
    made.task(made.hcom(HCOM, 50, 150, stream=8), "Notify_Wait", 50, 130)
    assert exposure(made) == [(150, 130)]
