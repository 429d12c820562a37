from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.test_sidecar import beside, trace
from tracker.hooks import spool


@pytest.fixture
def queue(monkeypatch, tmp_path) -> Path:
    """The spool that the jobs of this machine write to."""
    monkeypatch.setenv("TRACKER_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("TRACKER_DB", str(tmp_path / "jobs.db"))
    return Path(spool.folder(os.environ))


def add(queue: Path, profile: Path) -> None:
    spool.add(str(queue), {"profile": str(profile)}, now_ns=1)


def test_what_jobs_queued_comes_in(tracker, tmp_path, queue):
    profile = trace(tmp_path)
    beside(profile, version="v1", workload="w")
    add(queue, profile)
    done = tracker("ingest", "--spooled")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "run:1  new  v1 of w on NVIDIA H100, rank 0, 1 step: a.pt.trace.json",
        "1 profile delivered.  Next: tracker runs",
    ]
    assert tracker("ingest", "--spooled").out == "nothing to deliver.\n"


def test_what_cannot_be_read_is_told_and_exit_2(tracker, tmp_path, queue):
    add(queue, tmp_path / "gone")
    done = tracker("ingest", "--spooled", tmp_path / "spool")
    assert (done.code, done.out) == (2, "0 profiles delivered, 1 waiting.\n")
    assert done.err == f"{tmp_path}/gone: no such file or folder; check the path (attempt 1 of 20)\n"


def test_an_empty_spool_makes_no_database(tracker, tmp_path, queue):
    assert tracker("ingest", "--spooled").out == "nothing to deliver.\n"
    assert not (tmp_path / "jobs.db").exists()


def test_labels_are_those_of_the_jobs(tracker, queue):
    done = tracker("ingest", "--spooled", "--version", "v1")
    assert (done.code, done.out) == (2, "")
    assert "--spooled takes each profile as its job queued it; leave out the other options" in done.err


def test_no_path_and_no_spool_is_an_error(tracker):
    done = tracker("ingest", "--version", "v1")
    assert (done.code, done.err) == (
        2, "tracker: no profile is named; give its path, or --spooled for what jobs queued\n",
    )  # fmt: skip
