"""Which calls of several ranks are one call: by order, where all are inside it at some moment."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.slow_pairs import is_one_call, most_pairs
from tracker.profile import MISSING
from tracker.store.calls.pairing import CLOCK_NS, RankCalls, pair, pair_in_order

MS = 1_000_000
HOUR = 3_600_000 * MS


def member(rank, *calls, host="", numbers=None, key=0, ahead=0):
    """The calls of a rank as (start, end); `ahead`: how far its clock is; all of one key unless there are several."""
    starts, ends = (np.array([call[side] + ahead for call in calls], dtype=np.int64) for side in (0, 1))
    keys = np.array(key if isinstance(key, list) else [key] * len(calls), dtype=np.int64)
    index = np.array(numbers if numbers is not None else [MISSING] * len(calls), dtype=np.int64)
    return RankCalls(rank, host, keys, starts, ends, index)


def places(*members):
    return sorted(map(tuple, pair(members).places.T.tolist()))


def test_the_nth_calls_are_one_call():
    assert places(member(0, (0, 10), (20, 30)), member(1, (5, 10), (22, 30))) == [(0, 0), (1, 1)]


def test_a_lost_call_shifts_nothing_that_follows():
    """Rank 1 has no event of the first call: by order alone its 20-30 would be paired with 0-10."""
    lost = member(1, (22, 30), (41, 50))
    assert places(member(0, (0, 10), (20, 30), (40, 50)), lost) == [(1, 0), (2, 1)]


def test_calls_that_no_moment_has_in_common_stay_unpaired():
    first = member(0, *in_steps([(0, 10), (40, 50)]), host="a")
    assert places(first, member(1, *in_steps([(10, 20), (45, 50)]), host="a")) == [(1, 1)]


def test_calls_of_other_kinds_or_payloads_are_no_pairs():
    assert places(member(0, (0, 10), (0, 10), key=[7, 8]), member(1, (0, 10), (0, 10), key=[8, 9])) == [(1, 0)]


def test_the_numbers_of_the_source_go_before_order_where_they_pass():
    """Rank 1 lost call 4 and was early for call 5: order would take the two longest that overlap."""
    first, second = member(0, (0, 10), (10, 20), numbers=[4, 5]), member(1, (8, 20), numbers=[5])
    assert places(first, second) == [(1, 0)]
    assert places(member(0, (0, 10), (10, 20)), member(1, (8, 20))) == [(0, 0)]


def test_numbers_that_do_not_pass_are_not_believed():
    """The profiler of rank 1 counts from its own start."""
    first, second = member(0, (0, 10), (20, 30), numbers=[4, 5]), member(1, (0, 10), (20, 30), numbers=[0, 1])
    assert places(first, second) == [(0, 0), (1, 1)]


def test_a_clock_an_hour_ahead_is_put_right_and_noted():
    calls = (0, 10 * MS), (20 * MS, 30 * MS), (40 * MS, 50 * MS)
    found = pair([member(0, *calls, host="a"), member(1, *calls, host="b", ahead=HOUR)])
    assert (found.places.tolist(), found.offset_ns) == ([[0, 1, 2], [0, 1, 2]], (0, HOUR))


def test_clocks_that_differ_by_less_than_a_ms_are_put_right_without_a_note():
    """Devices of one host: rank 2 is 9 us behind, and its short last call would end before rank 3 comes."""
    calls = (0, 100_000), (200_000, 206_000)
    found = pair([member(2, *calls, host="a", ahead=-9_000), member(3, *calls, host="a")])
    assert (found.places.shape[1], found.offset_ns) == (2, (0, 0))


def test_hosts_of_one_name_have_one_clock():
    """Other calls an hour later are no pairs, however well they fit."""
    calls = (0, 10 * MS), (20 * MS, 30 * MS)
    found = pair([member(0, *calls, host="a"), member(1, *calls, host="a", ahead=HOUR)])
    assert (found.places.shape[1], found.offset_ns) == (0, (0, 0))


@pytest.mark.parametrize(("ahead", "noted"), [(CLOCK_NS, 0), (CLOCK_NS + 1, CLOCK_NS + 1)])
def test_more_than_a_ms_is_noted(ahead, noted):
    calls = [(at * 10 * MS, at * 10 * MS + 5 * MS) for at in range(3)]
    assert pair([member(0, *calls), member(1, *calls, ahead=ahead)]).offset_ns == (0, noted)


def test_members_without_a_common_call_have_no_pairs():
    assert pair([member(0, (0, 10)), member(1)]).places.shape == (2, 0)
    assert pair([member(0), member(1)]).places.shape == (2, 0)


def test_sends_and_receives_are_paired_in_order_whether_or_not_they_overlap():
    found = pair_in_order([member(0, (0, 5), (10, 12)), member(1, (7, 9), (11, 20))])
    assert found.places.tolist() == [[0, 1], [0, 1]]
    assert pair_in_order([member(0, (0, 5), (10, 12)), member(1, (7, 9))]).places.shape == (2, 0)


@st.composite
def calls_of_one_rank(draw):
    """Calls one after the other, as a rank takes part in them."""
    edges = sorted(draw(st.lists(st.integers(0, 30), max_size=8, unique=True)))
    return list(pairwise(edges))[:: draw(st.integers(1, 2))]


ranks = st.lists(calls_of_one_rank(), min_size=2, max_size=3)


@given(ranks)
def test_as_many_calls_are_paired_as_can_be(calls):
    """On one host, in steps of 4 ms: neither these nor half of one is what its clocks may differ by."""
    found = pair([member(rank, *in_steps(own), host="a") for rank, own in enumerate(calls)]).places
    assert all(is_one_call([calls[rank][place] for rank, place in enumerate(one)]) for one in found.T.tolist())
    assert found.shape[1] == most_pairs(calls)
    assert all((np.diff(own) > 0).all() for own in found)


def in_steps(calls):
    return [(start * 4 * MS, end * 4 * MS) for start, end in calls]


@given(ranks, st.randoms(use_true_random=False))
def test_the_order_of_the_ranks_changes_nothing(calls, random):
    members = [member(rank, *own) for rank, own in enumerate(calls)]
    mixed = random.sample(members, len(members))
    there, here = pair(members), pair(mixed)
    back = [mixed.index(one) for one in members]
    assert there.places.tolist() == here.places[back].tolist()
    assert there.offset_ns == tuple(here.offset_ns[place] for place in back)


@given(ranks)
def test_whoever_is_shortest_in_a_call_waits_for_nobody(calls):
    members = [member(rank, *own) for rank, own in enumerate(calls)]
    elapse = np.stack(
        [(one.end_ns - one.start_ns)[own] for one, own in zip(members, pair(members).places, strict=True)]
    )
    wait = elapse - elapse.min(axis=0)
    assert (wait.min(axis=0, initial=0) == 0).all()
    assert (wait >= 0).all()
