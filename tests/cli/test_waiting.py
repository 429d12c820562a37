"""Commands that write wait for others that do, and say so: no longer than `--wait`."""

from __future__ import annotations

import sqlite3
import time

import pytest

from tests.cli.support import WORKLOAD
from tests.cli.test_help import WALKED
from tracker.cli import options
from tracker.store.waiting import Patience

PIN = ("versions", "pin", "v01", "--workload", WORKLOAD)


@pytest.fixture
def locked(db):
    """Another program is in the middle of a write."""
    connection = sqlite3.connect(db, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.close()


@pytest.mark.parametrize(("seconds", "lines"), [("0", 1), ("1", 2)])
def test_a_command_waits_as_long_as_it_may(tracker, db, locked, monkeypatch, seconds, lines):
    monkeypatch.setattr(Patience, "said_after_s", 0.05)
    began = time.monotonic()
    done = tracker(*PIN, "--wait", seconds, "--db", db)
    assert time.monotonic() - began < int(seconds) + 1
    assert (done.code, done.err.count("\n")) == (2, lines), done
    assert done.err.splitlines()[-1].startswith(f"tracker: {db}: another process keeps it locked")
    if lines == 2:
        assert done.err.startswith(f"tracker: waiting for the lock of SQLite of {db} since ")
    locked.rollback()
    assert tracker(*PIN, "--db", db).code == 0


def test_a_foreign_write_is_said_within_3_s(tracker, db, locked):
    """Two seconds of the test are those after which it is said; the third is the end of the wait."""
    done = tracker(*PIN, "--wait", "3", "--db", db)
    assert done.err.startswith("tracker: waiting for the lock of SQLite"), done


@pytest.mark.parametrize("seconds", ["-1", "soon", "1e9", ""])
def test_a_wait_that_is_none_is_refused(tracker, db, seconds):
    done = tracker(*PIN, "--wait", seconds, "--db", db)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "--wait" in done.err


def test_every_command_that_edits_may_be_told_how_long_to_wait():
    takes = {
        name: {" ".join(path[1:]) for path, command in WALKED for each in command.params if name in each.opts}
        for name in ("--wait", "--reason", "--db")
    }
    assert takes["--wait"] == set(options._WRITES)
    assert takes["--reason"] & takes["--db"] <= takes["--wait"]
