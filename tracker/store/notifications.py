"""The outbox in the database: messages, who sends them now, how they fared; and what is silenced for a while."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Connection, bindparam, text

from tracker.columns import Columns
from tracker.errors import UsageError
from tracker.store import bulk, labels
from tracker.store.answers import answer
from tracker.store.connect import Store
from tracker.store.sql import statement

MOST_ATTEMPTS: Final = 6
"""A message that failed so often is dead."""

UNDELIVERED: Final = ("pending", "failed")
TOLD: Final = frozenset({*UNDELIVERED, "sent"})
"""States of what was told, or will be."""

_KEPT_NS: Final = 3600 * 10**9
_REMEMBERED: Final = 16_384
"""Lists of names that are kept decoded, from one look to the next."""

_WAITS: Final = "state IN ('pending', 'failed')"
AHEAD_NS: Final = 3 * 3600 * 10**9
"""Longer than any pause between two tries, and any claim: what lies further ahead was written by a clock that was."""

_FREE: Final = f"(claimed_until_ns IS NULL OR claimed_until_ns NOT BETWEEN :now_ns + 1 AND :now_ns + {AHEAD_NS})"
_DUE: Final = (
    f"(next_try_ns <= :now_ns OR created_ns > :now_ns + {AHEAD_NS} "
    f"OR (attempts > 0 AND next_try_ns > :now_ns + {AHEAD_NS}))"
)
_CLAIM: Final = text(
    "UPDATE notification SET claimed_by = :who, claimed_until_ns = :until_ns, attempts = attempts + 1 "  # noqa: S608 own
    f"WHERE id = :id AND {_WAITS} AND {_FREE} AND {_DUE} AND attempts < {MOST_ATTEMPTS}"
)
_IS_KNOWN: Final = text("SELECT 1 FROM notification WHERE key = :key AND channel = :channel")
_CLAIMED: Final = text(
    f"SELECT DISTINCT claimed_by FROM notification WHERE {_WAITS} AND claimed_until_ns > :now_ns"  # noqa: S608 own
)
_RELEASE: Final = text(
    f"UPDATE notification SET claimed_until_ns = :now_ns WHERE claimed_by = :who AND {_WAITS}"  # noqa: S608 own
)
_SENT: Final = text(
    "UPDATE notification SET state = 'sent', settled_ns = :now_ns, claimed_by = NULL, claimed_until_ns = NULL, "
    "last_error = NULL WHERE id = :id"
)
_FAILED: Final = text(
    "UPDATE notification SET state = :state, next_try_ns = :next_try_ns, settled_ns = :settled_ns, "  # noqa: S608 own
    f"last_error = :error, claimed_by = NULL, claimed_until_ns = NULL WHERE id = :id AND claimed_by = :who AND {_WAITS}"
)
_GIVE_UP: Final = text(
    "UPDATE notification SET state = 'dead', settled_ns = :now_ns, claimed_by = NULL, claimed_until_ns = NULL, "  # noqa: S608 own
    "last_error = COALESCE(last_error, 'whoever was sending it died each time') "
    f"WHERE {_WAITS} AND attempts >= {MOST_ATTEMPTS} AND {_FREE}"
)
_UNTRIED: Final = "state = 'pending' AND attempts = 0 AND claimed_until_ns IS NULL"
_CHANGE: Final = text(
    "UPDATE notification SET event = :event, state = :state, severity = :severity, title = :title, "  # noqa: S608 own
    "incidents = :incidents, covers = :covers, content = :content, next_try_ns = :next_try_ns "
    f"WHERE id = :id AND {_UNTRIED}"
)
_SKIP: Final = text(
    "UPDATE notification SET state = 'skipped', settled_ns = :now_ns, covers = :covers "  # noqa: S608 own
    f"WHERE id = :id AND {_WAITS} AND {_FREE}"
)
_KEEP: Final = text(
    "UPDATE notification SET settled_ns = :now_ns WHERE key = :key AND channel = :channel AND settled_ns < :before_ns"
)
_RETRY: Final = (
    "UPDATE notification SET state = 'failed', attempts = 0, next_try_ns = :now_ns, settled_ns = NULL "
    "WHERE state IN :states"
)
_FORGET: Final = text(
    "DELETE FROM notification WHERE settled_ns < :before_ns AND incidents = '[]' AND covers = '[]' AND event <> 'start'"
)
_EMPTY: Final = text(
    "UPDATE notification SET content = NULL, last_error = NULL WHERE settled_ns < :before_ns AND content IS NOT NULL"
)
_FORGET_SILENCES: Final = text("DELETE FROM silence WHERE COALESCE(ended_ns, until_ns) < :before_ns")
_END_SILENCE: Final = text(
    "UPDATE silence SET ended_ns = :now_ns WHERE id = :id AND ended_ns IS NULL AND until_ns > :now_ns"
)
_COLUMNS: Final = (
    "key", "channel", "event", "counter", "state", "severity", "workload", "title", "incidents", "covers", "content",
    "created_ns", "next_try_ns", "attempts", "settled_ns",
)  # fmt: skip


class Record(Struct, frozen=True):
    """A message, or the decision that there is none, without its content. `settled_ns`: None while it is on its way.

    `incidents`: natural keys; `covers`: the events of findings that it tells of, or that it leaves untold for good.
    """

    id: int
    key: str
    channel: str
    event: str
    counter: int
    state: str
    severity: str
    incidents: tuple[str, ...]
    covers: frozenset[str]
    created_ns: int
    next_try_ns: int | None
    attempts: int
    claimed_until_ns: int | None
    settled_ns: int | None


class NewMessage(Struct, frozen=True):
    """A row to add, or what one in the outbox becomes. `next_try_ns` None: it is not to be sent."""

    key: str
    channel: str
    event: str
    counter: int
    state: str
    created_ns: int
    severity: str = "info"
    workload: str = ""
    title: str = ""
    incidents: tuple[str, ...] = ()
    covers: frozenset[str] = frozenset()
    content: str | None = None
    next_try_ns: int | None = None

    @property
    def row(self) -> dict[str, Any]:
        """The columns, by name."""
        over = self.state == "skipped"
        return {
            **{name: getattr(self, name) for name in self.__struct_fields__},
            "title": bulk.clean(self.title),
            "workload": bulk.clean(self.workload),
            "incidents": json.dumps(self.incidents),
            "covers": json.dumps(sorted(self.covers)),
            "attempts": 0,
            "settled_ns": self.created_ns if over else None,
        }


class Undelivered(Struct, frozen=True):
    """A message on its way. `content` None: it was forgotten."""

    id: int
    channel: str
    incidents: frozenset[str]
    content: str | None
    created_ns: int
    next_try_ns: int
    attempts: int
    claimed_until_ns: int | None

    def is_due(self, now_ns: int) -> bool:
        """Return whether it may be tried now."""
        ahead_ns = now_ns + AHEAD_NS
        is_free = self.claimed_until_ns is None or not now_ns < self.claimed_until_ns <= ahead_ns
        is_late = self.created_ns > ahead_ns or (self.attempts > 0 and self.next_try_ns > ahead_ns)
        return is_free and (is_late or self.next_try_ns <= now_ns) and self.attempts < MOST_ATTEMPTS


class Silence(Struct, frozen=True):
    """Findings that match all three patterns are not told of until `until_ns`."""

    silence_id: int
    op: str
    workload: str
    device: str
    who: str
    reason: str
    created_ns: int
    until_ns: int


def lock(connection: Connection) -> None:
    """Let one transaction at a time decide about messages."""
    labels.lock(connection, "notify")


def records(connection: Connection) -> list[Record]:
    """Return all that was decided so far about findings, and what is on its way, in order."""
    rows = connection.execute(statement("notification_records")).all()
    return [
        Record(**{**row._asdict(), "incidents": _listed(row.incidents), "covers": frozenset(_listed(row.covers))})
        for row in rows
    ]


@lru_cache(maxsize=_REMEMBERED)
def _listed(text: str) -> tuple[str, ...]:
    """Return a list of names. What was decided is read at every look, and never changes."""
    return tuple(json.loads(text))


def add(connection: Connection, message: NewMessage) -> bool:
    """Add a message unless its key is there already for its channel; whether it was added."""
    values = [message.row[name] for name in _COLUMNS]
    return bulk.insert(connection, "notification", _COLUMNS, [values], or_keep="key, channel") == 1


def change(connection: Connection, number: int, message: NewMessage) -> bool:
    """Make a message that nobody has tried yet another one; whether that was so."""
    return connection.execute(_CHANGE, {**message.row, "id": number}).rowcount == 1


def skip(connection: Connection, number: int, covers: frozenset[str], now_ns: int) -> bool:
    """Take back a message that nobody is sending now; it covers no more than `covers` from now on."""
    row = {"id": number, "covers": json.dumps(sorted(covers)), "now_ns": now_ns}
    return connection.execute(_SKIP, row).rowcount == 1


def undelivered(connection: Connection) -> list[Undelivered]:
    """Return the messages on their way, the oldest first."""
    rows = connection.execute(statement("undelivered")).all()
    return [Undelivered(**{**row._asdict(), "incidents": frozenset(json.loads(row.incidents))}) for row in rows]


def claim(connection: Connection, number: int, who: str, *, now_ns: int, until_ns: int) -> bool:
    """Take a message that is due to send it, until an end; False: somebody else has it. Counts as an attempt."""
    row = {"id": number, "who": who, "now_ns": now_ns, "until_ns": until_ns}
    return connection.execute(_CLAIM, row).rowcount == 1


def release_claims(connection: Connection, is_dead: Callable[[str], bool], *, now_ns: int) -> None:
    """End the claims of those that are dead, which else last until their end."""
    for who in connection.execute(_CLAIMED, {"now_ns": now_ns}).scalars().all():
        if who is not None and is_dead(str(who)):
            connection.execute(_RELEASE, {"who": who, "now_ns": now_ns})


def mark_sent(connection: Connection, number: int, *, now_ns: int) -> None:
    """It was delivered, whoever has it by now."""
    connection.execute(_SENT, {"id": number, "now_ns": now_ns})


def mark_failed(connection: Connection, number: int, who: str, error: str, *, now_ns: int, next_ns: int | None) -> bool:
    """It could not be delivered: again at `next_ns`, or never (None). False, and nothing, where the claim was lost."""
    state = "dead" if next_ns is None else "failed"
    row = {"id": number, "who": who, "error": bulk.clean(error), "state": state, "next_try_ns": next_ns}
    return connection.execute(_FAILED, {**row, "settled_ns": now_ns if next_ns is None else None}).rowcount == 1


def give_up(connection: Connection, now_ns: int) -> int:
    """Bury messages whose senders died at every attempt; how many."""
    return connection.execute(_GIVE_UP, {"now_ns": now_ns}).rowcount


def is_known(store: Store, key: str, channel: str) -> bool:
    """Return whether there is a message with this key for a channel, sent or not."""
    with store.connect() as connection:
        return connection.execute(_IS_KNOWN, {"key": key, "channel": channel}).first() is not None


def keep(connection: Connection, key: str, channel: str, *, now_ns: int) -> None:
    """What a settled message says is still so: it is as if it were settled now, to the hour."""
    row = {"key": key, "channel": channel, "now_ns": now_ns, "before_ns": now_ns - _KEPT_NS}
    connection.execute(_KEEP, row)


def retry(connection: Connection, now_ns: int, number: int | None = None) -> int:
    """Try all dead messages again from the start, or one that is dead or failed; how many."""
    one = "" if number is None else " AND id = :id"
    states = ["dead"] if number is None else ["dead", "failed"]
    row = {"now_ns": now_ns, "states": states} | ({} if number is None else {"id": number})
    again = text(_RETRY + one).bindparams(bindparam("states", expanding=True))
    return connection.execute(again, row).rowcount


def forget(connection: Connection, before_ns: int) -> int:
    """Forget what was settled before a moment; how many messages and silences.

    What covers findings stays as a bare row without content: their events would be news again without it.
    """
    row = {"before_ns": before_ns}
    return sum(connection.execute(each, row).rowcount for each in (_FORGET, _EMPTY, _FORGET_SILENCES))


def listed(store: Store, states: Iterable[str] = (*UNDELIVERED, "dead")) -> Columns:
    """Return the messages in these states, the oldest first. Columns: see sql/notifications.sql."""
    return answer(store, "notifications", {"states": list(states)})


def budget_messages(store: Store) -> Columns:
    """Return the messages on budgets that were made. Columns: see sql/budget_messages.sql."""
    return answer(store, "budget_messages", {})


def silences(store: Store, now_ns: int) -> list[Silence]:
    """Return the silences that hold, the one that ends first first."""
    with store.connect() as connection:
        return [Silence(**row._asdict()) for row in connection.execute(statement("silences"), {"now_ns": now_ns})]


def silences_table(store: Store, now_ns: int) -> Columns:
    """Return the silences that hold, as a table. Columns: see sql/silences.sql."""
    return answer(store, "silences", {"now_ns": now_ns})


def add_silence(connection: Connection, silence: Silence) -> int:
    """Add a silence, whatever its number says; its number."""
    names = [name for name in silence.__struct_fields__ if name != "silence_id"]
    marks = ", ".join(f":{name}" for name in names)
    row = {name: bulk.clean(value) if isinstance(value := getattr(silence, name), str) else value for name in names}
    added = text(f"INSERT INTO silence ({', '.join(names)}) VALUES ({marks}) RETURNING id")  # noqa: S608 own names
    return int(connection.execute(added, row).scalar_one())


def end_silence(connection: Connection, number: int, now_ns: int) -> None:
    """End a silence before its time. UsageError where none of this number holds."""
    if connection.execute(_END_SILENCE, {"id": number, "now_ns": now_ns}).rowcount != 1:
        raise UsageError(f"there is no silence {number} that holds", remedy="tracker notify --list")
