"""Opening: what is no database, too old, too new, locked or read-only is one clear line."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import create_engine, text

from tests.conftest import count_rows
from tests.factories import save
from tracker.errors import NewerStoreError, StoreError
from tracker.store import connect, open_store, queries, schema, urls, waiting

ROOT = Path(__file__).parents[2]


def stamp(url: str, revision: str) -> None:
    with open_store(url) as store, store.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})


def test_a_database_is_made_by_the_migrations_on_first_use(empty_url):
    with open_store(empty_url) as store:
        save(store)
    with open_store(empty_url, create=False, read_only=True) as store:
        assert queries.latest(store) == 1


def test_a_database_that_is_opened_late_is_made_when_it_is_first_used(empty_url, tmp_path):
    open_store(empty_url, late=True).close()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StoreError, match=r"there is no database at|holds no tables of tracker yet"):
        open_store(empty_url, create=False)
    with open_store(empty_url, late=True) as store:
        assert len(queries.runs(store).frame) == 0
        save(store)
    with open_store(empty_url, late=True) as store:
        assert store.is_made
        assert queries.latest(store) == 1


def test_a_database_that_cannot_be_made_late_says_so_at_once(tmp_path):
    with pytest.raises(StoreError, match=r"there is no folder .*gone; make it"):
        open_store(str(tmp_path / "gone" / "a.db"), late=True)
    (tmp_path / "notes.txt").write_text("to do: " * 20)
    with pytest.raises(StoreError, match=r"notes.txt: it is not a SQLite database"):
        open_store(str(tmp_path / "notes.txt"), late=True)


def test_a_path_is_a_sqlite_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_store("odd name%20?.db") as store:
        save(store)
        assert store.dialect == "sqlite"
    with open_store(str(tmp_path / "odd name%20?.db"), read_only=True) as store:
        assert queries.latest(store) == 1


def test_sqlite_is_set_up_for_readers_beside_a_writer(tmp_path):
    open_store(str(tmp_path / "a.db")).close()
    with open_store(str(tmp_path / "a.db")) as store, store.connect() as connection:
        pragma = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "foreign_keys", "synchronous", "busy_timeout")
        }
        wait = 600_000
        assert pragma == {"journal_mode": "wal", "foreign_keys": 1, "synchronous": 1, "busy_timeout": wait}


def test_only_a_writer_of_sqlite_holds_many_pages(tmp_path):
    with open_store(str(tmp_path / "a.db")) as store:
        store.engine.dispose()
        for block, holds_many in ((store.connect(), False), (store.begin(), True)):
            with block as connection:
                pages = connection.exec_driver_sql("PRAGMA cache_size").scalar_one()
                assert (pages == -connect._CACHE_KIB) == holds_many


def test_a_reader_does_not_wait_for_a_writer(store):
    save(store)
    with store.begin() as writing:
        writing.execute(text("UPDATE run SET note = 'changing'"))
        assert queries.runs(store).frame["note"].isna().all()


def test_a_store_in_memory_opens_fast_and_is_its_own():
    open_store("sqlite://").close()
    started = time.perf_counter()
    with open_store("sqlite://") as one, open_store("sqlite://") as other:
        assert time.perf_counter() - started < 1
        save(one)
        assert count_rows(other) == {}


def test_a_stamped_database_opens_without_alembic_and_sqlmodel(database_url):
    import subprocess
    import sys

    code = (
        "import sys; from tracker.store import open_store; open_store(sys.argv[1]).close();"
        "print([name for name in ('alembic', 'sqlmodel', 'pandas') if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, database_url]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_newer_database_names_both_and_the_remedy(database_url):
    stamp(database_url, "0099")
    for read_only in (False, True):
        with pytest.raises(StoreError) as error:
            open_store(database_url, read_only=read_only)
        assert str(error.value).endswith(
            f"is at schema 0099, newer than this tracker, which knows up to {schema.SCHEMA_HEAD}; "
            "upgrade tracker: pip install . in a clone of it, or pip install FILE.whl"
        )


def test_a_writer_stops_when_its_database_is_upgraded_beside_it_by_a_newer_program(store, database_url):
    """It would write rows that the newer program takes for its own kind."""
    save(store)
    stamp(database_url, "0099")
    before = count_rows(store)
    with pytest.raises(NewerStoreError, match="is at schema 0099, newer than this tracker, which knows up to"):
        save(store)
    assert count_rows(store) == before, "and it may still read"


def test_an_upgrade_waits_for_who_writes_and_who_writes_for_an_upgrade(store, database_url, monkeypatch):
    steps, is_upgrading, goes_on = [], Event(), Event()

    def upgrade(connection):
        steps.append("upgrade")
        is_upgrading.set()
        assert goes_on.wait(20)
        connection.execute(text("UPDATE alembic_version SET version_num = '0099'"))

    monkeypatch.setattr(schema, "upgrade", upgrade)
    monkeypatch.setattr(schema, "needs_upgrade", lambda found, *_, **__: found != "0099")
    with ThreadPoolExecutor(2) as pool:
        with store.begin() as writing:
            upgraded = pool.submit(connect.upgrade, database_url)
            assert not is_upgrading.wait(0.2)
            writing.execute(text("INSERT INTO workload (name) VALUES ('written before')"))
            steps.append("written")
        assert is_upgrading.wait(20)
        monkeypatch.undo()
        late = pool.submit(save, store)
        with pytest.raises(TimeoutError):
            late.result(0.2)
        goes_on.set()
        upgraded.result(20)
        with pytest.raises(NewerStoreError):
            late.result(20)
    assert steps == ["written", "upgrade"]


def test_an_older_database_is_upgraded_to_write_and_refused_to_read(database_url, monkeypatch):
    head = schema.SCHEMA_HEAD
    following = f"{int(head) + 1:04}"
    monkeypatch.setattr(schema, "SCHEMA_HEAD", following)
    with pytest.raises(
        StoreError,
        match=f"schema {head}, older than {following}, which this tracker reads; bring it up to date with tracker db "
        f"upgrade",
    ):
        open_store(database_url, read_only=True)
    ran = []
    monkeypatch.setattr(schema, "upgrade", lambda connection: ran.append(connection.in_transaction()))
    open_store(database_url).close()
    assert ran == [True]
    assert connect.upgrade(database_url) == (head, following)


@pytest.mark.parametrize("create", [True, False])
def test_a_database_of_another_program_is_not_touched(empty_url, create):
    engine = connect.open_engine(empty_url, migrates=True)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE run (id INTEGER)"))
    with pytest.raises(StoreError, match="holds tables of another program; name another database with --db"):
        open_store(empty_url, create=create)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('ab12cd34ef56')"))
    with pytest.raises(StoreError, match="holds tables of another program"):
        open_store(empty_url, create=create)
    engine.dispose()


def test_a_database_without_tables_is_not_filled_to_read(empty_url):
    if empty_url.startswith("sqlite"):
        Path(empty_url.removeprefix("sqlite:///")).touch()
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(
            StoreError, match="holds no tables of tracker yet; an ingest makes them: tracker ingest PATH"
        ):
            open_store(empty_url, **options)


@pytest.mark.parametrize("options", [{"create": False}, {"read_only": True}])
def test_a_missing_file_is_not_made_to_read(tmp_path, options):
    with pytest.raises(StoreError, match=r"there is no database at .*a.db; an ingest makes it: tracker ingest PATH"):
        open_store(str(tmp_path / "a.db"), **options)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_database_says_so(tmp_path):
    (tmp_path / "notes.txt").write_text("to do: " * 20)
    with pytest.raises(StoreError, match=r"notes.txt: it is not a SQLite database .*; name another"):
        open_store(str(tmp_path / "notes.txt"))
    with pytest.raises(StoreError, match="is a folder, not a database"):
        open_store(str(tmp_path))
    with pytest.raises(StoreError, match=r"a.db: there is no folder .*missing; make it"):
        open_store(str(tmp_path / "missing" / "a.db"))
    assert (tmp_path / "notes.txt").read_text() == "to do: " * 20


LOCKED = """
import fcntl, sys
with open(sys.argv[1], "rb+") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
    except OSError:
        print("locked")
    else:
        print("free")
"""
"""Whether another process may take the bytes that SQLite's readers share, as the last one who closes a database does:
it then puts the log into the file and removes it, whoever still reads it.
"""


def test_a_store_that_is_opened_beside_another_leaves_the_lock_of_that(tmp_path):
    """Who closes a file that was opened by other means than SQLite's gives up all locks of the process on it."""
    path = tmp_path / "a.db"
    with open_store(str(path)) as store, store.connect() as connection:
        connection.execute(text("SELECT COUNT(*) FROM run"))
        for read_only in (True, False):
            open_store(str(path), read_only=read_only).close()
        words = [sys.executable, "-c", LOCKED, str(path)]
        assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "locked\n"


def test_a_damaged_database_says_so(tmp_path):
    path = tmp_path / "a.db"
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    with pytest.raises(StoreError, match=r"a.db: (the file is damaged|it is not a SQLite database)"):
        open_store(str(path))


@pytest.mark.skipif(not hasattr(os, "seteuid") or os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_read_only_database_can_be_read_and_says_so_when_written(what):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        with open_store(str(path)) as store:
            save(store)
        os.chmod(folder, 0o755 if what == "folder" else 0o777)
        os.chmod(path, 0o666 if what == "folder" else 0o644)
        os.seteuid(65534)
        try:
            with pytest.raises(StoreError, match=r"a.db is read-only, or its folder is; make the file and its folder"):
                open_store(str(path))
            with open_store(str(path), read_only=True) as store:
                assert queries.latest(store) == 1
        finally:
            os.seteuid(0)


def test_a_store_opened_to_read_refuses_to_write(database_url):
    with open_store(database_url, read_only=True) as store:
        with pytest.raises(StoreError, match="is open for reading only"), store.begin():
            pass
        with pytest.raises(StoreError, match="it is read-only"), store.connect() as connection:
            connection.execute(text("DELETE FROM run"))


def setting(connection, name):
    return connection.execute(text(f"SHOW {name}")).scalar_one()


def test_settings_of_postgres_hold_for_a_transaction_and_need_no_options_at_the_start(
    postgres_server, request, monkeypatch
):
    """PgBouncer refuses those, and lends a session to several clients, one after the other."""
    url = postgres_server.migrated_database()
    request.addfinalizer(lambda: postgres_server.drop(url))
    asked, connect_as = [], psycopg.Connection.connect
    monkeypatch.setattr("psycopg.connect", lambda *words, **named: asked.append(named) or connect_as(*words, **named))
    with open_store(url) as store, open_store(url, read_only=True) as reading:
        with store.begin() as connection:
            names = ("lock_timeout", "transaction_read_only")
            assert [setting(connection, name) for name in names] == ["10min", "off"]
            raw = connection.connection.dbapi_connection
        assert raw.execute("SHOW lock_timeout").fetchone() == ("0",), "the next one of the session finds nothing of it"
        with reading.connect() as connection:
            assert setting(connection, "transaction_read_only") == "on"
    assert len(asked) >= 2
    assert [named for named in asked if "options" in named] == []


def test_what_the_url_says_of_locks_counts(postgres_server, request):
    url = postgres_server.migrated_database()
    request.addfinalizer(lambda: postgres_server.drop(url))
    joint = "&" if "?" in url else "?"
    own = f"{url}{joint}options=-c%20lock_timeout%3D7s&options=-c%20work_mem%3D5MB"
    with open_store(own) as store, store.begin() as connection:
        assert (setting(connection, "lock_timeout"), setting(connection, "work_mem")) == ("7s", "5MB")


def test_a_locked_database_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(waiting.Patience, "seconds", 0.02)
    path = tmp_path / "a.db"
    with open_store(str(path)) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another process keeps it locked"):
            save(store)
        other.close()


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg", "postgresql+psycopg2"])
def test_a_server_that_is_not_there_is_one_line_without_the_password(scheme):
    with pytest.raises(StoreError) as error:
        open_store(f"{scheme}://me:s3cr3t@127.0.0.1:1/profiles")
    message = str(error.value)
    assert message.startswith("postgresql://me:***@127.0.0.1:1/profiles: the server cannot be reached (")
    assert "s3cr3t" not in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://127.0.0.1:1/db?user=me&password=s3cr3t&sslpassword=s3cr3t2",
        "postgresql://me:s3cr3t@127.0.0.1:1/db?password=s3cr3t2",
        "postgresql://127.0.0.1:1/db?password=s3cr3t&password=s3cr3t2&options=-c%20a=s3cr3t2",
    ],
)
def test_a_password_in_the_query_is_not_shown(url):
    with connect.Store(connect.open_engine(url), urls.parse_url(url)) as unreachable:
        assert unreachable.url in ("postgresql://127.0.0.1:1/db", "postgresql://me:***@127.0.0.1:1/db")
        with pytest.raises(StoreError, match="ends here") as error, unreachable._explained():
            raise psycopg.OperationalError("it has s3cr3t2, s3cr3t and ends here")
    assert str(error.value) == f"{unreachable.url}: the server cannot be reached (it has ***, *** and ends here); " + (
        "check that it is up, and the host, port, user and database of the URL"
    )


def test_a_server_that_only_the_query_names_is_named():
    """As by the folder of its socket: else two servers of one machine have one name."""
    names = {
        "postgresql:///db?host=/run/a": "postgresql:///db?host=/run/a",
        "postgresql://me:s3cr3t@/db?sslmode=disable&port=5433&host=/run/b": "postgresql://me:***@/db?host=/run/b&port=5433",
        "postgresql:///db?host=one:5432&host=two:5433": "postgresql:///db?host=one:5432&host=two:5433",
        "postgresql://h:1/db?application_name=ci": "postgresql://h:1/db",
    }
    assert {text: urls.name_of(urls.parse_url(text)) for text in names} == names


def test_a_database_that_the_server_does_not_have_is_named(postgres_server):
    with pytest.raises(StoreError, match=r"cannot be reached|no such database"):
        open_store(postgres_server.url("nowhere"))


@pytest.mark.parametrize(
    "url",
    [
        "mysql://me:s3cr3t@host/db", "postgresql://me:s3cr3t@host:port/db", "://s3cr3t",
        "me:s3cr3t@host/db", "postgresql:me:s3cr3t@host", "postgresql:/me:s3cr3t@host/db", "/etc/me:s3cr3t@host/db",
        "postgresql://me:a@s3cr3t@127.0.0.1:1/db",
    ],
)  # fmt: skip
def test_a_url_that_is_none_does_not_show_its_password(url):
    with pytest.raises(StoreError) as error:
        open_store(url)
    assert "s3cr3t" not in str(error.value)
    assert "write " in str(error.value)


def test_an_option_that_libpq_does_not_know_is_one_line():
    with pytest.raises(StoreError, match="the database URL has an unknown option foo; ") as error:
        open_store("postgresql://me:s3cr3t@127.0.0.1:1/db?foo=1")
    assert "s3cr3t" not in str(error.value)


def test_the_home_of_nobody_is_a_name_like_any_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert urls.parse_url("~nobody-here/t.db").database == str(tmp_path / "~nobody-here" / "t.db")


@pytest.fixture
def as_reader(postgres_server):
    """The URL of the schema of a team in a database with tables, for a user who may log in and nothing else; and the
    statements of its owner.
    """
    url = postgres_server.empty_database()
    # a role is of the whole server, where other processes run tests
    reader = f"reader_{uuid4().hex}"
    owner = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")

    def execute(statement):
        with owner.connect() as connection:
            connection.execute(text(statement.replace("READER", reader)))

    execute("CREATE ROLE READER LOGIN")
    execute("CREATE SCHEMA team_a")
    of_team = f"{url}&options=-csearch_path%3Dteam_a"
    open_store(of_team).close()
    yield of_team.replace("//postgres:@", f"//{reader}:@"), execute
    execute("DROP OWNED BY READER")
    execute("DROP ROLE READER")
    owner.dispose()
    postgres_server.drop(url)


@pytest.mark.postgres
def test_a_reader_is_told_what_a_reader_needs(as_reader):
    url, execute = as_reader
    with pytest.raises(StoreError, match="may not look into the schema team_a") as refused:
        open_store(url, create=False)
    assert refused.value.remedy == "ask its owner for USAGE on the schema and SELECT on all tables in it"
    execute("GRANT USAGE ON SCHEMA team_a TO READER")
    with pytest.raises(StoreError, match="may not read that") as refused:
        open_store(url, create=False)
    assert refused.value.remedy == "ask its owner for USAGE on the schema and SELECT on all tables in it"
    execute("GRANT SELECT ON ALL TABLES IN SCHEMA team_a TO READER")
    with open_store(url, create=False) as store:
        assert len(queries.runs(store)) == 0
        with pytest.raises(StoreError, match="may not do that") as refused, store.begin() as connection:
            connection.execute(text("DELETE FROM run"))
    assert refused.value.remedy == "ask its owner for the right to create and write tables in its schema"


@pytest.mark.postgres
def test_messages_name_the_schema_of_a_team(as_reader):
    url, execute = as_reader
    execute("GRANT USAGE ON SCHEMA team_a TO READER")
    execute("GRANT SELECT ON ALL TABLES IN SCHEMA team_a TO READER")
    with open_store(url, create=False) as store:
        assert store.url.endswith("&options=-csearch_path%3Dteam_a")


@pytest.mark.postgres
def test_a_schema_that_is_closed_stops_no_writer_of_another(postgres_server):
    """Revoking all on public is a usual hardening; the default path has it behind the schema of the user."""
    writer = f"writer_{uuid4().hex}"
    url = postgres_server.empty_database()
    owner = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with owner.connect() as connection:
        for statement in (
            f"CREATE ROLE {writer} LOGIN", "REVOKE ALL ON SCHEMA public FROM PUBLIC",
            f"CREATE SCHEMA {writer} AUTHORIZATION {writer}",
        ):  # fmt: skip
            connection.execute(text(statement))
    try:
        with open_store(url.replace("//postgres:@", f"//{writer}:@")) as store:
            assert len(queries.runs(store)) == 0
    finally:
        with owner.connect() as connection:
            connection.execute(text(f"DROP OWNED BY {writer}"))
            connection.execute(text(f"DROP ROLE {writer}"))
        owner.dispose()
        postgres_server.drop(url)
