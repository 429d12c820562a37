"""Who waits for another writer says so; who may only read a database keeps no writer waiting."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.factories import save
from tests.store.test_open import ROOT
from tracker.errors import StoreError
from tracker.store import open_store, queries
from tracker.store.waiting import Patience
from tracker.store.write_queue import turn

NOBODY = 65_534
QUEUES = ("writers", "next", "judges")
LOCKED = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("mine", flush=True)
time.sleep(60)
"""
FLOCKED = """
import fcntl, os, sys, time
os.setuid(int(sys.argv[2]))
try:
    fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_SH)
    print("mine", flush=True)
except OSError as error:
    print(error.strerror, flush=True)
time.sleep(60)
"""
QUEUED = """
import os, sys
from pathlib import Path
from tracker.store.write_queue import turn
os.setuid(int(sys.argv[2]))
with turn(Path(sys.argv[1]), "writers", 60) as came:
    print("mine" if came else "late", flush=True)
"""
LINE = (
    r"tracker: waiting for (?P<what>.+) of {database} since \d\d:\d\d:\d\d, until \d\d:\d\d:\d\d UTC at most"
    r"(; process (?P<process>\d+) of \S+ has it)?; --wait SECONDS sets how long"
)


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "a.db"
    open_store(str(path)).close()
    return path


@pytest.fixture
def lines(monkeypatch):
    """What is said of waiting, after a twentieth of a second."""
    found = []
    monkeypatch.setattr(Patience, "say", found.append)
    monkeypatch.setattr(Patience, "said_after_s", 0.05)
    return found


@pytest.fixture
def started():
    """Starts a process that holds something, and reads its first line."""
    processes = []

    def start(program, *words):
        command = [sys.executable, "-c", program, *map(str, words)]
        with_package = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=with_package)
        processes.append(process)
        return process, process.stdout.readline().strip()

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


def said(lines, database):
    """What the only line says is waited for, and which process has it."""
    (line,) = lines
    found = re.fullmatch(LINE.format(database=re.escape(str(database))), line)
    assert found, line
    return found["what"], found["process"]


def holder(process):
    return str(process.pid) if Path("/proc/locks").exists() else None


@pytest.mark.parametrize("with_log", [True, False])
def test_who_waits_for_the_lock_of_sqlite_says_who_has_it(tmp_path, database, lines, started, monkeypatch, with_log):
    with sqlite3.connect(database) as connection:
        connection.execute(f"PRAGMA journal_mode = {'WAL' if with_log else 'DELETE'}")
    connection.close()
    monkeypatch.setattr(Patience, "seconds", 0.2)
    process, _ = started(LOCKED, database)
    with open_store(str(database)) as store:
        began = time.monotonic()
        with pytest.raises(StoreError, match="another process keeps it locked"):
            save(store)
        assert 0.2 <= time.monotonic() - began < 1.2
        assert said(lines, database)[0] == "the lock of SQLite"
        assert said(lines, database)[1] in ((holder(process),) if with_log else (holder(process), None))
        process.kill()
        process.wait()
        save(store)
        assert queries.latest(store) == 1
    assert len(lines) == 1


def test_who_waits_for_a_turn_says_who_has_it(database, lines, started, monkeypatch):
    monkeypatch.setattr(Patience, "seconds", 0.2)
    process, line = started(FLOCKED, f"{database}-writers", os.getuid())
    assert line == "mine"
    with open_store(str(database)) as store:
        save(store)
        assert queries.latest(store) == 1
    assert said(lines, database) == ("the writers before this one", holder(process))


def test_who_does_not_wait_long_says_nothing(database, lines):
    with open_store(str(database)) as store:
        save(store)
    assert lines == []


@pytest.fixture
def shared():
    """A database in a folder that all users can look into."""
    if os.geteuid() != 0:
        pytest.skip("needs two users")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    open_store(str(folder / "a.db")).close()
    yield folder / "a.db"
    shutil.rmtree(folder)


def test_who_may_only_read_keeps_no_writer_waiting(shared, lines, started):
    """It locks what it can open: the database, of which SQLite has locks of another kind, and none of the queues."""
    for of in QUEUES:
        with turn(shared, of, 1):
            pass
        # as they were made until now
        Path(f"{shared}-{of}").chmod(0o644)
        with turn(shared, of, 1):
            pass
    answers = [started(FLOCKED, f"{shared}{end}", NOBODY)[1] for end in ("", *(f"-{of}" for of in QUEUES))]
    assert answers == ["mine", "Permission denied", "Permission denied", "Permission denied"]
    began = time.monotonic()
    with open_store(str(shared)) as store:
        save(store)
    assert time.monotonic() - began < 1
    assert lines == []


def test_a_writer_who_cannot_open_a_queue_goes_without_a_turn(shared, started):
    """Its file is of before others could write the database, and of another user, who alone can mend its mode."""
    with turn(shared, "writers", 1):
        shared.chmod(0o666)
        assert started(QUEUED, shared, NOBODY)[1] == "mine"
