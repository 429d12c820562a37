"""A full disk and a lost connection in the middle of an ingest: one line, exit 2, no half run; then all goes well."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import event, text
from sqlalchemy.engine import make_url

from tests.conftest import count_rows
from tests.load.conftest import sound
from tests.test_intake import write_trace
from tracker.errors import StoreError
from tracker.intake import ingest
from tracker.store import captures, open_store, queries

ROOT = Path(__file__).parents[2]


def command(*words, limits=()):
    """`tracker` in a process of its own, with these resource limits."""

    def limit():
        for which, value in limits:
            resource.setrlimit(which, (value, value))

    environ = {**os.environ, "TRACKER_CONFIG": os.devnull}
    environ.pop("TRACKER_DB", None)
    return subprocess.run(
        [sys.executable, "-m", "tracker", *map(str, words)],
        cwd=ROOT, env=environ, capture_output=True, text=True, timeout=60, preexec_fn=limit, check=False,
    )  # fmt: skip


def many_ops(path, count=3000):
    """A trace with more ops, each of another name, than fit a small disk."""
    events = [
        {"ph": "X", "cat": "cpu_op", "name": f"op{number}", "pid": 1, "tid": 1, "ts": number * 10, "dur": 5, "args": {}}
        for number in range(count)
    ]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def test_full_disk_under_a_sqlite_database_is_one_line_and_no_half_run(tmp_path, migrated_sqlite):
    database = tmp_path / "tracker.db"
    database.write_bytes(migrated_sqlite.read_bytes())
    room = database.stat().st_size + 100_000
    trace = many_ops(tmp_path / "a.pt.trace.json")
    words = ("ingest", trace, "--version", "v1", "--workload", "toy", "--db", database)
    done = command(*words, limits=[(resource.RLIMIT_FSIZE, room)])
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    assert str(database) in done.stderr
    assert re.search(r"the disk (is full|cannot be read or written)", done.stderr), "a file may grow no more, or a disk"
    with open_store(str(database)) as store:
        assert count_rows(store) == {}
        assert sound(store)
    assert command(*words).returncode == 0
    assert command("db", "check", "--db", database).returncode == 0


def test_database_that_may_not_grow_says_that_the_disk_is_full(tmp_path, migrated_sqlite):
    database = tmp_path / "tracker.db"
    database.write_bytes(migrated_sqlite.read_bytes())
    trace = many_ops(tmp_path / "a.pt.trace.json")
    with open_store(str(database)) as store:
        pages = database.stat().st_size // 4096
        event.listen(
            store.engine, "connect", lambda connection, _: connection.execute(f"PRAGMA max_page_count = {pages + 20}")
        )
        store.engine.dispose()
        with pytest.raises(StoreError, match=r"the disk is full .*; free some space and run the command again"):
            ingest(store, [trace], version="v1", workload="toy")
        assert count_rows(store) == {}
        assert sound(store)


def test_lost_connection_in_the_middle_is_one_line_and_no_half_run(request, store, database_url, tmp_path, monkeypatch):
    if store.dialect == "sqlite":
        pytest.skip("SQLite has no connection to lose")
    server = request.getfixturevalue("postgres_server")
    trace = write_trace(tmp_path / "a.pt.trace.json")
    load = captures.write_captures

    def lose(connection, placed):
        load(connection, placed)
        number = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        server.execute(f"SELECT pg_terminate_backend({number})")

    monkeypatch.setattr(captures, "write_captures", lose)
    with pytest.raises(StoreError) as caught:
        ingest(store, [trace], version="v1", workload="toy")
    assert caught.value.exit_code == 2
    assert caught.value.remedy
    assert "Traceback" not in str(caught.value)
    monkeypatch.undo()
    assert count_rows(store) == {}
    ingest(store, [trace], version="v1", workload="toy")
    assert len(queries.runs(store).frame) == 1
    assert sound(store)


def test_connection_lost_before_a_transaction_leaves_no_traceback_in_the_log(request, store, caplog):
    if store.dialect == "sqlite":
        pytest.skip("SQLite has no connection to lose")
    server = request.getfixturevalue("postgres_server")
    with store.connect() as connection:
        number = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()

    def begin():
        with store.connect() as connection:  # the one of the pool
            server.execute(f"SELECT pg_terminate_backend({number}, 10000)")  # and wait until it is gone
            connection.execute(text("SELECT 1"))

    with pytest.raises(StoreError, match=r"the server is shutting down or starting \(terminating connection"):
        begin()
    assert [(record.name, record.getMessage()) for record in caplog.records] == []
    with store.connect() as connection:
        assert connection.execute(text("SELECT 1")).scalar_one() == 1


def test_an_interrupt_at_the_begin_of_a_transaction_leaves_no_traceback_in_the_log(store, caplog, monkeypatch):
    """A signal may come while the server is asked to begin; what it answers then, nobody reads."""
    if store.dialect == "sqlite":
        pytest.skip("SQLite has no server")
    plain = psycopg.Cursor.execute

    def interrupted(self, query, *how, **more):
        if str(query).startswith("SET LOCAL"):
            self.connection.pgconn.send_query(b"SELECT 1")
            raise KeyboardInterrupt
        return plain(self, query, *how, **more)

    def begin():
        with store.connect() as connection:
            connection.execute(text("SELECT 1"))

    begin()
    monkeypatch.setattr(psycopg.Cursor, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        begin()
    assert [(record.name, record.getMessage()) for record in caplog.records] == []
    monkeypatch.undo()
    begin()


def test_writer_that_stands_still_is_waited_for_no_longer_than_the_limit(store, database_url, tmp_path, monkeypatch):
    """The limit is minutes; here it is short."""
    monkeypatch.setattr("tracker.store.waiting.Patience.seconds", 0.1)
    with open_store(database_url) as still, open_store(database_url) as other, still.begin() as connection:
        connection.execute(text("INSERT INTO workload (name) VALUES ('toy')"))
        with pytest.raises(
            StoreError, match=r"another process keeps it locked .*; try again when that process is done"
        ):
            ingest(other, [write_trace(tmp_path / "a.pt.trace.json")], version="v1", workload="toy")


def test_server_without_a_free_connection_says_so(request, store, monkeypatch):
    if store.dialect == "sqlite":
        pytest.skip("SQLite has no server")
    server = request.getfixturevalue("postgres_server")
    monkeypatch.setattr("tracker.store.connect.CROWDED_TIMEOUT_S", 0.1)
    server.execute("CREATE ROLE crowd LOGIN CONNECTION LIMIT 0")
    try:
        url = make_url(server.url("postgres")).set(username="crowd").render_as_string(hide_password=False)
        with pytest.raises(StoreError, match=r"the server has no connection left .*; try again later"):
            open_store(url)
    finally:
        server.execute("DROP ROLE crowd")
