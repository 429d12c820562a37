"""Who watches, what is watched, what was found there, and who is at what work right now."""

from __future__ import annotations

from sqlalchemy import UniqueConstraint
from sqlmodel import Field

from tracker.store.tables.base import TEXT, Base, Binary, count, digest, flag, key, row_id, text_key, text_value, value


class Lease(Base, table=True):
    """Work that one watcher at a time does. Free once it has expired; it stays, to say when the work was last done."""

    __tablename__ = "lease"
    name: str = Field(sa_type=TEXT, primary_key=True, nullable=False)
    owner: str = text_key()
    taken_ns: int = key(primary=False)
    heartbeat_ns: int = key(primary=False)
    expires_ns: int = key(primary=False)
    done_ns: int | None = value()


class Watcher(Base, table=True):
    """A process that watches, or did."""

    __tablename__ = "watcher"
    owner: str = Field(sa_type=TEXT, primary_key=True, nullable=False)
    host: str = text_key()
    pid: int = key(primary=False)
    program: str = text_key()
    every_ns: int | None = value()
    started_ns: int = key(primary=False)
    heartbeat_ns: int = key(primary=False)
    round_ns: int | None = value()
    ended_ns: int | None = value()
    outcome: str = text_key()
    error: str = text_key()
    error_ns: int | None = value()
    told: bool = flag(nullable=False)
    job: str | None = text_value()
    job_ns: int | None = value()


_content = digest  # a column called `digest` hides the function inside its class


class WatchedFolder(Base, table=True):
    """A folder that is watched, as its host last saw it."""

    __tablename__ = "watched_folder"
    __table_args__ = (UniqueConstraint("digest"),)
    id: int | None = row_id()
    digest: Binary = digest()
    host: str = text_key()
    path: str = text_key()
    layout: str = text_key()
    first_seen_ns: int = key(primary=False)
    looked_ns: int = key(primary=False)
    error: str = text_key()
    error_ns: int | None = value()


class Expectation(Base, table=True):
    """A workload that runs are expected of in a watched folder."""

    __tablename__ = "expectation"
    __table_args__ = (UniqueConstraint("folder_id", "workload"),)
    id: int | None = row_id()
    folder_id: int = key(primary=False)
    workload: str = text_key()
    every_ns: int = key(primary=False)
    first_seen_ns: int = key(primary=False)
    told_ns: int | None = value()


class Inbox(Base, table=True):
    """A profile in a watched folder: a file or folder that is ingested by one call, on its way into the database."""

    __tablename__ = "inbox"
    __table_args__ = (UniqueConstraint("digest"),)
    id: int | None = row_id()
    digest: Binary = digest()
    folder_id: int = key(primary=False)
    path: str = text_key()
    workload: str = text_key()
    version: str = text_key()
    state: str = text_key()
    state_ns: int = key(primary=False)
    content: Binary = _content()
    size_bytes: int = key(primary=False)
    written_ns: int = key(primary=False)
    changed_ns: int = key(primary=False)
    first_seen_ns: int = key(primary=False)
    gone_ns: int | None = value()
    attempts: int = count()
    next_try_ns: int = key(primary=False)
    reason: str = text_key()
    run_ids: str = text_key()
    arrived_ns: int | None = value()
    told: bool = flag(nullable=False)
    deaths: int | None = value()
