"""Many processes ingest at once: nothing is lost, nothing doubled, nobody who reads waits."""

from __future__ import annotations

from threading import Event, Thread

import pytest

from tests.load.conftest import shared, sound, unwhole
from tracker import compare
from tracker.advice import stored
from tracker.errors import UsageError
from tracker.store import open_store, queries

PATIENCE_MS = {"sqlite": 100, "postgresql": 5000}
"""How long a reader waits for a lock before it fails. On Postgres a new partition keeps readers out for a moment."""


class Reader(Thread):
    """Lists and compares runs until it is told to stop, each time as a command of its own; to wait is a problem."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.enough = Event()
        self.seen: list[int] = []
        self.halves: list[str] = []
        self.diffs = 0
        self.problem: Exception | None = None

    def run(self) -> None:
        try:
            while not self.enough.wait(1):  # the machine is for the writers
                self.look()
            self.look()  # at the end there is something to compare
        except Exception as error:  # noqa: BLE001 told to the test, which fails
            self.problem = error

    def look(self) -> None:
        with open_store(self.url, create=False, read_only=True) as store:
            self.seen.append(len(queries.runs(store).frame))
            self.halves += unwhole(store)
            try:
                compare.diff(store, "v0", "v1")
                self.diffs += 1
            except UsageError:
                assert self.diffs == 0  # not there yet; what was there once stays

    def stop(self) -> None:
        self.enough.set()
        self.join()


@pytest.fixture
def impatient(store, monkeypatch):
    """This process, which only reads, hardly waits for locks; those that write wait as ever."""
    monkeypatch.setattr("tracker.store.waiting.Patience.seconds", PATIENCE_MS[store.dialect] / 1000)


def ingest_at_once(world, store, url, *, processes, runs):
    work = world.runs(runs)
    reader = Reader(url)
    reader.start()
    ends = world.play(url, shared(work, processes))
    reader.stop()
    assert ends == ["done"] * processes
    assert reader.problem is None
    assert reader.halves == []
    assert reader.seen == sorted(reader.seen)
    assert reader.diffs > 0
    assert len(queries.runs(store).frame) == runs
    assert queries.versions(store).frame["runs"].tolist() == [runs // 5] * 5
    assert sound(store)


def test_runs_of_many_processes_are_all_there_once_and_readers_never_wait(world, store, database_url, impatient):
    ingest_at_once(world, store, database_url, processes=4, runs=20)


@pytest.mark.slow
def test_200_runs_of_16_processes(world, store, database_url, impatient):
    ingest_at_once(world, store, database_url, processes=16, runs=200)


@pytest.mark.slow
def test_advice_of_100_runs_whose_two_ranks_come_at_once(world, store, database_url):
    """Who advises on a run, while its other rank comes, reads one state of it; the advice that stays is on both."""
    assert world.play(database_url, shared(world.pairs(100), 16)) == ["done"] * 16
    runs = queries.runs(store).frame
    assert runs["ranks"].tolist() == [2] * 100
    run_ids = runs["run_id"].tolist()
    advised = stored.of_runs(store, run_ids)
    assert len(advised) == 100
    stored.keep(store, run_ids, again=run_ids)
    assert advised == stored.of_runs(store, run_ids)


def test_the_same_files_from_two_processes_at_the_same_time_are_one_run_each(world, store, database_url):
    work = world.runs(5)
    assert world.play(database_url, [work, work]) == ["done", "done"]
    assert world.play(database_url, [work]) == ["done"]
    assert len(queries.runs(store).frame) == 5
    assert sound(store)
