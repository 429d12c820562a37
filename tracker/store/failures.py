"""What a database driver says, said so that the reader can act on it."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from tracker.errors import StoreError

_AGAIN: Final = "ingest the profiles into a new database"
_DAMAGED: Final = "tracker db check tells what is damaged; restore it from a copy"
_SQLITE: Final = (
    ("locked", "another process keeps it locked", "try again when that process is done"),
    ("interrupted", "the question took longer than its time limit", "ask for less"),
    ("readonly", "it is read-only", "make the file and its folder writable, or name another database with --db"),
    ("full", "the disk is full", "free some space and run the command again; nothing is half done"),
    ("disk i/o", "the disk cannot be read or written", "check the disk, then tracker db check"),
    ("malformed", "the file is damaged", _DAMAGED),
    ("unsupported file format", "the file is damaged, or of a newer SQLite", _DAMAGED),
    ("could not decode to utf-8", "a text in it is damaged", _DAMAGED),
    ("not a database", "it is not a SQLite database", f"name another database with --db; {_DAMAGED}"),
    ("int too large to convert", "a number is beyond 64 bits", "give or export a smaller one"),
    ("no such table", "a table is missing: another version of tracker made it", f"{_AGAIN}; {_DAMAGED}"),
    ("no such column", "a column is missing: another version of tracker made it", f"{_AGAIN}; {_DAMAGED}"),
    ("unable to open", "it cannot be opened", "check that its folder exists and that you may write there"),
)
"""Part of SQLite's message, what is wrong, what to do."""

_POSTGRES: Final = (
    ("28", "the server refuses this user", "check user and password in the URL"),
    ("3D000", "there is no such database on the server", "create it with createdb, or correct the URL"),
    ("3F000", "there is no such schema in the database", "create it, or correct the URL"),
    ("42P01", "a table is missing: another version of tracker made it", _AGAIN),
    ("42703", "a column is missing: another version of tracker made it", _AGAIN),
    ("42501", "this user may not do that", "ask for the right to create and write tables"),
    ("25006", "it is read-only", "connect to the primary server, or name another database with --db"),
    ("53100", "the disk of the server is full", "free some space and run the command again; nothing is half done"),
    ("53300", "the server has no connection left", "try again later, or allow more connections"),
    ("55P03", "another process keeps it locked", "try again when that process is done"),
    ("40", "it collided with another writer", "run the command again; nothing is half done"),
    ("23503", "it collided with another writer", "run the command again; nothing is half done"),
    ("23505", "it collided with another writer", "run the command again; nothing is half done"),
    ("57014", "the server stopped the statement after its time limit", "run the command again when less is going on"),
    ("57", "the server is shutting down or starting", "try again when it is up"),
)
"""Start of a Postgres error code, what is wrong, what to do; the first match counts."""


_OVERFLOW: Final = "integer overflow"
_OUT_OF_RANGE: Final = "22003"
"""What SQLite says of a sum that 64 bits do not hold, and the error code of Postgres."""

_SUM: Final = re.compile(r"^\s*(?:SELECT|WITH)\b(?=.*\bSUM\().*?\bFROM (\w+)", re.DOTALL)
"""The table of a question that sums up, the first one of several: the others only tell what its rows are of."""

_CROWDED: Final = (
    "too many connections", "too many clients", "connection slots are reserved", "no more connections allowed",
)  # fmt: skip
"""What a server (the last: PgBouncer) says that has no connection left; a refused connection has no error code."""

CONNECTION_ERRORS: Final = (OperationalError, InterfaceError)
"""What SQLAlchemy raises where the fault lies between us and the database, and `explain` knows no words for it."""


class Raced(Exception):
    """Another writer was faster with the same files, labels or run; looking again will show it."""


class Damaged(Exception):
    """Bytes of the database that say nothing. `what`: in the plural, with run and rank; `remedy`: what helps."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.what = what
        self.remedy = remedy


def explain(error: Exception, name: str, secrets: Collection[str] = ()) -> StoreError | None:
    """The StoreError behind `error` of a driver, or None where the fault is ours and a traceback is due.

    `error`: also a Damaged of the bytes that it gave. `name`: the database, for the message. `secrets` are taken out of
    whatever the driver said.
    """
    if isinstance(error, Damaged):
        return explain_damaged(name, error)
    cause: Any = error.orig if isinstance(error, DBAPIError) else error
    text = str(cause).strip()
    if _OVERFLOW in text.lower() or getattr(cause, "sqlstate", None) == _OUT_OF_RANGE:
        return _explain_overflow(error, name)
    if _was_not_sent(error) and not is_crowded(cause):
        return None
    if type(cause).__module__.startswith("psycopg"):
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return _explain_postgres(cause, name, text)
    lowered = text.lower()
    for part, problem, remedy in _SQLITE:
        if part in lowered:
            return StoreError(f"{name}: {problem} ({text})", remedy=remedy)
    return None


def explain_damaged(name: str, damaged: Damaged) -> StoreError:
    """Return what to say of damaged bytes of the database `name`."""
    more = "" if "db check" in damaged.remedy else "; tracker db check lists all that is damaged"
    return StoreError(f"{name}: {damaged.what} are damaged", remedy=f"{damaged.remedy}{more}")


def _explain_overflow(error: Exception, name: str) -> StoreError | None:
    """None where it is no sum: what is written are numbers that were checked before."""
    statement = error.statement if isinstance(error, DBAPIError) else None
    table = _SUM.match(statement or "")
    if table is None:
        return None
    problem = f"{name}: a sum over rows of the table {table[1]} is too large: 2**63 or more"
    return StoreError(problem, remedy="ask for fewer ranks and steps")


def is_crowded(error: BaseException) -> bool:
    """Whether the server had no connection left for us; it will, when others are done."""
    code = getattr(error, "sqlstate", None)
    # an error with a code may quote what somebody wrote
    return code == "53300" or (code is None and any(words in str(error) for words in _CROWDED))


def is_connection_lost(error: BaseException) -> bool:
    """Whether the fault lies between us and the database, not in what was asked of it."""
    if _was_not_sent(error):
        return False
    return isinstance(error, CONNECTION_ERRORS) or (isinstance(error, DBAPIError) and error.connection_invalidated)


def _was_not_sent(error: BaseException) -> bool:
    """Whether psycopg itself refused a statement (too many parameters, ...): the connection stands, and the server,
    whose errors have codes, never heard of it.
    """
    if not isinstance(error, DBAPIError) or not type(error.orig).__module__.startswith("psycopg"):
        return False
    asked = error.statement is not None and not error.connection_invalidated
    return asked and getattr(error.orig, "sqlstate", None) is None


def is_collision(error: BaseException | None) -> bool:
    """Whether Postgres broke this transaction off for another one's sake; the same again will succeed.

    A foreign or unique key that does not fit is one as well: another writer removed a label that this one had found,
    or added what this one had found missing.
    """
    cause: Any = error.orig if isinstance(error, DBAPIError) else error
    return str(getattr(cause, "sqlstate", None) or "").startswith(("40", "23503", "23505"))


def _explain_postgres(cause: Any, name: str, text: str) -> StoreError | None:
    code = "53300" if is_crowded(cause) else cause.sqlstate
    first = text.splitlines()[0] if text else "no reason given"
    if code is None:
        if "invalid connection option" in text:  # its name is not shown: it may be a part of a password
            problem = "the query of the URL has an option that is none"
            return StoreError(f"{name}: {problem}", remedy="see the parameters of libpq")
        if type(cause).__name__ not in {"OperationalError", "ConnectionTimeout"}:
            return None
        remedy = "check that it is up, and the host, port, user and database of the URL"
        return StoreError(f"{name}: the server cannot be reached ({first})", remedy=remedy)
    for start, problem, remedy in _POSTGRES:
        if code.startswith(start):
            return StoreError(f"{name}: {problem} ({first})", remedy=remedy)
    return None
