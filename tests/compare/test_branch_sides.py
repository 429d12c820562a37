"""The name of a branch, or of the main line, as a side: its newest version."""

from __future__ import annotations

import subprocess

import pytest
from sqlalchemy import text

from tests.regressions.made import runs
from tracker import api
from tracker.compare import branch_sides, diff, diffs
from tracker.compare.branch_sides import KnownNames, find_branch
from tracker.errors import SourceError, UsageError
from tracker.profile import Device
from tracker.regressions.judgement import tracks_of, update
from tracker.reports import render
from tracker.store import runs as edits

SLOW = {"op07": 5.0}
"""op07 takes 5 ms instead of 1: a step of 44 ms instead of 40."""
ASCEND = Device("Huawei", "Ascend910B")


@pytest.fixture
def line(store):
    """Runs 1 to 6 are of m1 and m2 of gpt, 7 to 12 of push1 and push2 of its branch pr12."""
    for at, version in enumerate(("m1", "m2")):
        runs(store, version, start=3 * at, of_run={"commit": str(at) * 40})
    runs(store, "push1", start=6, workload="gpt @ pr12")
    runs(store, "push2", SLOW, start=9, workload="gpt @ pr12")
    return store


def sides_of(found):
    return found.baseline.run_ids, found.candidate.run_ids


def leave_main_line_at(store, commit):
    with store.begin() as connection:
        connection.execute(
            text("UPDATE version SET main_commits = :commit WHERE label LIKE 'push%'"), {"commit": commit}
        )


def test_a_branch_is_its_newest_version(line):
    found = diff(line, "main", "pr12")
    assert sides_of(found) == ((4, 5, 6), (10, 11, 12))
    assert found.headline.startswith("pr12 is 10.1 % slower than main: ")
    assert (
        found.notes[0]
        == "main: the newest version of the main line, m2 (3 runs); pr12: its newest version push2 (3 runs)."
    )
    assert sides_of(diff(line, "master", "push1")) == ((4, 5, 6), (7, 8, 9))


def test_branch_alone_is_compared_with_where_it_left(line):
    leave_main_line_at(line, "0" * 12)
    update(line, tracks_of(line))
    (found,) = diffs(line, ["pr12"])
    assert sides_of(found) == ((1, 2, 3), (10, 11, 12))
    assert "at m1 (the merge base), which push2 of branch pr12 was judged against: m1 (run 1-3)." in found.notes[1]
    assert sides_of(found) == sides_of(diffs(line, ["push2"])[0])


@pytest.mark.parametrize(
    ("side", "version"), [("pr12@H100", "push2"), ("push1@H100", "push1@H100"), ("pr12@NVIDIA H100", "push2")]
)
def test_note_on_a_baseline_names_a_version_and_no_branch(line, side, version):
    leave_main_line_at(line, "0" * 12)
    update(line, tracks_of(line))
    (found,) = diffs(line, [side])
    assert f"which {version} of branch pr12 was judged against" in " ".join(found.notes)


def test_each_device_of_a_branch_has_the_note_on_its_version(line):
    """The name of a device is put behind that of the branch."""
    for version, workload in (("m1", "gpt"), ("push2", "gpt @ pr12")):
        runs(line, version, start=30, workload=workload, device=ASCEND)
    leave_main_line_at(line, "0" * 12)
    update(line, tracks_of(line))
    notes = [" ".join(found.notes) for found in diffs(line, ["pr12"])]
    assert len(notes) == 2 and all("push2 of branch pr12 was judged against" in note for note in notes)


def test_known_merge_base_is_in_the_title(line):
    assert "gpt, main m2 -> pr12 push2, NVIDIA H100" in render(diff(line, "main", "pr12"), "text")
    leave_main_line_at(line, "0" * 12)
    words = "gpt, main m2 -> pr12 push2, branched from m1, NVIDIA H100"
    found = diff(line, "main", "pr12")
    assert (found.baseline.merge_base, found.candidate.merge_base) == ("", "m1")
    assert words in render(found, "text")
    assert words.replace(">", "&gt;") in render(found, "markdown")
    # a commit that is no version, with one before it that is
    leave_main_line_at(line, "f" * 12 + " " + "0" * 12)
    assert diff(line, "main", "pr12").candidate.merge_base == ""


def test_a_version_wins_over_a_branch_of_its_name(line):
    runs(line, "pr12", start=20)
    found = diff(line, "m1", "pr12")
    assert sides_of(found) == ((1, 2, 3), (13, 14, 15))
    assert "pr12 is the version of that name, and not the branch pr12." in found.notes
    assert not found.candidate.names_branch


def test_a_branch_wins_over_a_git_revision(line, tmp_path, monkeypatch):
    """The branch of git is at the commit of m1: a name is about the runs that its line says."""
    monkeypatch.chdir(tmp_path)
    for variable in ("GIT_DIR", "GIT_WORK_TREE"):
        monkeypatch.delenv(variable, raising=False)
    for words in ("init -q -b trunk", "-c user.name=a -c user.email=a@b commit -q --allow-empty -m one", "branch pr12"):
        subprocess.run(["git", *words.split()], check=True, capture_output=True)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    with line.begin() as connection:
        connection.execute(text("UPDATE version SET commit_id = :commit WHERE label = 'm1'"), {"commit": commit})
    assert sides_of(diff(line, "m2", "pr12")) == ((4, 5, 6), (10, 11, 12))
    # a branch of which nothing is stored is a revision
    assert sides_of(diff(line, "m2", "trunk")) == ((4, 5, 6), (1, 2, 3))
    # until the repository calls its main line so
    for words in (
        "update-ref refs/remotes/origin/trunk HEAD",
        "symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/trunk",
    ):
        subprocess.run(["git", *words.split()], check=True, capture_output=True)
    assert sides_of(diff(line, "m1", "trunk")) == ((1, 2, 3), (4, 5, 6))


def test_settings_name_the_main_line(line):
    line.main_branch = "develop"
    assert sides_of(diff(line, "develop", "pr12"))[0] == (4, 5, 6)
    with pytest.raises(UsageError, match="there is no version or branch 'main'"):
        diff(line, "main", "pr12")


def test_a_stored_branch_may_be_called_main(line):
    runs(line, "old", start=20, workload="gpt @ main")
    found = diff(line, "m1", "main")
    assert sides_of(found)[1] == (13, 14, 15)
    assert found.notes[0] == "main: its newest version old (3 runs)."


def test_of_several_workloads_the_other_side_chooses(line):
    runs(line, "b1", start=20, workload="bert")
    runs(line, "fix1", start=23, workload="bert @ fix")
    assert sides_of(diff(line, "main", "pr12"))[0] == (4, 5, 6)
    assert sides_of(diff(line, "main", "fix"))[0] == (13, 14, 15)
    assert sides_of(diff(line, "run:1", "main"))[1] == (4, 5, 6)
    with pytest.raises(UsageError, match="main is the main line of several workloads: bert, gpt; choose one with --w"):
        diffs(line, ["main"])
    runs(line, "fix1", start=26, workload="gpt @ fix")
    with pytest.raises(
        UsageError, match="several workloads have a branch 'fix': bert, gpt; choose one with --workload"
    ):
        diffs(line, ["fix"])
    assert sides_of(api.diff("main", "fix", store=line, workload="gpt")) == ((4, 5, 6), (19, 20, 21))


def test_a_branch_on_one_device(line):
    runs(line, "push3", start=20, count=2, workload="gpt @ pr12", device=ASCEND)
    assert sides_of(diff(line, "m2", "pr12@H100"))[1] == (10, 11, 12)
    found = diff(line, "m2", "pr12@Ascend", options=None)
    assert sides_of(found)[1] == (13, 14)
    assert found.notes[0] == "pr12@Ascend: its newest version push3 (2 runs)."
    with pytest.raises(UsageError, match="gpt @ pr12 has no active run on a device like 'A100'"):
        diff(line, "m2", "pr12@A100")


def test_branch_with_a_slash_keeps_its_whole_name(line):
    """The last part of pull/12 is a number, and that of two paths says which they are."""
    for at in (12, 13):
        runs(line, f"p{at}", SLOW if at == 13 else None, start=2 * at, workload=f"gpt @ pull/{at}")
    found = diff(line, "pull/12", "pull/13")
    assert found.headline.startswith("pull/13 is ") and " slower than pull/12: " in found.headline
    assert "gpt, pull/12 p12 -> pull/13 p13" in render(found, "text")
    assert ["pull/12", "pull/13", "change"] in [line.split()[1:4] for line in render(found, "text").splitlines()]
    assert "pull/13" in render(api.matrix("m1", "main", "pull/13", store=line), "text")
    assert render(api.advise("pull/13", store=line), "text").startswith("pull/13, ")


def test_an_excluded_version_is_not_the_newest(line):
    edits.exclude_all(line, [10, 11, 12], "noisy")
    assert sides_of(diff(line, "main", "pr12"))[1] == (7, 8, 9)


def test_each_device_of_a_branch_counts_its_runs(line):
    for version, workload in (("m2", "gpt"), ("push2", "gpt @ pr12")):
        runs(line, version, start=30, count=2, workload=workload, device=ASCEND)
    notes = [found.notes[0] for found in diffs(line, ["main", "pr12"])]
    assert [note.count("(2 runs)") for note in notes] == [2, 0]
    assert notes[1].endswith("pr12@NVIDIA H100: its newest version push2 (3 runs).")


def test_unknown_side_names_branches(line):
    words = "there is no version or branch 'pr1' of gpt; did you mean pr12.*branches: pr12 .--branch NAME"
    with pytest.raises(UsageError, match=words):
        diff(line, "main", "pr1")


@pytest.mark.parametrize("name", ["", "@", "@H100", "main@", "pr12@"])
def test_no_name_and_no_device_are_no_branch(line, name):
    assert find_branch(KnownNames(line), name) is None
    assert find_branch(KnownNames(line), "main@H100").device == "H100"


@pytest.mark.parametrize("name", ["main@", "pr12@", "m1@"])
def test_an_empty_device_is_one_sentence(line, name):
    with pytest.raises(UsageError, match=f"'{name}' names no device behind @; write {name}DEVICE, or {name[:-1]}"):
        diff(line, "m2", name)


def test_git_is_asked_once_for_all_names(line, monkeypatch):
    asked = []
    monkeypatch.setattr(branch_sides, "name_of_remote_main_line", lambda *_: asked.append(1) or "trunk")
    known = KnownNames(line)
    assert [find_branch(known, name) for name in ("one", "two@H100", "three")] == [None] * 3
    assert find_branch(known, "trunk").is_main_line
    assert len(asked) == 1


def test_a_label_is_a_version_of_a_branch_and_its_main_line(line):
    """Of another branch it is none."""
    runs(line, "other1", start=20, workload="gpt @ other")
    known = KnownNames(line)
    assert known.is_version("m1", "gpt @ pr12") and known.is_version("push1", "gpt") and known.is_version("push1")
    assert not known.is_version("push1", "gpt @ other") and not known.is_version("push1", "bert")


def test_files_of_the_name_come_first_and_folders_last(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pr12").mkdir()
    found = diff(line, "main", "pr12")
    assert sides_of(found)[1] == (10, 11, 12)
    assert "pr12: pr12 is of the database; ./pr12 is the folder of that name." in found.notes
    (tmp_path / "main").mkdir()
    assert sides_of(diff(line, "main", "pr12"))[0] == (4, 5, 6)
    (tmp_path / "other").mkdir()
    # two folders, of which one is called like the main line
    with pytest.raises(SourceError, match="other"):
        diff(line, "pr12", "other")
    with pytest.raises(SourceError, match="main"):
        diff(line, "main", "other")


def test_other_commands_take_branches(line):
    assert api.show("pr12", store=line).run["version"] == "push2"
    assert "pr12: its newest version push2 (3 runs)." in api.show("pr12", store=line).notes
    assert "pr12: its newest version push2 (3 runs)." in api.advise("pr12", store=line).notes
    assert "pr12: its newest version push2 (3 runs)." in api.cluster("pr12", store=line).notes
    assert [side.version for side in api.matrix("m1", "main", "pr12", store=line).sides] == ["m1", "m2", "push2"]
