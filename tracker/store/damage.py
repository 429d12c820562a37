"""Stored bytes that say nothing: which cells hold what no program of ours wrote, and how a command says so.

A failing disk leaves a file that SQLite refuses, or, worse, one that it reads: a text that is no UTF-8, a number that
is a text, JSON that ends in the middle. Wherever a command then stumbles, it is looked whether the database is sound;
where it is not, that is what is said, in one line. Where it is, the error is one of ours and stays what it was.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final

from msgspec import MsgspecError
from sqlalchemy import Boolean, Connection, Float, Integer, LargeBinary, Table, exists, func, or_, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from tracker.errors import StoreError, UsageError

CHECK: Final = "tracker db check"
REMEDY: Final = f"{CHECK} lists what is damaged; restore the database from a copy"

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


def explain_damage(
    connect: Callable[[], AbstractContextManager[Connection]], name: str, error: BaseException | None
) -> StoreError | None:
    """Return what to say where `error` came from damage of the database; None where the database is sound, or the error
    says itself what is wrong.

    connect: gives a connection to read with; name: the database, for the message.
    """
    # a version without runs, say: a look at the few rows of runs tells whether they refer to what is gone
    looks = (dangling_runs,) if isinstance(error, UsageError) else LOOKS
    if not isinstance(error, (UsageError, *_STUMBLES)):
        return None
    problems: list[str] = []
    begun = time.monotonic()
    try:
        with connect() as connection:
            for find in looks:
                if time.monotonic() - begun < _LOOK_S:
                    problems += look(find, connection)
    except StoreError as refused:
        return refused
    if not problems:
        return None
    more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
    return StoreError(f"{name} is damaged: {problems[0]}{more}", remedy=REMEDY)


def look(find: Callable[[Connection], Iterator[str]], connection: Connection) -> list[str]:
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
    """Rows with numbers of texts that are not there: questions about them would leave them out."""
    from tracker.store.tables import metadata
    from tracker.store.tables.base import DETAIL_TEXT, IS_OF_TEXT

    text = metadata.tables[DETAIL_TEXT]
    for table in metadata.sorted_tables:
        gone = [~exists().where(text.c.id == column) for column in table.c if IS_OF_TEXT in column.info]
        count = gone and connection.scalar(select(func.count()).select_from(table).where(or_(*gone)))
        if count:
            yield f"{count} rows of {table.name} refer to texts that are gone"


LOOKS: Final = (file_problems, wrong_cells, broken_texts, broken_json, orphans, nameless)
"""What is looked for after any error: damage that makes a command stumble."""
