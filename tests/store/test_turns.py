"""Turns at a SQLite file: in their order, none for those who died, and an end to waiting."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.factories import save
from tests.store.test_open import ROOT
from tracker.errors import StoreError
from tracker.store import open_store, queries
from tracker.store.turns import TooLong, turn

HOLD = """
import sys, time
from pathlib import Path
from tracker.store.turns import turn
with turn(Path(sys.argv[1]), 60):
    print("mine", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tracker.db-writers"


@pytest.fixture
def holder(path):
    """A process that has the turn."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "mine\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def waiting(path: Path) -> int:
    """How many locks on the file are waited for, as the kernel sees it."""
    inode = f":{path.stat().st_ino} "
    return sum(" -> " in line and inode in line for line in Path("/proc/locks").read_text().splitlines())


def until(condition) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.005)


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs to see who waits")
def test_who_came_first_goes_first(path):
    order, threads = [], []

    def wait(number):
        with turn(path, 30):
            order.append(number)

    with turn(path, 30):
        for number in range(8):
            threads.append(Thread(target=wait, args=[number]))
            threads[-1].start()
            until(lambda number=number: waiting(path) == number + 1)
    for thread in threads:
        thread.join()
    assert order == list(range(8))


def test_a_turn_that_does_not_come_in_time_is_given_up_and_keeps_nobody_waiting(path, holder):
    with pytest.raises(TooLong), turn(path, 0.05):
        pytest.fail("two at once")
    holder.kill()
    with turn(path, 30):
        pass


def test_a_process_that_is_killed_gives_its_turn_back(path, holder):
    came = Event()

    def wait():
        with turn(path, 30):
            came.set()

    thread = Thread(target=wait)
    thread.start()
    assert not came.wait(0.05)
    holder.send_signal(signal.SIGKILL)
    thread.join()
    assert came.is_set()


def test_a_signal_ends_the_wait_and_leaves_the_queue(path, holder):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt), turn(path, 30):
            pytest.fail("two at once")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    holder.kill()
    with turn(path, 30):
        pass


def test_an_error_within_a_turn_ends_it(path):
    with pytest.raises(ZeroDivisionError), turn(path, 30):
        raise ZeroDivisionError
    with turn(path, 0.05):
        pass


def test_without_a_file_to_lock_nobody_waits(tmp_path):
    for path in (None, tmp_path / "missing" / "tracker.db-writers"):
        with turn(path, 0.05), turn(path, 0.05):
            pass


def test_a_database_under_another_name_has_the_same_queue(tmp_path):
    open_store(str(tmp_path / "a.db")).close()
    (tmp_path / "b.db").symlink_to(tmp_path / "a.db")
    with open_store(str(tmp_path / "a.db")) as one, open_store(str(tmp_path / "b.db")) as other:
        assert one._file == other._file
        save(one)
        assert queries.latest(other) == 1
    assert {name for name in os.listdir(tmp_path) if name.endswith("-writers")} == {"a.db-writers"}


def test_a_writer_at_the_end_of_the_queue_says_what_it_waited_for(tmp_path, monkeypatch):
    database = tmp_path / "a.db"
    open_store(str(database)).close()
    monkeypatch.setattr("tracker.store.connect.BUSY_TIMEOUT_MS", 50)
    with open_store(str(database)) as store, turn(tmp_path / "a.db-writers", 1):
        with pytest.raises(StoreError) as caught:
            save(store)
        assert len(queries.runs(store)) == 0, "who reads waits for nobody"
    assert str(caught.value) == (
        f"{database}: another process keeps it locked (waited 0.05 s in the queue of writers); "
        "try again when that process is done"
    )
