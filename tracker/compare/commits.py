"""The commits between two versions: how many, and of a single one who made it.

Git is asked when a report is made; its answers are not stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

from msgspec import Struct

from tracker.hooks.environment import ask_git
from tracker.profile.branches import main_of
from tracker.results.findings import ListedFinding, ListedIncident
from tracker.store import Store, queries
from tracker.units import counted, printable

TIMEOUT_S: Final = 10
HASH: Final = re.compile(r"[0-9a-f]{4,64}")
_NEWEST: Final = 5
"""Pairs of versions whose commits are looked up: git takes some milliseconds for each."""
SHORT_COMMIT: Final = 8
"""Characters of a commit in a sentence."""
_LONGEST: Final = 120
"""Characters of a name or subject."""

VersionCommits = Mapping[tuple[str, str], str]
"""Workload and version -> its commit."""


class Commits(Struct, frozen=True):
    """The commits that `bad` has and `good` has not.

    `count`: None where git cannot count them, or where `good` has others that `bad` lacks. `author`, `subject`: of a
    single one, in a repository that the settings name.
    """

    good: str
    bad: str
    count: int | None = None
    author: str = ""
    subject: str = ""

    @property
    def words(self) -> str:
        """How many there are, with the command that lists them, or the single one; else the two commits."""
        if self.count is None:
            return f"commits {self.good} and {self.bad}"
        if self.author:
            return f"1 commit: {describe_commit(self.bad, self.author, self.subject)}"
        return f"{counted(self.count, 'commit')}: git log --oneline {self.good}..{self.bad}"


class Repository:
    """A git repository: that of `folder`, else the one around the current folder.

    It is asked once for a pair of commits. The author of a commit is only named where `folder` is given, by the
    settings. What git does not answer is left out, without an error.
    """

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._known: dict[tuple[str, str], Commits] = {}

    @cached_property
    def is_whole(self) -> bool:
        """Whether git can read it, and nothing of its history is cut off: a shallow clone counts too few commits."""
        return self._ask("rev-parse", "--is-shallow-repository") == "false"

    def between(self, good: str, bad: str) -> Commits:
        """Return the commits between two hashes."""
        pair = good, bad
        if pair not in self._known:
            self._known[pair] = self._look_up(good, bad)
        return self._known[pair]

    def _look_up(self, good: str, bad: str) -> Commits:
        nothing = Commits(good, bad)
        if not (HASH.fullmatch(good) and HASH.fullmatch(bad) and self.is_whole):
            return nothing
        sides = self._ask("rev-list", "--left-right", "--count", "--end-of-options", f"{good}...{bad}").split()
        if len(sides) != 2 or not all(map(str.isdecimal, sides)):
            return nothing
        lacking, count = map(int, sides)
        if lacking:
            # bad is not built on good: its commits are not the whole difference
            return nothing
        if count != 1 or self._folder is None:
            return Commits(good, bad, count)
        # the single commit is bad itself; the name is that of .mailmap
        form = ("--no-show-signature", "--encoding=UTF-8", "--format=%aN%x00%s")
        author, _, subject = self._ask("log", "-1", *form, "--end-of-options", bad).partition("\0")
        return Commits(good, bad, count, _shorten(author), _shorten(subject))

    def _ask(self, *words: str) -> str:
        return ask_git(
            self._folder or ".", list(words), TIMEOUT_S, as_it_is=True, ignores_variables=self._folder is not None
        )


def describe_commit(commit: str, author: str, subject: str) -> str:
    """Name a commit and who made it.

    >>> describe_commit("83fb3812aa", "Ann Lee", "use the fast path")
    '83fb3812 by Ann Lee: use the fast path'
    """
    about = f": {subject}" if subject else ""
    return f"{commit[:SHORT_COMMIT]} by {author}{about}"


def list_commits(store: Store) -> VersionCommits:
    """Return the commits of all versions that have one; what is no hash is left out."""
    versions = queries.versions(store).rows("workload", "version", "commit")
    commits = {(workload, version): str(commit or "").lower() for workload, version, commit in versions}
    return {of: commit for of, commit in commits.items() if HASH.fullmatch(commit)}


def pair_of(
    commits: VersionCommits, workload: str, good_version: str | None, version: str, good_workload: str | None = None
) -> tuple[str, str] | None:
    """Return the commits of a good and a bad version; None where one is not known, or both are the same.

    `good_workload`: of the good version; None for `workload`, or its main line.
    """
    good = good_version or ""
    # what is good for a branch may be a version of its main line
    good_workloads = (workload, main_of(workload)) if good_workload is None else (good_workload,)
    good_commit = next((commits[own, good] for own in good_workloads if (own, good) in commits), None)
    commit = commits.get((workload, version))
    return (good_commit, commit) if good_commit and commit and good_commit != commit else None


def notes_on_commits(store: Store, rows: Iterable[ListedFinding | ListedIncident]) -> tuple[str, ...]:
    """Return sentences on the commits between the good and the bad version of findings or incidents, the newest first,
    where both are known. Only for the first 5 pairs; others are counted.
    """
    commits = list_commits(store)
    pairs: dict[tuple[str, str], str] = {}
    for row in rows:
        if pair := pair_of(commits, row.workload, row.good_version, row.version):
            pairs.setdefault(pair, f"{row.good_version} and {row.version}")
    repository = Repository(store.repository)
    notes = [f"Between {names}: {repository.between(*pair).words}" for pair, names in list(pairs.items())[:_NEWEST]]
    older = len(pairs) - _NEWEST
    if older > 0:
        notes.append(f"Commits between the versions of {counted(older, 'older change')}: tracker explain names them")
    return tuple(notes)


def _shorten(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
