"""Messages on their way to people (the outbox), and what users do not want to hear for a while."""

from __future__ import annotations

from sqlalchemy import Index, UniqueConstraint

from tracker.store.tables.base import Base, count, row_id, text_key, text_value, value
from tracker.store.tables.base import key as number


class Notification(Base, table=True):
    """One message to one channel, or the decision that there is none; it has all that is needed to send it."""

    __tablename__ = "notification"
    __table_args__ = (
        UniqueConstraint("key", "channel", name="uq_notification_key_channel"),
        Index(None, "state", "next_try_ns"),
    )
    id: int | None = row_id()
    key: str = text_key()
    channel: str = text_key()
    event: str = text_key()
    counter: int = count()
    state: str = text_key()
    severity: str = text_key()
    workload: str = text_key()
    title: str = text_key()
    incidents: str = text_key()
    covers: str = text_key()
    content: str | None = text_value()
    created_ns: int = number(primary=False)
    next_try_ns: int | None = value()
    attempts: int = count()
    claimed_by: str | None = text_value()
    claimed_until_ns: int | None = value()
    last_error: str | None = text_value()
    settled_ns: int | None = value()


class Silence(Base, table=True):
    """Mutes of findings by patterns: no alerts until an end."""

    __tablename__ = "silence"
    id: int | None = row_id()
    op: str = text_key()
    workload: str = text_key()
    device: str = text_key()
    who: str = text_key()
    reason: str = text_key()
    created_ns: int = number(primary=False)
    until_ns: int = number(primary=False)
    ended_ns: int | None = value()
