"""Leases: work that one watcher at a time does. They end by themselves, so that nobody waits for one that died.

A lease that was lost (its owner stood still for too long) is not noticed by its owner: what is done under one has to
come out right when two do it at once.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, text

from tracker.store.connect import Store

LIFETIME_NS: Final = 120 * 10**9
"""How long a lease holds that is not renewed. A renewal is urgent: on SQLite it waits for the write that is going on,
not for the queue, so that a lease is lost only where a single write takes so long.
"""

_AHEAD_NS: Final = 10 * LIFETIME_NS
"""A moment further ahead was written by a clock that was: it holds nothing, and nothing was done then."""

_TAKE: Final = text(
    "INSERT INTO lease (name, owner, taken_ns, heartbeat_ns, expires_ns) "
    "VALUES (:name, :owner, :now_ns, :now_ns, :expires_ns) "
    "ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, taken_ns = excluded.taken_ns, "
    "heartbeat_ns = excluded.heartbeat_ns, expires_ns = excluded.expires_ns "
    "WHERE (lease.owner = excluded.owner OR lease.expires_ns <= excluded.taken_ns "
    "OR lease.expires_ns > :ahead_ns) "
    "AND (lease.done_ns IS NULL OR CAST(:undone_since_ns AS BIGINT) IS NULL OR lease.done_ns <= :undone_since_ns "
    "OR lease.done_ns > :ahead_ns)"
)
_RENEW: Final = text(
    "UPDATE lease SET heartbeat_ns = :now_ns, expires_ns = :expires_ns WHERE owner = :owner AND expires_ns > 0"
)
_RELEASE: Final = text(
    "UPDATE lease SET expires_ns = 0, done_ns = COALESCE(CAST(:done_ns AS BIGINT), done_ns) "
    "WHERE name = :name AND owner = :owner"
)
_DROP: Final = text("DELETE FROM lease WHERE name = :name AND owner = :owner")
_RELEASE_ALL: Final = text("UPDATE lease SET expires_ns = 0 WHERE owner = :owner AND expires_ns > 0")


def take(store: Store, name: str, owner: str, *, now_ns: int, undone_since_ns: int | None = None) -> bool:
    """Whether the work `name` is now `owner`'s: it was free, or expired, or had it already.

    With `undone_since_ns`, not where it was done after that.
    """
    return store.transact(
        lambda connection: take_within(connection, name, owner, now_ns=now_ns, undone_since_ns=undone_since_ns),
        urgent=True,
    )


def take_within(
    connection: Connection, name: str, owner: str, *, now_ns: int, undone_since_ns: int | None = None
) -> bool:
    """`take`, inside the open transaction."""
    values = {
        "name": name, "owner": owner, "now_ns": now_ns, "expires_ns": now_ns + LIFETIME_NS,
        "undone_since_ns": undone_since_ns, "ahead_ns": now_ns + _AHEAD_NS,
    }  # fmt: skip
    return connection.execute(_TAKE, values).rowcount == 1


def renew(connection: Connection, owner: str, *, now_ns: int) -> None:
    """Hold all leases of `owner` for longer."""
    connection.execute(_RENEW, {"owner": owner, "now_ns": now_ns, "expires_ns": now_ns + LIFETIME_NS})


def release(store: Store, name: str, owner: str, *, done_ns: int | None = None) -> None:
    """Give back a lease, if it is still `owner`'s. `done_ns`: when its work was done; None: it was not."""
    values = {"name": name, "owner": owner, "done_ns": done_ns}
    store.transact(lambda connection: connection.execute(_RELEASE, values), urgent=True)


def drop(connection: Connection, name: str, owner: str) -> None:
    """Give back a lease on work that does not come again."""
    connection.execute(_DROP, {"name": name, "owner": owner})


def release_all(connection: Connection, owner: str) -> None:
    """Give back whatever `owner` holds."""
    connection.execute(_RELEASE_ALL, {"owner": owner})
