"""`tracker cut`: one step of a run as a trace of its own, and nothing else of the file."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import tracker as package
from tracker.errors import SourceError

DATA = Path(__file__).parents[1] / "data"
SAMPLE = Path(package.__file__).parent / "samples" / "v01" / "run1.pt.trace.json.gz"
SECRET = "token-4711"
START_US = 1_700_000_000_000_000
SPANS = (
    # step 2 is from 1000 to 3000 us, twice as long as step 1
    ("user_annotation", "ProfilerStep#1", 1, 0, 1000, {}),
    ("user_annotation", "ProfilerStep#2", 1, 1000, 2000, {}),
    ("python_function", "train.py(1): train", 1, 0, 4000, {}),
    ("cpu_op", "aten::mm", 1, 100, 50, {}),
    ("cuda_runtime", "cudaLaunchKernel", 1, 110, 10, {"correlation": 1}),
    ("cpu_op", "ends where step 2 starts", 1, 990, 10, {}),
    ("cpu_op", "aten::mm", 1, 1100, 50, {}),
    ("cuda_runtime", "cudaLaunchKernel", 1, 1110, 10, {"correlation": 2}),
    ("cpu_op", "aten::mul", 1, 2940, 50, {}),
    ("cuda_runtime", "cudaLaunchKernel", 1, 2950, 10, {"correlation": 3}),
    ("cpu_op", "starts where step 2 ends", 1, 3000, 50, {}),
    ("kernel", "of step 1, still runs", 0, 950, 200, {"correlation": 1, "device": 0, "stream": 7}),
    ("kernel", "of step 2", 0, 2900, 150, {"correlation": 2, "device": 0, "stream": 7}),
    ("kernel", "of step 2, runs behind it", 0, 3200, 100, {"correlation": 3, "device": 0, "stream": 7}),
)
ARROWS = ((1, 110, 950), (2, 1110, 2900), (3, 2950, 3200))


@pytest.fixture
def source(tmp_path):
    """A trace of two steps on a device, with secrets wherever metadata may be."""
    spans = [
        {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": pid, "ts": START_US + ts, "dur": dur, "args": args}
        for cat, name, pid, ts, dur, args in SPANS
    ]
    arrows = [
        {"ph": phase, "cat": "ac2g", "name": "ac2g", "id": number, "pid": pid, "tid": pid, "ts": START_US + ts}
        for number, *ends in ARROWS
        for phase, pid, ts in zip("sf", (1, 0), ends, strict=True)
    ]
    names = [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": {"name": "python", "env": SECRET}},
        {"ph": "M", "name": "process_labels", "pid": 1, "tid": 0, "args": {"labels": {"token": SECRET}}},
        {"ph": "M", "name": "environment", "pid": 1, "tid": 0, "args": {"name": SECRET}},
    ]
    trace = {
        "distributedInfo": {"rank": 0, "world_size": 1, "token": SECRET}, "host_name": SECRET,
        "traceEvents": names + spans + arrows, "env": {"TOKEN": SECRET}, "deviceProperties": [{"id": 0}],
    }  # fmt: skip
    path = tmp_path / "gpu.pt.trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps(trace).encode()))
    return path


@pytest.fixture
def db(tracker, source, tmp_path):
    """A database with that trace as run 1."""
    path = tmp_path / "tracker.db"
    assert tracker("ingest", source, "--version", "v1", "--workload", "gpt", "--db", path).code == 0
    return path


def cut(path):
    content = path.read_bytes()
    return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)


def numbers(db, step):
    """What the only run has in one step: its ops, its kernels, and its times."""
    with closing(sqlite3.connect(db)) as connection:
        return [
            connection.execute(question, (step,)).fetchall()
            for question in (
                "SELECT calls, host_self_ns, device_self_ns FROM op WHERE step = ? ORDER BY 1, 2, 3",
                "SELECT COUNT(*), SUM(calls), SUM(total_ns) FROM kernel WHERE step = ?",
                "SELECT duration_ns, e2e_ns, compute_ns, communication_ns, copy_ns, idle_ns FROM step WHERE step = ?",
            )
        ]


def test_the_slowest_step_with_its_late_kernel_and_whole_arrows(tracker, db, tmp_path):
    done = tracker("cut", "latest", "-o", tmp_path / "slow.json", "--db", db)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{tmp_path}/slow.json: step 2 of run:1, rank 0, 14 events, ")
    events = cut(tmp_path / "slow.json")["traceEvents"]
    assert [event["name"] for event in events if event["ph"] == "X"] == [
        "ProfilerStep#2", "train.py(1): train", "aten::mm", "cudaLaunchKernel", "aten::mul", "cudaLaunchKernel",
        "of step 1, still runs", "of step 2", "of step 2, runs behind it",
    ]  # fmt: skip
    assert [f"{event['ph']}{event['id']}" for event in events if event["ph"] in "sf"] == ["s2", "f2", "s3", "f3"]


def test_a_profile_with_a_relative_name_is_found_from_elsewhere(tracker, source, tmp_path, monkeypatch):
    db, elsewhere = tmp_path / "tracker.db", tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    assert tracker("ingest", source.name, "--version", "v1", "--workload", "gpt", "--db", db).code == 0
    monkeypatch.chdir(elsewhere)
    assert tracker("cut", "1", "--step", "2", "-o", "step.json", "--db", db).code == 0


def test_nothing_but_events_and_names_leaves_the_file(tracker, db, tmp_path):
    tracker("cut", "1", "--step", "1", "-o", tmp_path / "one.json.gz", "--db", db)
    found = cut(tmp_path / "one.json.gz")
    assert list(found) == ["traceEvents"] and SECRET not in json.dumps(found)
    named = [event for event in found["traceEvents"] if event["ph"] == "M"]
    assert named == [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}}]
    assert "aten::mul" not in json.dumps(found) and "ProfilerStep#2" not in json.dumps(found)


@pytest.mark.parametrize("step", [1, 2])
def test_an_ingest_of_the_cut_has_the_same_step(tracker, db, tmp_path, step):
    tracker("cut", "run:1", "--step", step, "-o", tmp_path / "cut.json.gz", "--db", db)
    tracker("ingest", tmp_path / "cut.json.gz", "--version", "v1", "--workload", "cut", "--db", tmp_path / "cut.db")
    assert numbers(tmp_path / "cut.db", step) == numbers(db, step)
    assert numbers(db, 2)[2] == [(2_150_000, 400_000, 250_000, 0, 0, 1_900_000)]


SOURCES = {
    "torch": (SAMPLE, 5),
    "ascend": (DATA / "ascend_text" / "bare" / "trace_view.json", None),
    "paddle": (DATA / "paddle_trace" / "one_step.paddle_trace.json", None),
    "paddle, no step": (DATA / "paddle_trace" / "gpu.paddle_trace.json", 0),
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_kind_of_trace_can_be_cut_and_read_again(tracker, tmp_path, name):
    path, step = SOURCES[name]
    words = ("--version", "v1", "--workload", "gpt")
    tracker("ingest", path, *words, "--db", tmp_path / "whole.db")
    chosen = () if step is None else ("--step", step)
    done = tracker("cut", "latest", *chosen, "-o", tmp_path / "cut.json", "--db", tmp_path / "whole.db")
    assert done.err == ""
    assert tracker("ingest", tmp_path / "cut.json", *words, "--db", tmp_path / "cut.db").code == 0
    step = int(done.out.split(": step ")[1].split()[0])
    assert numbers(tmp_path / "cut.db", step) == numbers(tmp_path / "whole.db", step)


def refused(tracker, db, *words):
    """The one sentence; nothing is written."""
    target = db.parent / "out.json"
    done = tracker("cut", *words, "-o", target, "--db", db).plain
    assert (done.code, done.out, done.err.count("\n"), target.exists()) == (2, "", 1, False)
    assert not list(db.parent.glob(".*"))
    return done.err


def test_a_changed_source_is_refused(tracker, db, source):
    source.write_bytes(gzip.compress(gzip.decompress(source.read_bytes()).replace(b"aten::mul", b"aten::div")))
    message = f"tracker: {source}: has another content than when it was ingested; put the file back, or ingest "
    assert refused(tracker, db, "1").startswith(message)
    source.write_bytes(b"no trace at all")
    assert refused(tracker, db, "1").startswith(message)


def test_a_source_that_changes_while_it_is_cut_is_refused(db, source):
    from tracker.intake import cut as of_run
    from tracker.store import open_store

    with open_store(str(db)) as store:
        made = of_run(store, 1)
    source.write_bytes(gzip.compress(gzip.decompress(source.read_bytes()).replace(b"aten::mul", b"aten::div")))
    with pytest.raises(SourceError, match="has another content"):
        b"".join(made.content(compressed=False))


def test_a_source_that_is_gone_is_named(tracker, db, source):
    source.unlink()
    assert refused(tracker, db, "1") == f"tracker: {source}: no such file any more; put the file back\n"


def test_what_is_not_there_is_one_sentence(tracker, db):
    assert refused(tracker, db, "1", "--step", "7") == "tracker: run:1 has no step 7; its steps: 1-2\n"
    assert "run:1 has no trace of rank 3; ranks with a trace: 0" in refused(tracker, db, "1", "--rank", "3")
    assert "9" in refused(tracker, db, "9")


def test_a_run_without_a_trace_says_what_works_instead(tracker, tmp_path):
    db = tmp_path / "tracker.db"
    tracker("ingest", next((DATA / "paddle_summary").glob("*.txt")), "--version", "v1", "--workload", "gpt", "--db", db)
    assert refused(tracker, db, "1") == (
        "tracker: run:1 was read from paddle_summary, of which no step can be cut; tracker show run:1 shows its steps\n"
    )


def test_files_are_replaced_only_with_force(tracker, db, source, tmp_path):
    target = tmp_path / "out.json.gz"
    target.write_text("mine")
    done = tracker("cut", "1", "-o", target, "--db", db)
    assert (done.code, target.read_text()) == (2, "mine") and "exists already; name another file, or" in done.err
    assert tracker("cut", "1", "-o", target, "--force", "--db", db).code == 0
    first = target.read_bytes()
    tracker("cut", "1", "-o", target, "--force", "--db", db)
    assert target.read_bytes() == first
    assert "is the trace itself" in tracker("cut", "1", "-o", source, "--force", "--db", db).err
    assert "does not end in .json or .json.gz" in tracker("cut", "1", "-o", tmp_path / "x.trace", "--db", db).err


def test_the_source_and_the_database_may_be_read_only(tracker, db, source, tmp_path):
    for path in (source, db):
        os.chmod(path, 0o444)
    before = db.read_bytes(), source.read_bytes()
    assert tracker("cut", "1", "-o", tmp_path / "out.json", "--db", db).code == 0
    assert (db.read_bytes(), source.read_bytes()) == before


def test_of_several_ranks_the_slowest_is_cut(tracker, tmp_path):
    from tests.test_intake import write_trace

    for rank in (0, 1):
        path = write_trace(tmp_path / f"rank{rank}.pt.trace.json", rank=rank)
        if rank:
            path.write_text(path.read_text().replace('"dur": 1000', '"dur": 1200'))
    db = tmp_path / "tracker.db"
    tracker("ingest", tmp_path, "--version", "v1", "--workload", "gpt", "--db", db)
    assert ": step 1 of run:1, rank 1, 4 events" in tracker("cut", "1", "-o", tmp_path / "a.json", "--db", db).out
    assert "rank 0, 4 events" in tracker("cut", "run:1:rank0", "-o", tmp_path / "b.json", "--db", db).out


def test_python_has_the_same(db, tmp_path):
    with package.open_store(str(db)) as store:
        made = package.cut(1, tmp_path / "a.json.gz", step=2, store=store)
    assert (made.run_id, made.rank, made.step, made.events) == (1, 0, 2, 14)
    assert made.bytes == (tmp_path / "a.json.gz").stat().st_size


def test_hostile_names_stay_text(tracker, tmp_path):
    path = tmp_path / "\u202ehostile.pt.trace.json.gz"
    shutil.copy(SAMPLE, path)
    db = tmp_path / "tracker.db"
    tracker("ingest", path, "--version", "v1", "--workload", "gpt", "--db", db)
    path.unlink()
    assert "\u202e" not in refused(tracker, db, "1")
