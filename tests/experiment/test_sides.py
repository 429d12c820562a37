"""What a user names as the sides of an experiment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.experiment.checkouts import Checkout, find, prepare
from tracker.errors import UsageError
from tracker.experiment.clones import make_side
from tracker.experiment.sides import environment_of, find_sides, working_folder


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A repository with two versions of a package; the second is checked out."""
    made = Checkout(tmp_path / "trainer")
    made.save({"model/net.py": "WIDTH = 1"})
    made.git("tag", "-a", "-m", "first", "v1")
    made.save({"model/net.py": "WIDTH = 2", "scripts/train.py": "import model.net"})
    return made


def test_revisions_have_commit_tree_and_description(checkout):
    before, after = find(checkout, "v1", "HEAD")
    assert (before.name, before.text, before.described) == ("baseline", "v1", "v1")
    assert before.commit == checkout.git("rev-parse", "v1^{commit}")
    assert after.tree == checkout.git("rev-parse", "HEAD^{tree}")
    assert after.described == checkout.git("describe", "HEAD")
    assert (after.root, after.started) == (checkout.folder, Path())


@pytest.mark.parametrize("text", ["v9", "", "-v1", "--all", "--output=x", "v1..HEAD"])
def test_unknown_revision_is_refused(checkout, text):
    with pytest.raises(UsageError, match=r"neither a revision of .* nor a folder; git branch -a and git tag list"):
        find(checkout, text, "HEAD")
    assert not (checkout.folder / "x").exists()


def test_revision_that_starts_with_a_dash_is_one(checkout):
    checkout.git("update-ref", "refs/tags/-v1", "v1")
    assert find(checkout, "-v1", "HEAD")[0].commit == checkout.git("rev-parse", "v1^{commit}")


def test_revision_outside_of_a_repository_is_refused(tmp_path):
    with pytest.raises(UsageError, match="lies in no git repository; start ab in a checkout, or name two folders"):
        find_sides("main", "HEAD", started_in=tmp_path, dirty=False, differs_otherwise=False)


def test_equal_trees_are_refused(checkout):
    checkout.git("tag", "same")
    with pytest.raises(UsageError, match="both sides are the same tree: same and HEAD "):
        find(checkout, "same", "HEAD")


def test_equal_trees_of_two_commits_are_refused(checkout):
    checkout.commit("empty")
    with pytest.raises(UsageError, match="the same tree"):
        find(checkout, "HEAD~1", "HEAD")


def test_equal_trees_that_differ_otherwise_are_sides(checkout):
    before, after = find(checkout, "HEAD", "HEAD", differs_otherwise=True)
    assert before.tree == after.tree


def test_same_folder_is_refused(checkout, tmp_path):
    (tmp_path / "link").symlink_to(checkout.folder)
    with pytest.raises(UsageError, match="both sides are the same folder"):
        find(checkout, ".", str(tmp_path / "link"))
    assert find(checkout, ".", ".", differs_otherwise=True)[0].folder == checkout.folder


def test_missing_folder_is_refused(checkout):
    with pytest.raises(UsageError, match=r"candidate \./v1: no such folder"):
        find(checkout, "v1", "./v1")


def test_revision_wins_over_a_folder_of_its_name(checkout):
    checkout.write("v1/a.txt", "")
    assert find(checkout, "v1", "HEAD")[0].folder is None
    assert find(checkout, "./v1", "HEAD")[0].folder == checkout.folder / "v1"


def test_dirty_tree_is_refused(checkout):
    checkout.write("model/net.py", "WIDTH = 3")
    with pytest.raises(UsageError, match=r"changes that are not committed.*; commit or stash them, or give --dirty"):
        find(checkout, "v1", "HEAD")


def test_dirty_tree_that_is_no_side_is_left_alone(checkout):
    checkout.save({"model/net.py": "WIDTH = 4"})
    checkout.write("model/net.py", "WIDTH = 3")
    assert find(checkout, "v1", "HEAD~1")[1].commit == checkout.git("rev-parse", "HEAD~1")


def test_untracked_files_make_no_dirty_tree(checkout):
    """As in `git describe --dirty`: code that is committed cannot need them."""
    checkout.write("prof/a.json", "{}")
    assert not find(checkout, "v1", "HEAD")[1].is_working_tree


def test_working_tree_is_the_candidate(checkout):
    checkout.write("model/net.py", "WIDTH = 3")
    before, after = find(checkout, "HEAD", "HEAD", dirty=True)
    assert after.is_working_tree and after.commit == before.commit and after.tree != before.tree
    assert after.described == f"{before.described}-dirty"
    checkout.write("model/net.py", "WIDTH = 4")
    assert find(checkout, "HEAD", "HEAD", dirty=True)[1].tree != after.tree


def test_unchanged_working_tree_is_its_commit(checkout):
    with pytest.raises(UsageError, match="the same tree"):
        find(checkout, "HEAD", "HEAD", dirty=True)
    assert not find(checkout, "v1", "HEAD", dirty=True)[1].is_working_tree


@pytest.mark.parametrize("candidate", ["v1", "."])
def test_dirty_with_another_candidate_is_refused(checkout, candidate):
    with pytest.raises(
        UsageError, match=r"--dirty makes the working tree the candidate, and .* is not what is checked"
    ):
        find(checkout, "HEAD", candidate, dirty=True)


def test_command_runs_in_the_folder_of_the_side(checkout, tmp_path):
    before, after = prepare(tmp_path / "ab", checkout, "HEAD~1", "HEAD", started_in=checkout.folder / "scripts")
    assert working_folder(after) == tmp_path / "ab" / "candidate" / "trainer" / "scripts"
    with pytest.raises(UsageError, match="baseline HEAD~1 has no folder scripts, in which ab was started"):
        working_folder(before)


def test_folder_is_used_in_place(checkout, tmp_path):
    """A copy of the checkout: where ab was started corresponds to a folder in it."""
    (tmp_path / "older" / "scripts").mkdir(parents=True)
    before, _ = find(checkout, str(tmp_path / "older"), "HEAD", started_in=checkout.folder / "scripts")
    prepared = make_side(before, tmp_path / "ab", links=["nothing"])
    assert working_folder(prepared) == tmp_path / "older" / "scripts"
    assert not (tmp_path / "ab").exists()


def test_folder_in_the_repository_is_no_copy_of_it(checkout, tmp_path):
    checkout.write("scripts/variant/a.txt", "")
    before, _ = find(checkout, "variant", "HEAD", started_in=checkout.folder / "scripts")
    assert working_folder(make_side(before, tmp_path, links=[])) == checkout.folder / "scripts" / "variant"


def test_two_folders_need_no_repository(tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    before, after = find_sides("old", "new", started_in=tmp_path, dirty=False, differs_otherwise=False)
    assert (before.described, before.commit, before.tree, after.started) == ("old", None, None, Path())


def test_variables_of_a_side(checkout, tmp_path):
    """Its folders come first; what the caller has in the checkout becomes that of the side, where it has it."""
    checkout.write("deps/x.py", "")
    _, after = prepare(tmp_path / "ab", checkout, "v1", "HEAD", started_in=checkout.folder / "scripts")
    caller = {
        "PYTHONPATH": f"{checkout.folder}/model::{checkout.folder}/deps:/opt/lib:.",
        "PWD": "/elsewhere", "GIT_DIR": "/elsewhere/.git", "GIT_PREFIX": "a/", "HOME": "/root",
    }  # fmt: skip
    environ = environment_of(after, caller)
    own = str(after.folder)
    paths = [f"{own}/scripts", own, f"{own}/model", f"{checkout.folder}/deps", "/opt/lib", "."]
    assert environ == {"PYTHONPATH": os.pathsep.join(paths), "PWD": f"{own}/scripts", "HOME": "/root"}
