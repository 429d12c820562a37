"""Opening a database: SQLite by path, in memory, or Postgres by URL."""

from __future__ import annotations

import errno
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Final, Literal, ParamSpec, Self, TypeVar
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.pool import StaticPool

from tracker.config import Alerts, Budget, Watch
from tracker.errors import FIRST_INGEST, NO_DATABASE, StoreError
from tracker.store import schema
from tracker.store.failures import Damaged, Raced, explain_damage, explain_failure, is_collision, is_crowded
from tracker.store.sql import QUESTION
from tracker.store.urls import file_of, in_memory, name_of, parse_url, secrets_of, words
from tracker.store.waiting import Patience, find_holder, say_waiting
from tracker.store.write_queue import turn
from tracker.units import NS_PER_S

_Result = TypeVar("_Result")
_Parameters = ParamSpec("_Parameters")

CROWDED_TIMEOUT_S: Final = 60
"""How long we wait for a connection to a Postgres server that has none left; nodes of a large job come all at once."""

_CACHE_KIB: Final = 16_384
"""Pages that a writer of SQLite holds: what an ingest writes to again and again goes to the disk once. Readers are a
third slower with so many: they come to each page once, and the few that they have by themselves are used again.
"""

_CONNECT_TIMEOUT_S: Final = 10
_SNAPSHOT: Final = "SELECT CASE WHEN NOT pg_is_in_recovery() THEN CAST(pg_current_snapshot() AS TEXT) END"
"""Which transactions of a Postgres server are visible: none that reads has a number, so that only writers change it. A
standby server does not list all of them.
"""
_STEPS_BETWEEN_LOOKS: Final = 100_000
"""Steps of SQLite between two looks at the clock: some milliseconds."""
_ATTEMPTS: Final = 12
_FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 2.0
_WRITES: Final = {"tracker_writes": True}


class Store:
    """An open database. `url` names it in messages: a path, or a URL without its password and query. `keys`: the keys
    of ops and kernels that were read, by table and number. `migrates`: it makes its tables, or changes them.
    `settled_ns`: how long after its last rank a run waits for others, `settled` of [watch] in the settings;
    `runs_settle_ns`: how long after its first run a version waits for others, `settle` of [alerts];
    `budgets`: what each version must keep; `repository`: the folder whose git knows the commits of versions, of [page];
    None: the current folder; `main_branch`: what the settings call the main line, None where they do not.
    """

    def __init__(self, engine: Engine, url: URL, *, read_only: bool = False, migrates: bool = False) -> None:
        self.engine = engine
        self.url = name_of(url)
        self.read_only = read_only
        self._migrates = migrates
        self._make: Callable[[], None] | None = None
        self._making = threading.Lock()
        self._secrets = secrets_of(url)
        self._file = file_of(url)
        self.keys: dict[str, dict[int, tuple[Any, ...]]] = {}
        self.settled_ns = Watch().settled_ns
        self.runs_settle_ns = Alerts().settle_ns
        self.budgets: tuple[Budget, ...] = ()
        self.repository: str | None = None
        self.main_branch: str | None = None
        self._held = threading.local()
        self._driver_error: type[Exception] = engine.dialect.loaded_dbapi.Error

    @property
    def dialect(self) -> Literal["sqlite", "postgresql"]:
        """Which of the two databases this is."""
        return "sqlite" if self.engine.dialect.name == "sqlite" else "postgresql"

    @property
    def is_in_memory(self) -> bool:
        """Whether the database ends with this process."""
        return self.dialect == "sqlite" and in_memory(self.engine.url)

    @property
    def is_made(self) -> bool:
        """Whether the database has its tables."""
        return self._make is None

    def make_later(self, make: Callable[[], None]) -> None:
        """Have the tables made before the first reading or writing."""
        self._make = make

    def _be_made(self) -> None:
        with self._making:
            if self._make is not None:
                self._make()
                self._make = None

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Yield a connection to read with; all its queries see one state of the database."""
        self._be_made()
        held = getattr(self._held, "connection", None)
        with self._explained(), nullcontext(held) if held is not None else self.engine.connect() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read over one connection, and so of one state, all that this thread reads in the block, in which it must not
        write: every other connection costs a server several messages. A block ends with its answer: while it goes on, a
        server keeps the rows that others delete.
        """
        with self.connect() as connection:
            before, self._held.connection = getattr(self._held, "connection", None), connection
            try:
                yield
            finally:
                self._held.connection = before

    @contextmanager
    def begin(self, *, urgent: bool = False) -> Iterator[Connection]:
        """Yield a transaction to write in: committed at the end, undone by any exception.

        `urgent`: short, and next after the one that is going on, or soon after it; it does not wait for the queue of
        the writers of SQLite.
        """
        if self.read_only:
            raise StoreError(f"{self.url} is open for reading only")
        self._be_made()
        end = time.monotonic() + Patience.seconds
        with (
            nullcontext() if urgent else self.turn("writers", end),
            self.turn("next", end),
            self._explained(writes=True),
            self.engine.execution_options(**_WRITES).begin() as connection,
        ):
            if not self._migrates:
                schema.still_known(connection, self.url)
            yield connection

    @contextmanager
    def turn(self, of: Literal["writers", "next", "judges"], end: float | None = None) -> Iterator[None]:
        """Wait for those that came before to this queue at this SQLite file, and keep those waiting that come within
        the block. Not for ever (to the monotonic time `end`), and not everywhere, see `write_queue`: the data must come
        out right without it. On Postgres there is no such queue: its locks are fair, each for some rows only.
        """
        seconds = Patience.seconds if end is None else max(0.0, end - time.monotonic())
        with turn(self._file, of, seconds):
            yield

    def transact(self, work: Callable[[Connection], _Result], *, urgent: bool = False) -> _Result:
        """Run `work` in a transaction to write in; from its start again when another writer got in its way.

        StoreError where that happens over and over. `urgent`: as in `begin`.
        """
        for attempt in range(_ATTEMPTS):
            _let_others_go_first(attempt)
            try:
                with self.begin(urgent=urgent) as connection:
                    return work(connection)
            except Raced:
                continue
            except StoreError as error:
                if not is_collision(error.__cause__):
                    raise
        remedy = "run the command again; tracker db check tells whether the database is damaged"
        raise StoreError(f"{self.url}: other writers were faster {_ATTEMPTS} times", remedy=remedy)

    def stop_after(self, seconds: float) -> None:
        """Break off what is read later than so many seconds from now, with a StoreError."""
        end = time.monotonic() + seconds

        @event.listens_for(self.engine, "before_cursor_execute")
        def ask(*_: object) -> None:
            if time.monotonic() > end:
                raise StoreError(f"{self.url}: the question took longer than its time limit", remedy="ask for less")

        if self.dialect == "sqlite":

            @event.listens_for(self.engine, "checkout")
            def lend(connection: Any, _record: object, _proxy: object) -> None:
                connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS_BETWEEN_LOOKS)

            return

        @event.listens_for(self.engine, "begin")
        def begin(connection: Connection) -> None:
            left = max(1, round((end - time.monotonic()) * 1000))
            with closing(connection.connection.cursor()) as cursor:
                cursor.execute(f"SET LOCAL statement_timeout = {left}")

    def stamp(self) -> str | None:
        """Return a text that differs after every change of the database; None where there is none, or it changes right
        now.
        """
        if self.dialect == "postgresql":
            with self.connect() as connection:
                snapshot: str | None = connection.exec_driver_sql(_SNAPSHOT).scalar()
                return snapshot
        if self._file is None:
            return None
        found = []
        for path in (self._file, Path(f"{self._file}-wal")):
            with suppress(FileNotFoundError):
                found.append(path.stat())
        found = [one for one in found if one.st_size]  # a reader makes an empty log
        # the clock of a file has a coarse tick: two changes within it look like one
        if any(abs(time.time() - one.st_mtime) < 1.0 for one in found):
            return None
        return " ".join(f"{one.st_ino} {one.st_size} {one.st_mtime_ns}" for one in found)

    def rest(self) -> None:
        """Give idle connections back before work that takes long without the database: a server has few of them."""
        if self.dialect == "postgresql":
            self.engine.dispose()

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # a look into a database that is not there yet would make it
            damaged = explain_damage(self.connect, self.url, error) if self.is_made else None
        finally:
            self.close()
        if damaged is not None:
            raise damaged from error

    @contextmanager
    def _explained(self, *, writes: bool = False) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, Damaged, OverflowError, self._driver_error) as error:
            known = explain_failure(error, self.url, self._secrets, writes=writes)
            if known is None:
                raise
            raise known from error


def read_one_state(
    read: Callable[Concatenate[Store, _Parameters], _Result],
) -> Callable[Concatenate[Store, _Parameters], _Result]:
    """Have a function read all of its answer from one state of the database, its first argument; see `Store.reading`.

    What is stored while it reads would be a part of one table and not of another one.
    """

    @wraps(read)
    def read_in_block(store: Store, /, *arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
        with store.reading():
            return read(store, *arguments, **named)

    return read_in_block


def _let_others_go_first(attempt: int) -> None:
    """A pause before another attempt, of random length: writers that collided must not meet again at once."""
    if attempt:
        time.sleep(random.uniform(0.0, min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(attempt, 10))))


def open_store(url: str | None = None, *, create: bool = True, read_only: bool = False, late: bool = False) -> Store:
    """Return the database at `url`: a SQLAlchemy URL, the path of a SQLite file, or `sqlite://` for one in memory.

    None is the database of the settings. With `create`, a missing one is made, with `late` not before it is first used;
    tables are made and brought up to date by the migrations. Raises StoreError where that cannot be, for a database
    that is newer than this program, and with `read_only` for one that is missing or older.
    """
    if url is None:
        from tracker import config

        url = config.load().database
    parsed = parse_url(url)
    if in_memory(parsed):
        store = Store(open_engine(parsed), parsed)
        with store.engine.begin() as connection:
            schema.make(connection)
        return store
    if parsed.get_backend_name() == "sqlite":
        _check_file(parsed, create=create and not read_only, read_only=read_only)
    store = Store(open_engine(parsed, read_only=read_only), parsed, read_only=read_only)
    try:
        stamp = None if late and _is_missing(parsed) else _stamp(store, is_made=not create or read_only)
        if schema.needs_upgrade(stamp, store.url, create=create, read_only=read_only):
            if late and stamp is None:
                store.make_later(lambda: _migrate(store, parsed))
            else:
                _migrate(store, parsed)
    except BaseException as error:
        damaged = explain_damage(store.connect, store.url, error)
        store.close()
        if damaged is not None:
            raise damaged from error
        raise
    return store


def _stamp(store: Store, *, is_made: bool = False) -> str | None:
    """Return the migration that a database is at, None for one without tables. `is_made`: there must be some, so that
    none are a sign that this user may not see them.
    """
    with store.connect() as connection:
        found = schema.stamp(connection, store.url)
        if found is None and is_made:
            schema.check_schemas_are_open(connection, store.url)
        return found


def _is_missing(url: URL) -> bool:
    """Return whether there is no file; to look into it would make an empty one."""
    file = file_of(url)
    return file is not None and not file.exists()


def upgrade(url: str | None = None) -> tuple[str | None, str]:
    """Bring the tables of an existing database up to date; its schema before and after. None: it had no tables."""
    if url is None:
        from tracker import config

        url = config.load().database
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        _check_file(parsed, create=False, read_only=False)
    with Store(open_engine(parsed), parsed) as store:
        before = _stamp(store)
        if schema.needs_upgrade(before, store.url, create=True, read_only=False):
            _migrate(store, parsed)
        else:
            from tracker.store import views

            store.transact(views.make_views)
    return before, schema.SCHEMA_HEAD


def open_engine(url: str | URL, *, read_only: bool = False, migrates: bool = False) -> Engine:
    """Return an engine with the settings that all of tracker relies on; it looks at no tables.

    `migrates`: it changes them.
    """
    url = parse_url(url) if isinstance(url, str) else url
    if url.get_backend_name() == "postgresql":
        arguments: dict[str, Any] = {"connect_timeout": _CONNECT_TIMEOUT_S, "application_name": "tracker"}
        arguments = {key: value for key, value in arguments.items() if key not in url.query}
        options = " ".join(words(url.query.get("options", "")))
        arguments |= {"options": options} if options else {}
        with _explaining_address():
            # SQLAlchemy would ask each server for a type that none of our tables has
            engine = create_engine(url, connect_args=arguments, use_native_hstore=False)
        _set_up_postgres(engine, own_timeout="lock_timeout" in options, migrates=migrates)
        return engine
    if in_memory(url):
        engine = create_engine(url, poolclass=StaticPool, connect_args={"check_same_thread": False})
    else:
        engine = create_engine(_read_only_url(url) if read_only else url)
    _set_up_sqlite(engine, foreign_keys=not migrates)
    return engine


@contextmanager
def _explaining_address() -> Iterator[None]:
    """Within the block, what a driver cannot make out of an address is one line; what a server says stays as it is."""
    import psycopg

    try:
        yield
    except psycopg.OperationalError:
        raise
    except (psycopg.Error, ArgumentError, ValueError, TypeError, OverflowError) as error:
        # their text may quote any part of the address
        problem = f"the database URL has a part that cannot be used ({type(error).__name__})"
        remedy = "correct its host, port and options, which are the parameters of libpq"
        raise StoreError(problem, remedy=remedy) from None


@contextmanager
def _given_up_when_lost(connection: Connection) -> Iterator[None]:
    """Tell SQLAlchemy of a connection that the driver lost, or was interrupted with: it would log a traceback when it
    tidies it up.
    """
    try:
        yield
    except BaseException as error:
        is_interrupted = not isinstance(error, Exception)
        if is_interrupted or getattr(connection.connection.dbapi_connection, "closed", True):
            connection.invalidate(error)
        raise


def _set_up_postgres(engine: Engine, *, own_timeout: bool, migrates: bool) -> None:
    """`own_timeout`: the URL says how long to wait for a lock."""
    psycopg: Any = engine.dialect.loaded_dbapi

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # with each transaction: PgBouncer refuses options at the start, and lends a session to several clients
        settings = [] if own_timeout else [f"SET LOCAL lock_timeout = {_in_ms(Patience.seconds)}"]
        if not migrates and not connection.get_execution_options().get("tracker_writes", False):
            # all questions of a reader see one state, as on SQLite: ranks may come between two of them
            settings.append("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        elif not migrates:
            # tables change before all of it, or behind it
            settings.append(f"SELECT pg_advisory_xact_lock_shared({schema.ADVISORY_LOCK})")
        if settings:
            # by the driver: where rows are streamed, SQLAlchemy makes a cursor of the server for each statement
            with _given_up_when_lost(connection), closing(connection.connection.cursor()) as cursor:
                cursor.execute("; ".join(settings))

    @event.listens_for(engine, "before_cursor_execute")
    def ask(_connection: object, cursor: Any, _statement: str, _parameters: object, context: Any, _many: bool) -> None:
        # numbers and arrays come as bytes, which neither side has to write out and read as text; answers about tables
        # of Postgres itself have types that only come as text
        if context.execution_options.get(QUESTION):
            cursor.format = psycopg.pq.Format.BINARY

    @event.listens_for(engine, "do_connect")
    def connect(dialect: Any, _record: object, positional: Sequence[Any], named: Mapping[str, Any]) -> Any:
        deadline = time.monotonic() + CROWDED_TIMEOUT_S
        attempt = 0
        while True:
            try:
                with _explaining_address():
                    return dialect.connect(*positional, **named)
            except dialect.loaded_dbapi.OperationalError as error:
                if not is_crowded(error) or time.monotonic() > deadline:
                    raise
            attempt += 1
            _let_others_go_first(attempt)


def _set_up_sqlite(engine: Engine, *, foreign_keys: bool) -> None:
    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _record: object) -> None:
        # The driver's own transactions start late and end at every schema change; `begin` below starts ours.
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {_in_ms(Patience.seconds)}")
        connection.execute(f"PRAGMA foreign_keys = {'ON' if foreign_keys else 'OFF'}")
        connection.execute("PRAGMA synchronous = NORMAL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A transaction that reads before it writes could not be upgraded while another one writes.
        writes = connection.get_execution_options().get("tracker_writes", False)
        if not writes:
            connection.exec_driver_sql("BEGIN")
            return
        connection.exec_driver_sql(f"PRAGMA cache_size = -{_CACHE_KIB}")
        soon_s = min(Patience.said_after_s, Patience.seconds)
        if _begin_within(connection, soon_s):
            return
        rest_s = Patience.seconds - soon_s
        if rest_s > 0:
            _say_waiting_for_lock(engine.url, time.time_ns() - round(soon_s * NS_PER_S), rest_s)
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {_in_ms(rest_s)}")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {_in_ms(Patience.seconds)}")


def _begin_within(connection: Connection, seconds: float) -> bool:
    """Begin a transaction to write in; False where SQLite's lock does not come in time."""
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {_in_ms(seconds)}")
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    except OperationalError as error:
        # its low byte: SQLite says further in the others why it is busy
        if getattr(error.orig, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {_in_ms(Patience.seconds)}")
    return True


def _say_waiting_for_lock(url: URL, since_ns: int, seconds: float) -> None:
    """Say that this process waits for the lock of SQLite itself, as `waiting.say_waiting` does."""
    file = file_of(url)
    if file is None:
        return
    # who writes with a log has its lock on the file beside it that all share
    holder = find_holder(Path(f"{file}-shm"), "POSIX") or find_holder(file, "POSIX")
    say_waiting("the lock of SQLite", file, since_ns, seconds, holder)


def _in_ms(seconds: float) -> int:
    return round(seconds * 1000)


def _migrate(store: Store, url: URL) -> None:
    # Foreign keys stay off while SQLite tables are rebuilt; they are checked before the end of the transaction.
    with Store(open_engine(url, migrates=True), url, migrates=True) as migrating:
        if migrating.dialect == "sqlite":
            with migrating._explained():
                schema.use_write_ahead_log(migrating.engine, Patience.seconds, partial(_say_waiting_for_lock, url))
        with migrating.begin() as connection:
            schema.make_or_upgrade(connection, store.url)


def _check_file(url: URL, *, create: bool, read_only: bool) -> None:
    """Refuse what SQLite would answer with a riddle, or would overwrite."""
    path = Path(str(url.database))
    other = "name another database with --db"
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a database", remedy=other)
    if not path.exists():
        if not create:
            raise StoreError(f"{NO_DATABASE} {path}", remedy=f"an ingest makes it: {FIRST_INGEST}; or {other}")
        if not path.parent.is_dir():
            raise StoreError(f"{path}: there is no folder {path.parent}", remedy=f"make it, or {other}")
    elif not os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
        # to open it, and close it again, would give up the locks that this process has on it: SQLite alone may do that
        raise StoreError(f"{path} cannot be read ({os.strerror(errno.EACCES)})", remedy=other)
    if not read_only and not (_writable(path if path.exists() else path.parent) and _writable(path.parent)):
        remedy = f"make the file and its folder writable, or {other}"
        raise StoreError(f"{path} is read-only, or its folder is", remedy=remedy)


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _read_only_url(url: URL) -> URL:
    path = Path(str(url.database))
    query = {"mode": "ro", "uri": "true"}
    # Without a log to share, SQLite would have to create one; in a folder that nobody can write to, nobody writes.
    if not _writable(path.parent) and not Path(f"{path}-wal").exists():
        query["immutable"] = "1"
    return URL.create("sqlite", database=f"file:{quote(str(path))}", query=query)
