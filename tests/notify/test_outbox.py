"""The outbox: what is due is tried, by one sender at a time, until it is delivered or given up."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import text as sql

from tests.notify.made import DAY, HOUR, MINUTE, NOW, Box, alerts, recorded
from tracker import notify
from tracker.notify import Alarm, Delivered, delivering
from tracker.reports.message import json_of
from tracker.results import Message
from tracker.store import notifications, open_store

SETTINGS = alerts(channels=("team", "other"))

pytestmark = pytest.mark.postgres  # claims are locks


def put(store, count=1, settings=SETTINGS, now_ns=NOW):
    """`count` messages to each channel that hears of alarms."""
    for number in range(count):
        notify.alarm(store, settings, Alarm(f"{now_ns}-{number}", "watcher", "", f"number {number}"), now_ns=now_ns)


def deliver(store, now_ns, send, settings=SETTINGS):
    return notify.deliver(store, settings, now_ns=now_ns, send=send)


def test_a_message_is_delivered_once(store):
    put(store)
    box = Box()
    assert deliver(store, NOW, box) == Delivered(sent=1)
    assert deliver(store, NOW + DAY, box) == Delivered()
    assert box.take() == ["team watcher"]


def test_what_fails_is_tried_again_after_1_5_30_120_and_120_minutes_and_then_given_up(store):
    put(store)
    now, waits, results = NOW, [], []
    for _ in range(6):
        results.append(deliver(store, now, lambda channel, message: "it answered 500"))
        (record,) = recorded(store)
        if record.next_try_ns is not None:
            waits.append((record.next_try_ns - now) / MINUTE)
            assert deliver(store, record.next_try_ns - 1, Box()) == Delivered(), "not before its time"
            now = record.next_try_ns
    assert waits == [pytest.approx(minutes, rel=0.1) for minutes in (1, 5, 30, 120, 120)]
    assert results == [Delivered(failed=1)] * 5 + [Delivered(dead=1)]
    (row,) = notifications.listed(store).frame.to_dict("records")
    assert (row["state"], row["attempts"], row["last_error"]) == ("dead", 6, "it answered 500")
    assert deliver(store, now + 365 * DAY, Box()) == Delivered()


def test_what_a_clock_wrote_that_was_years_ahead_is_due_now(store):
    put(store, now_ns=NOW + 1000 * DAY)
    assert deliver(store, NOW, Box()) == Delivered(sent=1)
    put(store)
    deliver(store, NOW, lambda channel, message: "it answered 500")
    with store.begin() as connection:
        connection.execute(sql("UPDATE notification SET next_try_ns = :at WHERE state = 'failed'"), {"at": NOW + DAY})
    assert deliver(store, NOW, Box()) == Delivered(sent=1)


def test_what_was_given_up_can_be_tried_again(store):
    put(store, 2)
    for step in range(6):
        deliver(store, NOW + step * DAY, lambda channel, message: "no")
    first = recorded(store)[0].id
    assert store.transact(lambda connection: notifications.retry(connection, NOW + 9 * DAY, first)) == 1
    assert deliver(store, NOW + 9 * DAY, Box()) == Delivered(sent=1)
    assert store.transact(lambda connection: notifications.retry(connection, NOW + 9 * DAY)) == 1
    assert deliver(store, NOW + 9 * DAY, Box()) == Delivered(sent=1)


def both_channels(store, count=1):
    from tracker.config import Rule

    settings = alerts(Rule(channels=("team", "other")), channels=("team", "other"))
    put(store, count, settings)
    return settings


def test_a_channel_that_fails_or_raises_blocks_no_other(store):
    settings = both_channels(store, 3)
    box = Box()

    def send(channel, message):
        if channel.name == "team":
            raise RuntimeError("https://hooks.example/SECRET-TOKEN")
        return box(channel, message)

    assert deliver(store, NOW, send, settings) == Delivered(sent=3, failed=3)
    errors = set(notifications.listed(store).frame["last_error"])
    assert errors == {"sending failed (RuntimeError)"}


def test_a_channel_that_takes_too_long_delays_no_other(store):
    settings = both_channels(store)
    other_is_done = threading.Event()

    def send(channel, message):
        if channel.name == "team":
            return "it took too long" if other_is_done.wait(5) else "the other channel waits for this one"
        other_is_done.set()

    done = deliver(store, NOW, send, settings)
    assert (done, done.problems) == (Delivered(sent=1, failed=1), {"team": "it took too long"})


def test_a_slow_channel_keeps_the_rest_for_the_next_round(store, monkeypatch):
    monkeypatch.setattr(delivering, "_ROUND_S", -1.0)
    put(store, 2)
    assert deliver(store, NOW, Box()) == Delivered()
    monkeypatch.undo()
    assert deliver(store, NOW, Box()) == Delivered(sent=2)


class Killed(BaseException):
    """What kill -9 looks like to the code that comes after it: nothing comes after it."""


def test_killed_between_claim_and_send_another_sends_it_when_the_claim_ends(store, monkeypatch):
    put(store)

    def killed(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(delivering.threading.Thread, "start", killed)
        with pytest.raises(Killed):
            deliver(store, NOW, Box())
    assert deliver(store, NOW + MINUTE, Box()) == Delivered(), "somebody may be sending it"
    assert deliver(store, NOW + 10 * MINUTE, Box()) == Delivered(sent=1)


def test_killed_between_send_and_mark_it_comes_twice_and_is_recognised(store, monkeypatch):
    put(store)
    box = Box()

    def killed(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(notifications, "mark_sent", killed)
        with pytest.raises(Killed):
            deliver(store, NOW, box)
    assert deliver(store, NOW + 10 * MINUTE, box) == Delivered(sent=1)
    first, second = (message for _, message in box.arrived)
    assert first == second
    assert first.key.startswith("watcher:")


def test_a_message_that_kills_its_senders_is_given_up(store):
    put(store)
    number = recorded(store)[0].id
    for step in range(6):
        now = NOW + step * HOUR

        def claim(connection, now=now):
            return notifications.claim(connection, number, "x", now_ns=now, until_ns=now + MINUTE)

        assert store.transact(claim)
    assert deliver(store, NOW + DAY, Box()) == Delivered(dead=1)
    assert "died" in notifications.listed(store).frame["last_error"][0]


def test_a_claim_holds_for_one(store):
    put(store)
    number = recorded(store)[0].id

    def claim(who):
        return store.transact(
            lambda connection: notifications.claim(connection, number, who, now_ns=NOW, until_ns=NOW + MINUTE)
        )

    assert [claim("a"), claim("b")] == [True, False]


def test_two_deliverers_at_once_send_each_message_once(database_url):
    with open_store(database_url) as store:
        put(store, 20)
    box, stores = Box(), [open_store(database_url) for _ in range(2)]
    found = []
    threads = [
        threading.Thread(target=lambda one=one: found.append(deliver(one, NOW, box))) for one in stores
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        store.close()
    assert sum(one.sent for one in found) == 20
    assert len(box.arrived) == len({message.key for _, message in box.arrived}) == 20


def test_a_channel_that_is_no_longer_there_is_a_failure_that_ends(store):
    put(store)
    gone = alerts(channels=("other",))
    results = [deliver(store, NOW + step * DAY, Box(), gone) for step in range(6)]
    assert results[-1] == Delivered(dead=1)
    assert notifications.listed(store).frame["last_error"][0] == "there is no channel team in the settings"


def test_what_is_over_is_told_after_it_was_told_that_it_began(store):
    for event, key in (("opened", "k:opened:1"), ("recovered", "k:recovered:1")):
        made = notifications.NewMessage(
            key, "team", event, 1, "pending", NOW, incidents=("k",), next_try_ns=NOW,
            content=json_of(Message(event=event, key=key, workload="gpt", title="t")).decode(),
        )  # fmt: skip
        store.transact(lambda connection, made=made: notifications.add(connection, made))
    box = Box(broken={"team"})
    assert deliver(store, NOW, box) == Delivered(failed=1), "the second one waits for the first"
    box.broken.clear()
    assert deliver(store, NOW, box) == Delivered()
    assert deliver(store, NOW + 2 * MINUTE, box) == Delivered(sent=2)
    assert box.take() == ["team opened", "team recovered"]


def test_what_was_settled_long_ago_is_forgotten(store):
    put(store)
    deliver(store, NOW, Box())
    assert notify.expire(store, now_ns=NOW + 89 * DAY, keep_ns=90 * DAY) == 0
    assert notify.expire(store, now_ns=NOW + 91 * DAY, keep_ns=90 * DAY) == 1
    assert recorded(store) == []


def test_an_alarm_that_is_still_so_is_not_told_again_however_long_it_lasts(store):
    box, stuck = Box(), Alarm("spool", "quarantined", "", "a profile cannot be read")
    for day in range(0, 300, 5):
        assert notify.alarm(store, SETTINGS, stuck, now_ns=NOW + day * DAY) == 1
        deliver(store, NOW + day * DAY, box)
        notify.expire(store, now_ns=NOW + day * DAY, keep_ns=90 * DAY)
    assert box.take() == ["team quarantined"]
    assert notify.expire(store, now_ns=NOW + 390 * DAY, keep_ns=90 * DAY) == 1, "nobody asks any more"
    assert recorded(store) == []


def test_what_another_one_is_sending_by_now_is_not_counted_by_who_lost_it(store):
    """The first stood still until its claim had ended; what became of the message is the other's to say."""
    put(store, 2)

    def lost(channel, message):
        with store.begin() as connection:
            connection.execute(sql("UPDATE notification SET claimed_by = 'other' WHERE claimed_by IS NOT NULL"))
        return "it answered 500"

    done = deliver(store, NOW, lost)
    assert (done, done.problems) == (Delivered(), {})
    assert [(one.state, one.attempts) for one in recorded(store)] == [("pending", 1)] * 2


@pytest.mark.parametrize("text", ["{", "[]", '{"event": 1}', ""])
def test_a_message_that_cannot_be_read_is_given_up_and_stops_no_other(store, text):
    settings = both_channels(store, 2)
    with store.begin() as connection:
        connection.execute(sql("UPDATE notification SET content = :text WHERE id = 1"), {"text": text})
    assert deliver(store, NOW, Box(), settings) == Delivered(sent=3, dead=1)
    (row,) = notifications.listed(store).frame.to_dict("records")
    assert (row["id"], row["state"]) == (1, "dead")
    assert row["last_error"].startswith("its text cannot be read: ")
