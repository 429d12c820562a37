"""A version with fewer runs than usual is no alert yet: further runs may take back what it seems to be."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from tests.notify.made import DAY, HOUR, MINUTE, NOW, Team, alerts, same, slower
from tests.regressions import made
from tracker.config import Rule
from tracker.notify.enqueueing import list_waiting
from tracker.regressions.judgement import tracks_of, update
from tracker.reports.message import write
from tracker.store import open_store, queries
from tracker.store import runs as edits

AT_ONCE = Rule(channels=("team",), severity="info", when="at once")


def arrive(team, count):
    """The newest runs came in just now."""
    runs = sorted(queries.runs(team.store).listed("run_id"))[-count:]
    set_arrival = text("UPDATE run SET last_rank_at_ns = :now_ns WHERE id = :run_id")
    arrivals = [{"now_ns": team.now_ns, "run_id": run_id} for run_id in runs]
    team.store.transact(lambda connection: connection.execute(set_arrival, arrivals))


def usual(store, versions=4, runs=3):
    """So many versions of so many equal runs, all in for long, and a team that was served before."""
    for number in range(versions):
        made.runs(store, f"v{number + 1}", start=number * runs, count=runs)
    update(store, tracks_of(store))
    team = Team(store, alerts(AT_ONCE), now_ns=NOW - 30 * DAY)
    arrive(team, versions * runs)
    team.now_ns = NOW
    assert team.round() == []
    return team


def slower_runs(team, count, start=12, version="v5", **more):
    slower(team.store, version, start=start, count=count, **more)
    arrive(team, count)


def equal_runs(team, count, start, version="v6"):
    same(team.store, version, start, count)
    arrive(team, count)


@pytest.fixture(scope="module")
def usual_database():
    with open_store("sqlite://") as opened:
        usual(opened)
        yield opened.engine.raw_connection().driver_connection


@pytest.fixture
def team(usual_database, memory_store):
    """Made once and copied: each version is judged."""
    usual_database.backup(memory_store.engine.raw_connection().driver_connection)
    return Team(memory_store, alerts(AT_ONCE))


@pytest.mark.postgres
def test_alert_waits_for_the_usual_number_of_runs(store):
    team = usual(store)
    slower_runs(team, 2)
    assert team.round() == []
    assert team.round(11 * HOUR) == []
    slower_runs(team, 1, start=14)
    assert team.round() == ["team opened"]
    assert team.round(HOUR) == []


@pytest.mark.postgres
def test_alert_waits_no_longer_than_settle(store):
    team = usual(store)
    slower_runs(team, 2)
    assert team.round(12 * HOUR - MINUTE) == []
    assert team.round(MINUTE) == ["team opened"]
    slower_runs(team, 1, start=14)
    assert team.round(HOUR) == []


def test_time_counts_from_the_first_run(team):
    """One run at 0:00 and one at 11:00: the alert comes at 12:00."""
    slower_runs(team, 1)
    team.now_ns += 11 * HOUR
    slower_runs(team, 1, start=13)
    assert team.round() == []
    assert team.round(HOUR) == ["team opened"]


def test_usual_number_is_that_of_half_of_the_versions(memory_store):
    """Runs of v1 to v4: 2, 2, 3, 3. Half of them have no more than the 2 of v5."""
    for version, start, count in (("v1", 0, 2), ("v2", 2, 2), ("v3", 4, 3), ("v4", 7, 3)):
        same(memory_store, version, start, count)
    team = Team(memory_store, alerts(AT_ONCE))
    team.round()
    slower_runs(team, 2)
    assert team.round() == ["team opened"]


@pytest.mark.parametrize("versions", [1, 2])
def test_few_versions_have_no_usual_number(memory_store, versions):
    team = usual(memory_store, versions)
    slower_runs(team, 2, start=12)
    assert team.round() == ["team opened"]


def test_one_run_a_version_waits_for_nothing(memory_store):
    """Two versions after it confirm v9, each with its only run."""
    team = usual(memory_store, versions=8, runs=1)
    slower_runs(team, 1, start=8, factor=6.0, version="v9")
    slower_runs(team, 1, start=9, factor=6.0, version="v10")
    assert team.round() == []
    slower_runs(team, 1, start=10, factor=6.0, version="v11")
    assert team.round() == ["team opened"]


def test_settle_of_0_waits_for_nothing(team):
    team.alerts = alerts(AT_ONCE, settle="0")
    slower_runs(team, 2)
    assert team.round() == ["team opened"]


def test_shorter_settle_waits_less(team):
    team.alerts = alerts(AT_ONCE, settle="1h")
    slower_runs(team, 2)
    assert team.round(HOUR - MINUTE) == []
    assert team.round(MINUTE) == ["team opened"]


def test_what_the_third_run_takes_back_is_not_alerted(team):
    slower_runs(team, 2)
    assert team.round() == []
    equal_runs(team, 1, 14, "v5")
    assert team.round() == []
    assert team.rounds(DAY) == []


def test_what_ends_while_it_waits_is_not_alerted(team):
    """v6 is as fast as v4 again, with all of its runs, before the third run of v5 came."""
    slower_runs(team, 2)
    assert team.round() == []
    equal_runs(team, 3, 15)
    assert team.round(HOUR) == []
    assert team.rounds(DAY) == []


def test_recovery_waits_as_well(team):
    slower_runs(team, 3)
    assert team.round() == ["team opened"]
    equal_runs(team, 2, 15)
    assert team.round(HOUR) == []
    assert [one.sentence.partition(" waits")[0] for one in waiting(team)] == [
        "The recovery of I-1 (gpt v5, NVIDIA H100)"
    ]
    equal_runs(team, 1, 17)
    assert team.round() == ["team recovered"]


def test_runs_before_arrivals_were_kept_wait_for_nothing(team):
    slower(team.store, "v5", start=12, count=2)
    team.store.transact(lambda connection: connection.execute(text("UPDATE run SET last_rank_at_ns = NULL")))
    assert team.round() == ["team opened"]


def test_excluded_run_is_not_one_of_the_usual_number(team):
    slower_runs(team, 3)
    (last,) = queries.run_ids_of_version(team.store, "v5")[-1:]
    edits.exclude_all(team.store, [last], "another job on the node")
    update(team.store, tracks_of(team.store))
    assert team.round() == []
    assert team.round(12 * HOUR) == ["team opened"]


def test_new_channel_hears_of_what_waited(team):
    """Another channel is served for the first time while v5 waits: it is told when the time is over."""
    slower_runs(team, 2)
    team.alerts = alerts(Rule(channels=("team", "late"), severity="info", when="at once"), channels=("team", "late"))
    assert team.round() == []
    assert sorted(team.round(12 * HOUR)) == ["late opened", "team opened"]


def one_run_with_a_new_operator(team):
    """One run of v5: op99 is new, which one run decides, and op07 slower, which later runs decide."""
    made.runs(team.store, "v5", {"op07": 1.5, "op99": 4_000_000}, start=12, count=1)
    update(team.store, tracks_of(team.store))
    arrive(team, 1)


def two_more_runs_as_v6(team):
    made.runs(team.store, "v6", {"op07": 1.5, "op99": 4_000_000}, start=13, count=2)
    update(team.store, tracks_of(team.store))
    arrive(team, 2)


def test_what_a_later_version_decides_waits_for_its_runs(team):
    one_run_with_a_new_operator(team)
    assert team.round(11 * HOUR) == []
    assert team.round(HOUR) == ["team opened"]
    two_more_runs_as_v6(team)
    assert team.round(11 * HOUR) == []
    assert team.round(HOUR) == ["team added"]


def test_message_on_a_part_that_stands_names_what_is_so_far(team):
    """The time of v5 is over at 12:00, and that of v6, whose 2 runs decide op07, is not."""
    one_run_with_a_new_operator(team)
    team.now_ns += 11 * HOUR
    two_more_runs_as_v6(team)
    assert team.round() == []
    team.now_ns += HOUR
    team.look()
    ((_, message),) = team.box.arrived
    assert {one.name for one in message.incidents[0].shown} >= {"op07", "op99"}
    assert "\nSo far: 2 of the usual 3 runs of v6.\n" in write(message).body


def waiting(team):
    return list_waiting(team.store, team.alerts, now_ns=team.now_ns)


def test_what_waits_is_listed_with_its_end(team):
    slower_runs(team, 2)
    (one,) = waiting(team)
    assert one.sentence == ("I-1 (gpt v5, NVIDIA H100) waits for 1 more run of v5, at most until 2027-01-15 20:00 UTC.")
    team.now_ns += 12 * HOUR
    assert waiting(team) == []


def test_what_no_channel_hears_of_does_not_wait(team):
    slower_runs(team, 2)
    team.alerts = alerts(Rule(channels=("team",), workload="bert"))
    assert waiting(team) == []
