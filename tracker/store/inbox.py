"""The inbox: profiles that watchers found, from the first sight until they are runs.

A profile is `waiting` (it still changes, or its profiler is not done), `ready`, `working` (a watcher reads it),
`ingested`, `quarantined` (it cannot be read) or `passed` (no profile). What leads from one state to the next is one
transaction; it also says which content it is meant for, so that it changes nothing where the files have changed since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct
from sqlalchemy import Connection, text

from tracker.store import bulk, watchers
from tracker.store.connect import Store
from tracker.store.dimensions import digest_of
from tracker.store.sql import statement

State = Literal["waiting", "ready", "working", "ingested", "quarantined", "passed"]

_CHANGED: Final = ("state", "state_ns", "content", "size_bytes", "written_ns", "changed_ns", "gone_ns", "reason")
_UPDATE: Final = text(
    f"UPDATE inbox SET {', '.join(f'{name} = :{name}' for name in _CHANGED)}, attempts = 0, deaths = 0, "  # noqa: S608 names of above
    "next_try_ns = 0, told = CASE WHEN content = :content THEN told ELSE FALSE END "
    "WHERE id = :id AND content = :known_content"
)
_SEEN: Final = text("UPDATE inbox SET gone_ns = :gone_ns WHERE id = :id")
_FORGET: Final = text("DELETE FROM inbox WHERE id = :id AND arrived_ns IS NULL AND state <> 'working'")
_START: Final = text(
    "UPDATE inbox SET state = 'working', state_ns = :now_ns, "
    "deaths = COALESCE(deaths, 0) + CASE WHEN state = 'working' AND :died = 1 THEN 1 ELSE 0 END "
    "WHERE id = :id AND state IN ('ready', 'working') AND content = :content"
)
_FINISH: Final = text(
    "UPDATE inbox SET state = :state, state_ns = :now_ns, reason = :reason, attempts = :attempts, "
    "next_try_ns = :next_try_ns, deaths = :deaths, told = FALSE "
    "WHERE id = :id AND content = :content AND state = 'working'"
)
_ARRIVED: Final = text(
    "UPDATE inbox SET run_ids = :run_ids, workload = :workload, version = :version, "
    "arrived_ns = CASE WHEN :is_new = 1 OR arrived_ns IS NULL THEN :now_ns ELSE arrived_ns END WHERE id = :id"
)
_TOLD: Final = text(
    "UPDATE inbox SET told = TRUE WHERE id = :id AND content = :content AND state = 'quarantined' AND NOT told"
)
_RETRY: Final = text(
    "UPDATE inbox SET state = 'ready', state_ns = :now_ns, attempts = 0, next_try_ns = 0, deaths = 0, told = FALSE "
    "WHERE id = :id AND state = 'quarantined'"
)
_BREAK_OFF: Final = text(
    "UPDATE inbox SET deaths = COALESCE(deaths, 0) - 1 WHERE state = 'working' AND EXISTS ("
    "SELECT 1 FROM lease WHERE lease.name = 'profile:' || CAST(inbox.id AS TEXT) AND lease.owner = :owner)"
)
_EXPIRE: Final = text(
    "DELETE FROM inbox WHERE (gone_ns IS NOT NULL AND gone_ns < :before_ns) "
    "OR folder_id IN (SELECT id FROM watched_folder WHERE looked_ns < :before_ns)"
)


class Entry(Struct, frozen=True):
    """A profile in the inbox; the data dictionary says what each moment is."""

    id: int
    folder_id: int
    folder: str
    host: str
    path: str
    workload: str
    version: str
    state: State
    state_ns: int
    content: bytes
    size_bytes: int
    written_ns: int
    changed_ns: int
    first_seen_ns: int
    gone_ns: int | None
    attempts: int
    next_try_ns: int
    reason: str
    run_ids: str
    arrived_ns: int | None
    told: bool
    deaths: int


class Count(Struct, frozen=True):
    """How many `profiles` of a folder are in a state and there; `arrived_ns`: when the last of it became a new run."""

    folder_id: int
    state: State
    profiles: int
    arrived_ns: int | None


class Seen(Struct, frozen=True):
    """How a look found a profile that is new, or has changed. `known_content`: as it was found before, None: new."""

    path: str
    state: State
    content: bytes
    size_bytes: int
    written_ns: int
    changed_ns: int
    reason: str = ""
    known_id: int | None = None
    known_content: bytes | None = None
    workload: str = ""
    version: str = ""


class Arrival(Struct, frozen=True):
    """The runs that a profile became; `is_new`: the database did not have all of it before."""

    run_ids: Sequence[int]
    workload: str
    version: str
    is_new: bool


class End(Struct, frozen=True):
    """How the work on a profile ended. `attempts` (it was put off), `deaths` (of watchers that read it): those counts
    from now on; `next_try_ns`: not before then.
    """

    state: State
    reason: str = ""
    attempts: int = 0
    deaths: int = 0
    next_try_ns: int = 0
    arrival: Arrival | None = None


def entries(store: Store, folder_id: int | None = None, *, open_only: bool = False) -> list[Entry]:
    """Return the profiles of a watched folder, or of all; `open_only`: those on their way, or stuck there."""
    with store.connect() as connection:
        rows = connection.execute(statement("inbox"), {"folder_id": folder_id, "open_only": int(open_only)}).all()
    return [_entry(row._asdict()) for row in rows]


def _entry(row: Mapping[str, Any]) -> Entry:
    return Entry(**{**row, "content": bytes(row["content"]), "told": bool(row["told"])})


def counts(store: Store) -> list[Count]:
    """Return how many profiles of each watched folder are in which state."""
    with store.connect() as connection:
        rows = connection.execute(statement("inbox_counts")).all()
    return [Count(row.folder_id, row.state, int(row.profiles), row.arrived_ns) for row in rows]


def note(
    store: Store, folder_id: int, seen: Sequence[Seen], gone: Iterable[Entry], back: Iterable[Entry], *, now_ns: int
) -> None:
    """Write down a look at a folder: what is new or changed, what is gone, and what is back as it was.

    Of what is gone only that stays which became runs.
    """

    def write(connection: Connection) -> None:
        for one in seen:
            _note_one(connection, folder_id, one, now_ns)
        for entry in gone:
            connection.execute(_FORGET, {"id": entry.id})
            connection.execute(_SEEN, {"id": entry.id, "gone_ns": now_ns})
        for entry in back:
            connection.execute(_SEEN, {"id": entry.id, "gone_ns": None})

    store.transact(write)


_ADD: Final = (
    "digest", "folder_id", "path", "workload", "version", "state", "state_ns", "content", "size_bytes", "written_ns",
    "changed_ns", "first_seen_ns", "attempts", "next_try_ns", "reason", "run_ids", "told",
)  # fmt: skip


def _note_one(connection: Connection, folder_id: int, one: Seen, now_ns: int) -> None:
    if one.known_id is None:
        row = (
            digest_of((folder_id, one.path)), folder_id, one.path, one.workload, one.version, one.state, now_ns,
            one.content, one.size_bytes, one.written_ns, one.changed_ns, now_ns, 0, 0, one.reason, "", False,
        )  # fmt: skip
        bulk.insert(connection, "inbox", _ADD, [row], or_keep="digest")
        return
    values = {name: getattr(one, name) for name in _CHANGED if name not in ("state_ns", "gone_ns")}
    values |= {"state_ns": now_ns, "gone_ns": None, "id": one.known_id, "known_content": one.known_content}
    connection.execute(_UPDATE, values)


def lease_of(entry: Entry) -> str:
    """Return the name of the lease on the work with a profile."""
    return f"profile:{entry.id}"


def start(store: Store, entry: Entry, owner: str, *, now_ns: int, died: bool = True) -> bool:
    """Return whether the work on a profile is now `owner`'s; not where another one is at it, did it, or it has changed.

    Where somebody began it and did not end it, that counts as a death, unless `died` says that it was none.
    """

    def write(connection: Connection) -> bool:
        if not watchers.take_lease_within(connection, lease_of(entry), owner, now_ns=now_ns):
            return False
        values = {"id": entry.id, "content": entry.content, "now_ns": now_ns, "died": int(died)}
        if connection.execute(_START, values).rowcount == 1:
            return True
        watchers.drop_lease(connection, lease_of(entry), owner)
        return False

    return store.transact(write)


def finish(store: Store, entry: Entry, owner: str, end: End, *, now_ns: int) -> None:
    """Write down how the work on a profile ended, and give back its lease.

    What the runs are holds even if the files have changed meanwhile; the state then stays as the change made it.
    """

    def write(connection: Connection) -> None:
        values = {
            "id": entry.id, "content": entry.content, "state": end.state, "reason": bulk.clean(end.reason),
            "attempts": end.attempts, "deaths": end.deaths, "next_try_ns": end.next_try_ns, "now_ns": now_ns,
        }  # fmt: skip
        connection.execute(_FINISH, values)
        if end.arrival is not None:
            _arrive(connection, entry, end.arrival, now_ns)
        watchers.drop_lease(connection, lease_of(entry), owner)

    store.transact(write)


def _arrive(connection: Connection, entry: Entry, arrival: Arrival, now_ns: int) -> None:
    values = {
        "id": entry.id, "run_ids": " ".join(map(str, arrival.run_ids)), "workload": bulk.clean(arrival.workload),
        "version": bulk.clean(arrival.version), "is_new": int(arrival.is_new), "now_ns": now_ns,
    }  # fmt: skip
    connection.execute(_ARRIVED, values)


def break_off(store: Store, owner: str) -> None:
    """Say that `owner` ends now by its own will: what it reads is not to blame."""
    store.transact(lambda connection: connection.execute(_BREAK_OFF, {"owner": owner}))


def tell(connection: Connection, quarantined: Iterable[Entry]) -> bool:
    """Remember that the quarantine of these profiles, as they are now, is told of; whether it was of none of them."""
    rows = [{"id": entry.id, "content": entry.content} for entry in quarantined]
    return sum(connection.execute(_TOLD, row).rowcount for row in rows) == len(rows)


def retry(store: Store, quarantined: Sequence[Entry], *, now_ns: int) -> int:
    """Let these profiles out of quarantine, to be tried again; how many."""

    def write(connection: Connection) -> int:
        return sum(connection.execute(_RETRY, {"id": entry.id, "now_ns": now_ns}).rowcount for entry in quarantined)

    return store.transact(write)


def expire(store: Store, *, before_ns: int) -> int:
    """Forget profiles that were gone before, and those of folders that nobody looks at since; how many."""
    return store.transact(lambda connection: connection.execute(_EXPIRE, {"before_ns": before_ns}).rowcount)
