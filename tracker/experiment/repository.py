"""Git, asked so that it writes nothing into the user's repository, runs none of its hooks and needs no network.

Of the filters that a repository may have for the content of files, Git LFS is left out: it writes there. The others
run as they do for the user's own `git status`, which cannot say without them what is changed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from tracker.errors import UsageError
from tracker.hooks.environment import GIT_READ_ONLY, OF_REPOSITORY

_GIT_S: Final = 600.0
"""A checkout of a large repository from a shared disk takes minutes; one that takes longer hangs."""

_CONFIGURATION: Final = (
    # no program: neither a hook of the repository nor one that the user has for all repositories
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    # Git LFS writes into the repository even to compare a file, and fetches what is missing
    "filter.lfs.clean=",
    "filter.lfs.smudge=",
    "filter.lfs.process=",
    "filter.lfs.required=false",
    # submodules are cloned on their own
    "submodule.recurse=false",
    # else git init explains at length how to choose it
    "init.defaultBranch=main",
)
_VARIABLES: Final = {
    **GIT_READ_ONLY,
    # older versions of git know no GIT_NO_LAZY_FETCH: a partial clone would fetch what it lacks
    "GIT_ALLOW_PROTOCOL": "none",
    # the words of git are compared and quoted
    "LC_ALL": "C",
}
REPOSITORY_VARIABLES: Final = (*OF_REPOSITORY, "GIT_PREFIX")
"""Variables that say which repository it is, as git sets them for hooks and aliases: each side has another one."""


class GitAnswer(Struct, frozen=True):
    """What git printed; `problem`: its first complaint where it failed, else ""."""

    output: bytes
    problem: str

    @property
    def line(self) -> str:
        """The output as one line of text, "" where git failed."""
        return "" if self.problem else os.fsdecode(self.output).removesuffix("\n")


def ask_git(folder: Path, words: Sequence[str], *, given: bytes = b"") -> GitAnswer:
    """Return what git answers in `folder`: one of a checkout, or its git folder. `given`: its input.

    UsageError where git is not installed or does not end.
    """
    environ = {name: value for name, value in os.environ.items() if name not in REPOSITORY_VARIABLES}
    environ.update(_VARIABLES)
    settings = []
    for setting in _CONFIGURATION:
        settings += ["-c", setting]
    # the git folder of a submodule that is not checked out now names a checkout that is not there
    is_git_folder = (folder / "HEAD").is_file() and (folder / "objects").is_dir()
    where = ["--git-dir=.", "--work-tree=."] if is_git_folder else []
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *where, *settings, *words],
            input=given,
            capture_output=True,
            env=environ,
            timeout=_GIT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise UsageError("git is not installed", remedy="install it, or name two folders") from error
    except subprocess.TimeoutExpired as error:
        problem = f"git {words[0]} in {folder} has not ended after {_GIT_S:.0f} s"
        raise UsageError(problem, remedy="check the disk that it lies on") from error
    if done.returncode == 0:
        return GitAnswer(done.stdout, "")
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    complaint = lines[0].removeprefix("fatal: ").removeprefix("error: ") if lines else "no reason given"
    return GitAnswer(done.stdout, complaint)


def run_git(folder: Path, words: Sequence[str], *, given: bytes = b"") -> bytes:
    """Return what git prints in `folder`. UsageError where it fails."""
    answer = ask_git(folder, words, given=given)
    if answer.problem:
        raise UsageError(f"git {words[0]} in {folder} failed: {answer.problem}")
    return answer.output


def find_root(folder: Path) -> Path | None:
    """Return the top folder of the checkout that `folder` lies in; None where it lies in none.

    UsageError where git refuses the repository, such as one of another user.
    """
    answer = ask_git(folder, ["rev-parse", "--show-toplevel"])
    if not answer.problem:
        return Path(answer.line)
    if "not a git repository" in answer.problem or "must be run in a work tree" in answer.problem:
        return None
    # of another user, as a checkout that is mounted into a container
    remedy = f"where it is to be trusted: git config --global --add safe.directory {folder}"
    raise UsageError(f"git refuses the repository of {folder}: {answer.problem}", remedy=remedy)


def find_commit(root: Path, revision: str) -> str:
    """Return the commit that a revision names, in full; "" where it names none."""
    # without the fourth word, a revision that starts with - would be an option
    return ask_git(root, ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"]).line


def find_git_path(root: Path, name: str) -> Path:
    """Return where git keeps something of a repository, such as `objects`."""
    path = os.fsdecode(run_git(root, ["rev-parse", "--git-path", name])).removesuffix("\n")
    return (root / path).resolve()


def list_paths(root: Path, words: Sequence[str]) -> list[str]:
    """Return the paths that `git ls-files` lists with these words, relative to `root`."""
    output = run_git(root, ["ls-files", "-z", *words])
    return [os.fsdecode(path) for path in output.split(b"\0") if path]


def list_submodules(root: Path) -> dict[str, str]:
    """Return the submodules that the index of a checkout has: path -> commit."""
    submodules = {}
    for line in list_paths(root, ["--stage"]):
        facts, _, path = line.partition("\t")
        mode, commit, _ = facts.split(" ")
        if mode == "160000":
            submodules[path] = commit
    return submodules
