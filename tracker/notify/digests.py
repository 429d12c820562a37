"""The digest of a day: what a channel hears once a day, in one message."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct
from sqlalchemy import Connection

from tracker.notify.routes import SEVERITIES
from tracker.reports.message import json_of, of_json, title_of
from tracker.results import Message
from tracker.store import notifications
from tracker.store.notifications import NewMessage, Record
from tracker.units import NS_PER_S

FORGOTTEN: Final = "its text was forgotten"


class Digest(Struct, frozen=True):
    """A digest to write: the messages that waited for it, and itself; None: none of them can be told.

    `unreadable`: those that cannot, and why.
    """

    waited: tuple[int, ...]
    message: NewMessage | None
    unreadable: tuple[tuple[int, str], ...] = ()


def next_day_ns(now_ns: int) -> int:
    """When the day of `now_ns` is over, in UTC; then its digest is due."""
    day = datetime.fromtimestamp(now_ns // NS_PER_S, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return int((day + timedelta(days=1)).timestamp()) * NS_PER_S


def due(connection: Connection, records: Iterable[Record], now_ns: int) -> list[Digest]:
    """The digests of days that are over, one per channel: what waited for them, the loudest first."""
    waited: dict[str, list[Record]] = {}
    for record in records:
        if record.state == "waiting" and record.next_try_ns is not None and record.next_try_ns <= now_ns:
            waited.setdefault(record.channel, []).append(record)
    said = notifications.contents(connection, [record.id for own in waited.values() for record in own])
    return [_digest(channel, own, said, now_ns) for channel, own in waited.items()]


def _digest(channel: str, waited: Iterable[Record], said: dict[int, str], now_ns: int) -> Digest:
    own = sorted(waited, key=lambda record: (-SEVERITIES.index(record.severity), record.id))
    parts: dict[int, Message] = {}
    unreadable = []
    for record in own:
        try:
            parts[record.id] = of_json(said.get(record.id, ""))
        except ValueError as error:
            unreadable.append((record.id, str(error) if record.id in said else FORGOTTEN))
    if not parts:
        return Digest((), None, tuple(unreadable))
    key = f"digest:{datetime.fromtimestamp(now_ns // NS_PER_S, UTC):%Y-%m-%d}"
    severity = next(record.severity for record in own if record.id in parts)
    message = Message(event="digest", key=key, workload="", severity=severity, parts=tuple(parts.values()))
    new = NewMessage(
        key, channel, "digest", 1, "pending", now_ns, severity=message.severity, title=title_of(message),
        content=json_of(message).decode(), next_try_ns=now_ns,
    )  # fmt: skip
    return Digest(tuple(parts), new, tuple(unreadable))


def write(connection: Connection, digest: Digest, now_ns: int) -> bool:
    """Add a digest, unless there was one today already; then what waits waits on."""
    for number, why in digest.unreadable:
        notifications.bury(connection, [number], why, now_ns)
    if digest.message is None or not notifications.add(connection, digest.message):
        return False
    by = notifications.number_of(connection, digest.message.key, digest.message.channel)
    notifications.join(connection, digest.waited, by)
    return True
