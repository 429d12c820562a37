"""The order of versions in a git repository, which is only read."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from tracker.errors import SourceError, UsageError
from tracker.hooks.environment import GIT_READ_ONLY

_TIMEOUT_S: Final = 120


class GitOrder(Struct, frozen=True):
    """Versions in the order of their commits, and those without a commit in the repository, which stay after the version
    that they follow now.
    """

    labels: tuple[str, ...]
    unknown: tuple[str, ...]


def order_of(repository: Path, versions: Mapping[str, str | None]) -> GitOrder:
    """`versions`: label -> commit or None, in the present order. A label that is a tag, branch or commit is one, too.

    SourceError where `repository` is none, UsageError without git or where it has none of the versions.
    """
    _run(repository, ["rev-parse", "--git-dir"])
    commit_of = {label: _commit(repository, commit, label) for label, commit in versions.items()}
    known = sorted({commit for commit in commit_of.values() if commit})
    if not known:
        raise UsageError(
            f"{repository} has none of the versions",
            remedy="give --commit HASH at ingest, or name versions like tags or commits",
        )
    log = _run(repository, ["rev-list", "--topo-order", "--reverse", "--stdin"], "\n".join(known))
    place = {commit: number for number, commit in enumerate(log.split())}
    keys: dict[str, tuple[int, int]] = {}
    last = -1
    for number, (label, commit) in enumerate(commit_of.items()):
        last = place[commit] if commit else last
        keys[label] = (last, number)
    unknown = tuple(label for label, commit in commit_of.items() if commit is None)
    return GitOrder(tuple(sorted(keys, key=lambda label: keys[label])), unknown)


def _commit(repository: Path, *names: str | None) -> str | None:
    """The commit of the first of `names` that the repository has."""
    for name in names:
        if name and not name.startswith("-"):
            question = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
            found = _run(repository, question, may_fail=True).strip()
            if found:
                return found
    return None


def _run(repository: Path, words: list[str], text: str = "", *, may_fail: bool = False) -> str:
    """What git prints. No shell is involved; names are arguments of their own."""
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *words],
            input=text,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            env={**os.environ, **GIT_READ_ONLY},
        )
    except FileNotFoundError as error:
        raise UsageError("git is not installed", remedy="install it, or name the versions in their order") from error
    except subprocess.TimeoutExpired as error:
        raise SourceError(repository, "", f"git did not answer within {_TIMEOUT_S} s", remedy="try again") from error
    if done.returncode and not may_fail:
        problem = " ".join(done.stderr.split()) or f"git ended with {done.returncode}"
        raise SourceError(repository, "", f"cannot be read as a git repository ({problem})", remedy="name its folder")
    return done.stdout if not done.returncode else ""
