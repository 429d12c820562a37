"""Which branch a job trains, and where that left the main line: as git says, else as the CI does that runs the job."""

from __future__ import annotations

from typing import Any, Mapping

from .environment import ask_git, word

MAIN_NAMES = ("main", "master")
"""What the main line is called where nothing says it."""

_PULL_REQUESTS = (
    ("GITHUB_HEAD_REF", "GITHUB_REF"),
    ("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_MERGE_REQUEST_IID"),
    ("CHANGE_BRANCH", "CHANGE_ID"),
    ("SYSTEM_PULLREQUEST_SOURCEBRANCH", "SYSTEM_PULLREQUEST_PULLREQUESTID"),
    ("TRAVIS_PULL_REQUEST_BRANCH", "TRAVIS_PULL_REQUEST"),
    ("DRONE_SOURCE_BRANCH", "DRONE_PULL_REQUEST"),
)
"""Pairs of variables: the source branch of a pull request, and what holds its number."""
_PUSHES = (
    "GITHUB_REF_NAME", "CI_COMMIT_BRANCH", "BRANCH_NAME", "GIT_BRANCH", "BUILDKITE_BRANCH", "CIRCLE_BRANCH",
    "TRAVIS_BRANCH", "DRONE_BRANCH", "BITBUCKET_BRANCH", "BUILD_SOURCEBRANCH",
)  # fmt: skip
"""Variables that hold the branch of any other job."""
_PREFIXES = ("refs/heads/", "origin/")
_COMMITS = "100"
"""So many commits of the main line are kept: one of them was profiled, where profiling is a habit."""


def capture_branch(folders: list[str], environ: Mapping[str, str], timeout_s: float) -> dict[str, Any]:
    """`branch`, `main_branch` and `main_commits` of the first of `folders` that git knows; what is not known has no
    key.

    `branch`: that is checked out; on a detached HEAD that of the CI, of which a pull request from a branch that is
    called like the main line is `pull/NUMBER`. `main_branch`: what the remote repository calls its main line.
    `main_commits`: the commits of the main line from the merge base back, the newest first, 12 characters each.
    """
    for folder in folders:
        if not ask_git(folder, ["rev-parse", "HEAD"], timeout_s):
            continue
        main = _main_branch(folder, timeout_s)
        branch = ask_git(folder, ["symbolic-ref", "--short", "-q", "HEAD"], timeout_s) or branch_of_ci(environ, main)
        commits = main_commits(folder, "HEAD", main, timeout_s) if branch not in main_names(main) else []
        said = {"branch": word(branch), "main_branch": main, "main_commits": commits}
        return {name: value for name, value in said.items() if value}
    return {}


def main_names(main: str) -> tuple[str, ...]:
    """Return what the main line may be called; `main`: what the repository says, "" where it says nothing."""
    return (main,) if main else MAIN_NAMES


def branch_of_ci(environ: Mapping[str, str], main: str = "") -> str:
    """Return the branch that the variables of a CI name, "" for none."""
    for source, number in _PULL_REQUESTS:
        branch = _short(environ.get(source, ""))
        if branch:
            digits = "".join(part for part in environ.get(number, "").split("/") if part.isdigit())
            # the main line of somebody else's copy of the repository
            return "pull/" + digits if branch in main_names(main) else branch
    return next((_short(environ[name]) for name in _PUSHES if environ.get(name)), "")


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
                return ask_git(folder, asked, timeout_s, lines=True).split()
    return []


def _main_branch(folder: str, timeout_s: float) -> str:
    """Return what the remote repository calls its main line, "" where that is not known."""
    return _short(ask_git(folder, ["symbolic-ref", "--short", "-q", "refs/remotes/origin/HEAD"], timeout_s))


def _short(branch: str) -> str:
    for prefix in _PREFIXES:
        if branch.startswith(prefix):
            return branch[len(prefix) :]
    return branch
