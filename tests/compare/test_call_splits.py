"""Where wait and transit of collectives come from: all ranks, or a profiler; never one against the other."""

from __future__ import annotations

import uuid

import pandas as pd
import pytest
from msgspec.structs import replace

from tests.factories import capture, record, save, save_run
from tests.store.test_call_splits import EARLY, LATE, MS, rank, with_times
from tracker.compare import diff, show

FORMATS = ["torch_profiler"]
PARTS = ["split_by", "transit_ns", "wait_ns"]


def said(one, **times):
    """The rank with what its profiler says of its only row of collectives."""
    return replace(one, rows=with_times(one.rows, **{name: value * MS for name, value in times.items()}))


def run(store, version, *ranks):
    """A run with these ranks, from files of its own."""
    own = [replace(one, sources=(replace(one.sources[0], digest=uuid.uuid4().bytes),)) for one in ranks]
    save_run(store, record(version), own, formats=FORMATS)


def parts(store, version):
    frame = show(store, version).communication
    return [tuple(None if pd.isna(value) else value for value in row) for row in frame[PARTS].to_numpy(object)]


def test_what_all_ranks_tell_stands_in_place_of_what_the_profiler_says(store):
    """Of 55 ms in calls, rank 0 transmits 25 and waits 30; HCCL said 1 and 2. Rank 1: 25 and 5."""
    run(store, "v1", said(EARLY, transit_ns=1, wait_ns=2), LATE)
    assert parts(store, "v1") == [("ranks", 50 * MS, 35 * MS)]


def test_the_profiler_is_believed_where_a_rank_is_missing(store):
    run(store, "v1", said(EARLY, transit_ns=1, wait_ns=2))
    assert parts(store, "v1") == [("profiler", 1 * MS, 2 * MS)]


def test_where_nobody_splits_nothing_is_said(store):
    run(store, "v1", EARLY)
    assert parts(store, "v1") == [(None, None, None)]


def test_ranks_are_not_compared_with_a_profiler(store):
    run(store, "v1", EARLY, LATE)
    run(store, "v2", *(said(one, transit_ns=20, wait_ns=10) for one in (rank(0, [(0, 40)]), rank(2, [(50, 70)]))))
    found = diff(store, "v1", "v2")
    told = [note for note in found.notes if "are not compared" in note]
    assert told == [
        "Wait and transit of dp x2 come from all ranks in the baseline and from the profiler in the candidate: "
        "they are not compared."
    ]
    row = found.communication.iloc[0]
    assert (row["baseline_split_by"], row["candidate_split_by"]) == ("ranks", "profiler")
    below = [metric for metric in found.overall["metric"] if metric.startswith(("exposed_wait", "exposed_transmit"))]
    assert below == []


def test_two_runs_of_a_side_that_were_split_otherwise_say_nothing_of_it(store):
    run(store, "v1", EARLY, LATE)
    of_profiler = [("all_reduce", 50 * MS, {"transit_ns": MS, "wait_ns": MS})]
    save(store, "v1", ranks=2, started_at_ns=10**18, communication=of_profiler)
    run(store, "v2", EARLY, LATE)
    row = diff(store, "v1", "v2").communication.set_index("kind").loc["all_reduce"]
    assert row[["baseline_split_by", "baseline_wait_ns"]].isna().all()
    assert row["candidate_split_by"] == "ranks"
    assert row["candidate_wait_ns"] > 0


@pytest.mark.parametrize("sides", [1, 2])
def test_a_group_that_is_not_complete_says_how_many_are_there(store, sides):
    of_three = {"groups": ["0,1,2"], "world": 3}
    run(store, "v1", rank(0, [(0, 40)], **of_three), rank(1, [(30, 40)], **of_three))
    notes = show(store, "v1").notes if sides == 1 else diff(store, "v1", "v1").notes
    assert [note for note in notes if "captured" in note] == [
        "v1: group dp of 3, 2 captured: wait and transit are not computed across ranks."
    ]


def test_calls_of_no_named_group_among_several_are_not_split_and_this_is_said(store):
    """Two groups of two ranks, and calls of which nobody says which of them they are of."""
    named = {"groups": ["0,1", "2,3"], "world": 4, "group": -1, "group_role": "", "group_size": -1}
    run(store, "v1", *(rank(number, [(0, 40)], **named) for number in range(4)))
    assert parts(store, "v1") == [(None, None, None)]
    told = [note for note in show(store, "v1").notes if "name no process group" in note]
    assert told == [
        "v1: collectives name no process group and the run may have several: wait and transit are not computed across "
        "ranks."
    ]


def test_clocks_that_were_put_right_are_told(store):
    """The clock of the second host is 7 ms ahead."""
    here, there = [(0, 40), (55, 70)], [(37, 47), (57, 77)]
    run(store, "v1", rank(0, here), rank(1, there, host="node1"))
    told = [note for note in show(store, "v1").notes if "clocks" in note]
    assert told == ["v1: the clocks of its hosts differ by up to 7.00 ms; corrected to match calls across ranks."]


def test_one_rank_alone_has_nothing_to_say_of_others(store):
    save_run(store, record("v1"), [capture(communication=[("all_reduce", 50)])], formats=FORMATS)
    assert [note for note in show(store, "v1").notes if "captured" in note or "group" in note] == []
