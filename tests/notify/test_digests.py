"""What a channel hears once a day: it is told like anything else, reminded of, and forgotten in the end."""

from __future__ import annotations

import pytest

from tests.notify.made import DAY, HOUR, MINUTE, Team, again, alerts, recorded, same, slower
from tracker import notify
from tracker.config import Rule
from tracker.store import connect, open_store, schema


@pytest.fixture
def daily(store):
    """A team that hears of everything once a day, and of two workloads that got slower."""
    same(store, "v1", 0)
    same(store, "v1", 0, workload="bert")
    team = Team(store, alerts(Rule(channels=("team",), severity="info", when="daily")))
    team.round()
    slower(store)
    slower(store, workload="bert")
    assert team.round() == []
    return team


def joined(team):
    return [record for record in recorded(team.store) if record.state == "joined"]


def test_what_a_digest_told_is_settled_when_it_arrived(daily):
    daily.box.broken.add("team")
    assert daily.round(18 * HOUR) == []
    assert [record.settled_ns for record in joined(daily)] == [None, None], "the digest did not arrive yet"
    daily.box.broken.clear()
    assert daily.round(2 * MINUTE) == ["team digest"]
    assert [record.settled_ns for record in joined(daily)] == [daily.now_ns] * 2


def test_what_a_digest_told_and_nobody_acted_on_is_reminded_of(daily):
    assert daily.round(18 * HOUR) == ["team digest"]
    assert daily.round(6 * DAY) == []
    assert daily.round(2 * DAY) == []
    assert daily.round(DAY) == ["team digest"], "a week later, with the reminders"
    assert [state for state in daily.states() if state.startswith("reminder")] == ["reminder joined"] * 2


def test_a_digest_that_never_arrives_holds_no_reminder_back(daily):
    daily.box.broken.add("team")
    for _ in range(7):
        daily.round(18 * HOUR)
    assert "digest dead" in daily.states()
    assert None not in [record.settled_ns for record in joined(daily)]


def test_what_a_digest_told_is_emptied_like_the_rest(daily):
    daily.round(18 * HOUR)
    notify.expire(daily.store, now_ns=daily.now_ns + 91 * DAY, keep_ns=90 * DAY)
    with daily.store.connect() as connection:
        left = connection.exec_driver_sql("SELECT count(*) FROM notification WHERE content IS NOT NULL").scalar()
    assert left == 0


def test_a_message_that_cannot_be_read_is_given_up_and_the_digest_tells_the_other(daily):
    with daily.store.begin() as connection:
        connection.exec_driver_sql("UPDATE notification SET content = '{' WHERE state = 'waiting' AND workload = 'gpt'")
    daily.look()
    daily.now_ns += 18 * HOUR
    daily.look()
    ((_, digest),) = daily.box.arrived
    assert [part.workload for part in digest.parts] == ["bert"]
    assert sorted(daily.states()) == ["digest sent", "opened dead", "opened joined"]


BEFORE = "0010"
COLUMNS = "id, key, channel, event, counter, state, severity, workload, title, incidents, covers, created_ns, attempts"
ROWS = (
    "(1, 'd', 'team', 'digest', 1, 'sent', 'info', '', '', '[]', '[]', 100, 1, 150, NULL)",
    "(2, 'a', 'team', 'opened', 1, 'joined', 'info', '', '', '[\"i\"]', '[]', 90, 0, NULL, 1)",
    "(3, 'b', 'team', 'opened', 1, 'joined', 'info', '', '', '[\"j\"]', '[]', 20, 0, NULL, 77)",
    "(4, 'e', 'team', 'digest', 1, 'failed', 'info', '', '', '[]', '[]', 200, 1, NULL, NULL)",
    "(5, 'c', 'team', 'opened', 1, 'joined', 'info', '', '', '[\"k\"]', '[]', 190, 0, NULL, 4)",
)
"""A digest that was sent, one that is on its way, and one that was forgotten, each with what it told."""


def test_an_upgrade_settles_what_digests_told_before(empty_url):
    if empty_url.startswith("sqlite"):
        schema.use_write_ahead_log(connect.open_engine(empty_url), 1000)
    with connect.open_engine(empty_url).begin() as connection:
        schema.upgrade(connection, BEFORE)
        for row in ROWS:
            connection.exec_driver_sql(f"INSERT INTO notification ({COLUMNS}, settled_ns, told_by) VALUES {row}")
    connect.upgrade(empty_url)
    with open_store(empty_url, create=False) as opened:
        assert [record.settled_ns for record in recorded(opened)] == [150, 150, 20, None, None]


def daily_but_critical_at_once(store):
    """A team that hears of critical incidents at once, and of others in a digest."""
    same(store, "v1", 0)
    daily = Rule(channels=("team",), severity="info", when="daily")
    team = Team(store, alerts(daily, Rule(channels=("team",), severity="critical", when="at once")))
    team.round()
    return team


def test_what_waits_for_a_digest_is_told_at_once_when_something_critical_joins_it(store):
    team = daily_but_critical_at_once(store)
    slower(store)
    assert team.round() == []
    assert team.states() == ["opened waiting"]
    again(store, {"op07": 1.5, "op08": 9.0})
    assert team.round(MINUTE) == ["team opened"], "the digest is hours away"
    assert team.states() == ["opened sent"]


def test_what_waits_for_a_digest_waits_on_when_more_of_its_kind_joins_it(store):
    team = daily_but_critical_at_once(store)
    slower(store)
    team.round()
    again(store, {"op07": 1.5, "op08": 1.6})
    assert team.round(MINUTE) == []
    assert team.states() == ["opened waiting"]
    assert team.round(16 * HOUR) == ["team digest"]
