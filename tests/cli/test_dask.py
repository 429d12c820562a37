"""A back-fill over a Dask cluster: a real scheduler and two workers, each a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.cli.support import content
from tests.packs import everything
from tests.test_intake import write_trace
from tracker.errors import SourceError, UsageError
from tracker.intake import IngestOptions, Sidecar, ingest, pack
from tracker.intake.cluster import cluster, read_on
from tracker.store import open_store

pytest.importorskip("distributed", reason="the extra dask is not installed")

ROOT = Path(__file__).parents[2]


def start(*words, folder, path):
    """A process of Dask, in a folder of its own: workers see files by their whole paths only."""
    environment = {**os.environ, "PYTHONPATH": str(path)}
    with (folder / f"{words[0]}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", *words], cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )


@contextmanager
def running(folder, *, workers, path=ROOT):
    """The address of a scheduler with so many workers, whose Python looks for modules in `path` first."""
    meeting = folder / "scheduler.json"
    where = ("--scheduler-file", str(meeting), "--no-dashboard")
    scheduler = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", *where)
    worker = ("distributed.cli.dask_worker", "--nthreads", "1", "--local-directory", str(folder), *where)
    processes = [start(*words, folder=folder, path=path) for words in (scheduler, *[worker] * workers)]
    try:
        deadline = time.monotonic() + 60
        while not (meeting.exists() and meeting.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.05)
        address = json.loads(meeting.read_text())["address"]
        assert len(workers_of(address, workers)) == workers
        yield address
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)  # with the workers that it supervises
            process.wait(30)


def workers_of(address, count=2):
    """Address -> process of each worker, once there are so many."""
    from distributed import Client

    with Client(address, timeout=30, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=60)
        return client.run(os.getpid)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of a scheduler with two workers."""
    with running(tmp_path_factory.mktemp("dask"), workers=2) as found:
        yield found


@pytest.fixture
def archive(tmp_path):
    """Six runs of two ranks, an hour apart, and one run in a pack."""
    for number in range(6):
        for rank in (0, 1):
            path = tmp_path / "archive" / f"run{number}" / f"rank{rank}.pt.trace.json.gz"
            write_trace(path, rank=rank, kernel_us=100 + number + rank, start_us=number * 3_600_000_000)
    single = write_trace(tmp_path / "one.pt.trace.json", start_us=9 * 3_600_000_000)
    made = pack([single], asked=Sidecar(tags={"image": "x"}))
    (tmp_path / "archive" / "one.trk").write_bytes(made.content)
    return tmp_path / "archive"


@pytest.mark.slow
def test_a_backfill_over_two_workers_is_the_same_as_one_here(store, address, archive):
    told = []
    options = {"version": "v1", "workload": "toy"}
    with cluster(address) as read_with:
        spread = IngestOptions(read_with=read_with, on_progress=lambda *said: told.append(said))
        there = ingest(store, [archive], **options, options=spread)
    with open_store("sqlite://") as plain:
        here = ingest(plain, [archive], **options)
        assert there == here
        if store.url.startswith("sqlite"):
            assert everything(store) == everything(plain)
    reading = [(done, total) for _, done, total in told if total]
    assert reading == [(number, 13) for number in range(1, 14)]


@pytest.mark.slow
def test_both_workers_read(address, tmp_path):
    from distributed import Client

    for number in range(8):
        write_trace(tmp_path / f"{number}.pt.trace.json", start_us=number * 3_600_000_000)
    with Client(address, timeout=30, set_as_default=False) as client, open_store("sqlite://") as plain:
        before = client.run(os.times)
        with cluster(address) as read_with:
            ingest(plain, [tmp_path], version="v1", workload="toy", options=IngestOptions(read_with=read_with))
        after = client.run(os.times)
    assert all(after[worker].user > before[worker].user for worker in before)


@pytest.mark.slow
def test_paths_are_stored_as_they_were_given(address, archive, monkeypatch):
    monkeypatch.chdir(archive.parent)
    with cluster(address) as read_with, open_store("sqlite://") as there, open_store("sqlite://") as here:
        results = [
            ingest(store, [Path("archive")], version="v1", workload="toy", options=IngestOptions(read_with=how))
            for store, how in ((there, read_with), (here, None))
        ]
        assert results[0] == results[1]
        assert everything(there) == everything(here)


@pytest.mark.slow
def test_the_first_bad_profile_in_order_is_the_error_and_nothing_is_written(address, archive):
    for name in ("run2", "run4"):
        bad = archive / name / "rank0.pt.trace.json.gz"
        bad.write_bytes(bad.read_bytes()[:-40])
    errors = []
    with cluster(address) as read_with, open_store("sqlite://") as store:
        before = everything(store)
        for how in (None, read_with):
            with pytest.raises(SourceError) as caught:
                ingest(store, [archive], version="v1", workload="toy", options=IngestOptions(read_with=how))
            errors.append((str(caught.value), caught.value.path, caught.value.remedy))
        assert everything(store) == before
    assert errors[0] == errors[1]
    assert str(archive / "run2") in errors[0][0]


def test_the_command_ends_as_it_does_without_a_cluster(tracker, address, archive, tmp_path):
    words = ("ingest", archive, "--version", "v1", "--workload", "toy", "--db")
    here = tracker(*words, tmp_path / "here.db").plain
    there = tracker(*words, tmp_path / "there.db", "--dask", address).plain
    assert there == here
    assert here.code == 0
    assert content(tmp_path / "there.db") == content(tmp_path / "here.db")
    bad = archive / "run0" / "rank0.pt.trace.json.gz"
    bad.write_bytes(bad.read_bytes()[:-40])
    here, there = tracker(*words, tmp_path / "x.db"), tracker(*words, tmp_path / "x.db", "--dask", address)
    assert (there.code, there.out, there.err) == (here.code, here.out, here.err)
    assert here.code == 2


@pytest.mark.slow
def test_keep_going_takes_the_others_as_without_a_cluster(tracker, address, archive, tmp_path):
    """Two of twelve traces are cut; beside them is a log that no reader takes."""
    for name in ("run0", "run4"):
        bad = archive / name / "rank0.pt.trace.json.gz"
        bad.write_bytes(bad.read_bytes()[:-40])
    (archive / "a.log").write_text("nothing of ours\n")
    words = ("ingest", archive, "--version", "v1", "--workload", "toy", "--keep-going", "--db")
    here = tracker(*words, tmp_path / "here.db").plain
    there = tracker(*words, tmp_path / "there.db", "--dask", address).plain
    assert there == here
    runs = [line for line in here.out.splitlines() if re.match(r"run \d", line)]
    assert (here.code, len(runs)) == (2, 7)
    assert [line.split(":")[0] for line in here.err.splitlines()[-2:]] == ["not read", "not read"]
    assert content(tmp_path / "there.db") == content(tmp_path / "here.db")


class OfDyingWorkers:
    """A client whose workers die over one file and read the others."""

    def __init__(self, deadly):
        self.deadly = str(deadly)

    def submit(self, task, path, *given, **_):
        return self if path == self.deadly else Read(task(path, *given))

    def exception(self, timeout):
        return None

    def result(self):
        from distributed import KilledWorker

        raise KilledWorker("read", None, 3)

    def release(self):
        pass

    def cancel(self, futures):
        pass


class Read(OfDyingWorkers):
    def __init__(self, content):
        self.content = content

    def result(self):
        return self.content


@pytest.mark.slow
def test_keep_going_passes_over_what_workers_die_of(store, archive):
    deadly = archive / "run2" / "rank1.pt.trace.json.gz"

    def read_with(found, options):
        return read_on(OfDyingWorkers(deadly), found, options)

    results = ingest(
        store, [archive], version="v1", workload="toy", options=IngestOptions(read_with=read_with, keep_going=True)
    )
    assert sum(len(result.ranks) for result in results) == 12
    (failed,) = results[0].failed
    assert failed.startswith(f"{deadly}: workers of the Dask cluster died over it")
    with pytest.raises(SourceError, match="died over it"):
        ingest(store, [archive], version="v1", workload="toy", options=IngestOptions(read_with=read_with))


@pytest.mark.slow
def test_keep_going_ends_where_the_cluster_is_at_fault(address, archive, monkeypatch):
    monkeypatch.setattr("tracker.intake.cluster.RULES", (1, 10**6))
    with cluster(address) as read_with, open_store("sqlite://") as store:
        options = IngestOptions(read_with=read_with, keep_going=True)
        with pytest.raises(UsageError, match=r"^the Dask worker on .* has another version of tracker"):
            ingest(store, [archive], version="v1", workload="toy", options=options)


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_by_the_other(address, archive):
    """Its supervisor starts it anew; what it was reading is read again."""
    pids = sorted(workers_of(address).values())
    with cluster(address) as read_with, open_store("sqlite://") as store:
        os.kill(pids[0], signal.SIGKILL)
        results = ingest(store, [archive], version="v1", workload="toy", options=IngestOptions(read_with=read_with))
    assert sum(len(result.ranks) for result in results) == 13
    assert len(workers_of(address)) == 2


@pytest.mark.slow
def test_a_file_that_workers_do_not_see_is_an_error_that_says_so(address, tmp_path):
    path = write_trace(tmp_path / "a.pt.trace.json")
    with cluster(address) as read_with:

        def late(found, options):
            path.unlink()
            return read_with(found, options)

        with (
            open_store("sqlite://") as store,
            pytest.raises(SourceError, match=r"the Dask worker on .* does not see it"),
        ):
            ingest(store, [path], version="v1", workload="toy", options=IngestOptions(read_with=late))


def test_a_worker_with_another_tracker_is_refused(address, archive, monkeypatch):
    monkeypatch.setattr("tracker.intake.cluster.RULES", (1, 10**6))
    with (
        cluster(address) as read_with,
        open_store("sqlite://") as store,
        pytest.raises(UsageError, match=r"has another version of tracker; install the same version there as here"),
    ):
        ingest(store, [archive], version="v1", workload="toy", options=IngestOptions(read_with=read_with))


@pytest.mark.slow
def test_neither_scheduler_nor_worker_needs_tracker_to_say_that_it_lacks(trace, tmp_path, tracker):
    # Python looks into the folder where it was started: one with a package `tracker` that is none of ours
    (tmp_path / "tracker").mkdir()
    (tmp_path / "tracker" / "__init__.py").touch()
    with running(tmp_path, workers=1, path=tmp_path) as address:
        done = tracker("ingest", trace["v01"], "--version", "v1", "--workload", "w", "--db", tmp_path / "x.db",
                       "--dask", address)  # fmt: skip
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "tracker: a Dask worker cannot run this tracker (No module named 'tracker.intake'); "
        "install the same version there as here: pip install . in a clone of it, or pip install FILE.whl\n"
    )


def test_a_notebook_whose_loop_runs_reads_over_a_cluster(address, archive):
    async def cell():
        with cluster(address) as read_with, open_store("sqlite://") as store:
            return ingest(
                store, [archive / "one.trk"], version="v1", workload="toy", options=IngestOptions(read_with=read_with)
            )

    with ThreadPoolExecutor(1) as thread:  # another test may have left a loop in this one
        assert len(thread.submit(asyncio.run, cell()).result()) == 1


def test_no_scheduler_is_an_error_before_any_database_is_made(tracker, tmp_path, monkeypatch):
    monkeypatch.setattr("tracker.intake.cluster._CONNECT_S", 1)
    path = write_trace(tmp_path / "a.pt.trace.json")
    done = tracker("ingest", path, "--db", tmp_path / "new.db", "--dask", "tcp://127.0.0.1:1")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "tracker: no Dask scheduler answers at tcp://127.0.0.1:1; check the address, or read here without --dask\n"
    )
    for address in ("", "head", "http://head:8786", "tcp://", "tcp://head", "tcp://head:", "tcp://head:port"):
        done = tracker("ingest", path, "--db", tmp_path / "new.db", "--dask", address)
        words = f"tracker: --dask {address!r} is no address of a Dask scheduler; write it like tcp://head:8786\n"
        assert (done.code, done.err) == (2, words)
    assert not (tmp_path / "new.db").exists()


@contextmanager
def listening(reply):
    """The port of a server that is no scheduler: to whatever it is told it replies with the same, or says nothing."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                connections.append(connection)
                connection.recv(1024)
                connection.sendall(reply)

    connections = []
    threading.Thread(target=serve, daemon=True).start()
    yield server.getsockname()[1]
    for opened in (server, *connections):
        opened.close()


@pytest.mark.slow
@pytest.mark.parametrize("reply", [b"", b"HTTP/1.0 400 Bad request\r\n\r\n"])
@pytest.mark.parametrize("scheme", ["tcp", "ws"])
def test_what_is_no_scheduler_is_not_waited_for(reply, scheme, tracker, trace, tmp_path, monkeypatch):
    """Such as the dashboard, whose port is the next one."""
    monkeypatch.setattr("tracker.intake.cluster._CONNECT_S", 1)
    with listening(reply) as port:
        began = time.monotonic()
        where = f"{scheme}://127.0.0.1:{port}"
        done = tracker("ingest", trace["v01"], "--db", tmp_path / "new.db", "--dask", where)
        assert time.monotonic() - began < 10
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"tracker: no Dask scheduler answers at {where}; check the address, or read here without --dask\n"
    )


@pytest.mark.slow
def test_a_worker_is_no_scheduler(tracker, trace, address, tmp_path):
    worker = min(workers_of(address))
    done = tracker("ingest", trace["v01"], "--db", tmp_path / "new.db", "--dask", worker)
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"tracker: at {worker} is a Dask worker, no scheduler; check the address, or read here without --dask\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ended", "patience_s", "said"),
    [
        ("workers", 0.2, "the Dask cluster has had no workers for 0.2 s; start some with dask worker"),
        ("scheduler", 60, r"the Dask cluster was lost \(its scheduler is gone\); start it, then ingest again"),
    ],
)
def test_a_cluster_that_ends_meanwhile_is_not_waited_for(ended, patience_s, said, archive, tmp_path, monkeypatch):
    monkeypatch.setattr("tracker.intake.cluster._LOOK_S", 0.1)
    monkeypatch.setattr("tracker.intake.cluster._GONE_S", patience_s)
    with running(tmp_path, workers=1) as address, cluster(address) as read_with, open_store("sqlite://") as store:

        def late(found, options):
            from distributed import Client

            with Client(address, set_as_default=False) as client:
                if ended == "workers":
                    client.retire_workers(close_workers=True)
                else:
                    os.kill(client.run_on_scheduler(os.getpid), signal.SIGKILL)
            return read_with(found, options)

        with pytest.raises(UsageError, match=said):
            ingest(store, [archive], version="v1", workload="toy", options=IngestOptions(read_with=late))


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(UsageError, match=r"--dask needs the package distributed; pip install distributed"),
        cluster("tcp://127.0.0.1:1"),
    ):
        pass
