"""Watchers: who watches, which folders, which workloads are expected, and the leases of work that one does at a time.

A lease ends by itself, so that nobody waits for a watcher that died. Its owner does not notice that it lost one (it
stood still for too long): what is done under a lease has to come out right when two do it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct
from sqlalchemy import Connection, text

from tracker.store import bulk
from tracker.store.connect import Store
from tracker.store.dimensions import digest_of
from tracker.store.sql import statement

LEASE_LIFETIME_NS: Final = 120 * 10**9
"""How long a lease holds that is not renewed. A renewal is urgent: on SQLite it waits for the write that is going on,
not for the queue, so that a lease is lost only where a single write takes so long.
"""

_LEASE_AHEAD_NS: Final = 10 * LEASE_LIFETIME_NS
"""A moment further ahead was written by a clock that was: it holds nothing, and nothing was done then."""

_TAKE_LEASE: Final = text(
    "INSERT INTO lease (name, owner, taken_ns, heartbeat_ns, expires_ns) "
    "VALUES (:name, :owner, :now_ns, :now_ns, :expires_ns) "
    "ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, taken_ns = excluded.taken_ns, "
    "heartbeat_ns = excluded.heartbeat_ns, expires_ns = excluded.expires_ns "
    "WHERE (lease.owner = excluded.owner OR lease.expires_ns <= excluded.taken_ns "
    "OR lease.expires_ns > :ahead_ns) "
    "AND (lease.done_ns IS NULL OR CAST(:undone_since_ns AS BIGINT) IS NULL OR lease.done_ns <= :undone_since_ns "
    "OR lease.done_ns > :ahead_ns)"
)
_RENEW_LEASES: Final = text(
    "UPDATE lease SET heartbeat_ns = :now_ns, expires_ns = :expires_ns WHERE owner = :owner AND expires_ns > 0"
)
_RELEASE_LEASE: Final = text(
    "UPDATE lease SET expires_ns = 0, done_ns = COALESCE(CAST(:done_ns AS BIGINT), done_ns) "
    "WHERE name = :name AND owner = :owner"
)
_DROP_LEASE: Final = text("DELETE FROM lease WHERE name = :name AND owner = :owner")
_RELEASE_LEASES: Final = text("UPDATE lease SET expires_ns = 0 WHERE owner = :owner AND expires_ns > 0")

Outcome = Literal["", "ended", "killed", "lost"]
"""Of a watcher: nothing yet; it said so; its machine found it dead; nobody has heard of it for long."""

_ADD: Final = text(
    "INSERT INTO watcher (owner, host, pid, program, every_ns, started_ns, heartbeat_ns, outcome, error, told) "
    "VALUES (:owner, :host, :pid, :program, :every_ns, :now_ns, :now_ns, '', '', FALSE)"
)
_BEAT: Final = text(
    "UPDATE watcher SET heartbeat_ns = :now_ns, job = :job, job_ns = :job_ns "
    "WHERE owner = :owner AND outcome <> 'ended'"
)
_REVIVE: Final = text(
    "UPDATE watcher SET ended_ns = NULL, outcome = '', told = FALSE "
    "WHERE owner = :owner AND outcome IN ('killed', 'lost')"
)
_EVERY: Final = text("UPDATE watcher SET every_ns = :every_ns WHERE owner = :owner")
_ROUND: Final = text("UPDATE watcher SET round_ns = :now_ns, heartbeat_ns = :now_ns WHERE owner = :owner")
_FAIL: Final = text("UPDATE watcher SET error = :error, error_ns = :now_ns WHERE owner = :owner")
_END: Final = text(
    "UPDATE watcher SET ended_ns = :now_ns, outcome = :outcome, job = NULL, job_ns = NULL "
    "WHERE owner = :owner AND (ended_ns IS NULL OR CAST(:outcome AS TEXT) = 'ended') "
    "AND (CAST(:heartbeat_ns AS BIGINT) IS NULL OR heartbeat_ns = :heartbeat_ns)"
)
_TOLD: Final = text(
    "UPDATE watcher SET told = TRUE "
    "WHERE owner = :owner AND outcome <> '' AND heartbeat_ns = :heartbeat_ns AND NOT told"
)
_EXPIRE: Final = text(
    "DELETE FROM watcher WHERE heartbeat_ns < :before_ns "
    "OR (every_ns IS NULL AND outcome = 'ended' AND ended_ns < :rounds_before_ns)"
)
_FIND_FOLDER: Final = text("SELECT id FROM watched_folder WHERE digest = :digest")
_LOOKED: Final = text("UPDATE watched_folder SET looked_ns = :now_ns, layout = :layout WHERE id = :id")
_FOLDER_ERROR: Final = text(
    "UPDATE watched_folder SET error_ns = CASE WHEN :error = '' THEN NULL WHEN error = :error THEN error_ns "
    "ELSE :now_ns END, error = :error WHERE id = :id"
)
_EXPIRE_FOLDERS: Final = text("DELETE FROM watched_folder WHERE looked_ns < :before_ns")
_EXPIRE_EXPECTATIONS: Final = text("DELETE FROM expectation WHERE folder_id NOT IN (SELECT id FROM watched_folder)")
_EXPECT: Final = text(
    "INSERT INTO expectation (folder_id, workload, every_ns, first_seen_ns) "
    "VALUES (:folder_id, :workload, :every_ns, :now_ns) "
    "ON CONFLICT (folder_id, workload) DO UPDATE SET every_ns = excluded.every_ns"
)
_EXPECTED: Final = text("SELECT workload FROM expectation WHERE folder_id = :folder_id")
_UNEXPECT: Final = text("DELETE FROM expectation WHERE folder_id = :folder_id AND workload = :workload")
_TELL_GAP: Final = text(
    "UPDATE expectation SET told_ns = :since_ns WHERE id = :id AND (told_ns IS NULL OR told_ns <> :since_ns)"
)


def take_lease(store: Store, name: str, owner: str, *, now_ns: int, undone_since_ns: int | None = None) -> bool:
    """Take the lease of the work `name`; return whether it is `owner`'s now: it was free, or expired, or it had it.

    With `undone_since_ns`, not where it was done after that.
    """
    return store.transact(
        lambda connection: take_lease_within(connection, name, owner, now_ns=now_ns, undone_since_ns=undone_since_ns),
        urgent=True,
    )


def take_lease_within(
    connection: Connection, name: str, owner: str, *, now_ns: int, undone_since_ns: int | None = None
) -> bool:
    """`take_lease`, inside the open transaction."""
    values = {
        "name": name, "owner": owner, "now_ns": now_ns, "expires_ns": now_ns + LEASE_LIFETIME_NS,
        "undone_since_ns": undone_since_ns, "ahead_ns": now_ns + _LEASE_AHEAD_NS,
    }  # fmt: skip
    return connection.execute(_TAKE_LEASE, values).rowcount == 1


def renew_leases(connection: Connection, owner: str, *, now_ns: int) -> None:
    """Hold all leases of `owner` for longer."""
    connection.execute(_RENEW_LEASES, {"owner": owner, "now_ns": now_ns, "expires_ns": now_ns + LEASE_LIFETIME_NS})


def release_lease(store: Store, name: str, owner: str, *, done_ns: int | None = None) -> None:
    """Give back a lease, if it is still `owner`'s. `done_ns`: when its work was done; None: it was not."""
    values = {"name": name, "owner": owner, "done_ns": done_ns}
    store.transact(lambda connection: connection.execute(_RELEASE_LEASE, values), urgent=True)


def drop_lease(connection: Connection, name: str, owner: str) -> None:
    """Give back a lease on work that does not come again."""
    connection.execute(_DROP_LEASE, {"name": name, "owner": owner})


def release_leases(connection: Connection, owner: str) -> None:
    """Give back whatever `owner` holds."""
    connection.execute(_RELEASE_LEASES, {"owner": owner})


class Watcher(Struct, frozen=True):
    """A process that watches, or did; see the data dictionary."""

    owner: str
    host: str
    pid: int
    program: str
    every_ns: int | None
    started_ns: int
    heartbeat_ns: int
    round_ns: int | None
    ended_ns: int | None
    outcome: Outcome
    error: str
    error_ns: int | None
    told: bool
    job: str | None
    job_ns: int | None

    @property
    def doing(self) -> tuple[str, int] | None:
        """What it is at, and since when; None: nothing."""
        return None if self.job is None or self.job_ns is None else (self.job, self.job_ns)


class WatchedFolder(Struct, frozen=True):
    """A folder as its host last saw it."""

    id: int
    host: str
    path: str
    layout: str
    first_seen_ns: int
    looked_ns: int
    error: str
    error_ns: int | None


class Expectation(Struct, frozen=True):
    """A workload ('': any) of which a run is expected every `every_ns` in a folder; see sql/expectations.sql."""

    id: int
    folder_id: int
    folder: str
    host: str
    workload: str
    every_ns: int
    first_seen_ns: int
    told_ns: int | None
    arrived_ns: int | None
    started_ns: int | None
    coming_ns: int | None

    @property
    def last_ns(self) -> int | None:
        """When the last run came, or started where it came in another way; None: there never was one."""
        return max((moment for moment in (self.arrived_ns, self.started_ns) if moment is not None), default=None)

    @property
    def since_ns(self) -> int:
        """From when on the next run is waited for."""
        return self.first_seen_ns if self.last_ns is None else max(self.last_ns, self.first_seen_ns)

    def is_late(self, now_ns: int) -> bool:
        """Return whether a run should have come and did not. A profile on its way in counts as one, for an interval."""
        is_coming = self.coming_ns is not None and now_ns - self.coming_ns <= self.every_ns
        return now_ns - self.since_ns > self.every_ns and not is_coming


class LastRun(Struct, frozen=True):
    """The run of a workload that came in last."""

    run_id: int
    version: str
    started_at_ns: int | None


def watchers(store: Store) -> list[Watcher]:
    """All that are on record, the newest first."""
    with store.connect() as connection:
        rows = connection.execute(statement("watchers")).all()
    return [Watcher(**{**row._mapping, "told": bool(row.told)}) for row in rows]


def begin(store: Store, owner: str, host: str, pid: int, program: str, *, every_ns: int | None, now_ns: int) -> None:
    """Put a watcher on record. `every_ns`: None for one round only."""
    values = {"owner": owner, "host": host, "pid": pid, "program": program, "every_ns": every_ns, "now_ns": now_ns}
    store.transact(lambda connection: connection.execute(_ADD, values))


def beat(store: Store, owner: str, *, now_ns: int, job: tuple[str, int] | None = None, renew: bool = True) -> bool:
    """Say that a watcher lives, and what it is at since when; its leases hold for longer, unless `renew` says not.

    Whether others had taken it for dead; they know better now.
    """
    what, since_ns = job or (None, None)
    values = {"owner": owner, "now_ns": now_ns, "job": what and bulk.clean(what), "job_ns": since_ns}

    def write(connection: Connection) -> bool:
        connection.execute(_BEAT, values)
        if renew:
            renew_leases(connection, owner, now_ns=now_ns)
        return connection.execute(_REVIVE, {"owner": owner}).rowcount > 0

    return store.transact(write, urgent=True)


def look_every(store: Store, owner: str, every_ns: int) -> None:
    """A watcher has another interval from now on."""
    store.transact(lambda connection: connection.execute(_EVERY, {"owner": owner, "every_ns": every_ns}))


def end_round(store: Store, owner: str, *, now_ns: int) -> None:
    """Say that a watcher has gone through a round."""
    store.transact(lambda connection: connection.execute(_ROUND, {"owner": owner, "now_ns": now_ns}))


def fail(store: Store, owner: str, error: str, *, now_ns: int) -> None:
    """Keep the last error of a watcher."""
    values = {"owner": owner, "error": bulk.clean(error), "now_ns": now_ns}
    store.transact(lambda connection: connection.execute(_FAIL, values))


def end(store: Store, owner: str, outcome: Outcome, *, now_ns: int, heartbeat_ns: int | None = None) -> bool:
    """A watcher is no more, and its leases are free; whether that was news.

    With `heartbeat_ns`, not where it was heard of since then.
    """
    values = {"owner": owner, "outcome": outcome, "now_ns": now_ns, "heartbeat_ns": heartbeat_ns}

    def write(connection: Connection) -> bool:
        is_news = connection.execute(_END, values).rowcount > 0
        if is_news or heartbeat_ns is None:
            release_leases(connection, owner)
        return is_news

    return store.transact(write)


def tell(connection: Connection, watcher: Watcher) -> bool:
    """Remember that the death of a watcher is told of; False: it was before, or the watcher was heard of since."""
    values = {"owner": watcher.owner, "heartbeat_ns": watcher.heartbeat_ns}
    return connection.execute(_TOLD, values).rowcount == 1


def folders(store: Store) -> list[WatchedFolder]:
    """All folders that are watched, or were."""
    with store.connect() as connection:
        rows = connection.execute(statement("watched_folders")).all()
    return [WatchedFolder(**row._mapping) for row in rows]


def folder_id(store: Store, host: str, path: str, layout: str, *, now_ns: int) -> int:
    """The number of a folder that `host` ('': any machine) looks at now; new ones get one."""
    digest = digest_of((host, path))

    def write(connection: Connection) -> int:
        columns = ("digest", "host", "path", "layout", "first_seen_ns", "looked_ns", "error")
        row = (digest, host, path, layout, now_ns, now_ns, "")
        bulk.insert(connection, "watched_folder", columns, [row], or_keep="digest")
        number = int(connection.execute(_FIND_FOLDER, {"digest": digest}).scalar_one())
        connection.execute(_LOOKED, {"id": number, "layout": layout, "now_ns": now_ns})
        return number

    return store.transact(write)


def note_folder(store: Store, number: int, error: str, expected: Mapping[str, int], *, now_ns: int) -> None:
    """How a look at a folder went ('': well), and which workloads are expected there how often (ns).

    A workload that is not in `expected` is waited for no longer.
    """

    def write(connection: Connection) -> None:
        connection.execute(_FOLDER_ERROR, {"id": number, "error": bulk.clean(error), "now_ns": now_ns})
        for workload in set(connection.execute(_EXPECTED, {"folder_id": number}).scalars()) - expected.keys():
            connection.execute(_UNEXPECT, {"folder_id": number, "workload": workload})
        for workload, every_ns in sorted(expected.items()):
            values = {"folder_id": number, "workload": workload, "every_ns": every_ns, "now_ns": now_ns}
            connection.execute(_EXPECT, values)

    store.transact(write)


def expectations(store: Store, *, now_ns: int) -> list[Expectation]:
    """What is expected where, and what came."""
    with store.connect() as connection:
        rows = connection.execute(statement("expectations"), {"now_ns": now_ns}).all()
    return [Expectation(**row._mapping) for row in rows]


def tell_gap(connection: Connection, expected: Expectation) -> bool:
    """Remember that a gap is told of: the one that is now; whether it was not before."""
    return connection.execute(_TELL_GAP, {"id": expected.id, "since_ns": expected.since_ns}).rowcount == 1


def last_runs(store: Store) -> dict[str, LastRun]:
    """The run of each workload that came in last."""
    with store.connect() as connection:
        rows = connection.execute(statement("last_runs")).all()
    return {row.workload: LastRun(row.run_id, row.version, row.started_at_ns) for row in rows}


def expire(store: Store, *, before_ns: int, rounds_before_ns: int) -> None:
    """Forget watchers that nobody has heard of since, and folders that nobody has looked at.

    Single rounds (of cron) that ended well are forgotten sooner, at `rounds_before_ns`.
    """

    def write(connection: Connection) -> None:
        connection.execute(_EXPIRE, {"before_ns": before_ns, "rounds_before_ns": rounds_before_ns})
        connection.execute(_EXPIRE_FOLDERS, {"before_ns": before_ns})
        connection.execute(_EXPIRE_EXPECTATIONS)

    store.transact(write)
