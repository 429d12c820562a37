"""A budget that is not met is a message of its own: once, until it was met again."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace

from tests.notify.made import DAY, HOUR, NOW, Team, alerts
from tests.regressions.made import runs
from tracker import notify
from tracker.config import Budget, Rule
from tracker.notify.enqueueing import list_waiting, preview
from tracker.regressions.judgement import tracks_of, update
from tracker.reports.message import title_of
from tracker.store import notifications
from tracker.store.notifications import Silence

BUDGET = Budget(series="step", at_most="50 ms")
"""Runs of `made` take 40 ms, and as much longer as `shared` says."""


@pytest.fixture
def team(memory_store):
    """A channel that hears of all incidents, and of what is none."""
    memory_store.budgets = (BUDGET,)
    return Team(memory_store, alerts(settle="0"))


def come(team, number, shared, **more):
    runs(team.store, f"v{number}", start=10 * number, shared=shared, **more)
    update(team.store, tracks_of(team.store))


def on_budgets(team, event="budget"):
    """Titles of the messages that arrive now, that a budget is not met; `event`: of others."""
    team.now_ns += DAY
    team.look()
    found = [message.title for _, message in team.box.arrived if message.event == event]
    team.box.arrived.clear()
    return found


def test_budget_not_met_is_one_message_until_it_was_met(team):
    come(team, 1, 1.0)
    assert on_budgets(team) == []
    come(team, 2, 1.5)
    (title,) = on_budgets(team)
    assert title.startswith("budget not met: step of v2 is ")
    assert title.endswith(" ms (median of 3 runs), at most 50 ms is wanted")
    assert on_budgets(team) == []
    come(team, 3, 1.6)
    assert on_budgets(team) == [], "it is not met since v2"
    come(team, 4, 1.0)
    assert on_budgets(team) == []
    come(team, 5, 1.5)
    assert [title.partition(" is ")[0] for title in on_budgets(team)] == ["budget not met: step of v5"]


def met_again(team):
    return on_budgets(team, "budget_met")


def test_budget_that_is_met_again_is_one_message(team):
    come(team, 1, 1.0)
    come(team, 2, 1.5)
    come(team, 3, 1.5)
    assert met_again(team) == []
    come(team, 4, 1.0)
    (title,) = met_again(team)
    assert title.startswith("budget met again: step of v4 is ")
    assert title.endswith(" ms (median of 3 runs), at most 50 ms is wanted")
    assert met_again(team) == []
    come(team, 5, 1.0)
    assert met_again(team) == [], "it is met since v4"
    come(team, 6, 1.5)
    assert len(on_budgets(team)) == 1
    come(team, 7, 1.0)
    assert [title.partition(" is ")[0] for title in met_again(team)] == ["budget met again: step of v7"]


def test_message_on_a_budget_met_again_names_the_versions_between(team):
    for number, shared in enumerate((1.0, 1.5, 1.5), start=1):
        come(team, number, shared)
    team.look()
    come(team, 4, 1.0)
    team.look()
    (message,) = [one for _, one in team.box.arrived if one.event == "budget_met"]
    assert message.lines[0].endswith("It was not met since v2, until v3.")
    assert title_of(message).startswith("[recovered] gpt: budget met again: step of v4 is ")


def test_budget_without_an_alert_has_no_message_when_it_is_met(team):
    come(team, 1, 1.5)
    come(team, 2, 1.0)
    assert met_again(team) == []


def test_recovery_goes_to_the_channels_that_were_alerted(memory_store):
    memory_store.budgets = (BUDGET,)
    both = Team(memory_store, alerts(channels=("team", "boss")))
    both.alerts = replace(both.alerts, settle="0", rules=(Rule(channels=("team",), severity="info"),))
    come(both, 1, 1.5)
    both.look()
    both.alerts = replace(both.alerts, rules=(Rule(channels=("boss",), severity="info"),))
    come(both, 2, 1.0)
    both.now_ns += DAY
    both.look()
    assert [name for name, message in both.box.arrived if message.event == "budget_met"] == ["team"]


def test_message_names_where_and_since_when(team):
    come(team, 1, 1.0)
    come(team, 2, 1.5)
    come(team, 3, 1.5)
    team.look()
    (message,) = [one for _, one in team.box.arrived if one.event == "budget"]
    assert message.lines[0].endswith("It is not met since v2.")
    assert message.lines[1] == "Its versions: tracker history step --workload gpt"


def test_single_slow_run_is_no_message(team):
    come(team, 1, 1.0)
    come(team, 2, 1.5, count=1)
    assert on_budgets(team) == []


def test_preview_shows_a_message_that_was_not_made(team):
    come(team, 1, 1.5)
    shown = [message.event for _, message in preview(team.store, team.alerts, now_ns=team.now_ns)]
    assert shown == ["budget"]
    on_budgets(team)
    assert preview(team.store, team.alerts, now_ns=team.now_ns) == []


def test_message_waits_for_runs_that_usually_come(memory_store):
    memory_store.budgets = (BUDGET,)
    patient = Team(memory_store, alerts(settle="12h"))
    for number in range(1, 4):
        come(patient, number, 1.0)
    come(patient, 4, 1.5, count=2)
    (waiting,) = waiting_budgets(patient)
    assert waiting.startswith("The budget of step, at most 50 ms (gpt v4, ")
    assert ") waits for 1 more run of v4, at most until " in waiting
    for patient.now_ns, count in ((time.time_ns(), 0), (time.time_ns() + 13 * HOUR, 1)):
        patient.look()
        assert sum(message.event == "budget" for _, message in patient.box.arrived) == count


def waiting_budgets(team):
    found = list_waiting(team.store, team.alerts, now_ns=time.time_ns())
    return [one.sentence for one in found if one.budget]


def test_recovery_waits_for_runs_that_usually_come(memory_store):
    memory_store.budgets = (BUDGET,)
    patient = Team(memory_store, alerts(settle="12h"))
    for number, shared in enumerate((1.0, 1.0, 1.0, 1.5), start=1):
        come(patient, number, shared)
    patient.now_ns = time.time_ns()
    patient.look()
    assert waiting_budgets(patient) == []
    come(patient, 5, 1.0, count=2)
    (waiting,) = waiting_budgets(patient)
    assert waiting.startswith("The recovery of the budget of step, at most 50 ms (gpt v5, ")
    for patient.now_ns, count in ((time.time_ns(), 0), (time.time_ns() + 13 * HOUR, 1)):
        patient.look()
        assert sum(message.event == "budget_met" for _, message in patient.box.arrived) == count


def test_muted_workload_has_no_message(team):
    come(team, 1, 1.5)
    muted = Silence(0, "*", "gpt", "*", "ann", "because", NOW, NOW + 10 * DAY)
    team.store.transact(lambda connection: notifications.add_silence(connection, muted))
    assert on_budgets(team) == []
    assert notify.enqueue(team.store, team.alerts, now_ns=NOW + 11 * DAY) == 1
