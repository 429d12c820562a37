"""How far a line was followed, as bytes: with it, one more run costs one step, and the findings are the same.

A checkpoint stands for the first runs of a line and holds under a key: whatever could have made these runs say
something else makes another key, and then the line is followed from its first run. Of the runs that it stands for only
the last ones are read again; what else one more run can be judged by it holds itself (see `older`), so that neither the
time nor the memory of one more run grows with the line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.judgement.families import is_tagged
from tracker.judgement.follow.acting import UncertainError, places_of
from tracker.judgement.follow.following import Follower
from tracker.judgement.follow.state import State, decoded, encoded, restore, state_of
from tracker.judgement.follow.tracked import Tracked, UserAction
from tracker.judgement.follow.version_verdicts import VersionVerdicts
from tracker.judgement.follow.watched import Watched, WatchedRun, versions_of

I64 = NDArray[np.int64]
Fingerprint = Callable[[int, tuple[Any, ...]], bytes]

FORM: Final = 7
"""Goes up when what a checkpoint holds, or how, changes."""


class Checkpoint(Struct, frozen=True):
    """The state after the first `runs` runs. `key`: what it holds for; `state`: bytes."""

    runs: int
    key: bytes
    state: bytes


class ReadLine(Struct, frozen=True, eq=False):
    """What was read of a line. `series`: number of the series of each row of `watched`; `actions`: what users did, in
    the order of its time; `beside`: bytes that whoever read it wants to have back with the state after so many runs.
    """

    watched: Watched
    series: I64
    actions: Sequence[UserAction]
    beside: Callable[[int], bytes]


class LineToRead(Protocol):
    """A line of which as much is read as is asked for."""

    @property
    def runs(self) -> Sequence[WatchedRun]:
        """All runs of the line, in their order."""
        ...

    def read(self, known: State | None) -> ReadLine:
        """All runs; with a state those from `known.older.first` on, and what it keeps of those before.

        UncertainError where the state does not fit the line.
        """
        ...


class Resumed(Struct, frozen=True, eq=False):
    """`found`: findings by their run and series; all of them, or those that runs from the place `since` on could still
    change. `checkpoint`: for the next time. `verdicts`: of the versions that were looked at, the newest ones, in order.
    """

    read: ReadLine
    found: list[Tracked]
    since: int
    checkpoint: Checkpoint | None
    verdicts: list[VersionVerdicts]


def resume(
    line: LineToRead, fingerprint: Fingerprint, *, known: Checkpoint | None, now_ns: int | None = None
) -> Resumed:
    """What `follow` finds, from `known` on where that holds.

    `fingerprint`: bytes that stand for what the first so many runs say, for the limits, and for what else is given. The
    checkpoint stands before the newest version: more runs of that one may come.
    """
    if known is not None and known.runs < len(line.runs) and known.key == _key(line.runs, known.runs, fingerprint):
        state = decoded(known.state)
        if state is not None:
            try:
                return _resumed(line, fingerprint, known, state, now_ns)
            except UncertainError:
                pass
    return _resumed(line, fingerprint, None, None, now_ns)


def _resumed(
    line: LineToRead, fingerprint: Fingerprint, known: Checkpoint | None, state: State | None, now_ns: int | None
) -> Resumed:
    read, start = line.read(state), 0 if known is None else known.runs
    watched = read.watched
    places = places_of(read.actions, line.runs)
    follower = Follower(watched, [action for place, action in zip(places, read.actions, strict=True) if place >= start])

    def rests_on(runs: int) -> bytes:
        return _rests_on(read, places, runs, fingerprint)

    if state is not None:
        if state.rests_on != rests_on(start):
            raise UncertainError
        restore(follower, read.series, state)
    first = int(np.searchsorted(watched.places, start))
    versions = [runs for runs in versions_of(watched.runs) if runs.start >= first]
    for runs in versions[:-1]:
        follower.observe(runs)
    newest = watched.place(versions[-1].start) if versions else 0
    kept = known
    if newest > start:
        own = state_of(follower, read.series, newest, beside=read.beside(newest), rests_on=rests_on(newest))
        kept = Checkpoint(newest, _key(line.runs, newest, fingerprint), encoded(own))
    if versions:
        follower.observe(versions[-1])
    return Resumed(read, follower.result(now_ns), start, kept, follower.verdicts)


def _key(line: Sequence[WatchedRun], runs: int, fingerprint: Fingerprint) -> bytes:
    """What stands for the first `runs` runs, as far as it is known without what they say."""
    seen = " ".join([f"{run.version},{run.started_at_ns}" for run in line[:runs]])
    return fingerprint(runs, (FORM, seen, line[runs].version))


def _rests_on(read: ReadLine, places: Sequence[int], runs: int, fingerprint: Fingerprint) -> bytes:
    """What stands for all else that the state after the first `runs` runs rests on: what users did, and what the whole
    line decides for each of its runs. `places`: of the actions.
    """
    watched = read.watched
    done = [
        (place, int(read.series[action.key[0]]), action.key[1:], action.first_run, action.acted)
        for place, action in sorted(zip(places, read.actions, strict=True), key=lambda pair: pair[0])
        if place < runs
    ]
    tagged = sorted({family[:2] for family in watched.kinds if is_tagged(family)})
    return fingerprint(0, (watched.leaves, watched.has_step, tagged, done))
