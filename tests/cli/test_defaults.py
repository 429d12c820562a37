"""What need not be said: defaults from the environment, from git, and what is refused where nothing is meant."""

from __future__ import annotations

import json

import pytest

from tests.cli.test_run import job, queued, run  # noqa: F401 job and run are fixtures
from tests.factories import save
from tests.regressions import made
from tests.test_sidecar import trace
from tracker.hooks import spool
from tracker.regressions.judgement import tracks_of, update
from tracker.store import open_store


@pytest.fixture
def two(tmp_path, monkeypatch):
    """v1 and v2 of gpt (runs 1 to 6), and of bert (runs 7 and 8)."""
    path = tmp_path / "two.db"
    with open_store(str(path)) as store:
        made.runs(store, "v1", count=3)
        made.runs(store, "v2", count=3, start=3)
        save(store, "v1", workload="bert")
        save(store, "v2", workload="bert")
        update(store, tracks_of(store))
    return path


def test_a_workload_of_the_environment_is_the_default_of_every_command(tracker, two, monkeypatch):
    monkeypatch.setenv("TRACKER_WORKLOAD", "gpt")
    for words in (
        "diff v1 v2", "history op07", "log", "findings", "versions pin v1", "show latest", "thresholds",
        "prune --dry-run", "versions judge", "diff latest --baseline previous", "versions order v2 --before v1",
    ):  # fmt: skip
        done = tracker(*words.split(), "--db", two)
        assert done.code == 0, f"{words}: {done.err}"
        assert "bert" not in done.out
    listed = json.loads(tracker("runs", "--format", "json", "--db", two).out)["runs"]
    assert {one["workload"] for one in listed} == {"gpt"}
    assert "run:8" in tracker("runs", "--workload", "bert", "--db", two).out, "an option overrides it"


def test_a_version_of_the_environment_is_the_default_of_lists(tracker, two, monkeypatch):
    monkeypatch.setenv("TRACKER_VERSION", "v2")
    found = json.loads(tracker("runs", "--format", "json", "--db", two).out)["runs"]
    assert [one["run_id"] for one in found] == [8, 6, 5, 4]


def test_an_ingest_takes_what_neither_option_nor_sidecar_says(tracker, tmp_path, monkeypatch):
    profile = trace(tmp_path)
    monkeypatch.setenv("TRACKER_VERSION", "v7")
    monkeypatch.setenv("TRACKER_WORKLOAD", "gpt")
    assert "gpt v7" in tracker("ingest", profile, "--db", tmp_path / "a.db").out
    assert "gpt v8" in tracker("ingest", profile, "--version", "v8", "--db", tmp_path / "b.db").out


def test_a_job_without_a_version_is_delivered_once_one_is_named(job, run, tracker, monkeypatch):  # noqa: F811 the fixtures
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(job.parent))
    done = run("--profiles", "prof", "--workload", "toy", "--", "cp", "made.json", "prof")
    (proposed,) = [line for line in done.stderr.splitlines() if line.startswith("note: ")]
    words = proposed.partition("not ingested yet: tracker ")[2].split()
    assert words[:2] + words[3:] == ["ingest", "--spooled", "--version", "VERSION"]
    monkeypatch.setenv("TRACKER_DB", str(job / "jobs.db"))
    again = tracker(*[word.replace("VERSION", "v3") for word in words])
    assert again.out.startswith("run 1  toy v3"), again.err
    assert queued(job) == []


def test_profiles_for_another_database_are_counted(job, run, tracker, monkeypatch):  # noqa: F811 the fixtures
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(job.parent))
    run("--profiles", "prof", "--db", "postgresql://ann:secret@db.example/runs", "--", "cp", "made.json", "prof")
    monkeypatch.setenv("TRACKER_SPOOL", str(job / "spool"))
    done = tracker("ingest", "--spooled", "--db", job / "other.db")
    assert done.out == "nothing to deliver.\n"
    assert done.err == (
        "note: 1 profile waiting for another database, postgresql://db.example:5432/runs; name it with --db\n"
    )


def test_a_password_in_an_entry_of_another_hand_is_not_shown(tracker, tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKER_SPOOL", str(tmp_path / "spool"))
    entry = {"profile": "/p", "database": "postgresql://ann:s3/c@ret@db.example/runs?password=s3"}
    spool.add(str(tmp_path / "spool/node/other"), entry, now_ns=1)
    done = tracker("ingest", "--spooled", "--db", tmp_path / "own.db")
    assert done.err == (
        "note: 1 profile waiting for another database, postgresql://db.example/runs; name it with --db\n"
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("diff run:1 run:4 --workload bert", "run:1 is of workload 'gpt', not 'bert'; leave out --workload"),
        ("runs --tag =", "--tag '=' names no tag; write --tag KEY or --tag KEY=VALUE"),
        ("versions unpin v1 --workload gpt", "version 'v1' of gpt is not pinned; tracker versions shows which one is"),
        ("diff run:1 run:4 --by communication",
         "--by communication needs three sides or more; use --only communication"),
        ("history 99999", "there is no series 99999; tracker history '*' --workload WORKLOAD lists them"),
        ("diff run:x run:4", "'run:x' is no run; write run:41, run:41,run:42 or run:41:rank3"),
        ("mute 1 --until version:v99 --reason r",
         "--until version:v99: no such version; newest: v1, v2; give future:v99 for a version without runs"),
        ("diff run:1", "run:1 has no earlier runs on its device and configuration; name the baseline as well: BASELINE "
         "CANDIDATE"),
    ],
)  # fmt: skip
def test_what_means_nothing_is_refused(tracker, two, words, problem):
    done = tracker(*words.split(), "--db", two).plain
    assert (done.code, done.out, done.err) == (2, "", f"tracker: {problem}\n")


@pytest.mark.parametrize("words", [("diff", "run:1", "run:4"), ("show", "run:1")])
def test_sections_must_name_one(tracker, two, words):
    done = tracker(*words, "--only", "", "--db", two)
    assert (done.code, done.err) == (
        2,
        "tracker: --only names nothing; give a word, or leave out --only\n",
    )


def test_prune_does_not_guess_in_a_script(tracker, two):
    done = tracker("prune", "--db", two)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("tracker: neither --older-than nor --keep-versions is given; give one")
    assert tracker("prune", "--yes", "--db", two).code == 0
    assert tracker("prune", "--keep-versions", "3", "--db", two).code == 0
