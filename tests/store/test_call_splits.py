"""Transmitting and waiting, told by all ranks of a group: whenever the last of them comes, from wherever."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from msgspec.structs import replace
from sqlalchemy import text

from tests.conftest import count_rows
from tests.factories import EPOCH_NS, capture, record
from tracker.errors import StoreError
from tracker.profile import CALL_COLUMNS, MISSING, ranks_in
from tracker.store import health, pruning, queries, save_run
from tracker.store import runs as edits

FORMATS = ["torch_profiler"]
MS = 1_000_000


def rank(number, calls, *, groups=("0,1",), world=2, host="node0", group=0, **more):
    """A rank with one row of collectives, `dp` of two: its calls as (start, end) in ms, of `group` among `groups`
    (their ranks; '': unknown). `more`: columns of the calls, and arguments of `capture`.
    """
    columns = {name: more.pop(name) for name in [*CALL_COLUMNS, "kind", "group_role", "group_size"] if name in more}
    row = {"calls": len(calls), **{name: columns.pop(name) for name in ("group_role", "group_size") if name in columns}}
    elapse = [(end - start) * MS for start, end in calls]
    total = {"exposed_ns": sum(columns.get("exposed_ns", elapse))}
    kind = columns.pop("kind", "all_reduce")
    made = capture(number, world_size=world, host=host, digest=bytes([number]) * 16,
                   communication=[(kind, sum(elapse), {**row, **total})], **more)  # fmt: skip
    count = len(calls)
    table = {
        "communication": [0] * count, "group": group if isinstance(group, list) else [group] * count,
        "step": [0] * count, "start_ns": [start * MS for start, _ in calls], "elapse_ns": elapse, "exposed_ns": elapse,
        "bytes": [1000] * count, "peer": [-1] * count, "source_index": [MISSING] * count, **columns,
    }  # fmt: skip
    sizes = [len(ranks_in(members)) or row.get("group_size", 2) for members in groups]
    own = {"role": [row.get("group_role", "dp")] * len(groups), "size": np.array(sizes), "ranks": list(groups)}
    calls_of_rank = {name: np.array(values, dtype=np.int64) for name, values in table.items()}
    return replace(made, rows=replace(made.rows, collective_calls=calls_of_rank, groups=own))


def splits(store, run_id=1):
    """(rank, transit, wait, exposed wait in ms, paired calls) of each row; None where unknown."""
    question = (
        "SELECT rank, ranks_transit_ns, ranks_wait_ns, ranks_exposed_wait_ns, paired_calls FROM communication "
        f"WHERE run_id = {run_id} ORDER BY rank, ordinal"
    )
    with store.connect() as connection:
        rows = connection.execute(text(question)).all()
    return [(own, *(None if ns is None else ns / MS for ns in times), paired) for own, *times, paired in rows]


def groups(store):
    """(ranks, members, captured, clock offset in ms) of the groups."""
    with store.connect() as connection:
        rows = connection.execute(
            text("SELECT ranks, members, captured, clock_offset_ns FROM run_group ORDER BY number")
        )
        return [(own, members, captured, offset and offset / MS) for own, members, captured, offset in rows]


# rank 1 comes 30 ms late to the first call and is waited for; in the second it waits 5 ms
EARLY = rank(0, [(0, 40), (55, 70)])
LATE = rank(1, [(30, 40), (50, 70)])
SPLIT = [(0, 25.0, 30.0, 30.0, 2), (1, 25.0, 5.0, 5.0, 2)]


def test_the_shortest_elapse_is_the_transmission_and_the_rest_is_waiting(store):
    """min(40, 10) + min(15, 20) = 25; 40 - 10 = 30 and 20 - 15 = 5."""
    save_run(store, record(), [EARLY, LATE], formats=FORMATS)
    assert splits(store) == SPLIT
    assert groups(store) == [("0,1", 2, 2, None)]
    assert health.check(store) == []


@pytest.mark.parametrize("order", [(EARLY, LATE), (LATE, EARLY)])
def test_ranks_that_come_one_by_one_are_split_when_the_last_is_there(store, order):
    for number, one in enumerate(order):
        assert save_run(store, record(), [one], formats=FORMATS).run_id == 1
        if number == 0:
            assert [row[1:] for row in splits(store)] == [(None, None, None, None)]
    assert splits(store) == SPLIT


def test_what_the_profiler_says_stays_as_it_is(store):
    said = replace(EARLY, rows=with_times(EARLY.rows, transit_ns=1, wait_ns=2))
    save_run(store, record(), [said, LATE], formats=FORMATS)
    with store.connect() as connection:
        rows = connection.execute(text("SELECT transit_ns, wait_ns FROM communication ORDER BY rank")).all()
    assert rows == [(1, 2), (None, None)]
    assert splits(store) == SPLIT


def with_times(rows, **times):
    table = rows.tables["communication"]
    said = {name: np.full(len(table["calls"]), number, dtype=np.int64) for name, number in times.items()}
    return replace(rows, tables={**rows.tables, "communication": {**table, **said}})


def test_a_group_of_which_a_rank_is_missing_is_not_split(store):
    of_three = {"groups": ["0,1,2"], "world": 3}
    save_run(store, record(), [rank(0, [(0, 40)], **of_three), rank(1, [(30, 40)], **of_three)], formats=FORMATS)
    assert splits(store) == [(0, None, None, None, None), (1, None, None, None, None)]
    assert groups(store) == [("0,1,2", 3, 2, None)]


def test_of_calls_that_are_not_all_paired_the_number_is_kept_and_no_time(store):
    """Rank 1 has no event of the second call: its wait would be left out of the sum."""
    save_run(store, record(), [EARLY, rank(1, [(30, 40)])], formats=FORMATS)
    assert splits(store) == [(0, None, None, None, 1), (1, 10.0, 0.0, 0.0, 1)]


def test_groups_are_paired_each_by_itself(store):
    """Two groups of two: {0,1} waits 10 ms in rank 0, {2,3} waits 5 ms in rank 3; taken for one, all would wait."""
    low, high = ("0,1", "0,1,2,3"), ("2,3", "0,1,2,3")
    calls = [[(0, 20)], [(10, 20)], [(5, 15)], [(0, 15)]]
    ranks = [rank(number, own, groups=(low, high)[number // 2], world=4) for number, own in enumerate(calls)]
    save_run(store, record(), ranks, formats=FORMATS)
    assert [row[2] for row in splits(store)] == [10.0, 0.0, 0.0, 5.0]


def test_calls_without_a_group_are_not_split_where_the_run_has_several(store):
    low, high = ("0,1", "0,1,2,3"), ("2,3", "0,1,2,3")
    calls = [[(0, 20)], [(10, 20)], [(5, 15)], [(0, 15)]]
    ranks = [rank(number, own, groups=(low, high)[number // 2], world=4, group=-1, group_role="", group_size=MISSING)
             for number, own in enumerate(calls)]  # fmt: skip
    save_run(store, record(), ranks, formats=FORMATS)
    assert {row[1:] for row in splits(store)} == {(None, None, None, None)}


def test_a_split_is_taken_back_where_a_later_rank_brings_another_group(store):
    """Ranks 0 and 1 know one group, so that a call that names none is of it; ranks 2 and 3 know another one."""
    unnamed = {"group": -1, "group_role": "", "group_size": MISSING, "world": None}
    first = [rank(0, [(0, 20)], groups=["0,1"], **unnamed), rank(1, [(10, 20)], groups=["0,1"], **unnamed)]
    later = [rank(2, [(5, 15)], groups=["2,3"], **unnamed), rank(3, [(0, 15)], groups=["2,3"], **unnamed)]
    of_four = {"ranks_expected": 4}
    save_run(store, record(**of_four), first, formats=FORMATS)
    assert [row[2] for row in splits(store)] == [10.0, 0.0]
    assert save_run(store, record(**of_four), later, formats=FORMATS).run_id == 1
    assert [row[2] for row in splits(store)] == [None] * 4


@pytest.mark.parametrize(("size", "expected"), [(2, [10.0, 0.0]), (MISSING, [10.0, 0.0]), (4, [None, None])])
def test_a_group_whose_members_nobody_names_is_that_of_all_ranks(store, size, expected):
    """Of a job of two; of one of four, two are missing."""
    world = 4 if size == 4 else 2
    of_all = {"groups": [""], "group_role": "", "group_size": size, "world": world}
    save_run(store, record(), [rank(0, [(0, 20)], **of_all), rank(1, [(10, 20)], **of_all)], formats=FORMATS)
    assert [row[2] for row in splits(store)] == expected


def test_two_groups_without_members_are_not_taken_for_one(store):
    of_all = {"groups": ["", ""], "group_role": "", "group_size": MISSING}
    save_run(store, record(), [rank(0, [(0, 20)], **of_all), rank(1, [(10, 20)], **of_all)], formats=FORMATS)
    assert [row[2] for row in splits(store)] == [None, None]


def test_payloads_tell_calls_apart_but_for_all_to_all(store):
    for number, (kind, expected) in enumerate((("all_gather", None), ("all_to_all", 10.0)), 1):
        start = EPOCH_NS + number * 10**12
        of_kind = {"kind": kind, "started_at_ns": start}
        two = [
            renamed(rank(0, [(0, 20)], bytes=[419_430_400], **of_kind), number),
            renamed(rank(1, [(10, 20)], bytes=[339_738_624], **of_kind), number),
        ]
        run_id = save_run(store, record(started_at_ns=start), two, formats=FORMATS).run_id
        assert splits(store, run_id)[0][2] == expected


def renamed(one, number):
    """The same capture in another file."""
    return replace(one, sources=(replace(one.sources[0], digest=bytes([number, one.rank]) * 8),))


def test_a_send_waits_for_its_receive_whichever_group_they_are_of(store):
    """0 sends to 1 twice; of the first the receive came 10 ms late, of the second 5 ms early. Rank 2 is not there."""
    send = rank(0, [(0, 20), (30, 35)], kind="send", peer=[1, 1], groups=["0,1,2"], world=3)
    receive = rank(1, [(10, 20), (25, 35)], kind="recv", peer=[0, 0], groups=["0,1,2"], world=3)
    save_run(store, record(), [send, receive], formats=FORMATS)
    assert splits(store) == [(0, 15.0, 10.0, 10.0, 2), (1, 15.0, 5.0, 5.0, 2)]


def test_exposed_waiting_is_told_where_a_call_is_hidden_as_a_whole_or_not_at_all(store):
    """The first call is bare, 30 of its 40 ms are waiting; of the second none is exposed."""
    hidden = rank(0, [(0, 40), (55, 70)], exposed_ns=[40 * MS, 0])
    save_run(store, record(), [hidden, LATE], formats=FORMATS)
    assert splits(store)[0] == (0, 25.0, 30.0, 30.0, 2)


def test_exposed_waiting_of_a_call_that_is_hidden_in_part_is_not_known(store):
    save_run(store, record(), [rank(0, [(0, 40), (55, 70)], exposed_ns=[20 * MS, 0]), LATE], formats=FORMATS)
    assert splits(store)[0] == (0, 25.0, 30.0, None, 2)


def test_clocks_of_two_hosts_are_put_right_and_noted(store):
    ahead = rank(1, [(30, 40), (50, 70)], host="node1", started_at_ns=EPOCH_NS + 7_200_000 * MS)
    ahead = replace(ahead, ended_at_ns=EPOCH_NS + 7_200_070 * MS)
    long = replace(EARLY, ended_at_ns=EPOCH_NS + 7_200_070 * MS)
    save_run(store, record(), [long, ahead], formats=FORMATS)
    assert splits(store) == SPLIT
    assert groups(store) == [("0,1", 2, 2, 7_200_000.0)]


def test_four_ranks_in_any_order_come_to_the_same(store):
    """Two pairs and the group of all: what each rank waits does not depend on who was first."""

    def four():
        known = [("0,1", "0,1,2,3"), ("2,3", "0,1,2,3")]
        calls = [[(0, 20), (30, 60)], [(10, 20), (35, 60)], [(5, 15), (55, 60)], [(0, 15), (40, 60)]]
        return [rank(number, own, groups=known[number // 2], world=4, group=[0, 1]) for number, own in enumerate(calls)]

    expected = None
    for number, order in enumerate(list(permutations(range(4)))[::7]):
        ranks = four()
        for place in order:
            saved = save_run(store, record(f"v{number}"), [renamed(ranks[place], number)], formats=FORMATS)
        found = splits(store, saved.run_id)
        expected = expected or found
        assert found == expected
    # of all: the shortest is 5; of the pairs 10 and 10
    assert [row[2] for row in expected] == [10.0 + 25.0, 20.0, 0.0, 5.0 + 15.0]


def test_a_pruned_run_is_split_again_when_its_ranks_are_back(store):
    saved = save_run(store, record(), [EARLY, LATE], formats=FORMATS)
    before = count_rows(store)
    pruning.prune(store, saved.run_id, now_ns=EPOCH_NS)
    assert count_rows(store).get("collective_call", 0) == 0
    assert save_run(store, record(), [LATE], formats=FORMATS).restored
    assert [row[2] for row in splits(store)] == [None], "its partner is not back"
    assert save_run(store, record(), [EARLY], formats=FORMATS).restored
    assert splits(store) == SPLIT
    assert count_rows(store) == before


def test_a_purged_run_leaves_no_groups(store):
    save_run(store, record(), [EARLY, LATE], formats=FORMATS)
    edits.delete_all(store, [1], "test", purge=True)
    assert groups(store) == []
    assert health.check(store) == []


def test_damaged_calls_are_found_and_named(store):
    save_run(store, record(), [EARLY], formats=FORMATS)
    with store.begin() as connection:
        connection.execute(text("UPDATE collective_call SET calls = :none"), {"none": b"none"})
    again = "restore the database from a copy, or tracker runs delete 1 --purge --reason damaged, then ingest its files"
    assert health.check(store) == [f"the collective calls of run 1, rank 0 are damaged; {again} again"]
    with pytest.raises(StoreError, match="the collective calls of run 1, rank 0 are damaged"):
        save_run(store, record(), [LATE], formats=FORMATS)
    assert queries.captures(store, [1]).frame["rank"].tolist() == [0], "nothing of the ingest is left"
