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
from sqlalchemy import text

from tests.factories import save
from tests.store.test_open import ROOT
from tracker.store import open_store, queries, watchers
from tracker.store.write_queue import turn

HOLD = """
import sys, time
from pathlib import Path
from tracker.store.write_queue import turn
with turn(Path(sys.argv[1]), "writers", 60):
    print("mine", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "tracker.db"
    path.touch()
    return path


@pytest.fixture
def holder(database):
    """A process that has the turn."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(database)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "mine\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def waiting(database: Path, of: str) -> int:
    """How many wait in a queue, as the kernel sees it."""
    inode = f":{database.with_name(f'{database.name}-{of}').stat().st_ino} "
    return sum(" -> " in line and inode in line for line in Path("/proc/locks").read_text().splitlines())


def until(condition) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.005)


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs to see who waits")
def test_who_came_first_goes_first(database):
    order, threads = [], []

    def wait(number):
        with turn(database, "writers", 30):
            order.append(number)

    with turn(database, "writers", 30):
        for number in range(8):
            threads.append(Thread(target=wait, args=[number]))
            threads[-1].start()
            until(lambda number=number: waiting(database, "writers") == number + 1)
    for thread in threads:
        thread.join()
    assert order == list(range(8))


def test_a_turn_that_does_not_come_in_time_is_given_up_and_keeps_nobody_waiting(database, holder):
    with turn(database, "writers", 0.05) as came:
        assert not came
    holder.kill()
    with turn(database, "writers", 30) as came:
        assert came


def test_a_process_that_is_killed_gives_its_turn_back(database, holder):
    came = Event()

    def wait():
        with turn(database, "writers", 30):
            came.set()

    thread = Thread(target=wait)
    thread.start()
    assert not came.wait(0.05)
    holder.send_signal(signal.SIGKILL)
    thread.join()
    assert came.is_set()


def test_a_signal_ends_the_wait_and_leaves_the_queue(database, holder):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt), turn(database, "writers", 30):
            pytest.fail("two at once")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    holder.kill()
    with turn(database, "writers", 30) as came:
        assert came


def test_an_error_within_a_turn_ends_it(database):
    with pytest.raises(ZeroDivisionError), turn(database, "writers", 30):
        raise ZeroDivisionError
    with turn(database, "writers", 0.05) as came:
        assert came


def test_without_a_file_to_lock_nobody_waits(tmp_path):
    for database in (None, tmp_path / "missing" / "tracker.db"):
        with turn(database, "writers", 30), turn(database, "writers", 30):
            pass


def test_whoever_may_write_the_database_may_queue_up_and_no_reader(database):
    """A second user, where umask 077 hides what the first one makes. A file of before is mended."""
    database.with_name(f"{database.name}-writers").touch(mode=0o644)
    for mode, of_queue, others in ((0o664, 0o660, "next"), (0o600, 0o600, "judges"), (0o644, 0o600, "writers")):
        database.chmod(mode)
        before = os.umask(0o077)
        try:
            with turn(database, others, 1):
                pass
        finally:
            os.umask(before)
        file = database.with_name(f"{database.name}-{others}").stat()
        assert (file.st_mode & 0o777, file.st_gid) == (of_queue, database.stat().st_gid)


def test_a_database_under_another_name_has_the_same_queue(tmp_path):
    open_store(str(tmp_path / "a.db")).close()
    (tmp_path / "b.db").symlink_to(tmp_path / "a.db")
    with open_store(str(tmp_path / "a.db")) as one, open_store(str(tmp_path / "b.db")) as other:
        assert one._file == other._file
        save(one)
        assert queries.latest(other) == 1
    assert {name for name in os.listdir(tmp_path) if name.endswith("-writers")} == {"a.db-writers"}


@pytest.mark.parametrize("of", ["writers", "next"])
def test_who_keeps_a_turn_for_ever_keeps_nobody_from_writing(tmp_path, monkeypatch, of):
    """As everybody can who may write the database; the lock of SQLite is not theirs."""
    database = tmp_path / "a.db"
    open_store(str(database)).close()
    monkeypatch.setattr("tracker.store.waiting.Patience.seconds", 0.05)
    with open_store(str(database)) as store, turn(database, of, 1):
        save(store)
        assert queries.latest(store) == 1


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs to see who waits")
def test_what_is_urgent_waits_for_the_write_that_is_going_on_and_not_for_the_queue(tmp_path):
    """Twenty writers wait: a lock that is given back goes to whoever is awake, so one or the other may be faster."""
    database = tmp_path / "a.db"
    seen = []
    with open_store(str(database)) as store, open_store(str(database)) as slow:
        watchers.begin(store, "a", "node1", 1, "1.0", every_ns=None, now_ns=0)

        def write(connection):
            seen.append(connection.execute(text("SELECT heartbeat_ns FROM watcher")).scalar_one())

        threads = [Thread(target=store.transact, args=[write]) for _ in range(20)]
        beat = Thread(target=watchers.beat, args=[store, "a"], kwargs={"now_ns": 100})
        with slow.begin():
            for place, thread in enumerate(threads, start=1):
                thread.start()
                until(lambda place=place: waiting(database, "writers") == place)
            beat.start()
            until(lambda: waiting(database, "next") == 1)
        for thread in (*threads, beat):
            thread.join()
    assert (len(seen), seen[-1]) == (20, 100)
