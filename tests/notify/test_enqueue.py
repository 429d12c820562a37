"""What is told of an incident from its beginning to its end, and what is not."""

from __future__ import annotations

import threading

import pytest

from tests.notify.made import DAY, HOUR, MINUTE, NOW, Box, Team, alerts, recorded, same, slower
from tests.regressions.made import runs
from tracker import notify
from tracker.compare import diffs
from tracker.config import Owner, Rule
from tracker.notify import Alarm, enqueueing
from tracker.profile import Device
from tracker.regressions.actions import Word, act
from tracker.regressions.inbox import findings
from tracker.regressions.judgement import tracks_of, update
from tracker.reports.message import title_of
from tracker.results import FindingsOptions
from tracker.store import notifications, open_store
from tracker.store.notifications import Silence


@pytest.fixture
def team(memory_store):
    """Version v1 is known, and the team has been served since before."""
    same(memory_store, "v1", 0)
    found = Team(memory_store, alerts())
    assert found.round() == []
    return found


def say(store, action, now_ns, **more):
    """What a user says of all that is open."""
    numbers = findings(store, options=FindingsOptions(every=True)).findings["finding_id"].dropna()
    act(store, Word(action, "ann", now_ns, "because", **more), finding_ids=list(map(int, numbers)))


def test_an_incident_is_told_once_after_its_wait(team):
    slower(team.store)
    assert team.round() == []
    assert team.round(2 * MINUTE) == ["team opened"]
    assert team.round(HOUR) == []


def test_the_message_says_what_happened(team):
    slower(team.store)
    team.round()
    notify.deliver(team.store, team.alerts, now_ns=NOW + 2 * MINUTE, send=team.box)
    ((_, message),) = team.box.arrived
    (incident,) = message.incidents
    (finding,) = incident.shown
    assert (incident.version, incident.good_version, finding.name) == ("v2", "v1", "op07")
    assert finding.ratio == pytest.approx(0.5, abs=0.02)
    assert incident.baseline_runs == (1, 2, 3)
    assert message.commands["reproduce"] == "tracker diff v1 v2 --workload gpt"
    assert message.commands["acknowledge"] == f"tracker ack I-{incident.incident_id} --reason ..."


def test_a_suspicion_is_not_told(team):
    slower(team.store, count=1)
    assert team.rounds() == []


def test_an_improvement_is_told_to_who_asks_for_it(memory_store):
    same(memory_store, "v1", 0)
    both = Rule(channels=("fans",), directions=("improvement", "regression"), severity="critical")
    team = Team(memory_store, alerts(Rule(channels=("team",)), both, channels=("team", "fans")))
    team.round()
    slower(memory_store, factor=0.5)
    assert team.rounds() == ["fans opened"]


def test_a_critical_incident_does_not_wait(team):
    slower(team.store, factor=6.0)
    assert team.round() == ["team opened"]


def test_what_is_acknowledged_before_it_is_sent_is_not_sent(team):
    slower(team.store)
    team.round()
    say(team.store, "ack", NOW)
    assert team.round(2 * MINUTE) == []
    assert team.states() == ["opened skipped"]


@pytest.mark.parametrize("action", ["expect", "invalid"])
def test_what_a_user_settled_is_not_told(team, action):
    slower(team.store)
    say(team.store, action, NOW)
    assert team.rounds() == []


def test_what_is_muted_is_told_when_the_mute_ends(team):
    slower(team.store)
    team.round()
    say(team.store, "mute", NOW, until_ns=NOW + DAY)
    assert team.rounds() == []
    assert team.rounds(DAY) == ["team opened"]


def test_what_comes_while_the_message_waits_joins_it(team):
    slower_by_one(team.store)
    team.round()
    more_runs_with_another(team.store)
    assert team.round(MINUTE) == []
    notify.deliver(team.store, team.alerts, now_ns=team.now_ns + MINUTE, send=team.box)
    ((_, message),) = team.box.arrived
    assert {one.name for one in message.incidents[0].shown} == {"op07", "op08"}


def slower_by_one(store):
    """v2: op07 is half as slow again, and op08 by a little less than counts."""
    runs(store, "v2", {"op07": 1.5, "op08": 1.028}, start=3)
    update(store, tracks_of(store))


def more_runs_with_another(store):
    """Six more runs of v2, with which op08 counts as well."""
    runs(store, "v2", {"op07": 1.5, "op08": 1.06}, start=6, count=6)
    update(store, tracks_of(store))


def test_what_comes_later_is_told_after_the_interval(team):
    slower_by_one(team.store)
    assert team.rounds() == ["team opened"]
    more_runs_with_another(team.store)
    assert team.round() == []
    assert team.round(6 * HOUR) == ["team added"]
    assert team.round(6 * HOUR) == []


def test_what_gets_worse_with_a_later_version_is_told_as_that_versions(team):
    slower(team.store)
    team.rounds()
    say(team.store, "ack", NOW)
    slower(team.store, "v3", factor=2.2, start=6)
    for later in (DAY, 2 * MINUTE):
        team.now_ns += later
        team.look()
    assert [(message.event, message.incidents[0].version) for _, message in team.box.arrived] == [("opened", "v3")]


def test_what_is_over_is_told_once_and_only_to_who_was_told(memory_store):
    same(memory_store, "v1", 0)
    loud = Rule(channels=("pager",), severity="critical")
    team = Team(memory_store, alerts(Rule(channels=("team",), severity="info"), loud, channels=("team", "pager")))
    team.round()
    slower(memory_store)
    assert team.rounds() == ["team opened"]
    same(memory_store, "v3", 6, count=5)
    assert team.rounds(DAY) == ["team recovered"]
    assert team.rounds(DAY) == []


def test_what_comes_back_is_told_as_a_finding_of_its_version(team):
    slower(team.store)
    same_after = [team.rounds()]
    same(team.store, "v3", 6, count=4)
    same_after.append(team.rounds(DAY))
    slower(team.store, "v4", start=10)
    same_after.append(team.rounds(DAY))
    assert same_after == [["team opened"], ["team recovered"], ["team opened"]]


def test_reminders_come_at_growing_distances_until_somebody_acts(team):
    slower(team.store)
    team.rounds()
    days = [day for day in range(1, 60) if team.round(DAY) == ["team reminder"]]
    assert days == [7, 21, 49]
    say(team.store, "ack", team.now_ns)
    assert not any(team.round(DAY) for _ in range(120))


def test_old_history_is_not_told_to_a_new_channel_but_what_is_new_is(memory_store):
    same(memory_store, "v1", 0)
    slower(memory_store)
    slower(memory_store, "v3", start=6)
    assert Team(memory_store, alerts()).rounds() == []
    later = Rule(channels=("late",), severity="info")
    slower(memory_store, "v4", factor=1.0, start=9)
    runs(memory_store, "v5", {"op07": 1.5, "op20": 2.0}, start=12)
    same(memory_store, "v5", 15, count=0)
    team = Team(memory_store, alerts(later, channels=("late",)))
    assert team.rounds() == ["late opened"]


def test_one_version_on_two_devices_is_one_message(memory_store):
    other = {"device": Device("Huawei", "Ascend910B")}
    for more in ({}, other):
        same(memory_store, "v1", 0, **more)
    team = Team(memory_store, alerts())
    team.round()
    slower(memory_store, factor=1.5)
    assert team.round() == []
    slower(memory_store, factor=1.6, **other)
    assert team.round(MINUTE) == []
    notify.deliver(team.store, team.alerts, now_ns=team.now_ns + MINUTE, send=team.box)
    ((_, message),) = team.box.arrived
    assert [one.device for one in message.incidents] == ["Huawei Ascend910B", "NVIDIA H100"]
    assert message.commands["reproduce"] == "tracker diff v1@Ascend910B v2@Ascend910B --workload gpt"
    assert message.commands["acknowledge"].startswith("tracker ack I-2 I-1")


def test_other_profiler_settings_hold_the_details_back(memory_store):
    same(memory_store, "v1", 0, settings={"with_stack": "False"})
    team = Team(memory_store, alerts())
    team.round()
    slower(memory_store, settings={"with_stack": "True"})
    team.round()
    notify.deliver(team.store, team.alerts, now_ns=NOW + 2 * MINUTE, send=team.box)
    ((_, message),) = team.box.arrived
    assert "profiler with_stack False -> True" in message.held_back


def test_a_silence_by_pattern_ends_and_then_it_is_told(team):
    silence(team.store, "OP0*", until_ns=NOW + DAY)
    slower(team.store)
    assert team.rounds() == []
    assert team.rounds(DAY) == ["team opened"]


def test_a_silence_of_some_operators_leaves_the_others(team):
    silence(team.store, "op07", until_ns=NOW + DAY)
    runs(team.store, "v2", {"op07": 1.5, "op08": 1.5}, start=3)
    slower(team.store, start=6, count=0)
    team.round()
    notify.deliver(team.store, team.alerts, now_ns=NOW + 2 * MINUTE, send=team.box)
    ((_, message),) = team.box.arrived
    assert [one.name for one in message.incidents[0].shown] == ["op08"]
    assert message.incidents[0].silenced == 1


def silence(store, op, *, until_ns, workload="*", device="*"):
    wanted = Silence(0, op, workload, device, "ann", "because", NOW, until_ns)
    return store.transact(lambda connection: notifications.add_silence(connection, wanted))


def test_owners_are_named_and_hear_of_their_operators(memory_store):
    same(memory_store, "v1", 0)
    owner = Owner(op="op08", who="Li Wei", channels=("li",))
    team = Team(memory_store, alerts(Rule(channels=("team",)), channels=("team", "li"), owners=(owner,)))
    team.round()
    runs(memory_store, "v2", {"op07": 1.9, "op08": 1.6}, start=3)
    same(memory_store, "v2", 6, count=0)
    team.round()
    notify.deliver(team.store, team.alerts, now_ns=NOW + 2 * MINUTE, send=team.box)
    said = dict(team.box.arrived)
    assert [one.name for one in said["team"].incidents[0].shown][:2] == ["op07", "op08"]
    assert [one.name for one in said["li"].incidents[0].shown] == ["op08"]
    assert said["team"].owners == ("Li Wei",)
    assert said["li"].narrowed_to == ("op08",)


def test_messages_survive_that_findings_are_made_again(team):
    slower(team.store)
    team.round()
    before = [record.key for record in recorded(team.store)]
    with team.store.begin() as connection:
        for table in ("verdict", "fact", "judged_version", "finding", "incident"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
    slower(team.store, start=6, count=0)
    assert team.round(2 * MINUTE) == ["team opened"]
    assert [record.key for record in recorded(team.store)] == before


def test_an_alarm_is_one_message_per_key_and_channel(memory_store):
    team = Team(memory_store, alerts(channels=("team",)))
    missing = Alarm("gpt", "missing_runs", "gpt", "no run for 2 days")
    assert notify.alarm(memory_store, team.alerts, missing, now_ns=NOW) == 1
    assert notify.alarm(memory_store, team.alerts, missing, now_ns=NOW) == 1, "the channel has it"
    assert team.round() == ["team missing_runs"]
    silence(memory_store, "*", workload="bert", until_ns=NOW + DAY)
    quiet = Alarm("bert", "missing_runs", "bert", "no run for 2 days")
    assert notify.alarm(memory_store, team.alerts, quiet, now_ns=NOW) == 0
    assert notify.alarm(memory_store, team.alerts, quiet, now_ns=NOW + DAY) == 1


def test_nobody_to_tell_is_no_message(memory_store):
    from tracker.config import Alerts

    same(memory_store, "v1", 0)
    assert notify.enqueue(memory_store, Alerts(), now_ns=NOW) == 0
    assert recorded(memory_store) == []
    assert Team(memory_store, Alerts(), Box()).rounds() == []


def test_two_watchers_that_look_at_once_make_one_message(database_url):
    with open_store(database_url) as store:
        same(store, "v1", 0)
        Team(store, alerts()).round()
        slower(store)
    stores, made, ready = [open_store(database_url) for _ in range(2)], [], threading.Barrier(2)

    def look(one):
        ready.wait()
        made.append(notify.enqueue(one, alerts(), now_ns=NOW))

    threads = [threading.Thread(target=look, args=(one,)) for one in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        store.close()
    assert sorted(made) == [0, 1]


def test_a_decision_of_somebody_else_meanwhile_is_seen(team):
    slower(team.store)
    looked = enqueueing._planned

    def slowly(store, settings, now_ns):
        plan = looked(store, settings, now_ns)
        monkey.undo()
        assert notify.enqueue(store, settings, now_ns=now_ns) == 1, "another watcher is faster"
        return plan

    with pytest.MonkeyPatch.context() as monkey:
        monkey.setattr(enqueueing, "_planned", slowly)
        assert notify.enqueue(team.store, team.alerts, now_ns=NOW) == 0
    assert team.states() == ["opened pending"]


def test_both_databases_tell_the_same(store):
    same(store, "v1", 0)
    team = Team(store, alerts())
    team.round()
    slower(store)
    assert team.rounds() == ["team opened"]
    same(store, "v3", 6, count=5)
    assert team.rounds(DAY) == ["team recovered"]
    assert notify.expire(store, now_ns=team.now_ns + 91 * DAY, keep_ns=90 * DAY) == 2
    assert team.rounds(DAY) == [], "what was told stays told when its text is forgotten"


def test_numbers_of_a_level_stand_under_its_versions(memory_store):
    """v3 is slower by 5 ms against v1 and v2 together, and the command of the message compares it with both."""
    team = Team(memory_store, alerts(Rule(channels=("team",), severity="info")))
    same(memory_store, "v1", 0)
    same(memory_store, "v2", 3)
    team.round()
    slower(memory_store, "v3", factor=6.0, start=6)
    team.now_ns += DAY
    team.look()
    ((_, message),) = team.box.arrived
    (incident,) = message.incidents
    (beside_level,) = diffs(memory_store, ["v3"])
    assert title_of(message).endswith(" ms, level of v1, v2 -> v3, NVIDIA H100; op07 is slower per call (+5.04 ms)")
    assert message.commands["reproduce"] == "tracker diff v3 --workload gpt"
    found = beside_level.explanation
    assert (incident.baseline_step_ns, incident.candidate_step_ns) == (found.baseline_ns, found.candidate_ns)
