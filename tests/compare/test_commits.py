"""What git says of the commits between two versions, and that nothing is said where git cannot know it."""

from __future__ import annotations

import pytest

from tests.repositories import MadeRepository
from tracker.compare.commits import Commits, Repository, pair_of


@pytest.fixture
def made(tmp_path):
    return MadeRepository(tmp_path / "clone")


@pytest.fixture
def three(made):
    """Three commits: the last one makes it slower."""
    return [made.commit("first"), made.commit("second", "Li Wei"), made.commit("use the fast path")]


def between(folder, good, bad):
    return Repository(str(folder)).between(good, bad)


def test_a_single_commit_is_named_with_its_author(made, three):
    _, good, bad = three
    found = between(made.folder, good, bad)
    assert found == Commits(good, bad, 1, "Ann Lee", "use the fast path")
    assert found.words == f"1 commit: {bad[:8]} by Ann Lee: use the fast path"
    assert between(made.folder, good[:9], bad[:9]).author == "Ann Lee"


def test_of_several_commits_only_the_number_is_said(made, three):
    good, _, bad = three
    found = between(made.folder, good, bad)
    assert found == Commits(good, bad, 2)
    assert found.words == f"2 commits: git log --oneline {good}..{bad}"


def test_around_the_current_folder_nobody_is_named(made, three, monkeypatch):
    monkeypatch.chdir(made.folder)
    _, good, bad = three
    assert Repository(None).between(good, bad) == Commits(good, bad, 1)


def test_a_name_is_that_of_the_mailmap(made, three):
    (made.folder / ".mailmap").write_text("Ann Li <a@b>\n")
    assert between(made.folder, *three[1:]).author == "Ann Li"


def test_a_shallow_clone_counts_nothing(made, three, tmp_path):
    """It would count one commit of two."""
    good, _, bad = three
    url = f"file://{made.folder}"
    made.git("clone", "-q", "--depth", "1", url, str(tmp_path / "shallow"))
    made.git("-C", str(tmp_path / "shallow"), "fetch", "-q", "--depth", "1", url, good)
    assert between(tmp_path / "shallow", good, bad) == Commits(good, bad)


@pytest.mark.parametrize("name", ["nowhere", "empty", "file"])
def test_where_there_is_no_repository_the_commits_are_named(tmp_path, three, name, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    good, _, bad = three
    found = between(tmp_path / name, good, bad)
    assert (found, found.words) == (Commits(good, bad), f"commits {good} and {bad}")


def test_commits_that_the_repository_lacks_are_not_counted(made, three):
    assert between(made.folder, three[0], "b" * 40).count is None


def test_without_git_less_is_said(made, three, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert between(made.folder, three[0], three[2]).count is None


def test_nobody_is_named_where_good_has_commits_that_bad_lacks(made, three):
    first, _, good = three
    made.git("switch", "-q", "-c", "other", first)
    bad = made.commit("on another branch")
    assert between(made.folder, good, bad) == Commits(good, bad)
    assert between(made.folder, good, first) == Commits(good, first), "an older version is no change of these commits"


def test_variables_name_no_other_repository(made, three, tmp_path, monkeypatch):
    """As in a hook of git, which sets them."""
    other = MadeRepository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    assert between(made.folder, three[0], three[2]).count == 2


def test_what_is_good_for_a_branch_may_be_of_its_main_line():
    main, own = "a" * 40, "b" * 40
    commits = {("gpt", "m1"): main, ("gpt @ pr1", "push"): own}
    assert pair_of(commits, "gpt @ pr1", "m1", "push") == (main, own)
    assert pair_of(commits, "gpt", "m1", "push") is None
    assert pair_of(commits, "gpt", None, "m1") is None


def test_workload_of_the_good_version_is_known():
    """Both lines have a version v1, and a diff compares that of the main line."""
    main, branch, own = "a" * 40, "c" * 40, "b" * 40
    commits = {("gpt", "v1"): main, ("gpt @ pr1", "v1"): branch, ("gpt @ pr1", "push"): own}
    assert pair_of(commits, "gpt @ pr1", "v1", "push", "gpt") == (main, own)
    assert pair_of(commits, "gpt @ pr1", "v1", "push") == (branch, own)
    assert pair_of(commits, "gpt", "push", "v1", "gpt @ pr1") == (own, main)


@pytest.mark.parametrize("word", ["HEAD", "--all", "-h", "main\0", "", "v1..v2"])
def test_what_is_no_hash_is_never_given_to_git(made, three, word):
    assert between(made.folder, three[0], word).count is None
    assert between(made.folder, word, three[2]).count is None


def test_names_of_commits_hold_no_control_characters_and_end(made, three):
    bad = made.commit("\x1b[31mred\u202e" + "x" * 500, "Ann\x1b[2J")
    found = between(made.folder, three[2], bad)
    assert "\x1b" not in found.words and "\u202e" not in found.words
    assert len(found.subject) == 120 and found.subject.endswith("...")
