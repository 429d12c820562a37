"""A pull request at the command line: what each push is told, and what the main line never hears."""

from __future__ import annotations

import json
import subprocess

import pytest
from sqlalchemy import text

from tests.notify.made import NOW, alerts
from tests.regressions.made import runs
from tracker.notify.enqueueing import preview
from tracker.regressions.judgement import tracks_of, update
from tracker.store import open_store

SLOW = {"op07": 5.0}
"""op07 takes 5 ms instead of 1: a step of 44 ms instead of 40."""
PR = "gpt @ pr12"


@pytest.fixture
def db(tmp_path):
    """m1 and m2 on the main line; of pr12 two pushes that are 10 % slower, and one that is mended."""
    path = tmp_path / "tracker.db"
    with open_store(str(path)) as store:
        runs(store, "m1")
        runs(store, "m2", start=3)
        for at, changed in enumerate((SLOW, SLOW, None)):
            runs(store, f"push{at + 1}", changed, start=6 + 3 * at, workload=PR)
        update(store, tracks_of(store))
    return path


@pytest.mark.parametrize(
    ("push", "code", "word"), [("push1", 1, "slower"), ("push2", 1, "slower"), ("push3", 0, "fast")]
)
def test_every_push_is_compared_with_the_main_line(tracker, db, push, code, word):
    done = tracker("diff", push, "--workload", "gpt", "--fail-on", "new", "--db", db)
    assert (done.code, word in done.out.splitlines()[1]) == (code, True)
    assert "the main line at m2" in done.out


@pytest.fixture
def clone(tmp_path):
    """Clone so many commits of a repository that has two."""

    def clone_of(depth):
        source, copy = tmp_path / "source", tmp_path / "clone"
        commit = f"-C {source} -c user.name=a -c user.email=a@b commit -q --allow-empty -m one"
        for line in (f"init -q {source}", commit, commit, f"clone -q --depth {depth} file://{source} {copy}"):
            subprocess.run(["git", *line.split()], check=True, capture_output=True)
        return copy

    return clone_of


@pytest.mark.parametrize("words", [("diff", "push1", "--workload", "gpt"), ("findings", "--branch", "pr12")])
def test_shallow_clone_cannot_judge_a_branch(tracker, db, monkeypatch, clone, words):
    monkeypatch.chdir(clone(1))
    done = tracker(*words, "--fail-on", "new", "--db", db)
    assert done.code == 4
    assert "exit 4, this clone is shallow (fetch-depth: 0)" in done.err.splitlines()[-1]
    assert "git fetch --unshallow" in done.err


def test_whole_clone_judges_a_branch_by_time(tracker, db, monkeypatch, clone):
    monkeypatch.chdir(clone(3))
    assert tracker("diff", "push1", "--workload", "gpt", "--fail-on", "new", "--db", db).code == 1


@pytest.mark.parametrize("words", [("diff", "m2", "push1"), ("diff", "m2", "--workload", "gpt")])
def test_shallow_clone_judges_what_needs_no_merge_base(tracker, db, monkeypatch, clone, words):
    monkeypatch.chdir(clone(1))
    assert "shallow" not in tracker(*words, "--fail-on", "new", "--db", db).err


def test_branch_of_known_commits_is_judged_in_a_shallow_clone(tracker, db, monkeypatch, clone):
    with open_store(str(db)) as store, store.begin() as connection:
        connection.execute(text("UPDATE version SET main_commits = 'aaaaaaaaaaaa' WHERE label = 'push1'"))
    monkeypatch.chdir(clone(1))
    done = tracker("diff", "push1", "--workload", "gpt", "--fail-on", "new", "--db", db)
    assert "shallow" not in done.err


def test_a_branch_is_a_side_of_a_diff(tracker, db):
    done = tracker("diff", "main", "pr12", "--db", db)
    assert done.code == 0
    assert "gpt, main m2 -> pr12 push3, NVIDIA H100" in done.out
    assert "Note: main: the newest version of the main line, m2 (3 runs); pr12: its newest version push3 (3 runs)." in (
        " ".join(done.out.split())
    )
    alone = tracker("diff", "pr12", "--fail-on", "new", "--db", db)
    assert (alone.code, "the main line at m2" in alone.out) == (0, True)
    found = json.loads(tracker("diff", "main", "push1", "--format", "json", "--db", db).out)
    assert (found["baseline"]["run_ids"], found["baseline"]["names_branch"]) == ([4, 5, 6], True)


def test_an_unknown_side_names_the_branches(tracker, db):
    done = tracker("diff", "main", "pr13", "--db", db)
    assert done.code == 2
    assert done.plain.err == (
        "tracker: there is no version or branch 'pr13' of gpt; did you mean pr12? newest: m2; branches: pr12 "
        "(--branch NAME for a version of one); tracker versions lists them\n"
    )


def test_the_main_line_is_called_as_the_settings_say(tracker, db, tmp_path, monkeypatch):
    settings = tmp_path / "tracker.toml"
    settings.write_text('[versions]\nmain = "develop"\n')
    monkeypatch.setenv("TRACKER_CONFIG", str(settings))
    assert "develop m2 -> pr12 push3" in tracker("diff", "develop", "pr12", "--db", db).out
    assert tracker("diff", "main", "pr12", "--db", db).code == 2


def test_a_shell_offers_branches_as_sides(db):
    from tracker.cli.completing import _names

    assert _names("side", "p", {"db": str(db)}) == ["pinned", "push1", "push2", "push3", "pr12"]


def test_the_branch_may_be_named_and_a_push_too_by_its_environment(tracker, db, monkeypatch):
    assert tracker("findings", "--branch", "pr12", "--fail-on", "new", "--db", db).code == 0
    monkeypatch.setenv("TRACKER_BRANCH", "pr12")
    assert tracker("diff", "push2", "--fail-on", "new", "--db", db).code == 1
    assert tracker("diff", "m1", "m2", "--db", db).code == 0
    monkeypatch.setenv("TRACKER_BRANCH", "of-nobody")
    assert "m2 is at" in tracker("history", "step", "--db", db).out


def test_history_board_and_findings_show_the_main_line_unless_asked(tracker, db):
    history = json.loads(tracker("history", "step", "--format", "json", "--db", db).out)
    assert {point["version"] for point in history["points"]} == {"m1", "m2"}
    assert "push" not in tracker("board", "--db", db).out
    assert "push" not in tracker("findings", "--state", "all", "--db", db).out
    of_branch = tracker("history", "step", "--branch", "pr12", "--db", db).out
    assert "vs main" in of_branch and "push3" in of_branch
    assert "recovered" in tracker("findings", "--branch", "pr12", "--state", "all", "--db", db).out
    assert "recovered" in tracker("findings", "--version", "push1", "--db", db).out


def test_the_board_of_an_owner_is_that_of_the_settings(tracker, db, tmp_path, monkeypatch):
    settings = tmp_path / "tracker.toml"
    settings.write_text('[[alerts.owners]]\nop = "op0*"\nwho = "Li Wei"\n[[alerts.owners]]\nop = "x"\nwho = "Ann"\n')
    monkeypatch.setenv("TRACKER_CONFIG", str(settings))
    assert tracker("board", "--owner", "Li Wei", "--db", db).out.startswith("1 workload of Li Wei, 6 runs\n")
    assert "no workload fits these filters" in tracker("board", "--owner", "Ann", "--db", db).out
    wrong = tracker("board", "--owner", "Bob", "--db", db)
    assert wrong.code == 2 and "there is no owner 'Bob'; there are Ann, Li Wei" in wrong.err


def test_lists_say_the_branch(tracker, db):
    versions = json.loads(tracker("versions", "--workload", "gpt", "--format", "json", "--db", db).out)["versions"]
    assert [(row["version"], row["branch"]) for row in versions] == [
        ("m1", ""), ("m2", ""), ("push1", "pr12"), ("push2", "pr12"), ("push3", "pr12"),
    ]  # fmt: skip
    found = json.loads(tracker("runs", "--branch", "pr12", "--format", "json", "--db", db).out)["runs"]
    assert {row["branch"] for row in found} == {"pr12"}
    assert len(found) == 9


def test_nobody_is_alerted_about_a_branch(db):
    with open_store(str(db)) as store:
        assert preview(store, alerts(), now_ns=NOW) == []


def test_a_branch_ends_when_it_is_forgotten(tracker, db):
    done = tracker("versions", "forget-branch", "pr12", "--db", db)
    assert done.plain.out == "pr12 forgotten, with 9 runs.\nNext:\n  tracker versions\n"
    assert "push" not in tracker("versions", "--db", db).out
    done = tracker("versions", "forget-branch", "pr12", "--db", db)
    assert done.code == 2
    assert done.plain.err == "tracker: no run is of branch 'pr12'; tracker versions shows the branches\n"


def test_a_branch_ends_with_its_age(tracker, db):
    asked = ("prune", "--older-than", "30d", "--keep-versions", "99", "--db", db)
    assert "would be forgotten, with all their runs: gpt @ pr12" in tracker(*asked, "--dry-run").out
    assert "push" in tracker("versions", "--db", db).out
    assert "forgotten, with all their runs: gpt @ pr12" in tracker(*asked).out
    assert "push" not in tracker("versions", "--db", db).out


def test_a_branch_without_a_main_line_says_so_and_exits_with_4(tracker, tmp_path):
    path = tmp_path / "tracker.db"
    with open_store(str(path)) as store:
        runs(store, "push", workload=PR)
        update(store, tracks_of(store))
    done = tracker("diff", "push", "--fail-on", "new", "--db", path)
    assert done.code == 4
    assert "the main line of gpt has no runs that push of branch pr12 could be compared with" in done.err


def test_a_finding_of_a_branch_is_explained_and_marked(tracker, db):
    listed = json.loads(tracker("findings", "--branch", "pr12", "--state", "all", "--format", "json", "--db", db).out)
    number = listed["findings"][0]["finding_id"]
    assert "m2" in tracker("explain", number, "--db", db).out
    assert tracker("note", number, "--reason", "on purpose", "--db", db).code == 0


def test_a_main_line_of_another_name_is_asked_about(tracker, tmp_path, trace, monkeypatch):
    """The repository renamed master to trunk, and nothing says it, until the settings do."""
    asked = ("--workload", "gpt", "--branch", "trunk", "--db", tmp_path / "tracker.db")
    done = tracker("ingest", trace["v01"], "--version", "v1", *asked)
    assert 'trunk is taken for a branch; if it is the main line now: main = "trunk" under [versions]' in done.err
    settings = tmp_path / "tracker.toml"
    settings.write_text('[versions]\nmain = "trunk"\n')
    monkeypatch.setenv("TRACKER_CONFIG", str(settings))
    done = tracker("ingest", trace["v08"], "--version", "v2", *asked)
    assert "branch" not in done.err
    assert "gpt v2" in done.out


def test_a_branch_may_be_called_like_a_version(tracker, tmp_path):
    path = tmp_path / "tracker.db"
    with open_store(str(path)) as store:
        runs(store, "v1")
        runs(store, "v2", SLOW, start=3, workload="gpt @ v1")
        update(store, tracks_of(store))
    assert tracker("diff", "v2", "--fail-on", "new", "--db", path).code == 1
    assert tracker("history", "step", "--branch", "v1", "--db", path).code == 0


def test_an_empty_branch_is_no_main_line(tracker, tmp_path, trace):
    """As of a variable that is not set: a pull request would become a part of the main line."""
    done = tracker("ingest", trace["v01"], "--version", "v1", "--workload", "gpt", "--branch", "",
                   "--db", tmp_path / "tracker.db")  # fmt: skip
    assert (done.code, "the branch is empty" in done.err) == (2, True)
    assert not (tmp_path / "tracker.db").exists()


def test_where_the_main_line_may_be_slow_itself_it_is_named_as_what_decides(tracker, tmp_path):
    """The one run of m3 is as slow as the three of the branch that left the main line there."""
    path = tmp_path / "tracker.db"
    with open_store(str(path)) as store:
        runs(store, "m1")
        runs(store, "m2", start=3)
        runs(store, "m3", SLOW, start=6, count=1)
        runs(store, "push", SLOW, start=7, workload=PR)
        update(store, tracks_of(store))
    done = tracker("diff", "push", "--fail-on", "new", "--db", path)
    why = "the main line may be as slow itself where the branch left it, and"
    assert done.code == 4
    assert f"A suspect: {why} 1 more run of it decides." in " ".join(done.out.split())
    assert f"{why} one more run of it decides" in done.err
    listed = tracker("findings", "--branch", "pr12", "--db", path).out
    assert "Suspects: the main line may be as slow itself" in listed
