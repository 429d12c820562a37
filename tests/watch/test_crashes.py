"""A watcher that is killed at any step of a round is followed by one that finishes it, and nothing is there twice."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.test_intake import write_trace
from tests.watch.world import SETTLED, World
from tracker.intake import ingest
from tracker.regressions import judgement
from tracker.store import open_store, queries, watchers

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
    """Four profiles that are ready in the round to come; its clock. One of them confirms a regression.

    The kernel of bert takes 600 us in v2, 100 us before; what two runs say is a suspicion, what three do an incident.
    """
    with open_store(database_url, create=False) as store:
        world = World(store, folder)
        for at, (version, kernel_us) in enumerate([("v1", 100)] * 3 + [("v2", 600)] * 2):
            path = write_trace(folder.parent / f"before{at}.json", kernel_us=kernel_us + at, start_us=at * 10**6)
            ingest(store, [path], workload="bert", version=version)
        world.profile("bert/v2/third.json", kernel_us=605, start_us=10**7)
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
        assert world.states() == {
            "bert/v2/third.json": "ingested", "gpt/v1/a.json": "ingested", "gpt/v2/run": "ingested",
            "gpt/v3/c.json": "quarantined",
        }  # fmt: skip
        assert sorted(world.runs()) == [("bert", "v1")] * 3 + [("bert", "v2")] * 3 + [("gpt", "v1"), ("gpt", "v2")]
        assert queries.runs(store, workload="gpt").frame["ranks"].tolist() == [2, 1]
        assert judgement.update(store, judgement.tracks_of(store)) == 0
    keys = Counter(line.split()[0] for line in sent.read_text().splitlines())
    assert sorted(key.split(":")[-2] for key in keys) == ["opened", "quarantined"]
    # at least once; one of them twice where it died between the sending and the note of it
    assert 2 <= keys.total() <= 3


def play_all(crasher, copied, database_url, tmp_path, *, every: int) -> int:
    """Kill a watcher at each `every`th step of a round, and at those around each message; how many steps there are."""
    copy, drop = copied
    folder = tmp_path / "profiles"
    now = prepared(database_url, folder)

    def play(number: int, step: int) -> Path:
        url, sent = copy(number), tmp_path / f"sent{number}"
        if step >= 0:
            assert crasher(url, folder, now, sent, step) == "killed", step
        after = now + 10 * watchers.LEASE_LIFETIME_NS * (step >= 0)  # whatever it held is free by now
        assert crasher(url, folder, after, sent, -1) == "done", step
        check(url, folder, sent)
        drop(url)
        return sent

    sent = play(0, -1)
    count = int(Path(f"{sent}.steps").read_text())
    messages = [int(line.split()[1]) for line in sent.read_text().splitlines()]
    around = {step + more for step in messages for more in (-2, -1, 0, 1)}  # claimed, before it, after it, noted
    for number, step in enumerate(sorted({*range(0, count, every), *around}), start=1):
        play(number, step)
    return count


def test_a_round_survives_being_killed_at_some_steps(crasher, copied, database_url, tmp_path):
    assert play_all(crasher, copied, database_url, tmp_path, every=50) > 100


@pytest.mark.slow
def test_a_round_survives_being_killed_at_every_step(crasher, copied, database_url, tmp_path):
    assert play_all(crasher, copied, database_url, tmp_path, every=1) > 100
