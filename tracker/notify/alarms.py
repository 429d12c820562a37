"""Messages on what is no incident: no run came, a profile cannot be read, the watcher itself is in trouble."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from msgspec import Struct
from sqlalchemy import Connection

from tracker.config import Alerts
from tracker.notify.routes import alarm_channels
from tracker.notify.seen import silenced
from tracker.reports.message import json_of, title_of
from tracker.results import Message
from tracker.store import Store, notifications
from tracker.store.notifications import NewMessage


class Alarm(Struct, frozen=True):
    """What happened: `key` makes it one message. `workload`: empty where it is about all of them."""

    key: str
    kind: Literal["missing_runs", "quarantined", "watcher"]
    workload: str
    title: str
    lines: tuple[str, ...] = ()


Remember = Callable[[Connection], bool]
"""Remembers, in an open transaction, that something was told; whether nobody had remembered it before."""


def alarm(store: Store, alerts: Alerts, alarm: Alarm, *, now_ns: int, then: Remember | None = None) -> int:
    """Make a message of `alarm` for each channel that has none of its key yet; how many channels have one now.

    `then` remembers in the same transaction that it was told; says it that this is no news, no message is made.

    None while the whole workload is silenced: who asks again after that is heard. Who asks again and again, because it
    is still so, is not forgotten: an alarm expires when nobody asked for so long.
    """
    if silenced(notifications.silences(store, now_ns), op="", workload=alarm.workload, device=""):
        return 0
    key = f"{alarm.kind}:{alarm.key}"
    message = Message(event=alarm.kind, key=key, workload=alarm.workload, title=alarm.title, lines=alarm.lines)
    made = [
        NewMessage(
            key, channel, alarm.kind, 1, "pending", now_ns, severity="warning", workload=alarm.workload,
            title=title_of(message), content=json_of(message).decode(), next_try_ns=now_ns,
        )
        for channel in alarm_channels(alerts, alarm.workload)
    ]  # fmt: skip
    try:
        if made:
            store.transact(partial(_add, made=made, now_ns=now_ns, then=then))
    except _ToldBefore:
        return 0
    return len(made)


class _ToldBefore(Exception):
    """Somebody else told of it in this moment."""


def _add(connection: Connection, made: list[NewMessage], now_ns: int, then: Remember | None) -> None:
    if then is not None and not then(connection):
        raise _ToldBefore
    for message in made:
        if not notifications.add(connection, message):
            notifications.keep(connection, message.key, message.channel, now_ns=now_ns)
