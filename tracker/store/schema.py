"""The state of the tables: which migration a database is at, and bringing it to the newest.

Alembic and SQLModel are imported only to upgrade and to check: a database at SCHEMA_HEAD needs neither, and a new one
is made by the statements of all migrations, without them.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, Engine, text

from tracker.errors import FIRST_INGEST, HOW_TO_INSTALL, NewerStoreError, StoreError
from tracker.store.failures import ASK_TO_READ, REMEDY
from tracker.store.waiting import Patience

if TYPE_CHECKING:
    from alembic.config import Config

ADVISORY_LOCK: Final = 0x7472_6163_6B65_72  # "tracker"
"""Of Postgres, held by who makes or changes tables."""

_LOOK_MS: Final = 100
"""How long SQLite waits by itself while a file is switched to WAL; then it is tried again."""

_PAGE_BYTES: Final = 1024
"""Of a new SQLite file: most of the hundred tables and indexes are small, and each takes whole pages."""

_OURS: Final = frozenset({"run", "capture", "op_key", "op"})
_TABLES: Final = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'",
    # a list of all tables would take a server longer than most questions
    "postgresql": "SELECT o.name FROM (VALUES ('alembic_version'), ('run'), ('capture'), ('op_key'), ('op')) "
    "AS o (name) WHERE TO_REGCLASS(o.name) IS NOT NULL",
}
"""What tells the tables of a database, on Postgres those that `stamp` knows."""

_CLOSED_SCHEMAS: Final = text(
    "SELECT n.nspname FROM pg_catalog.pg_namespace AS n WHERE NOT HAS_SCHEMA_PRIVILEGE(n.oid, 'USAGE') "
    # names that are no plain words stand in quotes there
    "AND n.nspname IN (SELECT BTRIM(p.name, ' \"') FROM UNNEST(STRING_TO_ARRAY(CURRENT_SETTING('search_path'), ',')) "
    "AS p (name)) ORDER BY n.nspname"
)
"""The schemas of Postgres that are meant and that this user may not look into: their tables seem not to be there."""

_IN_SQLITE: Final = {
    "BIGSERIAL": "INTEGER",
    "BYTEA": "BLOB",
    "DOUBLE PRECISION": "DOUBLE",
    ' COLLATE "C"': "",
    "PARTITION BY RANGE (run_id)": "WITHOUT ROWID",
}
"""Words of Postgres -> what SQLite calls the same."""

_NUMBER: Final = re.compile(r"\d{4}")

_UNDO: Final = (
    (re.compile(r"^CREATE TABLE (\w+)", re.MULTILINE), r"DROP TABLE \1"),
    (re.compile(r"^CREATE (?:UNIQUE )?INDEX (\w+)", re.MULTILINE), r"DROP INDEX \1"),
    (re.compile(r"^ALTER TABLE (\w+) ADD COLUMN (\w+)", re.MULTILINE), r"ALTER TABLE \1 DROP COLUMN \2"),
)
"""What a statement of a migration makes -> the statement that undoes it."""


def migrations_folder() -> Path:
    """Return where the migrations lie: beside the package in a checkout, inside it when installed."""
    package = Path(__file__).parents[1]
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


def list_migrations() -> list[str]:
    """Return the numbers of all migrations, in their order."""
    names = os.listdir(migrations_folder() / "versions")
    return sorted(name[:4] for name in names if name.endswith(".sql"))


SCHEMA_HEAD: Final = list_migrations()[-1]
"""The newest migration, as its file is numbered."""


def stamp(connection: Connection, name: str) -> str | None:
    """Return the migration that the database is at, None for one without tables.

    Raises StoreError for a database of another program; nothing of it is touched.
    """
    tables = set(connection.exec_driver_sql(_TABLES[connection.dialect.name]).scalars())
    remedy = "name another database with --db; tracker db check says more where this one is damaged"
    foreign = StoreError(f"{name} holds tables of another program", remedy=remedy)
    if "alembic_version" not in tables:
        # A Postgres schema may be shared, with extensions for example; a SQLite file is one program's.
        if (connection.dialect.name == "sqlite" and tables) or tables & _OURS:
            raise foreign
        return None
    found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalars().all()
    if not found and not tables & _OURS:
        return None
    if tables >= _OURS and not all(isinstance(number, str) for number in found):
        raise StoreError(f"{name}: the number of its schema is damaged", remedy=REMEDY)
    if len(found) != 1 or not _NUMBER.fullmatch(found[0]) or not tables >= _OURS:
        raise foreign
    return str(found[0])


def check_schemas_are_open(connection: Connection, name: str) -> None:
    """Raise StoreError where tables may lie in a schema of Postgres that this user may not look into."""
    if connection.dialect.name != "postgresql":
        return
    closed = connection.scalars(_CLOSED_SCHEMAS).all()
    if closed:
        raise StoreError(f"{name}: this user may not look into the schema {closed[0]}", remedy=ASK_TO_READ)


def needs_upgrade(stamp: str | None, name: str, *, create: bool, read_only: bool) -> bool:
    """Return whether migrations have to run; StoreError where they would have to and may not, or the database
    is newer.
    """
    if stamp == SCHEMA_HEAD:
        return False
    if stamp is None:
        if create and not read_only:
            return True
        raise StoreError(f"{name} holds no tables of tracker yet", remedy=f"an ingest makes them: {FIRST_INGEST}")
    refuse_newer(stamp, name)
    if read_only:
        raise StoreError(
            f"{name} is at schema {stamp}, older than {SCHEMA_HEAD}, which this tracker reads",
            remedy="bring it up to date with tracker db upgrade",
        )
    return True


def refuse_newer(stamp: str, name: str) -> None:
    """NewerStoreError where this program does not know the schema."""
    if stamp > SCHEMA_HEAD:
        raise NewerStoreError(
            f"{name} is at schema {stamp}, newer than this tracker, which knows up to {SCHEMA_HEAD}",
            remedy=f"upgrade tracker: {HOW_TO_INSTALL}",
        )


def still_known(connection: Connection, name: str) -> None:
    """NewerStoreError where a newer program has upgraded the database since it was opened."""
    found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    if isinstance(found, str):
        refuse_newer(found, name)


def statements(dialect: str, number: str) -> list[str]:
    """Return the statements of migration `number`, `0001` or later.

    Its file `NUMBER_*.sql` is written for Postgres. On SQLite its types have other names, and a line that ends with the
    comment `-- sqlite` or `-- postgresql` is for that database alone.
    """
    (path,) = (migrations_folder() / "versions").glob(f"{number}_*.sql")
    lines = path.read_text(encoding="utf-8").splitlines()
    other = "sqlite" if dialect == "postgresql" else "postgresql"
    own = "\n".join(line.removesuffix(f" -- {dialect}") for line in lines if not line.endswith(f" -- {other}"))
    if dialect == "sqlite":
        for name, there in _IN_SQLITE.items():
            own = own.replace(name, there)
    return [statement.strip() for statement in own.split(";") if statement.strip()]


def run_statements(connection: Connection, number: str) -> None:
    """Run the statements of migration `number` inside the open transaction of `connection`."""
    for statement in statements(connection.dialect.name, number):
        connection.exec_driver_sql(statement)


def run_migration(connection: Connection, number: str) -> None:
    """Run migration `number` inside the open transaction of `connection`, which was at the one before it."""
    from tracker.store import captures, views

    views.drop_views(connection)  # they rest on columns that may go
    run_statements(connection, number)
    if number != SCHEMA_HEAD:
        return
    views.make_views(connection)
    # so that an ingest by a role that owns no table can write the next runs; an older migration lacks tables
    newest_run = connection.exec_driver_sql("SELECT COALESCE(MAX(id), 0) FROM run").scalar_one()
    for first_run in range(0, int(newest_run) + 1, captures.PARTITION_RUNS):
        captures.ensure_partitions(connection, first_run)


def undo_migration(connection: Connection, number: str) -> None:
    """Drop the tables, columns and indexes that migration `number` has made, the last one first, and all views."""
    from tracker.store import views

    views.drop_views(connection)  # they rest on columns that go
    for statement in reversed(statements(connection.dialect.name, number)):
        for pattern, undo in _UNDO:
            if match := pattern.search(statement):
                connection.exec_driver_sql(match.expand(undo))


def make_tables(connection: Connection) -> None:
    """Run all migrations up to SCHEMA_HEAD inside the open transaction of `connection`."""
    from tracker.store import captures, views

    for number in list_migrations():
        run_statements(connection, number)
    views.make_views(connection)
    # so that an ingest by a role that owns no table can write the first runs
    captures.ensure_partitions(connection, 0)


def make(connection: Connection) -> None:
    """Make all tables at SCHEMA_HEAD inside the open transaction of `connection`, to a database without tables."""
    make_tables(connection)
    columns = "version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)"
    connection.exec_driver_sql(f"CREATE TABLE IF NOT EXISTS alembic_version ({columns})")
    connection.execute(text("INSERT INTO alembic_version (version_num) VALUES (:head)"), {"head": SCHEMA_HEAD})


def make_or_upgrade(connection: Connection, name: str) -> None:
    """Make the tables where there are none, else run the migrations, inside the open transaction of `connection`."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": ADVISORY_LOCK})
    found = stamp(connection, name)
    if found is None:
        make(connection)
    elif needs_upgrade(found, name, create=True, read_only=False):  # another process made what it is in the meantime
        upgrade(connection)


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Run the migrations up to `revision` inside the open transaction of `connection`."""
    from alembic import command

    command.upgrade(alembic_config(connection), revision)
    if connection.dialect.name == "sqlite":
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        if broken:
            raise StoreError(
                f"the migration would break {len(broken)} references", remedy="restore a copy, and report it"
            )


def drift(connection: Connection) -> str:
    """Return how the tables of `connection` differ from the code, in Alembic's words; empty where they do not."""
    from alembic import command
    from alembic.util import AutogenerateDiffsDetected

    try:
        command.check(alembic_config(connection))
    except AutogenerateDiffsDetected as error:
        return str(error)
    return ""


def alembic_config(connection: Connection) -> Config:
    """Alembic's configuration for the migrations of tracker, inside the open transaction of `connection`."""
    from alembic.config import Config

    config = Config(stdout=StringIO())
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def use_write_ahead_log(engine: Engine, seconds: float, say: Callable[[int, float], None]) -> None:
    """Switch a SQLite file to WAL, for good: readers then never wait for a writer. A new one gets its page size.

    seconds: how long others are waited for that have the file; say: is called once where that is long, with since when
    and how much longer.
    """
    since_ns, begun, is_said = time.time_ns(), time.monotonic(), False
    while True:
        connection = engine.raw_connection()
        try:
            cursor = connection.cursor()
            cursor.execute(f"PRAGMA busy_timeout = {_LOOK_MS}")
            cursor.execute(f"PRAGMA page_size = {_PAGE_BYTES}")  # of a file that is there, it stays
            cursor.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            # SQLite does not wait here for others that open the same new file.
            waited_s = time.monotonic() - begun
            if "locked" not in str(error) or waited_s > seconds:
                raise
            if not is_said and waited_s > Patience.said_after_s:
                say(since_ns, seconds - waited_s)
                is_said = True
            time.sleep(0.02)
        finally:
            connection.close()
