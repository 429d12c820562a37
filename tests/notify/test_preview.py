"""What a dry run shows: what would go out now, and nothing that has to wait for something before it."""

from __future__ import annotations

import re

from tests.notify.made import DAY, MINUTE, Team, alerts, same, slower
from tracker.config import Rule
from tracker.notify.enqueueing import preview
from tracker.reports.message import write as render_message

AT_ONCE = alerts(Rule(channels=("team",), severity="info", when="at once"))


def events(team):
    return [message.event for _, message in preview(team.store, team.alerts, now_ns=team.now_ns)]


def started(store, settings=AT_ONCE):
    same(store, "v1", 0)
    team = Team(store, settings)
    team.round()
    return team


def test_what_is_over_is_not_shown_before_it_was_told_that_it_began(store):
    team = started(store)
    team.box.broken.add("team")
    slower(store)
    assert events(team) == ["opened"]
    team.look()
    assert team.states() == ["opened failed"]
    same(store, "v3", 6, count=5)
    assert events(team) == [], "the message that it began is tried again in a minute, and the other one waits for it"
    team.now_ns += 2 * MINUTE
    assert events(team) == ["opened", "recovered"]
    team.box.broken.clear()
    assert team.round() == ["team opened", "team recovered"]
    assert events(team) == []


def test_another_incident_is_shown_whatever_waits(store):
    team = started(store)
    team.box.broken.add("team")
    slower(store)
    team.look()
    same(store, "v1", 0, workload="bert")
    slower(store, workload="bert")
    assert events(team) == ["opened"]


def test_what_is_over_is_shown_with_what_it_is_now(store):
    team = started(store)
    slower(store)
    team.round()
    same(store, "v3", 6, count=5)
    ((_, message),) = preview(store, team.alerts, now_ns=team.now_ns + DAY)
    (line,) = [line for line in render_message(message).body.splitlines() if line.startswith("- op07")]
    assert re.search(r"1.00 ms -> 1.50 ms \(\+49.\d %\), now as before,", line)
