"""Which branch a job trains, and where that left the main line."""

from __future__ import annotations

import subprocess

import pytest

from tracker.hooks.branch import branch_of_ci, capture_branch, main_commits


def git(folder, line):
    author = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ["git", "-C", str(folder), *author, *line.split()], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """Two commits on main, and one on fix/attention behind the first."""
    folder = tmp_path / "code"
    folder.mkdir()
    for line in (
        "init -q", "commit -q --allow-empty -m one", "checkout -q -b fix/attention", "commit -q --allow-empty -m fix",
        "checkout -q main", "commit -q --allow-empty -m two", "checkout -q fix/attention",
    ):  # fmt: skip
        git(folder, line)
    return folder


def test_a_branch_knows_the_commits_of_the_main_line_that_it_left(repository):
    said = capture_branch([str(repository / "no such folder"), str(repository)], {"GITHUB_HEAD_REF": "another"}, 10)
    first = git(repository, "rev-parse main~1")
    assert said == {"branch": "fix/attention", "main_commits": [first[:12]]}


def test_the_main_line_has_left_nothing(repository):
    git(repository, "checkout -q main")
    assert capture_branch([str(repository)], {}, 10) == {"branch": "main"}


def test_the_remote_says_what_the_main_line_is_called(repository, tmp_path):
    git(repository, "branch -m main trunk")
    git(repository, "checkout -q trunk")
    git(tmp_path, f"clone -q {repository} copy")
    copy = tmp_path / "copy"
    git(copy, "checkout -q fix/attention")
    said = capture_branch([str(copy)], {}, 10)
    assert (said["branch"], said["main_branch"], len(said["main_commits"])) == ("fix/attention", "trunk", 1)


@pytest.mark.parametrize(
    ("variables", "branch"),
    [
        ({"GITHUB_HEAD_REF": "fix", "GITHUB_REF": "refs/pull/12/merge", "GITHUB_REF_NAME": "12/merge"}, "fix"),
        ({"GITHUB_REF_NAME": "main", "GITHUB_HEAD_REF": ""}, "main"),
        ({"CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "fix", "CI_COMMIT_BRANCH": ""}, "fix"),
        ({"CI_COMMIT_BRANCH": "main"}, "main"),
        ({"GIT_BRANCH": "origin/fix"}, "fix"),
        ({"BUILD_SOURCEBRANCH": "refs/heads/fix"}, "fix"),
        # the main line of somebody else's copy of the repository
        ({"GITHUB_HEAD_REF": "main", "GITHUB_REF": "refs/pull/12/merge"}, "pull/12"),
        ({"CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "main", "CI_MERGE_REQUEST_IID": "7"}, "pull/7"),
        ({"CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "main"}, "pull/main"),
        ({"GITHUB_HEAD_REF": "main", "GITHUB_REF": "refs/heads/release/24"}, "pull/main"),
        ({"BUILD_SOURCEBRANCH": "refs/pull/3/merge"}, "pull/3"),
        ({"DRONE_SOURCE_BRANCH": "main", "DRONE_BRANCH": "main"}, "main"),
        ({"DRONE_SOURCE_BRANCH": "fix", "DRONE_PULL_REQUEST": "7", "DRONE_BRANCH": "main"}, "fix"),
        # tags are of no branch
        ({"GITHUB_REF_NAME": "v1.0", "GITHUB_REF_TYPE": "tag"}, ""),
        ({"TRAVIS_BRANCH": "v1.0", "TRAVIS_TAG": "v1.0"}, ""),
        ({"BUILD_SOURCEBRANCH": "refs/tags/v1"}, ""),
        ({"GIT_BRANCH": "detached"}, ""),
        ({}, ""),
    ],
)
def test_on_a_detached_head_the_variables_of_the_ci_decide(repository, variables, branch):
    git(repository, "checkout -q --detach")
    assert branch_of_ci(variables) == branch
    assert capture_branch([str(repository)], variables, 10).get("branch", "") == branch


def test_no_repository_says_nothing_and_no_revision_is_an_option(repository, tmp_path):
    assert capture_branch([str(tmp_path)], {"GITHUB_HEAD_REF": "fix"}, 10) == {"branch": "fix"}
    assert capture_branch([str(tmp_path)], {}, 10) == {}
    assert main_commits(str(repository), "--output=x", "", 10) == []
    assert main_commits(str(repository), "no such revision", "", 10) == []
    assert len(main_commits(str(repository), "fix/attention", "", 10)) == 1


def test_a_pull_request_that_is_merged_into_the_main_line_to_be_tested_is_no_part_of_it(repository):
    git(repository, "checkout -q main")
    git(repository, "merge -q fix/attention -m merged")
    variables = {"DRONE_PULL_REQUEST": "7", "DRONE_SOURCE_BRANCH": "fix/attention"}
    assert capture_branch([str(repository)], variables, 10)["branch"] == "fix/attention"


@pytest.mark.parametrize("name", ["fix-#12", "fix(core)", "a@b", "Änderung", "x" * 200])
def test_whatever_git_calls_a_branch_it_is_not_the_main_line(repository, name):
    git(repository, f"checkout -q -b {name}")
    assert capture_branch([str(repository)], {}, 10)["branch"] == name


def test_the_settings_say_what_the_main_line_is_called(repository):
    git(repository, "branch trunk main~1")
    said = capture_branch([str(repository)], {}, 10, "trunk")
    assert said == {
        "branch": "fix/attention", "main_branch": "trunk", "main_commits": [git(repository, "rev-parse trunk")[:12]],
    }  # fmt: skip
