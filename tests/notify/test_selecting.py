"""A look reads what is open, and what is over until that is told: not all that ever was."""

from __future__ import annotations

import pytest

from tests.notify.made import DAY, HOUR, Team, alerts, recorded, same, slower
from tracker.notify.enqueueing import unsettled
from tracker.notify.life import Heard
from tracker.store import queries


@pytest.fixture
def team(store):
    """v1 is known, and the team is served."""
    same(store, "v1", 0)
    found = Team(store, alerts())
    found.round()
    return found


def looked_at(team, *channels):
    """How many findings a look reads; None: all."""
    records = recorded(team.store)
    heard = [Heard(tuple(one for one in records if one.channel == channel)) for channel in channels or ("team",)]
    found = unsettled(team.store, heard)
    return None if found is None else len(found)


def there_are(team):
    return len(queries.standings(team.store))


def test_what_is_open_is_looked_at_until_it_is_over_and_told_to_be(team):
    slower(team.store)
    assert looked_at(team) == there_are(team) > 0
    assert team.rounds() == ["team opened"]
    assert looked_at(team) == there_are(team), "it may be forgotten, or end"
    same(team.store, "v3", 6, count=6)
    assert looked_at(team) == there_are(team), "it is over, and nobody knows"
    assert team.rounds(HOUR) == ["team recovered"]
    assert looked_at(team) == 0


def test_what_comes_back_is_looked_at_again(team):
    slower(team.store)
    team.rounds()
    same(team.store, "v3", 6, count=4)
    team.rounds(DAY)
    assert looked_at(team) == 0
    slower(team.store, "v4", start=10)
    assert looked_at(team) > 0
    assert team.rounds(DAY) == ["team opened"], "another finding, of v4"


def test_a_new_channel_looks_at_all(team):
    slower(team.store)
    assert looked_at(team, "team", "new") is None
