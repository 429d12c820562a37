"""The version of the main line that a version of a branch is judged from: where its code left the main line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tracker.profile.branches import COMMIT_HASH, hash_of_label

_DIRTY: Final = "-dirty"
_SHORTEST: Final = 7
"""Characters of a hash that tell a commit from others."""
_SHOWN: Final = 9
_AHEAD_NS: Final = 3_600_000_000_000
"""How far clocks of machines that work may differ."""


class MainVersion(Struct, frozen=True):
    """A version of the main line. `started_at_ns`: of its first run, UTC, None where nobody knows; `run_id`: of the run
    of it that came in first.
    """

    version_id: int
    label: str
    commit: str | None
    started_at_ns: int | None
    run_id: int


class BranchVersion(Struct, frozen=True):
    """A version of a branch. `main_commits`: of the main line, from the merge base back, the newest first."""

    main_commits: Sequence[str]
    started_at_ns: int | None
    run_id: int


class MergeBase(Struct, frozen=True):
    """A version of the main line, by its place in their order from 1, and why it is that one, in words.

    `is_known`: whether git said where the branch left the main line; else it is chosen by time. `is_merge_base`:
    whether this version is the commit itself.
    """

    place: int
    label: str
    why: str
    is_known: bool = True
    is_merge_base: bool = False


def find_merge_base(main: Sequence[MainVersion], version: BranchVersion, *, now_ns: int) -> MergeBase | None:
    """Return the version of the main line, of `main` in their order, that a version of a branch is judged from; None
    where there is none.

    It is the newest of which the commit is the merge base or lies before it; where no commit is known of any, the
    newest version before the run: by the clocks, else by what came in before it.
    """
    place_of: dict[str, int] = {}
    # the newest version of a commit, one of a changed working tree only where there is no other
    for at in sorted(range(1, len(main) + 1), key=lambda at: (not main[at - 1].label.endswith(_DIRTY), at)):
        if commit := _commit_of(main[at - 1]):
            place_of[commit] = at
    for number, commit in enumerate(version.main_commits):
        if place := place_of.get(commit[:_SHORTEST]):
            label = main[place - 1].label
            if number == 0:
                return MergeBase(place, label, "the merge base", is_merge_base=True)
            left = version.main_commits[0][:_SHOWN]
            return MergeBase(place, label, f"the newest version before the merge base {left}, which is none")
    if not main:
        return None
    why = "the newest version before the run"
    if version.main_commits:
        why += f"; the merge base {version.main_commits[0][:_SHOWN]} is no version, nor is a commit before it"
    else:
        why += "; no merge base is known"
    return _newest_before(main, version, why, now_ns)


def _newest_before(main: Sequence[MainVersion], version: BranchVersion, why: str, now_ns: int) -> MergeBase:
    start, unclear = version.started_at_ns, ""
    if start is not None and start > now_ns + _AHEAD_NS:
        start, unclear = None, "; the clock of the run is ahead, so what came in before it counts"
    earlier = [at for at, own in enumerate(main, 1) if _is_before(own, start, version.run_id)]
    if not earlier:
        unclear = "; by the clocks the whole main line is newer, so what came in before the run counts"
        earlier = [at for at, own in enumerate(main, 1) if own.run_id < version.run_id]
    if not earlier:
        # the branch came in first of all: the oldest version says least of what came later
        why = "the oldest version: all of the main line is newer than the run"
        return MergeBase(1, main[0].label, why, is_known=bool(version.main_commits))
    # a run that came in late may be older than those before it in the order of versions
    newest = max(earlier, key=lambda at: (0 if unclear else main[at - 1].started_at_ns or 0, at))
    return MergeBase(newest, main[newest - 1].label, why + unclear, is_known=bool(version.main_commits))


def _is_before(own: MainVersion, started_at_ns: int | None, run_id: int) -> bool:
    if started_at_ns is None or own.started_at_ns is None:
        return own.run_id < run_id
    return own.started_at_ns < started_at_ns


def _commit_of(version: MainVersion) -> str:
    """Return the first characters of the commit of a version, "" where neither it nor its label names one."""
    found = (version.commit or "").lower()
    return (found if COMMIT_HASH.fullmatch(found) else hash_of_label(version.label))[:_SHORTEST]
