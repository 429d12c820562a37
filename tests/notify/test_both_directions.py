"""A version has one message: its net effect says whether it is told, and what went the other way is a note in it."""

from __future__ import annotations

import pytest

from tests.notify.made import MINUTE, Team, alerts
from tests.regressions.made import runs
from tracker.config import Rule
from tracker.regressions.judgement import tracks_of, update
from tracker.reports.message import write as render_message

WORSE = Rule(channels=("worse",), severity="info")
BETTER = Rule(channels=("better",), severity="info", directions=("improvement",))
BOTH = alerts(WORSE, BETTER, channels=("worse", "better"))


@pytest.fixture
def team(memory_store):
    """v1 took 40 ms per step: 40 ops of 1 ms, but op09 4 ms. Two channels: of what is worse, and of what is better."""
    runs(memory_store, "v1", {"op09": 4.0}, count=5)
    update(memory_store, tracks_of(memory_store))
    found = Team(memory_store, BOTH)
    assert found.rounds() == []
    return found


def changed(team, **factors):
    runs(team.store, "v2", factors, start=5)
    update(team.store, tracks_of(team.store))


def text(team):
    team.look()
    team.now_ns += 2 * MINUTE
    team.look()
    ((channel, message),) = team.box.arrived
    written = render_message(message, "short")
    return channel, f"{written.title}\n{written.body}"


def test_what_a_slower_version_gained_stands_in_its_message(team):
    """op07 takes 3 ms more, op09 1 ms less: 2 ms more in all."""
    changed(team, op07=4.0, op09=3.0)
    channel, said = text(team)
    assert channel == "worse", "who wants to hear of faster versions hears nothing of a slower one"
    assert "\nGained: op09 -1.0" in said
    assert "operators found +2.0" in said


def test_what_got_slower_in_a_faster_version_wakes_nobody(team):
    """op07 takes half a ms more, op09 1 ms less: half a ms less in all."""
    changed(team, op07=1.5, op09=3.0)
    channel, said = text(team)
    assert channel == "better"
    assert said.startswith("[info] gpt: ")
    assert "\nLost: op07 +0.5" in said or "\nLost: op07 +50" in said or "\nLost: op07 +49" in said


def test_a_message_in_a_chat_has_at_most_twelve_lines(team):
    changed(team, **{f"op{number:02}": 2.0 for number in range(8)}, op09=3.0, op10=0.5)
    _, said = text(team)
    assert len(said.splitlines()) <= 12
    assert said.count("    tracker ") + said.count(": tracker ") == 1
