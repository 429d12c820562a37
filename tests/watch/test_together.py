"""Watchers as processes of their own: two at once on one database, ends by signals, and a database that goes away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from tests.watch.world import TRACKER, World, settings_file
from tracker.store import inbox, open_store, queries, watchers

PATIENCE_S = 60


def started(environ, *words, log: Path):
    with log.open("w") as file:
        return subprocess.Popen(
            [*TRACKER, "watch", *words], env=environ, stderr=file, stdout=subprocess.PIPE, text=True
        )


def wait_for(condition, process=None):
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < end, "it took too long"
        assert process is None or process.poll() is None, "the watcher ended"
        time.sleep(0.05)
    return found


def ended(process, number=signal.SIGTERM) -> tuple[int, float]:
    """The exit code after a signal, and how long that took in s."""
    began = time.monotonic()
    process.send_signal(number)
    code = process.wait(20)
    process.stdout.close()
    return code, time.monotonic() - began


@pytest.fixture
def folder(memory_store, tmp_path) -> World:
    """Profiles to watch; what its database says counts for nothing."""
    return World(memory_store, tmp_path / "profiles")


@pytest.fixture
def environ(database_url, folder, tmp_path):
    return settings_file(tmp_path, database_url, folder.root, settled="1s")


@pytest.fixture
def watcher(environ, tmp_path):
    process = started(environ, log=tmp_path / "log")
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def long_one(folder: World) -> Path:
    """A profile that takes some seconds."""
    path = folder.profile("gpt/v1/a.json")
    trace = json.loads(path.read_text())
    trace["traceEvents"] += [
        {**trace["traceEvents"][1], "ts": 1_700_000_000_001_000 + at, "dur": 1} for at in range(200_000)
    ]
    path.write_text(json.dumps(trace))
    return path


def states(store) -> set[str]:
    return {entry.state for entry in inbox.entries(store)}


@pytest.mark.slow
def test_two_watchers_ingest_each_profile_once(store, folder, environ, tmp_path):
    names = [f"gpt/v{number}/{letter}.json" for number in range(3) for letter in "abcd"]
    for at, name in enumerate(names):
        folder.profile(name, kernel_us=100 + at)
    folder.broken("gpt/v0/broken.json")
    both = [started(environ, log=tmp_path / f"log{number}") for number in range(2)]
    wait_for(lambda: states(store) == {"ingested", "quarantined"} and len(inbox.entries(store)) == 13)
    time.sleep(1.5)  # one more round of each
    assert [ended(one)[0] for one in both] == [0, 0]
    assert len(queries.runs(store).frame) == 12
    log = "".join((tmp_path / f"log{number}").read_text() for number in range(2))
    assert log.count(" ingested: ") == 12
    assert log.count(" quarantined: ") == 1
    assert " unchanged: " not in log
    assert " failed: " not in log
    assert [one.outcome for one in watchers.watchers(store)] == ["ended", "ended"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_watcher_at_once_and_on_record(store, folder, watcher, tmp_path, number):
    wait_for(lambda: [one for one in watchers.watchers(store) if one.round_ns], watcher)
    code, seconds = ended(watcher, number)
    assert code == 0
    assert seconds < 2
    (known,) = watchers.watchers(store)
    assert (known.outcome, known.error) == ("ended", "")
    assert (tmp_path / "log").read_text().splitlines()[-1].endswith("Z watcher: ended")


@pytest.mark.slow
def test_a_signal_in_the_middle_of_a_long_read_undoes_it_and_the_next_watcher_goes_on(store, folder, environ, tmp_path):
    long_one(folder)
    watcher = started(environ, log=tmp_path / "log")
    wait_for(lambda: states(store) == {"working"}, watcher)
    code, seconds = ended(watcher)
    assert (code, states(store)) in ((0, {"ready"}), (0, {"ingested"}))
    assert seconds < 2
    after = started(environ, log=tmp_path / "log2")
    wait_for(lambda: states(store) == {"ingested"}, after)
    assert ended(after)[0] == 0
    assert len(queries.runs(store).frame) == 1


def test_a_watcher_that_was_killed_is_followed_at_once(store, folder, environ, tmp_path):
    folder.profile("gpt/v1/a.json")
    first = started(environ, log=tmp_path / "log")
    wait_for(lambda: states(store) == {"waiting"}, first)
    assert ended(first, signal.SIGKILL)[0] == -signal.SIGKILL
    after = started(environ, log=tmp_path / "log2")
    wait_for(lambda: states(store) == {"ingested"}, after)
    assert ended(after)[0] == 0
    assert [one.outcome for one in watchers.watchers(store)] == ["ended", "killed"]
    assert f"goes on for process {first.pid}, which was killed" in (tmp_path / "log2").read_text()


def test_the_settings_are_read_again_and_a_bad_file_changes_nothing(store, folder, watcher, environ, tmp_path):
    log = tmp_path / "log"
    wait_for(lambda: watchers.folders(store), watcher)
    file = Path(environ["TRACKER_CONFIG"])
    good = file.read_text()
    file.write_text("[watch]\nevery = 'often'")
    watcher.send_signal(signal.SIGHUP)
    wait_for(lambda: "the settings stay as they were: " in log.read_text(), watcher)
    assert "key watch.every: is 'often'" in log.read_text()
    other = tmp_path / "other"
    other.mkdir()
    file.write_text(good.replace(str(folder.root), str(other)).replace('every = "1s"', 'every = "2s"'))
    watcher.send_signal(signal.SIGHUP)
    wait_for(lambda: str(other) in {one.path for one in watchers.folders(store)}, watcher)
    assert [one.every_ns for one in watchers.watchers(store)] == [2 * 10**9]
    assert ended(watcher)[0] == 0


@pytest.mark.slow
def test_a_watcher_outlives_the_loss_of_its_database(database_url, folder, watcher, tmp_path, request):
    """The connections of a server break off; a file is moved away."""
    log = tmp_path / "log"
    with open_store(database_url) as store:
        wait_for(lambda: watchers.folders(store), watcher)
    if database_url.startswith("sqlite"):
        away = (tmp_path / "tracker.db").rename(tmp_path / "away.db")
        wait_for(lambda: "Z failed: " in log.read_text(), watcher)
        away.rename(tmp_path / "tracker.db")
        wait_for(lambda: " is there again" in log.read_text(), watcher)
    else:
        server = request.getfixturevalue("postgres_server")
        name = database_url.partition("?")[0].rpartition("/")[2]
        server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        server.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        wait_for(lambda: "Z failed: " in log.read_text(), watcher)
        server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        wait_for(lambda: " is there again" in log.read_text(), watcher)
    folder.profile("gpt/v1/a.json")
    with open_store(database_url) as store:
        wait_for(lambda: states(store) == {"ingested"}, watcher)
    assert ended(watcher)[0] == 0
    assert log.read_text().count("Z failed: ") == 1, log.read_text()  # said once, not every second
    assert "Traceback" not in log.read_text()


def test_a_watcher_of_an_older_program_ends_when_its_database_is_upgraded(store, watcher, tmp_path):
    wait_for(lambda: watchers.folders(store), watcher)
    with store.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0099'"))
    assert watcher.wait(PATIENCE_S) == 2
    last = (tmp_path / "log").read_text().splitlines()[-1]
    assert last.startswith("tracker: ")
    assert "is at schema 0099, newer than this tracker" in last
    assert last.endswith("; upgrade tracker: pip install . in a clone of it, or pip install FILE.whl")


@pytest.mark.slow
def test_a_locked_database_does_not_keep_a_watcher_from_ending(tmp_path, folder):
    """SQLite waits for a minute inside of its own code, where Python hears no signal."""
    database = tmp_path / "tracker.db"
    with open_store(str(database)) as store:
        process = started(settings_file(tmp_path, str(database), folder.root), log=tmp_path / "log")
        wait_for(lambda: [one for one in watchers.watchers(store) if one.round_ns], process)
    engine = create_engine(f"sqlite:///{database}")
    with engine.connect() as connection:
        connection.execute(text("BEGIN IMMEDIATE"))
        time.sleep(1.5)  # by now a job waits
        code, seconds = ended(process)
    assert code == 0
    assert seconds < 2.5
    engine.dispose()
    assert os.path.exists(database)


@pytest.mark.slow
@pytest.mark.parametrize("is_locked", [False, True])
def test_a_single_round_that_a_signal_ends_is_no_success(tmp_path, folder, is_locked):
    """Also where the database is locked, and the process ends although its round does not."""
    database = tmp_path / "tracker.db"
    environ = settings_file(tmp_path, str(database), folder.root, settled="1s")
    long_one(folder)
    first = started(environ, "--once", log=tmp_path / "log")
    assert first.wait(PATIENCE_S) == 0
    first.stdout.close()
    time.sleep(1)  # now it stood still for long enough
    with open_store(str(database)) as store:
        process = started(environ, "--once", log=tmp_path / "log")
        wait_for(lambda: states(store) == {"working"}, process)
    engine = create_engine(f"sqlite:///{database}")
    with engine.connect() as connection:
        if is_locked:
            connection.execute(text("BEGIN IMMEDIATE"))
        code, seconds = ended(process)
    assert code == 130
    assert seconds < 2.5
    engine.dispose()
