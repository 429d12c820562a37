"""Ranks of a job that come in one by one: what rests on all of them is made once, and is as if they came at once."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event, text

from tests.factories import record
from tests.store.test_call_splits import groups, rank, splits
from tests.store.test_samples import samples
from tracker.store import open_store, save_run
from tracker.store import runs as edits

FORMATS = ["torch_profiler"]
RANKS = 8
PAIR = 2


def ranks_of_job(count=RANKS):
    """Rank r computes for 100 + r us, and exchanges with its neighbour (0 with 1, 2 with 3, ...) and with all.

    With all, each is in the call from r ms on, and all leave it at 100 ms.
    """
    made = []
    for number in range(count):
        first = number - number % PAIR
        members = (f"{first},{first + 1}", ",".join(map(str, range(count))))
        calls = [(number % PAIR, 10), (20 + number, 100)]
        work = {"ops": [("mm", 100_000 + 1000 * number)], "steps": 2}
        made.append(rank(number, calls, groups=members, group=[0, 1], world=count, **work))
    return made


def made_of(store):
    """All that rests on all ranks of run 1."""
    found = samples(store, 1).drop(columns=["run_id", "series_id"], errors="ignore").to_dict("records")
    return splits(store), sorted(groups(store)), sorted(map(str, found))


def at_once():
    with open_store("sqlite://") as store:
        save_run(store, record(), ranks_of_job(), formats=FORMATS)
        return made_of(store)


@given(order=st.permutations(range(RANKS)))
def test_ranks_in_any_order_give_the_run_that_one_call_gives(order):
    ranks = ranks_of_job()
    with open_store("sqlite://") as store:
        for number in order:
            save_run(store, record(ranks_handed_over=RANKS), [ranks[number]], formats=FORMATS)
        assert made_of(store) == at_once()


@pytest.mark.postgres
def test_a_run_under_way_has_its_complete_groups_and_the_step_so_far(store):
    """Of 8 ranks 3 came: the pair of 0 and 1 is complete. Rank 1 came 1 ms late to the call of the pair."""
    for own in ranks_of_job()[:3]:
        save_run(store, record(ranks_handed_over=RANKS), [own], formats=FORMATS)
    complete = {ranks: captured for ranks, members, captured, _ in groups(store) if members == captured}
    assert complete == {"0,1": 2}
    with store.connect() as connection:
        kept = connection.execute(text("SELECT s.name FROM sample AS n INNER JOIN series AS s ON n.series_id = s.id"))
        assert [name for (name,) in kept] == ["step"]
        assert connection.execute(text("SELECT sample_rules FROM run")).scalar() is None


@pytest.mark.postgres
def test_whoever_asks_when_time_is_up_makes_the_run_of_the_ranks_that_came(store):
    """6 of 8 ranks came, and no other one will: the first run of its track is as one of these 6."""
    from tracker.regressions import judgement

    ranks = ranks_of_job()[:6]
    for own in ranks:
        save_run(store, record(ranks_handed_over=RANKS), [own], formats=FORMATS)
    judgement.update(store, judgement.tracks_of(store))
    store.settled_ns = 0
    judgement.update(store, judgement.tracks_of(store))
    with open_store("sqlite://") as other:
        save_run(other, record(), ranks, formats=FORMATS)
        assert made_of(store) == made_of(other)


@pytest.mark.postgres
def test_a_rank_that_comes_later_makes_the_run_anew(store):
    ranks = ranks_of_job()
    for own in ranks[:7]:
        save_run(store, record(ranks_handed_over=7), [own], formats=FORMATS)
    save_run(store, record(), [ranks[7]], formats=FORMATS)
    assert made_of(store) == at_once()


@pytest.mark.postgres
def test_a_run_that_is_moved_while_it_waits_is_made_with_its_last_rank(store):
    ranks = ranks_of_job()
    for own in ranks[:4]:
        save_run(store, record(ranks_handed_over=RANKS), [own], formats=FORMATS)
    edits.edit_all(store, [1], workload="misnamed")
    edits.edit_all(store, [1], workload="gpt")
    for own in ranks[4:]:
        save_run(store, record(ranks_handed_over=RANKS), [own], formats=FORMATS)
    assert made_of(store) == at_once()


def work_of(store, save):
    """How many statements a save executes, and how many steps of SQLite's machine these take."""
    done: Counter[str] = Counter()
    event.listen(store.engine, "before_cursor_execute", lambda *_: done.update(statements=1))
    with store.connect() as connection:
        handle = connection.connection.driver_connection
    handle.set_progress_handler(lambda: done.update(steps=100), 100)
    save()
    handle.set_progress_handler(None, 0)
    return done["statements"], done["steps"]


def test_each_rank_of_64_costs_what_the_second_costs():
    """The run counts its ranks and their steps, 200 steps of SQLite's machine for each; all else is of the rank alone.

    That is a few us a rank; reading the operators of each again took over 1 ms.
    """
    ranks = ranks_of_job(64)
    costs = []
    with open_store("sqlite://") as store:
        for own in ranks:
            costs.append(work_of(store, lambda own=own: save_run(
                store, record(ranks_handed_over=64), [own], formats=FORMATS)))  # fmt: skip
    statements, steps = zip(*costs, strict=True)
    assert max(statements[1:63]) <= statements[1] + 4
    assert [number for number, own in enumerate(steps[:63]) if own > 3000 + 250 * number] == []


@pytest.mark.postgres
def test_a_rank_that_comes_while_others_ask_whether_time_is_up_is_waited_with(store):
    """Time was up for 7 of 8 ranks, and nobody had asked, when the last one came: the run is whole."""
    from tracker.regressions import judgement

    ranks = ranks_of_job()
    for own in ranks[:7]:
        save_run(store, record(ranks_handed_over=RANKS), [own], formats=FORMATS)
    store.settled_ns = 0
    save_run(store, record(ranks_handed_over=RANKS), [ranks[7]], formats=FORMATS)
    judgement.update(store, judgement.tracks_of(store))
    assert made_of(store) == at_once()


@pytest.mark.postgres
def test_details_of_a_waiting_run_go_after_its_samples_are_made(store):
    """6 of 8 ranks came; what is left of them is as of a run of 6."""
    from tracker.store import pruning

    ranks = ranks_of_job()[:6]
    for own in ranks:
        save_run(store, record(ranks_handed_over=RANKS), [own], formats=FORMATS)
    pruning.prune(store, 1, now_ns=1)
    with open_store("sqlite://") as other:
        save_run(other, record(), ranks, formats=FORMATS)
        assert made_of(store)[2] == made_of(other)[2]


@pytest.mark.postgres
def test_samples_of_a_pruned_run_that_waits_follow_it_to_another_workload(store):
    """What cannot be made again is neither lost nor left behind."""
    from tracker.store import pruning

    for own in ranks_of_job()[:6]:
        save_run(store, record(ranks_handed_over=RANKS), [own], formats=FORMATS)
    pruning.prune(store, 1, now_ns=1)
    before = made_of(store)[2]
    edits.edit_all(store, [1], workload="renamed")
    assert made_of(store)[2] == before
    with store.connect() as connection:
        workloads = connection.execute(
            text(
                "SELECT DISTINCT w.name FROM sample AS n INNER JOIN series AS s ON n.series_id = s.id "
                "INNER JOIN workload AS w ON s.workload_id = w.id WHERE n.run_id = 1"
            )
        )
        assert [name for (name,) in workloads] == ["renamed"]


class Killed(BaseException):
    """The process ends."""


def save_and_die(store, own, at):
    """Save a rank, and be killed at the statement of this number; whether that many were executed."""
    executed = Counter()

    def count(*_):
        executed.update(statements=1)
        if executed["statements"] == at:
            raise Killed

    event.listen(store.engine, "before_cursor_execute", count)
    try:
        save_run(store, record(ranks_handed_over=RANKS), [own], formats=FORMATS)
    except Killed:
        return True
    finally:
        event.remove(store.engine, "before_cursor_execute", count)
    return False


def test_a_process_that_is_killed_while_it_completes_a_run_changes_nothing(store):
    """The last of 8 ranks is killed at every 12th statement until it comes through: the run waits, and is made once."""
    ranks = ranks_of_job()
    for own in ranks[:7]:
        save_run(store, record(ranks_handed_over=RANKS), [own], formats=FORMATS)
    before = made_of(store)
    deaths = 0
    while save_and_die(store, ranks[7], 1 + 12 * deaths):
        deaths += 1
        assert made_of(store) == before
    assert deaths > 4
    assert made_of(store) == at_once()
