"""Which branch a job trains, and where that left the main line: as git says, else as the CI does that runs the job."""

from __future__ import annotations

import re
from typing import Any, Mapping

from .environment import ask_git

MAIN_NAMES = ("main", "master")
"""What the main line is called where nothing says it."""

_PULL_REQUESTS = (
    # these three are set in no other job
    ("GITHUB_HEAD_REF", "GITHUB_REF", False),
    ("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_MERGE_REQUEST_IID", False),
    ("CHANGE_BRANCH", "CHANGE_ID", False),
    ("SYSTEM_PULLREQUEST_SOURCEBRANCH", "SYSTEM_PULLREQUEST_PULLREQUESTID", False),
    ("TRAVIS_PULL_REQUEST_BRANCH", "TRAVIS_PULL_REQUEST", True),
    ("DRONE_SOURCE_BRANCH", "DRONE_PULL_REQUEST", True),
)
"""Variables: the source branch of a pull request, what holds its number, and whether only that says that it is one."""
_PUSHES = (
    "GITHUB_REF_NAME", "CI_COMMIT_BRANCH", "BRANCH_NAME", "GIT_BRANCH", "BUILDKITE_BRANCH", "CIRCLE_BRANCH",
    "TRAVIS_BRANCH", "DRONE_BRANCH", "BITBUCKET_BRANCH", "BUILD_SOURCEBRANCH",
)  # fmt: skip
"""Variables that hold the branch of any other job."""
_TAGS = ("CI_COMMIT_TAG", "BUILDKITE_TAG", "CIRCLE_TAG", "TRAVIS_TAG", "DRONE_TAG", "BITBUCKET_TAG", "TAG_NAME")
"""Variables of a job for a tag, which is of no branch."""
_PREFIXES = ("refs/heads/", "refs/remotes/origin/", "origin/")
_NUMBER = re.compile(r"(?:refs/pull/)?(\d+)(?:/(?:merge|head))?")
_NAME = re.compile(r"[^\s\x00-\x1f\x7f]{1,250}")
"""What git takes as the name of a branch, and no control characters."""
_COMMITS = "100"
"""So many commits of the main line are kept: one of them was profiled, where profiling is a habit."""


def capture_branch(
    folders: list[str], environ: Mapping[str, str], timeout_s: float, main: str | None = None
) -> dict[str, Any]:
    """`branch`, `main_branch` and `main_commits` of the first of `folders` that git knows; what is not known has no
    key.

    `branch`: that is checked out; on a detached HEAD, and where a pull request is merged into the main line to be
    tested, that of the CI. A pull request from a branch that is called like the main line, as from somebody else's
    copy of the repository, is `pull/NUMBER`. `main_branch`: `main`, else what the remote repository calls its main
    line. `main_commits`: the commits of the main line from the merge base back, the newest first, 12 characters each.
    Where git knows none of the folders, or there is no git, the branch is that of the CI.
    """
    for folder in folders:
        if not ask_git(folder, ["rev-parse", "HEAD"], timeout_s):
            continue
        main = main or name_of_remote_main_line(folder, timeout_s) or environ.get("CI_DEFAULT_BRANCH", "")
        branch = short_name(ask_git(folder, ["symbolic-ref", "--short", "-q", "HEAD"], timeout_s, as_it_is=True))
        if not branch:
            branch = branch_of_ci(environ, main)
        elif branch in main_names(main):
            branch = _pull_request(environ, main) or branch
        commits = main_commits(folder, "HEAD", main, timeout_s) if branch not in main_names(main) else []
        said = {"branch": branch, "main_branch": main, "main_commits": commits}
        return {name: value for name, value in said.items() if value}
    return branch_without_git(environ, main or "")


def branch_without_git(environ: Mapping[str, str], main: str = "") -> dict[str, Any]:
    """`branch` as the CI says it, {} where it says none: a pull request is no main line because git is slow."""
    branch = branch_of_ci(environ, main or environ.get("CI_DEFAULT_BRANCH", ""))
    return {"branch": branch} if branch else {}


def main_names(main: str) -> tuple[str, ...]:
    """Return what the main line may be called; `main`: what the repository says, "" where it says nothing."""
    return (main,) if main else MAIN_NAMES


def branch_of_ci(environ: Mapping[str, str], main: str = "") -> str:
    """Return the branch that the variables of a CI name, "" for none."""
    pull_request = _pull_request(environ, main)
    if pull_request:
        return pull_request
    if environ.get("GITHUB_REF_TYPE") == "tag" or any(environ.get(name) for name in _TAGS):
        return ""
    said = next((environ[name] for name in _PUSHES if environ.get(name)), "")
    number = re.fullmatch(r"refs/pull/(\d+)/merge", said)
    if number:
        return "pull/" + number.group(1)
    return "" if said.startswith("refs/tags/") or said == "detached" else short_name(said)


def _pull_request(environ: Mapping[str, str], main: str) -> str:
    """Return the branch of the pull request that a CI tests, "" where it tests none."""
    for source, holds_number, needs_number in _PULL_REQUESTS:
        branch = short_name(environ.get(source, ""))
        number = _NUMBER.fullmatch(environ.get(holds_number, ""))
        if branch and (number or not needs_number):
            is_main = branch in main_names(main)
            return "pull/" + (number.group(1) if number else branch) if is_main else branch
    return ""


def main_commits(folder: str, revision: str, main: str, timeout_s: float) -> list[str]:
    """Return the commits of the main line from the merge base of `revision` back, the newest first; [] for none known.

    `main`: what the main line is called, "" where that is not known.
    """
    known = ["rev-parse", "--verify", "--quiet", "--end-of-options"]
    commit = ask_git(folder, [*known, revision + "^{commit}"], timeout_s)
    for name in main_names(main) if commit else ():
        for reference in ("refs/remotes/origin/" + name, "refs/heads/" + name):
            tip = ask_git(folder, [*known, reference + "^{commit}"], timeout_s)
            base = ask_git(folder, ["merge-base", commit, tip], timeout_s) if tip else ""
            if base:
                asked = ["rev-list", "--first-parent", "--abbrev-commit", "--abbrev=12", "-n", _COMMITS, base]
                return ask_git(folder, asked, timeout_s, as_it_is=True).split()
    return []


def is_shallow(folder: str, timeout_s: float) -> bool:
    """Return whether git holds only the newest commits there, as a CI clones: then it finds no merge base in them."""
    return ask_git(folder, ["rev-parse", "--is-shallow-repository"], timeout_s) == "true"


def short_name(branch: str) -> str:
    """Return a branch without what git writes before it, "" for what is the name of none."""
    branch = branch.strip()
    for prefix in _PREFIXES:
        if branch.startswith(prefix):
            branch = branch[len(prefix) :]
    return branch if _NAME.fullmatch(branch) else ""


def name_of_remote_main_line(folder: str, timeout_s: float) -> str:
    """Return what the remote repository calls its main line, "" where that is not known."""
    return short_name(ask_git(folder, ["symbolic-ref", "--short", "-q", "refs/remotes/origin/HEAD"], timeout_s))
