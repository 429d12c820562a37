"""The state of the tables: which migration a database is at, and bringing it to the newest.

Alembic and SQLModel are imported only where tables are made; a database at SCHEMA_HEAD needs neither.
"""

from __future__ import annotations

import re
import sqlite3
import time
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, inspect

from tracker.errors import StoreError

SCHEMA_HEAD: Final = "0001"
"""The newest migration, as its file is numbered."""

_OURS: Final = frozenset({"run", "capture", "op_key", "op"})
_NUMBER: Final = re.compile(r"\d{4}")


def stamp(connection: Connection, name: str) -> str | None:
    """The migration that the database is at, None for one without tables.

    Raises StoreError for a database of another program; nothing of it is touched.
    """
    tables = set(inspect(connection).get_table_names())
    foreign = StoreError(f"{name} holds tables of another program", remedy="name another database with --db")
    if "alembic_version" not in tables:
        # A Postgres schema may be shared, with extensions for example; a SQLite file is one program's.
        if connection.dialect.name == "sqlite" and tables or tables & _OURS:
            raise foreign
        return None
    found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalars().all()
    if not found and not tables & _OURS:
        return None
    if len(found) != 1 or not _NUMBER.fullmatch(found[0]) or not tables >= _OURS:
        raise foreign
    return str(found[0])


def needs_upgrade(stamp: str | None, name: str, *, create: bool, read_only: bool) -> bool:
    """Whether migrations have to run; StoreError where they would have to and may not, or the database is newer."""
    if stamp == SCHEMA_HEAD:
        return False
    if stamp is None:
        if create and not read_only:
            return True
        raise StoreError(f"{name} holds no tables of tracker yet", remedy="tracker ingest makes them")
    if stamp > SCHEMA_HEAD:
        raise StoreError(
            f"{name} is at schema {stamp}, newer than this tracker, which knows up to {SCHEMA_HEAD}",
            remedy="upgrade tracker: pip install --upgrade tracker",
        )
    if read_only:
        raise StoreError(
            f"{name} is at schema {stamp}, older than {SCHEMA_HEAD}, which this tracker reads",
            remedy="run: tracker db upgrade",
        )
    return True


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Run the migrations up to `revision` inside the open transaction of `connection`."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
    if connection.dialect.name == "sqlite":
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        if broken:
            raise StoreError(f"the migration would break {len(broken)} references", remedy="restore a copy, and report it")


def migrations_folder() -> Path:
    """Where the migrations lie: beside the package in a checkout, inside it when installed."""
    package = Path(__file__).parents[1]
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


def create_in_memory(engine: Engine) -> None:
    """Make all tables at once, without the migrations; a test holds that they come to the same."""
    from tracker.store.tables import metadata

    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        connection.exec_driver_sql("INSERT INTO alembic_version (version_num) VALUES (?)", (SCHEMA_HEAD,))


def use_write_ahead_log(engine: Engine, timeout_ms: int) -> None:
    """Switch a SQLite file to WAL, for good: readers then never wait for a writer."""
    deadline = time.monotonic() + timeout_ms / 1000
    while True:
        connection = engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # SQLite does not wait here for others that open the same new file.
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        finally:
            connection.close()
