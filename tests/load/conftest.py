from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.test_intake import write_trace
from tracker.store import health

ROOT = Path(__file__).parents[2]


class World:
    """Profiles on disk, and processes that ingest them; see ingester.py."""

    def __init__(self, folder: Path, process: subprocess.Popen[str]) -> None:
        self.folder = folder
        self.process = process

    def runs(self, count: int, *, versions: int = 5) -> list[tuple[list[str], str]]:
        """Profiles of one rank, each a run, one version after the other: (paths, version) of each ingest.

        The last versions are slower, and the runs of each differ a little.
        """
        made = []
        for number in range(count):
            path, version = self.folder / f"run{number}.pt.trace.json", number * versions // count
            slower = 30 if version > versions // 2 else 0
            write_trace(path, kernel_us=100 + number % 7 % 3 + slower, start_us=number * 10_000_000)
            made.append(([str(path)], f"v{version}"))
        return made

    def ranks(self, count: int) -> list[tuple[list[str], str]]:
        """The ranks of one run, each a file."""
        paths = [
            write_trace(self.folder / f"rank{rank}.pt.trace.json", rank=rank, world_size=count, kernel_us=100 + rank)
            for rank in range(count)
        ]
        return [([str(path)], "v1") for path in paths]

    def pairs(self, count: int) -> list[tuple[list[str], str]]:
        """The two ranks of each of so many runs, which communicate, one after the other."""
        made = []
        for number in range(count):
            for rank in range(2):
                path = self.folder / f"run{number}_rank{rank}.pt.trace.json"
                start_us = number * 10_000_000
                write_trace(path, rank=rank, kernel_us=100 + number % 3, start_us=start_us, all_reduce_us=50)
                made.append(([str(path)], f"v{number // 3}"))
        return made

    def start(self, database: str, shares: Sequence[object], kill_after_s: Sequence[float] | None = None) -> None:
        """One process per share; `kill_after_s`: when each is killed."""
        asked = {"database": database, "shares": shares, "kill_after_s": kill_after_s}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()

    def ended(self) -> list[str]:
        """How each process ended, once all have."""
        return json.loads(self.process.stdout.readline())

    def play(self, database: str, shares: Sequence[object], kill_after_s: Sequence[float] | None = None) -> list[str]:
        """`start`, and how it `ended`."""
        self.start(database, shares, kill_after_s)
        return self.ended()


@pytest.fixture
def world(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.load.ingester"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    folder = tmp_path / "profiles"
    folder.mkdir()
    yield World(folder, process)
    process.stdin.close()
    assert process.wait(60) == 0


def shared(work: Sequence[object], processes: int) -> list[Sequence[object]]:
    """The work dealt out to processes."""
    return [work[number::processes] for number in range(processes)]


def unwhole(store) -> list[str]:
    """What is not whole of the runs that a reader sees: every rank has its op, kernel and step, every run its samples.

    One state of the database, read in one question; empty where all is well.
    """
    question = """
        SELECT r.id,
            (SELECT COUNT(*) FROM capture AS c WHERE c.run_id = r.id) AS captures,
            (SELECT COUNT(*) FROM source AS s WHERE s.run_id = r.id) AS sources,
            (SELECT COUNT(*) FROM step AS t WHERE t.run_id = r.id) AS steps,
            (SELECT COUNT(*) FROM op AS o WHERE o.run_id = r.id) AS ops,
            (SELECT COUNT(*) FROM kernel AS k WHERE k.run_id = r.id) AS kernels,
            (SELECT COUNT(*) FROM sample AS m WHERE m.run_id = r.id) AS samples
        FROM run AS r
    """
    found = rows(store, question)
    return [
        str(row)
        for row in found
        if not (row.captures and row.captures == row.sources == row.steps == row.ops == row.kernels and row.samples)
    ]


def rows(store, question):
    """The answer of the database."""
    with store.connect() as connection:
        return connection.execute(text(question)).all()


def sound(store) -> bool:
    """Whether `tracker db check` has nothing to say, and every run is whole."""
    assert health.check(store) == []
    assert unwhole(store) == []
    return True
