"""What git says of the commits between two versions, and that nothing is said where git cannot know it."""

from __future__ import annotations

import pytest

from tests.regressions.found import made_finding
from tests.repositories import MadeRepository
from tracker.compare.commits import Commits, Repository, VersionCommits, VersionPair, choose_pair, pair_of
from tracker.results.findings import ToldCommit


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
    assert found == Commits(good, bad, 1, (ToldCommit(commit=bad, author="Ann Lee", subject="use the fast path"),))
    assert found.words == f"1 commit: {bad[:8]} by Ann Lee: use the fast path"
    assert between(made.folder, good[:9], bad[:9]).named[0].author == "Ann Lee"


def test_up_to_five_commits_are_named_the_newest_first(made, three):
    first, second, third = three
    found = between(made.folder, first, third)
    assert found.words == f"2 commits: {third[:8]} by Ann Lee: use the fast path; {second[:8]} by Li Wei: second"
    more = [made.commit(f"step {number}") for number in range(3)]
    assert len(between(made.folder, first, more[-1]).named) == 5


def test_of_more_commits_the_number_and_range_are_said(made, three):
    last = [made.commit(f"step {number}") for number in range(4)][-1]
    found = between(made.folder, three[0], last)
    assert found == Commits(three[0], last, 6)
    assert found.words == f"6 commits:\ngit log --oneline {three[0]}..{last}"


def test_around_the_current_folder_nobody_is_named(made, three, monkeypatch):
    monkeypatch.chdir(made.folder)
    _, good, bad = three
    assert Repository(None).between(good, bad) == Commits(good, bad, 1)


def test_a_name_is_that_of_the_mailmap(made, three):
    (made.folder / ".mailmap").write_text("Ann Li <a@b>\n")
    assert between(made.folder, *three[1:]).named[0].author == "Ann Li"


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


MAIN, OWN, BAD = "a" * 40, "b" * 40, "c" * 40


def versions(**commits):
    """Versions of gpt in this order, each with its commit, "" for none."""
    hashes = {("gpt", version): commit for version, commit in commits.items() if commit}
    return VersionCommits(hashes, {("gpt", version): place for place, version in enumerate(commits)})


def of_incident(name, good_version, delta, **more):
    return made_finding(1, name, workload="gpt", version="v11", good_version=good_version, delta=delta, **more)


STEP, IDLE, SMALL = (
    of_incident("step", "v09", 38e6), of_incident("idle time", "v10", 30e6), of_incident("aten::add", "v10", 1e6)
)  # fmt: skip


@pytest.mark.parametrize("rows", [(STEP, IDLE), (IDLE, STEP), (STEP, IDLE, SMALL)])
def test_the_nearest_good_version_of_a_large_part_counts(rows):
    """The step is good until v09, which has no commit, but what it waits for until v10."""
    expected = VersionPair("v10", "v11", OWN, BAD)
    assert choose_pair(versions(v09="", v10=OWN, v11=BAD), rows) == expected
    assert choose_pair(versions(v09=MAIN, v10=OWN, v11=BAD), rows) == expected, "the narrower range"


def test_a_small_finding_narrows_no_range():
    """It may have come with v11 while the step was slower before."""
    assert choose_pair(versions(v09=MAIN, v10=OWN, v11=BAD), (STEP, SMALL)) == VersionPair("v09", "v11", MAIN, BAD)


def test_what_the_step_gained_names_no_version():
    gained = of_incident("aten::mm", "v10", -30e6, direction="improvement")
    assert choose_pair(versions(v09=MAIN, v10=OWN, v11=BAD), (STEP, gained)).good_version == "v09"


@pytest.mark.parametrize("commits", [{}, {"v10": OWN}, {"v11": BAD}, {"v10": BAD, "v11": BAD}])
def test_without_two_commits_there_is_no_pair(commits):
    assert choose_pair(versions(**{"v09": "", "v10": "", "v11": "", **commits}), (STEP, IDLE)) is None


def test_what_is_good_for_a_branch_may_be_of_its_main_line():
    places = {("gpt", "m1"): 1, ("gpt @ pr1", "push"): 1}
    commits = VersionCommits({("gpt", "m1"): MAIN, ("gpt @ pr1", "push"): OWN}, places)
    row = made_finding(1, "op", workload="gpt @ pr1", version="push", good_version="m1")
    assert choose_pair(commits, [row]) == VersionPair("m1", "push", MAIN, OWN)


@pytest.mark.parametrize(
    ("name", "problem"), [("nowhere", "is no folder"), ("empty", "is no git repository"), ("clone", "")]
)
def test_a_wrong_repository_says_what_is_wrong(made, tmp_path, name, problem):
    (tmp_path / "empty").mkdir()
    found = Repository(str(tmp_path / name)).problem
    assert found.startswith(f"[page] repository: {tmp_path / name} {problem}") if problem else not found
    assert Repository(None).problem == ""


def test_a_shallow_clone_is_named_as_such(made, three, tmp_path):
    made.git("clone", "-q", "--depth", "1", f"file://{made.folder}", str(tmp_path / "shallow"))
    assert Repository(str(tmp_path / "shallow")).problem.endswith("run git fetch --unshallow there")


def test_workload_of_the_good_version_is_known():
    """Both lines have a version v1, and a diff compares that of the main line."""
    main, branch, own = "a" * 40, "c" * 40, "b" * 40
    hashes = {("gpt", "v1"): main, ("gpt @ pr1", "v1"): branch, ("gpt @ pr1", "push"): own}
    commits = VersionCommits(hashes, {})
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
    (one,) = found.named
    assert len(one.subject) == 120 and one.subject.endswith("...")
