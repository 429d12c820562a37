"""Git revisions in place of versions, and paths that look like versions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest
from sqlalchemy import text

from tests.regressions import made
from tests.regressions.found import made_finding
from tracker import compare
from tracker.cli.start import samples
from tracker.regressions.judgement import tracks_of, update
from tracker.store import open_store


def git(*words):
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "GIT_AUTHOR_DATE": "1700000000 +0000", "GIT_COMMITTER_DATE": "1700000000 +0000"},
    )
    return done.stdout.strip()


@pytest.fixture
def commits(tmp_path, monkeypatch):
    """A repository of four commits; v1 is of the first one, v2 (op07 is half as slow again) of the third."""
    monkeypatch.chdir(tmp_path)
    for variable in ("GIT_DIR", "GIT_WORK_TREE"):
        monkeypatch.delenv(variable, raising=False)
    git("init", "-q")
    found = []
    for name in "abcd":
        git("commit", "-q", "--allow-empty", "-m", name)
        found.append(git("rev-parse", "HEAD"))
    git("tag", "light", found[0])
    with open_store(str(tmp_path / "git.db")) as store:
        made.runs(store, "v1", count=5, of_run={"commit": found[0][:12]})
        made.runs(store, "v2", {"op07": 1.5}, start=5, of_run={"commit": found[2]})
        update(store, tracks_of(store))
    monkeypatch.setenv("TRACKER_DB", str(tmp_path / "git.db"))
    return found


@pytest.fixture
def call(tracker, commits, monkeypatch, tmp_path):
    monkeypatch.setenv("TRACKER_DB", str(tmp_path / "git.db"))
    return tracker


def sides(done):
    assert done.code == 0, done.err
    found = json.loads(done.out)
    return found["baseline"]["run_ids"], found["candidate"]["run_ids"]


def test_any_revision_of_a_stored_commit_is_its_version(call, commits):
    first, third = commits[0], commits[2]
    for good, bad in (("light", "HEAD~1"), (first, third), (first[:20], third[:8]), ("v1", "HEAD^"), (first[:5], "v2")):
        assert sides(call("diff", good, bad, "--format", "json")) == ([1, 2, 3, 4, 5], [6, 7, 8])


def test_a_revision_without_runs_is_no_version(call):
    done = call("diff", "v1", "HEAD")
    problem = "there is no version 'HEAD' of gpt; newest: v2; tracker versions lists them"
    assert (done.code, done.err) == (2, f"tracker: {problem}\n")


def test_a_revision_of_two_versions_names_both(call, commits, tmp_path):
    with open_store(str(tmp_path / "git.db")) as store:
        made.runs(store, "v2-dirty", count=1, start=9, of_run={"commit": commits[2]})
    done = call("diff", "v1", "HEAD~1")
    assert (done.code, done.err) == (2, "tracker: 'HEAD~1' means several versions: v2, v2-dirty; name one of them\n")


def test_edits_and_filters_take_revisions_too(call):
    assert call("versions", "pin", "light").out.startswith("v1 pinned.")
    assert call("findings", "--version", "HEAD~1").out.startswith("gpt, NVIDIA H100: 1 incident")
    assert "\n5 runs.\n" in call("runs", "--version", "light").out
    assert call("log", "--baseline", "light").code == 0
    assert call("calibrate", "light").code in (0, 2)


def test_explain_counts_the_commits_between_good_and_bad(call, commits):
    number = str(json.loads(call("findings", "--format", "json").out)["findings"][0]["finding_id"])
    first, third = commits[0][:12], commits[2]
    command = f"\n  git log --oneline {first}..{third}\n"
    for said in (call("explain", number).out, call("findings").out, call("findings", "--format", "markdown").out):
        assert "Between v1 and v2: 2 commits:" in said
        assert command.strip() in said.splitlines() or command in said, "on a line of its own, to be copied"


def test_explain_says_which_good_version_has_no_commit(call, tmp_path):
    """An alert says nothing of it, nor does a list."""
    with open_store(str(tmp_path / "git.db")) as store, store.connect() as connection:
        connection.execute(text("UPDATE version SET commit_id = NULL WHERE label = 'v1'"))
        connection.commit()
    said = "v1 has no commit: what changed between v1 and v2 is not known; give --commit at ingest"
    for words in (("explain", "I-1"), ("explain", "1"), ("findings", "--details")):
        assert said in " ".join(call(*words).out.split())
    assert said not in " ".join(call("findings").out.split())


def test_a_wrong_repository_is_named_where_commits_are_said(call, tmp_path, monkeypatch):
    settings = tmp_path / "tracker.toml"
    settings.write_text(
        '[page]\nrepository = "gone"\n[[alerts.channels]]\nname = "team"\nurl_env = "HOOK"\nform = "long"\n'
    )
    monkeypatch.setenv("TRACKER_CONFIG", str(settings))
    for words in (("explain", "I-1"), ("notify", "--dry-run")):
        done = call(*words)
        assert done.code == 0, done.err
        assert f"note: [page] repository: {tmp_path / 'gone'} is no folder" in done.err


def test_elsewhere_the_two_commits_are_named(call, commits, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert f"commits {commits[0][:12]} and {commits[2]}" in " ".join(call("explain", "1").out.split())


@pytest.fixture
def calls_of_git(tmp_path, monkeypatch):
    """What git is called with, a line per call."""
    log, folder = tmp_path / "calls.txt", tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text(f'#!/bin/sh\necho "$@" >>{log}\nexec {shutil.which("git")} "$@"\n')
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return lambda: log.read_text().splitlines() if log.exists() else []


@pytest.mark.parametrize(("is_there", "expected"), [(True, 1 + 5), (False, 1)])
def test_git_is_asked_for_five_pairs_in_a_repository(commits, calls_of_git, tmp_path, monkeypatch, is_there, expected):
    hashes = [f"{number:040x}" for number in range(8)]
    with open_store(str(tmp_path / "many.db")) as store:
        for number, commit in enumerate(hashes):
            made.runs(store, f"v{number}", count=1, start=number, of_run={"commit": commit})
        if not is_there:
            (tmp_path / "elsewhere").mkdir()
            monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
            monkeypatch.chdir(tmp_path / "elsewhere")
        rows = [made_finding(at, "op", good_version=f"v{at - 1}", version=f"v{at}") for at in range(7, 0, -1)]
        notes = compare.notes_on_commits(store, rows + rows)
    assert notes[0] == f"Between v6 and v7: commits {hashes[6]} and {hashes[7]}"
    assert [note.partition(":")[0] for note in notes[1:]] == [
        "Between v5 and v6", "Between v4 and v5", "Between v3 and v4", "Between v2 and v3",
        "Commits between the versions of 2 older changes",
    ]  # fmt: skip
    assert len(calls_of_git()) == expected


def test_folders_of_the_current_folder_are_sides(tracker, tmp_path, monkeypatch):
    """Without a database, and where the database has no such version."""
    monkeypatch.chdir(tmp_path)
    for name, version in (("old", "v01"), ("new", "v08")):
        (tmp_path / name).mkdir()
        shutil.copy(samples().folder / version / "run1.pt.trace.json.gz", tmp_path / name)
    named = tracker("diff", "./old", "./new").out
    assert tracker("diff", "old", "new").out == named
    tracker("ingest", "old", "--version", "v1", "--workload", "gpt", "--db", "own.db")
    assert tracker("diff", "old", "new", "--db", "own.db").plain.out == named
    assert tracker("show", "new", "--db", "own.db").code == 0


def test_a_version_wins_over_a_folder_of_its_name(tracker, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v1").mkdir()
    with open_store("own.db") as store:
        made.runs(store, "v1", count=1)
        made.runs(store, "v2", count=1, start=1)
    out = " ".join(tracker("diff", "v1", "v2", "--db", "own.db").out.split())
    assert "v1 is of the database; ./v1 is the folder of that name." in out
