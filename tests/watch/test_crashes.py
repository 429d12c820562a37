"""A watcher that is killed at any step of a round is followed by one that finishes it, and nothing is there twice."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.watch.world import SETTLED, World
from tracker import judgement
from tracker.store import leases, open_store, queries

ROOT = Path(__file__).parents[2]


@pytest.fixture
def crasher():
    """Plays a round and says how it ended; see crasher.py."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.watch.crasher"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def play(*given) -> str:
        process.stdin.write(json.dumps([str(each) if isinstance(each, Path) else each for each in given]) + "\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    yield play
    process.stdin.close()
    assert process.wait(60) == 0


@pytest.fixture
def copied(request, database_url, tmp_path):
    """Copies of the database of this test, one after the other."""

    def copy(number: int) -> str:
        if database_url.startswith("sqlite"):
            path = tmp_path / f"{number}.db"
            shutil.copy(tmp_path / "tracker.db", path)
            return f"sqlite:///{path}"
        server = request.getfixturevalue("postgres_server")
        server.execute(f"CREATE DATABASE crash_{number} TEMPLATE {server_name(database_url)} STRATEGY FILE_COPY")
        return server.url(f"crash_{number}")

    def drop(url: str) -> None:
        if not url.startswith("sqlite"):
            request.getfixturevalue("postgres_server").drop(url)

    return copy, drop


def server_name(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


def prepared(database_url: str, folder: Path) -> int:
    """Three profiles that are ready in the round to come; its clock."""
    with open_store(database_url, create=False) as store:
        world = World(store, folder)
        world.profile("gpt/v1/a.json")
        world.profile("gpt/v2/run/rank0.json", rank=0)
        world.profile("gpt/v2/run/rank1.json", rank=1)
        world.broken("gpt/v3/c.json")
        assert set(world.look().values()) == {"waiting"}
        with store.connect() as connection:
            if store.dialect == "sqlite":
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        return world.now_ns + SETTLED


def check(url: str, folder: Path, sent: Path) -> None:
    """All of the round is there, once."""
    with open_store(url, create=False) as store:
        world = World(store, folder)
        assert world.states() == {"gpt/v1/a.json": "ingested", "gpt/v2/run": "ingested", "gpt/v3/c.json": "quarantined"}
        assert world.runs() == [("gpt", "v1"), ("gpt", "v2")]
        assert queries.runs(store)["ranks"].tolist() == [2, 1]
        assert judgement.update(store, judgement.lines_of(store)) == 0
    keys = Counter(sent.read_text().split())
    assert len(keys) == 1
    assert 1 <= keys.total() <= 2  # at least once; twice where it died between the sending and the note of it


def play_all(crasher, copied, database_url, tmp_path, *, every: int) -> int:
    copy, drop = copied
    folder = tmp_path / "profiles"
    now = prepared(database_url, folder)
    step = 0
    while True:
        url, sent = copy(step), tmp_path / f"sent{step}"
        ended = crasher(url, folder, now, sent, step)
        if ended == "killed":
            after = now + 10 * leases.LIFETIME_NS  # whatever it held is free by now
            assert crasher(url, folder, after, sent, -1) == "done", step
        else:
            assert ended == "done", step
        check(url, folder, sent)
        drop(url)
        if ended == "done":
            return step
        step += every


def test_a_round_survives_being_killed_at_some_steps(crasher, copied, database_url, tmp_path):
    assert play_all(crasher, copied, database_url, tmp_path, every=11) > 100


@pytest.mark.slow
def test_a_round_survives_being_killed_at_every_step(crasher, copied, database_url, tmp_path):
    assert play_all(crasher, copied, database_url, tmp_path, every=1) > 100
