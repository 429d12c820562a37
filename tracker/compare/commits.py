"""The commits between two versions: how many, and of a few who made them.

Git is asked when a report is made; its answers are not stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from msgspec import Struct

from tracker.hooks.environment import ask_git
from tracker.profile.branches import main_of
from tracker.results.findings import ListedFinding, ToldCommit
from tracker.schema.column_names import COMMIT, ORDINAL, VERSION, WORKLOAD
from tracker.store import Store, queries
from tracker.units import counted, printable

TIMEOUT_S: Final = 10
HASH: Final = re.compile(r"[0-9a-f]{4,64}")
_NEWEST: Final = 5
"""Pairs of versions whose commits are looked up: git takes some milliseconds for each."""
_MOST_NAMED: Final = 5
"""Commits that are named one by one."""
SHORT_COMMIT: Final = 8
"""Characters of a commit in a sentence."""
_LONGEST: Final = 120
"""Characters of a name or subject."""
_LARGE_PART: Final = 0.5
"""Part of the largest change of an incident from which on a finding may say since when it is there."""


class VersionCommits(Struct, frozen=True):
    """The commits of versions. `hashes`: of those that have one; `places`: each version's place in the order of its
    workload. Both by workload and version.
    """

    hashes: Mapping[tuple[str, str], str]
    places: Mapping[tuple[str, str], int]

    def find_hash(self, workload: str, version: str) -> str:
        """Return the commit of a version, "" for none; that of the main line where a branch has no such version."""
        return self.hashes.get((workload, version)) or self.hashes.get((main_of(workload), version)) or ""

    def find_place(self, workload: str, version: str) -> tuple[bool, int]:
        """Return a sort key of the good versions of one bad version: a branch begins behind its main line."""
        if (workload, version) in self.places:
            return True, self.places[workload, version]
        return False, self.places.get((main_of(workload), version), -1)


class VersionPair(Struct, frozen=True):
    """A good and a bad version, and the commits of both."""

    good_version: str
    version: str
    good_commit: str
    commit: str


class Commits(Struct, frozen=True):
    """The commits that `bad` has and `good` has not.

    `count`: None where git cannot count them, or where `good` has others that `bad` lacks. `named`: each of them, the
    newest first, where they are few, and in a repository that the settings name.
    """

    good: str
    bad: str
    count: int | None = None
    named: tuple[ToldCommit, ...] = ()

    @property
    def words(self) -> str:
        """How many there are and which, or below it the command that lists them; else the two commits."""
        if self.count is None:
            return f"commits {self.good} and {self.bad}"
        number = counted(self.count, "commit")
        if self.named:
            return f"{number}: {'; '.join(describe_commit(one) for one in self.named)}"
        return f"{number}:\ngit log --oneline {self.good}..{self.bad}"


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
        return self._is_shallow == "false"

    @property
    def problem(self) -> str:
        """Why the folder that the settings name says nothing of commits, in one line; "" where it does, or for none."""
        if self._folder is None or self.is_whole:
            return ""
        found, remedy = "is no git repository that this user can read", "correct the setting"
        if not Path(self._folder).is_dir():
            found = "is no folder"
        elif self._is_shallow == "true":
            found, remedy = "is a shallow clone", "run git fetch --unshallow there"
        return f"[page] repository: {self._folder} {found}, so that commits are neither counted nor named; {remedy}"

    @cached_property
    def _is_shallow(self) -> str:
        return self._ask("rev-parse", "--is-shallow-repository")

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
        if not 1 <= count <= _MOST_NAMED or self._folder is None:
            return Commits(good, bad, count)
        named = self._name(good, bad)
        return Commits(good, bad, count, named if len(named) == count else ())

    def _name(self, good: str, bad: str) -> tuple[ToldCommit, ...]:
        # a name is that of .mailmap
        form = ("--no-show-signature", "--no-color", "--encoding=UTF-8", "--format=%H%x00%aN%x00%s")
        listed = self._ask("log", f"-{_MOST_NAMED}", *form, "--end-of-options", f"{good}..{bad}")
        found = []
        for line in listed.split("\n"):
            commit, _, about = line.partition("\0")
            author, _, subject = about.partition("\0")
            if HASH.fullmatch(commit) and author:
                found.append(ToldCommit(commit=commit, author=_shorten(author), subject=_shorten(subject)))
        return tuple(found)

    def _ask(self, *words: str) -> str:
        return ask_git(
            self._folder or ".", list(words), TIMEOUT_S, as_it_is=True, ignores_variables=self._folder is not None
        )


def describe_commit(one: ToldCommit) -> str:
    """Name a commit and who made it.

    >>> describe_commit(ToldCommit(commit="83fb3812aa", author="Ann Lee", subject="use the fast path"))
    '83fb3812 by Ann Lee: use the fast path'
    """
    about = f": {one.subject}" if one.subject else ""
    return f"{one.commit[:SHORT_COMMIT]} by {one.author}{about}"


def list_commits(store: Store) -> VersionCommits:
    """Return the commits of all versions that have one; what is no hash is left out."""
    hashes, places = {}, {}
    for workload, version, ordinal, commit in queries.versions(store).rows(WORKLOAD, VERSION, ORDINAL, COMMIT):
        places[workload, version] = int(ordinal)
        text = str(commit or "").lower()
        if HASH.fullmatch(text):
            hashes[workload, version] = text
    return VersionCommits(hashes, places)


def pair_of(
    commits: VersionCommits, workload: str, good_version: str | None, version: str, good_workload: str | None = None
) -> tuple[str, str] | None:
    """Return the commits of a good and a bad version; None where one is not known, or both are the same.

    `good_workload`: of the good version; None for `workload`, or its main line.
    """
    good = good_version or ""
    if good_workload is None:
        # what is good for a branch may be a version of its main line
        good_commit = commits.find_hash(workload, good)
    else:
        good_commit = commits.hashes.get((good_workload, good), "")
    commit = commits.hashes.get((workload, version))
    return (good_commit, commit) if good_commit and commit and good_commit != commit else None


def choose_pair(commits: VersionCommits, rows: Sequence[ListedFinding]) -> VersionPair | None:
    """Return the versions between which the commits are that may have caused an incident; None where no good version
    has a commit, or the bad one has none, or the same.

    `rows`: the findings of one incident. Those that make at least half of its largest change have a say, and of these
    the one with the nearest good version that has a commit.
    """
    first = rows[0]
    for good_version in _list_good_versions(commits, rows):
        pair = pair_of(commits, first.workload, good_version, first.version)
        if pair is not None:
            return VersionPair(good_version, first.version, *pair)
    return None


def notes_on_commits(store: Store, rows: Iterable[ListedFinding], *, with_missing: bool = False) -> tuple[str, ...]:
    """Return sentences on the commits between the good and the bad version of the incident of each finding, the newest
    first, where both are known. Only for the first 5 pairs; others are counted.

    `with_missing`: also say of which good version the commit is missing.
    """
    incidents: dict[tuple[object, ...], list[ListedFinding]] = {}
    for row in rows:
        incidents.setdefault((row.incident_id, row.workload, row.version), []).append(row)
    commits = list_commits(store)
    pairs: dict[tuple[str, str], str] = {}
    missing: dict[str, None] = {}
    for own in incidents.values():
        pair = choose_pair(commits, own)
        if pair is not None:
            pairs.setdefault((pair.good_commit, pair.commit), f"{pair.good_version} and {pair.version}")
        if with_missing:
            missing.update(dict.fromkeys(_name_missing(commits, own)))
    repository = Repository(store.repository)
    notes = [f"Between {names}: {repository.between(*pair).words}" for pair, names in list(pairs.items())[:_NEWEST]]
    older = len(pairs) - _NEWEST
    if older > 0:
        notes.append(f"Commits between the versions of {counted(older, 'older change')}: tracker explain names them")
    return (*notes, *missing)


def _list_good_versions(commits: VersionCommits, rows: Sequence[ListedFinding]) -> list[str]:
    """Return the good versions of the findings that make most of an incident, the nearest to the bad one first."""
    counted_rows = [row for row in rows if row.under is None and row.state != "invalid"] or list(rows)
    times = [row for row in counted_rows if row.unit == "ns"]
    largest = max(times, key=lambda row: abs(row.delta), default=None)
    if largest is not None and largest.delta:
        counted_rows = [row for row in times if row.delta / largest.delta >= _LARGE_PART]
    versions = dict.fromkeys(row.good_version for row in counted_rows if row.good_version)
    return sorted(versions, key=lambda version: commits.find_place(rows[0].workload, version), reverse=True)


def _name_missing(commits: VersionCommits, rows: Sequence[ListedFinding]) -> Iterator[str]:
    """Yield that the nearest good version of an incident has no commit while the bad one has, and what to do."""
    version, workload = rows[0].version, rows[0].workload
    good_versions = _list_good_versions(commits, rows)
    if good_versions and (workload, version) in commits.hashes and not commits.find_hash(workload, good_versions[0]):
        nearest = good_versions[0]
        yield (
            f"{nearest} has no commit: what changed between {nearest} and {version} is not known; give --commit at "
            "ingest, or to tracker runs edit"
        )


def _shorten(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
