from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from tests.test_sidecar import beside, trace
from tracker import api
from tracker.hooks import places, spool


@pytest.fixture
def queue(monkeypatch, tmp_path) -> Path:
    """The spool that the jobs of this machine write to."""
    monkeypatch.setenv("TRACKER_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("TRACKER_DB", str(tmp_path / "jobs.db"))
    return Path(places.folder(os.environ))


def add(queue: Path, profile: Path) -> None:
    spool.add(str(queue), {"profile": str(profile)}, now_ns=1)


def test_what_jobs_queued_comes_in(tracker, tmp_path, queue):
    profile = trace(tmp_path)
    beside(profile, version="v1", workload="w")
    add(queue, profile)
    done = tracker("ingest", "--spooled")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "run 1  w v1  NVIDIA H100  rank 0  1 step  100.00 us  a.pt.trace.json",
        "1 profile delivered.",
        "Next:",
        "  tracker runs",
    ]
    assert tracker("ingest", "--spooled").out == "nothing to deliver.\n"


@pytest.mark.parametrize("labels", [{}, {"version": "v1", "workload": "of the job"}])
def test_what_was_ingested_by_hand_leaves_the_queue(tracker, tmp_path, queue, monkeypatch, labels):
    """The job gave no labels, or others: those of the hand stay."""
    monkeypatch.setenv("TRACKER_DB", str(tmp_path / "jobs.db"))
    profile = trace(tmp_path)
    spool.add(str(queue), {"profile": str(profile), "said": labels}, now_ns=1)
    assert tracker("ingest", profile, "--version", "v2", "--workload", "by hand").code == 0
    monkeypatch.setenv("TRACKER_DB", str(tmp_path / "jobs.db"))
    done = tracker("ingest", "--spooled", "--db", tmp_path / "jobs.db")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0].startswith("run 1  by hand v2") and "(already stored)" in done.out
    assert spool.entries(str(queue)) == []


def test_what_cannot_be_read_is_told_and_exit_2(tracker, tmp_path, queue):
    add(queue, tmp_path / "gone")
    done = tracker("ingest", "--spooled", tmp_path / "spool")
    assert (done.code, done.out) == (2, "0 profiles delivered, 1 waiting.\n")
    assert done.err == f"{tmp_path}/gone: no such file or folder; check the path (attempt 1 of 20)\n"


def test_an_empty_spool_makes_no_database(tracker, tmp_path, queue):
    assert tracker("ingest", "--spooled").out == "nothing to deliver.\n"
    assert not (tmp_path / "jobs.db").exists()


def test_labels_are_those_of_the_jobs(tracker, queue):
    done = tracker("ingest", "--spooled", "--config", "batch=8")
    assert (done.code, done.out) == (2, "")
    assert "--spooled takes each profile as its job queued it; leave out all other options" in done.err


def test_no_path_and_no_spool_is_an_error(tracker):
    done = tracker("ingest", "--version", "v1")
    assert (done.code, done.err) == (
        2, "tracker: no profile is named; give its path, or --spooled for what jobs queued\n",
    )  # fmt: skip


def test_the_spool_is_that_of_the_database_that_the_command_names(tracker, tmp_path, monkeypatch):
    """The job named it in its environment, by a relative path; here --db does, or a settings file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACKER_SPOOL", str(tmp_path / "spool"))
    monkeypatch.delenv("TRACKER_DB", raising=False)
    settings = tmp_path / "tracker.toml"
    settings.write_text('database = "jobs.db"\n')
    ways = ({"TRACKER_DB": "jobs.db"}, {"TRACKER_CONFIG": str(settings)})
    for at, way in enumerate(ways):
        spool.add(places.folder({**os.environ, **way}), {"profile": str(tmp_path / f"gone{at}")}, now_ns=1)
    other = {**os.environ, "TRACKER_DB": "other.db"}
    spool.add(places.folder(other), {"profile": str(tmp_path / "of the other")}, now_ns=1)
    done = tracker("ingest", "--spooled", "--db", "./jobs.db")
    assert (done.out, done.err.count("attempt 1 of 20")) == ("0 profiles delivered, 1 waiting.\n", 1)
    monkeypatch.setenv("TRACKER_CONFIG", str(settings))
    done = tracker("ingest", "--spooled", "--again")
    assert (done.out, done.err.count("gone0"), done.err.count("gone1")) == ("0 profiles delivered, 2 waiting.\n", 1, 1)
    queued = tracker("status", "--db", tmp_path / "jobs.db").out.partition("Queued by jobs")[2]
    assert (queued.count("gone"), queued.count("of the other")) == (2, 0)
    settings.write_text(f'database = "jobs.db"\n[[watch.folders]]\npath = "{tmp_path}/profiles"\n')
    watched = tracker("watch", "--once", "--db", "jobs.db")
    assert "gone" not in watched.out  # a minute has not passed
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + 3600 * 10**9)
    assert tracker("watch", "--once", "--db", "jobs.db").out.count("put off: ") == 2


def test_what_failed_is_not_tried_again_at_once_unless_somebody_says_so(tracker, tmp_path, queue):
    add(queue, tmp_path / "gone")
    assert tracker("ingest", "--spooled").code == 2
    done = tracker("ingest", "--spooled")
    assert (done.code, done.out) == (0, "nothing to deliver, 1 waiting.\n")
    assert f"note: {tmp_path}/gone waits, next attempt " in done.err
    assert "attempt 2 of 20" in tracker("ingest", "--spooled", "--again").err
    refused = tracker("ingest", tmp_path / "gone", "--again")
    assert (refused.code, refused.err) == (
        2, "tracker: --again reads the files of stored runs, under the labels that they have; leave out PATH; "
        "--version and --workload choose runs\n",
    )  # fmt: skip


def test_what_was_given_up_is_told_and_tried_when_somebody_says_so(tracker, tmp_path, queue):
    spool.add(str(queue), {"profile": str(tmp_path / "gone"), "attempts": 20}, now_ns=1)
    tracker("ingest", "--spooled")
    assert tracker("ingest", "--spooled").out == "nothing to deliver, 1 given up.\n"
    text = tracker("status").out
    assert f"given up, see {queue}/failed/" in text and ", kept until " in text
    assert [one.is_given_up for one in api.status().spooled] == [True]
    assert "attempt 1 of 20" in tracker("ingest", "--spooled", "--again").err


def test_a_spool_of_another_user_is_told_of(tracker, tmp_path, queue, monkeypatch):
    add(queue, tmp_path / "gone")
    tracker("ingest", "--spooled")
    access = os.access
    monkeypatch.setattr(os, "access", lambda place, mode, **_: str(place) != str(queue) and access(place, mode))
    problem = f"{queue}: belongs to user {os.getuid()}, and entries cannot be taken from it"
    assert f"warning: {problem}\n" in tracker("ingest", "--spooled").err
    text = tracker("status").out
    assert f"  ERROR {problem}\n" in text and "1 spool folder not readable" in text.splitlines()[1]
    found = json.loads(tracker("status", "--format", "json").out)["shut"]
    assert found == [{"path": str(queue), "problem": problem.removeprefix(f"{queue}: ")}]
