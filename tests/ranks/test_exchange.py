"""What ranks wait for: groups, calls, and what cannot be told of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.factories import EPOCH_NS, record
from tests.store.test_call_splits import EARLY, FORMATS, LATE, MS, rank
from tracker.ranks import cluster
from tracker.store import save_run


def test_a_group_says_how_long_it_transmits_and_who_waits_most(store):
    """Calls of 40 and 15 ms against 10 and 20: 25 ms of transit each, rank 0 waits 30 ms, rank 1 waits 5."""
    save_run(store, record(), [EARLY, LATE], formats=FORMATS)
    (group,) = cluster(store, "run:1").tables["groups"].records()
    assert (group["role"], group["ranks"], group["kind"], group["complete"]) == ("dp", "0,1", "all_reduce", 1)
    assert (group["transit_ns"], group["wait_ns"], group["most_wait_rank"]) == (25 * MS, 35 * MS, 0)


def test_a_call_names_who_came_last_and_how_late(store):
    save_run(store, record(), [EARLY, LATE], formats=FORMATS)
    found = cluster(store, "run:1")
    calls = [(row["elapse_ns"] / MS, row["last_rank"], row["late_ns"] / MS) for row in found.tables["calls"].records()]
    assert calls == [(40, 1, 30), (20, 0, 5)]
    assert {row["rank"]: row["late_calls"] for row in found.tables["ranks"].records()} == {0: 1, 1: 1}


@pytest.mark.parametrize(("kind", "gb_per_s"), [("all_reduce", 2.5), ("broadcast", 2.5), ("all_gather", None)])
def test_bus_bandwidth_is_known_where_all_ranks_have_the_same_payload(store, kind, gb_per_s):
    """30 MB in 10 and in 15 ms of transit are 3 and 2 GB/s; of two ranks the bus carries each byte once."""
    for_all = {"kind": kind, "bytes": [30_000_000] * 2}
    early, late = rank(0, [(0, 40), (55, 70)], **for_all), rank(1, [(30, 40), (50, 70)], **for_all)
    save_run(store, record(), [early, late], formats=FORMATS)
    (group,) = cluster(store, "run:1").tables["groups"].records()
    assert group["bus_gb_per_s"] == gb_per_s


def test_an_incomplete_group_has_no_transit_and_is_named(store):
    of_three = {"groups": ["0,1,2"], "world": 3}
    save_run(store, record(), [rank(0, [(0, 40)], **of_three), rank(1, [(30, 40)], **of_three)], formats=FORMATS)
    found = cluster(store, "run:1")
    (group,) = found.tables["groups"].records()
    assert (group["transit_ns"], group["wait_ns"], group["complete"], group["captured"]) == (None, None, 0, 2)
    assert any("that were captured in part: dp 0-2 (2 of 3 captured)" in one for one in found.missing)


def test_ranks_with_other_numbers_of_calls_are_named_with_both(store):
    """Rank 1 stopped after the first call."""
    save_run(store, record(), [EARLY, rank(1, [(30, 40)])], formats=FORMATS)
    found = cluster(store, "run:1")
    assert "Waiting of some calls in the group of ranks 0,1: rank 0 has 2 of them, rank 1 has 1." in found.missing


def test_clocks_an_hour_ahead_make_nobody_late(store):
    """The same calls, the clock of rank 1 on another host an hour ahead."""
    hour = 3_600_000
    ahead = rank(1, [(30 + hour, 40 + hour), (50 + hour, 70 + hour)], host="node1")
    save_run(store, record(), [EARLY, ahead], formats=FORMATS)
    late = [row["late_ns"] / MS for row in cluster(store, "run:1").tables["calls"].records()]
    assert late == [30, 5]


def test_captures_without_a_date_have_no_last_rank(store):
    """Each capture counts from its own first event: who came last is not known, and a sentence says so."""
    undated = [replace(one, started_at_ns=None, ended_at_ns=None) for one in (EARLY, LATE)]
    save_run(store, record(), undated, formats=FORMATS)
    found = cluster(store, "run:1")
    assert [(row["last_rank"], row["late_ns"]) for row in found.tables["calls"].records()] == [(None, None)] * 2
    assert {row["late_calls"] for row in found.tables["ranks"].records()} == {None}
    assert any(one.startswith("Who came last: the captures of rank 0,1 name no date") for one in found.missing)


def test_sends_of_a_pipeline_are_its_bubble(store):
    """Stage 1 receives from 0 to 40 ms what stage 0 sends from 30 to 40: 30 ms of exposed waiting in its step."""
    ends = {"kind": "send_recv", "group_role": "pp", "group_size": 2}
    sender = rank(0, [(30, 40)], stage=0, **ends)
    receiver = rank(1, [(0, 40)], stage=1, **ends)
    save_run(store, record(), [sender, receiver], formats=FORMATS)
    found = cluster(store, "run:1")
    assert {row["rank"]: row["bubble_ns"] for row in found.tables["ranks"].records()} == {0: 0, 1: 30 * MS}
    assert {row["stage"]: row["bubble_ns"] for row in found.tables["stages"].records()} == {0: 0, 1: 30 * MS}


def test_a_pipeline_without_known_stages_is_one_group_of_peers_and_says_so(store):
    """The ranks send along a pipeline, but nothing says who is in which stage: no stage is guessed."""
    ends = {"kind": "send_recv", "group_role": "pp", "group_size": 2}
    save_run(store, record(), [rank(0, [(30, 40)], **ends), rank(1, [(0, 40)], **ends)], formats=FORMATS)
    found = cluster(store, "run:1")
    assert [(row["stage"], row["ranks"]) for row in found.tables["stages"].records()] in ([], [(None, 2)])
    assert any(one.startswith("Stages: nothing says which rank is in which stage") for one in found.missing)


def test_captures_of_different_days_have_no_late_ranks(store):
    """Two captures that never overlap, taken for one run: no call of theirs is one call."""
    later = rank(1, [(30, 40), (50, 70)], host="node0", started_at_ns=EPOCH_NS + 10**15)
    save_run(store, record(), [EARLY, later], formats=FORMATS)
    found = cluster(store, "run:1")
    assert not len(found.tables["calls"])
    assert "Waiting in the group of ranks 0,1: no calls of theirs are one call." in found.missing
