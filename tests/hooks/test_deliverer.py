"""Jobs that end, and a tracker that is absent, fails, hangs, is killed, or works: nothing is lost, nothing is twice."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from tests.hooks.jobs import HOOKS, calls, command, environ, in_a_job, real_tracker, until
from tracker.hooks import places, spool
from tracker.store import open_store, queries

JOB = """
import gzip, json, os, time
from tracker_hooks import torch_profiler

class Profiler:
    step_num = 7
    def export_chrome_trace(self, path):
        with gzip.open(path, "wt") as file:
            file.write(os.environ["TRACE"])

handle = torch_profiler.on_trace_ready("prof")
began = time.process_time()
handle(Profiler())
print(time.process_time() - began)
"""


def trained(folder: Path, tracker: str = "", *, rank: int | None = None, **variables: str):
    """A job that has ended, with what it said."""
    from tests.hooks.jobs import trace

    known = {} if rank is None else {"RANK": str(rank), "WORLD_SIZE": "8", "SLURM_JOB_ID": "41"}
    text = trace(rank, op=f"aten::mm_{rank}")
    environment = environ(folder, TRACKER_COMMAND=tracker or "no-such-tracker", TRACE=text, **known, **variables)
    return in_a_job(JOB, environment, folder=folder)


def queue(folder: Path) -> str:
    return places.folder(environ(folder))


def log(folder: Path) -> str:
    path = Path(queue(folder), "deliverer.log")
    return path.read_text() if path.exists() else ""


def has_given_up(place: str) -> bool:
    """Whether a deliverer of a queue has found no tracker."""
    path = Path(place, "deliverer.log")
    return path.exists() and "could not be started" in path.read_text()


def is_unlocked(place: str) -> bool:
    """Whether no deliverer is at work in a queue."""
    with spool.locked(place, spool.DELIVERING) as mine:
        return mine


def is_idle(folder: Path) -> bool:
    """Whether no deliverer is at work."""
    return is_unlocked(queue(folder))


def deliver(folder: Path, tracker: str, **variables: str) -> None:
    """The next deliverer, as the next job starts it, once the one before has ended."""
    until(lambda: is_idle(folder))
    environment = environ(folder, TRACKER_COMMAND=tracker, **variables)
    spool.deliver(queue(folder), environment)


def runs(folder: Path):
    with open_store(str(folder / "jobs.db"), create=False) as store:
        return queries.runs(store).frame


def test_a_job_that_ends_is_in_the_database(tmp_path):
    done = trained(tmp_path, real_tracker(tmp_path))
    assert done.err == ""
    until(lambda: not spool.entries(queue(tmp_path)))
    until(lambda: is_idle(tmp_path))
    run = runs(tmp_path).iloc[0]
    assert (run["version"], run["workload"], run["steps"]) == ("v1", "toy", 1)
    assert calls(tmp_path) == [f"ingest --spooled {queue(tmp_path)}"]


def test_a_job_does_not_wait_for_tracker_and_a_hook_takes_less_than_half_a_second_of_it(tmp_path):
    # the deliverer outlives the job, which ends before it, with nothing left open; no clock of a busy machine is asked
    gate = tmp_path / "gate"
    done = trained(tmp_path, command(tmp_path, f'while [ ! -e "{gate}" ]; do sleep 0.05; done'))
    assert done.err == ""
    assert float(done.out) < 0.5
    until(lambda: calls(tmp_path))
    assert not is_idle(tmp_path), "tracker is still at it"
    gate.write_text("")
    until(lambda: is_idle(tmp_path))
    assert calls(tmp_path) == [f"ingest --spooled {queue(tmp_path)}"]


def test_an_absent_tracker_leaves_the_profile_in_the_spool_for_the_next_deliverer(tmp_path):
    assert trained(tmp_path).err == ""
    until(lambda: "could not be started" in log(tmp_path))
    (entry,) = spool.entries(queue(tmp_path))
    assert json.loads(Path(entry).read_text())["attempts"] == 0  # the entry is not to blame
    deliver(tmp_path, real_tracker(tmp_path))
    assert spool.entries(queue(tmp_path)) == []
    assert len(runs(tmp_path)) == 1


def test_a_tracker_that_fails_leaves_it_as_well(tmp_path):
    trained(tmp_path, command(tmp_path, "echo no database >&2; exit 2"))
    until(lambda: "ended with 2" in log(tmp_path))
    assert "no database" in log(tmp_path)
    assert len(spool.entries(queue(tmp_path))) == 1
    deliver(tmp_path, real_tracker(tmp_path))
    assert len(runs(tmp_path)) == 1


def test_a_tracker_that_hangs_is_ended_with_all_that_it_started(tmp_path):
    script = f'sleep 60 & echo $! > "{tmp_path}/child"; wait'
    trained(tmp_path, command(tmp_path, script), TRACKER_TIMEOUT="0.3")
    until(lambda: "did not end within 0.3 s" in log(tmp_path))
    until(lambda: is_idle(tmp_path))
    child = int((tmp_path / "child").read_text())
    until(lambda: not os.path.exists(f"/proc/{child}") or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2])
    deliver(tmp_path, real_tracker(tmp_path))
    assert len(runs(tmp_path)) == 1


def test_a_deliverer_that_is_killed_lets_go_of_the_lock_and_loses_nothing(tmp_path):
    hangs = command(tmp_path, f'echo $$ > "{tmp_path}/child"; exec sleep 60')
    trained(tmp_path)
    until(lambda: "could not be started" in log(tmp_path))
    until(lambda: is_idle(tmp_path))
    script = [sys.executable, "-E", "-s", str(HOOKS / "spool.py"), queue(tmp_path)]
    killed = subprocess.Popen(script, env=environ(tmp_path, TRACKER_COMMAND=hangs))
    until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text().strip())
    assert not is_idle(tmp_path)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert is_idle(tmp_path)
    os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)
    assert len(spool.entries(queue(tmp_path))) == 1
    deliver(tmp_path, real_tracker(tmp_path))
    assert len(runs(tmp_path)) == 1


def test_a_tracker_that_is_killed_after_it_stored_the_run_does_not_store_it_twice(tmp_path):
    trained(tmp_path)
    until(lambda: is_idle(tmp_path) and log(tmp_path))
    (entry,) = spool.entries(queue(tmp_path))
    before = Path(entry).read_text()
    deliver(tmp_path, real_tracker(tmp_path))
    Path(entry).write_text(before)  # as if it had been killed before it removed the entry
    deliver(tmp_path, real_tracker(tmp_path))
    assert spool.entries(queue(tmp_path)) == []
    assert len(runs(tmp_path)) == 1


def test_the_next_job_sends_what_the_last_one_could_not(tmp_path):
    trained(tmp_path)
    until(lambda: is_idle(tmp_path) and log(tmp_path))
    trained(tmp_path, real_tracker(tmp_path), rank=0)
    until(lambda: not spool.entries(queue(tmp_path)))
    until(lambda: is_idle(tmp_path))
    assert len(runs(tmp_path)) == 2


def test_what_comes_while_a_deliverer_is_at_work_is_taken_by_it(tmp_path):
    gate = tmp_path / "gate"
    slow = command(tmp_path, f'while [ ! -e "{gate}" ]; do sleep 0.05; done; rm -f "$3"/*.entry.json')
    trained(tmp_path, slow)
    until(lambda: len(calls(tmp_path)) == 1)
    trained(tmp_path, slow, rank=0)  # its deliverer finds the lock held, and goes
    gate.write_text("")
    until(lambda: is_idle(tmp_path))
    assert spool.entries(queue(tmp_path)) == []


def test_the_environment_of_the_job_does_not_reach_tracker(tmp_path):
    own = {"PYTHONPATH": "/job", "PYTHONHOME": "/job", "VIRTUAL_ENV": "/job", "LD_PRELOAD": "", "KEPT": "yes"}
    prints = command(tmp_path, f'env > "{tmp_path}/seen"; ls -l /proc/self/fd > "{tmp_path}/open"')
    trained(tmp_path, prints, **own)
    until(lambda: (tmp_path / "open").exists() and (tmp_path / "open").read_text().count("\n") > 3)
    until(lambda: is_idle(tmp_path))
    seen = dict(line.split("=", 1) for line in (tmp_path / "seen").read_text().splitlines() if "=" in line)
    assert seen["KEPT"] == "yes"
    assert not own.keys() - {"KEPT"} & seen.keys()
    assert "pipe" not in (tmp_path / "open").read_text()


def test_an_entry_of_another_database_stays_in_a_spool_of_its_own(tmp_path):
    here, there = environ(tmp_path), environ(tmp_path, TRACKER_DB=str(tmp_path / "other.db"))
    assert places.folder(here) != places.folder(there)
    assert places.folder({**here, "TRACKER_DB": "", "TRACKER_CONFIG": ""}).endswith("/default")
    assert "secret" not in places.folder({**here, "TRACKER_DB": "postgresql://me:secret@db/x"})


def test_all_names_of_one_database_are_one_spool(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    files = ["real/jobs.db", f"{tmp_path}/real/jobs.db", "~/real/jobs.db", "link/jobs.db", "link/../real/jobs.db"]
    files += [
        "sqlite:///real/jobs.db",
        f"sqlite:///{tmp_path}/link/jobs.db",
        f"sqlite+pysqlite:///{tmp_path}/real/jobs.db",
    ]
    assert len({places.name({"TRACKER_DB": file, "TRACKER_CONFIG": "a"}) for file in files}) == 1
    servers = ["postgresql://db:5432/x", "postgresql+psycopg://me:secret@db:5432/x", "postgres://you@DB:5432/x"]
    assert len({places.name({"TRACKER_DB": server}) for server in servers}) == 1
    others = [files[0], servers[0], "postgresql://db:5432/y", "postgresql://db2:5432/x", "real/other.db"]
    assert len({places.name({"TRACKER_DB": other}) for other in others}) == len(others)


def test_a_database_on_a_server_has_one_spool_whoever_asks_and_however(monkeypatch):
    monkeypatch.delenv("PGPORT", raising=False)
    databases = [
        ("postgresql://h/db", "postgresql://u:p@H:5432/db", "postgres://h/db?sslmode=require&connect_timeout=3",
         "postgresql:///db?host=h", "postgresql://h?dbname=db", "postgresql://u:p?/w@other:1/db?host=h&port=5432",
         "postgresql+psycopg:///db?host=h:5432&user=me"),
        ("postgresql:///db?host=/run/pg", "postgresql://u:p@/db?sslmode=disable&host=%2Frun%2Fpg"),
        ("postgresql:///db?host=/run/PG",),
        ("postgresql:///db",),
        ("postgresql:///db?service=jobs", "postgresql:///db?sslmode=require&service=jobs"),
        ("postgresql://h:5433/db", "postgresql://h/db?port=5433"),
        ("postgresql://[::1]/db", "postgresql://[::1]:5432/db", "postgresql:///db?host=::1"),
        ("postgresql://h/db?options=-csearch_path%3Dteam", "postgresql://u@h:5432/db?options=-csearch_path=team"),
        ("postgresql://h/my%20db", "postgresql://h/my db"),
        ("postgresql://u@h", "postgresql://h/u", "postgresql://h?user=u"),
    ]  # fmt: skip
    spools = [{places.name({"TRACKER_DB": name}) for name in names} for names in databases]
    assert [len(found) for found in spools] == [1] * len(databases)
    assert len(set.union(*spools)) == len(databases)
    monkeypatch.setenv("PGPORT", "5433")
    assert places.name({"TRACKER_DB": "postgresql://h/db"}) == places.name({"TRACKER_DB": "postgresql://h:5433/db"})


@pytest.mark.parametrize("named", ["postgresql://u@h/db", "postgresql://h:5432/db?sslmode=require"])
def test_what_older_hooks_queued_for_a_server_is_found(tmp_path, named):
    """They told its names apart: what is found is what was queued under the same one."""
    older = hashlib.sha256(f"{named.replace('u@', '')}\n".encode()).hexdigest()[:12]
    variables = environ(tmp_path, TRACKER_DB=named)
    new = Path(places.folder(variables))
    assert new.name != older
    for place in (new, new.with_name(older)):
        spool.add(str(place), {"profile": "p"}, now_ns=1)
    assert places.of_all_machines(variables) == [str(new), str(new.with_name(older))]


def test_a_database_named_from_the_folder_of_the_job_is_the_same_for_its_deliverer(tmp_path, monkeypatch):
    """The deliverer runs in another folder; so does the job, sooner or later."""
    monkeypatch.chdir(tmp_path)
    given = {"TRACKER_DB": "jobs.db", "TRACKER_CONFIG": "~/tracker.toml", "TRACKER_SPOOL": "spool", "HOME": "/h"}
    monkeypatch.setenv("HOME", "/h")
    found = spool.cleaned(given)
    assert [found[name] for name in given] == [
        f"{tmp_path}/jobs.db", "/h/tracker.toml", f"{tmp_path}/spool", "/h",
    ]  # fmt: skip
    url = {"TRACKER_DB": "sqlite:///jobs.db"}
    assert spool.cleaned(url) == {"TRACKER_DB": f"sqlite:///{tmp_path}/jobs.db"}
    kept = {"TRACKER_DB": "postgresql://me:secret@db/x"}
    assert spool.cleaned(kept) == kept
    assert places.folder(found) == places.folder(given)


def test_a_shared_spool_has_a_folder_for_each_user_that_its_group_may_take_from(tmp_path, monkeypatch):
    shared = tmp_path / "spool"
    shared.mkdir()
    shared.chmod(0o3770)
    own = Path(queue(tmp_path))
    assert own.name == str(os.getuid())
    before = os.umask(0o077)
    try:
        entry = Path(spool.add(str(own), {"profile": "p"}, now_ns=1))
        with spool.locked(str(own), spool.TAKING):
            pass
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o7777 for path in (own.parent.parent, own.parent, own)]
    assert modes == [0o3770, 0o3770, 0o2770]
    assert [path.stat().st_mode & 0o777 for path in (entry, own / spool.TAKING)] == [0o660, 0o660]
    assert places.of_all_machines(environ(tmp_path)) == [str(own.parent)]
    assert spool.spools(str(own.parent)) == [str(own)]


def test_a_spool_that_is_not_shared_stays_its_owners_whoever_may_write_around_it(tmp_path):
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool").chmod(0o1777)
    own = Path(queue(tmp_path))
    entry = Path(spool.add(str(own), {"profile": "p"}, now_ns=1))
    assert [path.stat().st_mode & 0o7777 for path in (own.parent, own, entry)] == [0o700, 0o700, 0o600]


def test_folders_that_entries_cannot_be_taken_from_are_named(tmp_path, monkeypatch):
    assert places.shut(environ(tmp_path)) == []
    own = queue(tmp_path)
    spool.add(own, {"profile": "p"}, now_ns=1)
    other = tmp_path / "spool" / "node9"
    other.mkdir()
    assert places.shut(environ(tmp_path)) == []
    access = os.access
    closed = {own, str(other)}
    monkeypatch.setattr(os, "access", lambda place, mode, **_: place not in closed and access(place, mode))
    uid = os.getuid()
    problem = f"belongs to user {uid}, and entries cannot be taken from it"
    assert places.shut(environ(tmp_path)) == sorted([(own, problem), (str(other), problem)])
    closed.clear()
    closed.add(str(tmp_path / "spool"))
    assert places.shut(environ(tmp_path)) == [(str(tmp_path / "spool"), problem)]


def test_a_profile_that_is_analysed_later_is_taken_once_it_is(tmp_path):
    done = tmp_path / "analyse.done"
    spool.add(queue(tmp_path), {"profile": "p", "wait_for": str(done)}, now_ns=time.time_ns())
    takes = command(tmp_path, 'rm -f "$3"/*.entry.json')
    script = [sys.executable, "-E", "-s", str(HOOKS / "spool.py"), queue(tmp_path)]
    deliverer = subprocess.Popen(script, env=environ(tmp_path, TRACKER_COMMAND=takes))
    time.sleep(0.3)
    assert calls(tmp_path) == []
    done.write_text("")
    assert deliverer.wait(timeout=30) == 0
    assert calls(tmp_path) == [f"ingest --spooled {queue(tmp_path)}"]


def test_eight_ranks_that_end_at_the_same_moment_are_one_run(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    tracker = real_tracker(tmp_path)
    trained(tmp_path, tracker, rank=0)
    with ThreadPoolExecutor(7) as pool:
        ended = list(pool.map(lambda rank: trained(tmp_path, tracker, rank=rank), range(1, 8)))
    assert {done.err for done in ended} == {""}
    until(lambda: not spool.entries(queue(tmp_path)), 60)
    until(lambda: is_idle(tmp_path))
    (run,) = runs(tmp_path).to_dict("records")
    assert (run["ranks"], run["world_size"]) == (8, 8)


@pytest.mark.parametrize("nodes", [3])
def test_ranks_of_several_nodes_that_ingest_at_the_same_moment_are_one_run(tmp_path, nodes):
    """Each node has a spool and a deliverer of its own; what joins the ranks is the database."""
    trackers = []
    for node in range(nodes):
        (tmp_path / f"node{node}").mkdir()
        shared = {"TRACKER_DB": str(tmp_path / "jobs.db")}
        trained(tmp_path / f"node{node}", rank=node, **shared)
        place = places.folder(environ(tmp_path / f"node{node}", **shared))
        trackers.append((place, environ(tmp_path, TRACKER_COMMAND=real_tracker(tmp_path))))
        # the deliverer that the job started, which finds no tracker, holds the queue until it has ended
        until(partial(has_given_up, place))
        until(partial(is_unlocked, place))
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(nodes) as pool:
        list(pool.map(lambda each: spool.deliver(*each), trackers))
    (run,) = runs(tmp_path).to_dict("records")
    assert run["ranks"] == nodes
