"""Explain failures of a database: what its driver says, and stored bytes that no program of ours wrote."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final

from msgspec import MsgspecError
from sqlalchemy import Boolean, Connection, Float, Integer, LargeBinary, Table, exists, func, or_, select
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError

from tracker.errors import StoreError, UsageError

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

NO_RIGHT: Final = "42501"
"""What Postgres says to a user who may not read, or not write."""

_POSTGRES: Final = (
    ("28", "the server refuses this user", "check user and password in the URL"),
    ("3D000", "there is no such database on the server", "create it with createdb, or correct the URL"),
    ("3F000", "there is no such schema in the database", "create it, or correct the URL"),
    ("42P01", "a table is missing: another version of tracker made it", _AGAIN),
    ("42703", "a column is missing: another version of tracker made it", _AGAIN),
    (NO_RIGHT, "this user may not do that", "ask its owner for the right to create and write tables in its schema"),
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

ASK_TO_READ: Final = "ask its owner for USAGE on the schema and SELECT on all tables in it"
"""What a user needs who only reads."""


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
"""What SQLAlchemy raises where the fault lies between us and the database, without words of `explain_failure`."""

CHECK_COMMAND: Final = "tracker db check"
REMEDY: Final = f"{CHECK_COMMAND} lists what is damaged; restore the database from a copy"

CHECK_TELLS: Final = f"{CHECK_COMMAND} tells which"
"""What helps where rows are damaged that a question needs."""

_LOOK_S: Final = 60.0
"""How long a command that stumbled looks for damage."""

_JSON: Final[dict[str, dict[str, type]]] = {
    "advice": {"content": dict},
    "capture": {"settings": dict},
    "notification": {"incidents": list},
    "recording": {"content": dict},
}
"""Table -> the columns that hold JSON, and what it is."""

_AT_ONCE: Final = 1000
_STUMBLES: Final = (
    SQLAlchemyError, sqlite3.Error, MsgspecError, ValueError, TypeError, LookupError, ArithmeticError,
    AttributeError, AssertionError,
)  # fmt: skip
"""What is raised where bytes are not what they should be; nothing that ends a program on purpose."""


class Raced(Exception):
    """Another writer was faster with the same files, labels or run; looking again will show it."""


class Damaged(Exception):
    """Bytes of the database that say nothing. `what`: in the plural, with run and rank; `remedy`: what helps."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.what = what
        self.remedy = remedy


def explain_failure(
    error: Exception, name: str, secrets: Collection[str] = (), *, writes: bool = False
) -> StoreError | None:
    """Return the StoreError behind `error` of a driver, or None where the fault is ours and a traceback is due.

    `error`: also a Damaged of the bytes that it gave. `name`: the database, for the message. `secrets` are taken out of
    whatever the driver said. `writes`: whether it came from a transaction to write in.
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
        return _explain_postgres(cause, name, text, writes=writes)
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
    """Return whether the server had no connection left for us; it will, when others are done."""
    code = getattr(error, "sqlstate", None)
    # an error with a code may quote what somebody wrote
    return code == "53300" or (code is None and any(words in str(error) for words in _CROWDED))


def is_connection_lost(error: BaseException) -> bool:
    """Return whether the fault lies between us and the database, not in what was asked of it."""
    if _was_not_sent(error):
        return False
    return isinstance(error, CONNECTION_ERRORS) or (isinstance(error, DBAPIError) and error.connection_invalidated)


def _was_not_sent(error: BaseException) -> bool:
    """Return whether psycopg itself refused a statement (too many parameters, ...): the connection stands, and the
    server, whose errors have codes, never heard of it.
    """
    if not isinstance(error, DBAPIError) or not type(error.orig).__module__.startswith("psycopg"):
        return False
    asked = error.statement is not None and not error.connection_invalidated
    return asked and getattr(error.orig, "sqlstate", None) is None


def is_collision(error: BaseException | None) -> bool:
    """Return whether Postgres broke this transaction off for another one's sake; the same again will succeed.

    A foreign or unique key that does not fit is one as well: another writer removed a label that this one had found,
    or added what this one had found missing.
    """
    cause: Any = error.orig if isinstance(error, DBAPIError) else error
    return str(getattr(cause, "sqlstate", None) or "").startswith(("40", "23503", "23505"))


def _explain_postgres(cause: Any, name: str, text: str, *, writes: bool) -> StoreError | None:
    code = "53300" if is_crowded(cause) else cause.sqlstate
    first = text.splitlines()[0] if text else "no reason given"
    if code is None:
        if type(cause).__name__ not in {"OperationalError", "ConnectionTimeout"}:
            return None
        remedy = "check that it is up, and the host, port, user and database of the URL"
        return StoreError(f"{name}: the server cannot be reached ({first})", remedy=remedy)
    if code == NO_RIGHT and not writes:
        return StoreError(f"{name}: this user may not read that ({first})", remedy=ASK_TO_READ)
    for start, problem, remedy in _POSTGRES:
        if code.startswith(start):
            return StoreError(f"{name}: {problem} ({first})", remedy=remedy)
    return None


def explain_damage(
    connect: Callable[[], AbstractContextManager[Connection]], name: str, error: BaseException | None
) -> StoreError | None:
    """Return what to say where `error` came from damage of the database; None where the database is sound, or the error
    says itself what is wrong.

    A failing disk leaves a file that SQLite refuses, or one that it reads: a text that is no UTF-8, a number that is a
    text, JSON that ends in the middle.

    connect: gives a connection to read with; name: the database, for the message.
    """
    # a version without runs, say: a look at the few rows of runs tells whether they refer to what is gone
    looks = (dangling_runs,) if isinstance(error, UsageError) else DAMAGE_CHECKS
    if not isinstance(error, (UsageError, *_STUMBLES)):
        return None
    problems: list[str] = []
    begun = time.monotonic()
    try:
        with connect() as connection:
            for find in looks:
                if time.monotonic() - begun < _LOOK_S:
                    problems += look_for_damage(find, connection)
    except StoreError as refused:
        return refused if names_damage(refused) else None
    except UnicodeDecodeError:
        # SQLite complains of the schema, and quotes it
        problems.append("a name in its schema is no UTF-8")
    if not problems:
        return None
    more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
    return StoreError(f"{name} is damaged: {problems[0]}{more}", remedy=REMEDY)


def names_damage(refused: StoreError) -> bool:
    """Return whether a database is refused because it is damaged, and not because it is gone, locked or too old."""
    return CHECK_COMMAND in refused.remedy


def look_for_damage(find: Callable[[Connection], Iterator[str]], connection: Connection) -> list[str]:
    """Return the problems that a look into the database finds; where the look itself stumbles, that is one."""
    found: list[str] = []
    try:
        found.extend(find(connection))
    except _STUMBLES as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        what = find.__name__.strip("_").replace("_", " ")
        found.append(f"{what} cannot be looked for ({type(cause).__name__}: {' '.join(str(cause).split())[:200]})")
    return found


def dangling_runs(connection: Connection) -> Iterator[str]:
    """Yield a sentence per label of runs that is gone: such runs are found by no question."""
    from tracker.store.tables import metadata

    run = metadata.tables["run"]
    for column in run.c:
        for key in column.foreign_keys:
            gone = column.is_not(None) & ~exists().where(key.column == column)
            count = connection.scalar(select(func.count()).select_from(run).where(gone)) or 0
            if count:
                yield f"{count} runs refer to a row of {key.column.table.name} that is gone"


def wrong_cells(connection: Connection) -> Iterator[str]:
    """Yield a sentence per column that holds values of another kind than it is declared for; SQLite takes any."""
    if connection.dialect.name != "sqlite":
        return
    from tracker.store.tables import metadata

    for table in metadata.sorted_tables:
        checks = [f"SUM(TYPEOF({_quoted(column.name)}) NOT IN {_kinds(column.type)})" for column in table.c]
        counts = connection.exec_driver_sql(f"SELECT {', '.join(checks)} FROM {_quoted(table.name)}").one()  # noqa: S608
        for column, count in zip(table.c, counts, strict=True):
            if count:
                yield f"{count} rows of {table.name} hold something else than they should in {column.name}"


def _kinds(kind: Any) -> str:
    if isinstance(kind, Integer | Boolean):
        return "('integer', 'null')"
    if isinstance(kind, Float):
        return "('integer', 'real', 'null')"
    return "('blob', 'null')" if isinstance(kind, LargeBinary) else "('text', 'null')"


def _quoted(name: str) -> str:
    return f'"{name}"'


def broken_texts(connection: Connection) -> Iterator[str]:
    """Yield a sentence per column with texts that are no UTF-8; Postgres takes none."""
    if connection.dialect.name != "sqlite":
        return
    from tracker.store.tables import metadata

    raw: Any = connection.connection.dbapi_connection
    before = raw.text_factory
    raw.text_factory = bytes
    try:
        for table in metadata.sorted_tables:
            for name in _texts_of(table):
                rows = raw.execute(f"SELECT {_quoted(name)} FROM {_quoted(table.name)}")  # noqa: S608
                count = sum(not _is_utf_8(value) for (value,) in rows)
                if count:
                    yield f"{count} texts of {table.name} are no UTF-8 in {name}"
    finally:
        raw.text_factory = before


def _texts_of(table: Table) -> list[str]:
    return [column.name for column in table.c if "text" in _kinds(column.type)]


def _is_utf_8(value: object) -> bool:
    try:
        return not isinstance(value, bytes) or value.decode() is not None
    except UnicodeDecodeError:
        return False


def broken_json(connection: Connection) -> Iterator[str]:
    """Yield a sentence per column with texts that should be JSON and are none."""
    from tracker.store.tables import metadata

    for name, columns in _JSON.items():
        table = metadata.tables[name]
        for column, kind in columns.items():
            question = select(table.c[column]).where(table.c[column].is_not(None))
            values = connection.execute(question, execution_options={"yield_per": _AT_ONCE}).scalars()
            count = sum(not _is_json(value, kind) for value in values)
            if count:
                yield f"{count} rows of {name} are no JSON in {column}"


def _is_json(text: Any, kind: type) -> bool:
    try:
        return isinstance(json.loads(text), kind)
    except (ValueError, TypeError):
        return bool(text == "")


def file_problems(connection: Connection) -> Iterator[str]:
    """Yield what SQLite itself finds wrong with its file, and rows that refer to rows that are gone."""
    if connection.dialect.name != "sqlite":
        return
    for (found,) in connection.exec_driver_sql("PRAGMA integrity_check").all():
        if found != "ok":
            yield f"the file is damaged: {found}"
    for table, _row, parent, _key in connection.exec_driver_sql("PRAGMA foreign_key_check").all():
        yield f"a row of {table} refers to a row of {parent} that is gone"


def orphans(connection: Connection) -> Iterator[str]:
    """Detail rows have no foreign keys, so that they load fast; this is where they are checked.

    What says nothing of a run (NULL), such as an event that a rule made, belongs to none.
    """
    from tracker.store.tables import metadata

    run = metadata.tables["run"]
    for table in metadata.sorted_tables:
        if "run_id" not in table.c:
            continue
        gone = ~exists().where(run.c.id == table.c.run_id)
        count = connection.scalar(select(func.count()).select_from(table).where(table.c.run_id.is_not(None), gone)) or 0
        if count:
            yield f"{count} rows of {table.name} belong to no run"


def nameless(connection: Connection) -> Iterator[str]:
    """Yield rows with numbers of texts that are not there: questions about them would leave them out."""
    from tracker.store.tables import metadata
    from tracker.store.tables.base import DETAIL_TEXT, IS_OF_TEXT

    text = metadata.tables[DETAIL_TEXT]
    for table in metadata.sorted_tables:
        of_text = [column for column in table.c if IS_OF_TEXT in column.info]
        gone = [column.is_not(None) & ~exists().where(text.c.id == column) for column in of_text]
        count = gone and connection.scalar(select(func.count()).select_from(table).where(or_(*gone)))
        if count:
            yield f"{count} rows of {table.name} refer to texts that are gone"


_KEYS: Final = {f"{name}_id": name for name in ("op_key", "kernel_key", "process_group", "call_stack", "series")}
"""Column -> the table whose rows it numbers, where a foreign key would cost more than the load of its rows."""


def keyless(connection: Connection) -> Iterator[str]:
    """Yield rows with numbers of keys that are not there, as those of an operator: questions would leave them out."""
    from tracker.store.tables import metadata

    for table in metadata.sorted_tables:
        for column in table.c:
            if column.name not in _KEYS or column.foreign_keys:
                continue
            key = metadata.tables[_KEYS[column.name]]
            gone = column.is_not(None) & ~exists().where(key.c.id == column)
            count = connection.scalar(select(func.count()).select_from(table).where(gone)) or 0
            if count:
                yield f"{count} rows of {table.name} refer to rows of {key.name} that are gone"


DAMAGE_CHECKS: Final = (file_problems, wrong_cells, broken_texts, broken_json, orphans, nameless, keyless)
"""What is looked for after any error: damage that makes a command stumble."""
