"""Git revisions in place of versions: a commit that a stored version has is that version, however it is named; and
the commits between two versions.

The repository around the current folder is asked, and only read. No shell is involved.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tracker.errors import UsageError
from tracker.hooks.environment import GIT_READ_ONLY
from tracker.store import Store, queries
from tracker.units import counted

_TIMEOUT_S: Final = 10
_HASH: Final = re.compile(r"[0-9a-f]{4,64}")
_SHORTEST: Final = 7
"""Characters of a stored commit, or of a label that is one, that may stand for a longer one."""
_NEWEST: Final = 5
"""Pairs of versions whose commits are looked up: git takes some milliseconds for each."""


def version_of(store: Store, revision: str, workload: str | None = None) -> str | None:
    """The version whose commit `revision` names: a hash, however short or long, or what git makes of it (a tag, a
    branch, HEAD~1); None where there is none.

    UsageError where several versions have such commits.
    """
    groups = [list(own.rows("version", "commit")) for own in queries.version_groups(store, workload)]
    wanted = revision.lower()
    found = _first_matching(groups, wanted) if _HASH.fullmatch(wanted) else []
    if not found and not revision.startswith("-"):
        commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        found = _first_matching(groups, commit) if commit else []
    if len(found) > 1:
        raise UsageError(f"{revision!r} means several versions: {', '.join(found)}", remedy="name one of them")
    return found[0] if found else None


def _first_matching(groups: Sequence[Sequence[Sequence[Any]]], wanted: str) -> list[str]:
    """What `_matching` finds in the first group where it finds any."""
    return next(filter(None, (_matching(own, wanted) for own in groups)), [])


def _matching(commits: Sequence[Sequence[Any]], wanted: str) -> list[str]:
    """The versions whose commit, or label where that is one, begins as `wanted` does or the other way round."""
    found: dict[str, None] = {}
    for label, commit in commits:
        for own in (commit or "", label if commit is None else ""):
            text = own.lower()
            is_commit = bool(_HASH.fullmatch(text)) and len(text) >= _SHORTEST
            if is_commit and (text.startswith(wanted) or wanted.startswith(text)):
                found[label] = None
    return list(found)


def label_of(store: Store, wanted: str, workload: str | None = None) -> str:
    """`wanted` where it is a version, else the version whose commit it names, else `wanted` for the error about it."""
    if wanted in queries.version_labels(store, workload):
        return wanted
    return version_of(store, wanted, workload) or wanted


def notes_between(store: Store, rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Sentences on the commits between the good and the bad version of findings or incidents, the newest first, where
    both are known: their number and the command that lists them where the repository around the current folder has
    them, else the two commits. Only for the first 5 pairs; others are counted.
    """
    versions = queries.versions(store)
    commits = {(row[0], row[1]): row[2] for row in versions.rows("workload", "version", "commit")}
    pairs: dict[tuple[str, str], tuple[str, str]] = {}
    for row in rows:
        names = str(row["good_version"]), str(row["version"])
        good, bad = (commits.get((row["workload"], name)) for name in names)
        if good and bad and good != bad and all(map(_HASH.fullmatch, (good.lower(), bad.lower()))):
            pairs.setdefault((good, bad), names)
    if not pairs:
        return ()
    is_there = bool(_git("rev-parse", "--git-dir"))
    notes = [
        f"Between {names[0]} and {names[1]}: {_words_between(*pair, is_there)}"
        for pair, names in list(pairs.items())[:_NEWEST]
    ]
    older = len(pairs) - _NEWEST
    more = f"Commits between the versions of {counted(older, 'older change')}: tracker explain names them"
    return (*notes, *([more] if older > 0 else []))


def _words_between(good: str, bad: str, is_there: bool) -> str:
    count = _git("rev-list", "--count", "--end-of-options", f"{good}..{bad}") if is_there else ""
    if not count.isdigit():
        return f"commits {good} and {bad}"
    return f"{counted(int(count), 'commit')}: git log --oneline {good}..{bad}"


def _git(*words: str) -> str:
    """What git prints, '' where it cannot say."""
    try:
        done = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            env={**os.environ, **GIT_READ_ONLY},
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
