"""Which runs before a version, and what of them, that version and all later ones can still be judged by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracker.detectors.baseline import WINDOW
from tracker.detectors.vote import LAST_RUNS
from tracker.detectors.within import MODES_OF
from tracker.judgement.families import is_tagged
from tracker.judgement.follow.acting import UncertainError
from tracker.judgement.follow.creeping import versions_before
from tracker.judgement.follow.following import Follower
from tracker.judgement.follow.older import Older
from tracker.judgement.follow.tracked import DATED_BY, Tracked, runs_since
from tracker.judgement.follow.watched import NEVER

I64 = NDArray[np.int64]
BOOL = NDArray[np.bool_]

_READ: Final = max(LAST_RUNS, 2 * DATED_BY) + WINDOW
"""Last runs before a version that are read whole, whatever the versions are: rules look back at no more of them."""


def first_read(follower: Follower, end: int) -> int:
    """The column from which on runs are read whole by those who follow on from the column `end`, with which a version
    begins: the runs of the last versions among which a best one is looked for, the last runs, and all since a suspicion
    that is still open. UncertainError where runs before that column would have to be read that were not this time.
    """
    watched = follower.watched
    pending = [tracked.suspected for tracked in follower.open.values() if tracked.suspected is not None]
    first = min(versions_before(watched, end)[0], end - _READ, *(place - WINDOW for place in pending))
    if watched.places[watched.first_read] > 0 and first < watched.first_read:
        raise UncertainError
    return max(first, 0)


def live(follower: Follower) -> list[Tracked]:
    """The findings that a run may still change, in the order in which they were found."""
    own = {id(tracked) for tracked in (*follower.open.values(), *follower.further)}
    return [tracked for tracked in follower.found if id(tracked) in own]


def older_of(follower: Follower, end: int, first: int, rows: I64) -> tuple[Older, BOOL]:
    """What is kept of the runs before the column `first`, for who follows on from the column `end`, of the `rows` that
    the runs before that have; and for each of its cells whether the run was as it should be.
    """
    watched, need = follower.watched, _cells(follower, end, first)
    columns = np.flatnonzero(need.any(axis=0) | _named(live(follower), first))
    with_any = ~np.isnan(watched.raw[:, columns]) | ~np.isnan(watched.calls[:, columns])
    own, place = np.nonzero((need[:, columns] & with_any)[rows])
    at = rows[own], columns[place]
    followed = np.concatenate([columns, np.arange(first, end)])
    there = np.zeros(len(watched.names), dtype=bool)
    there[rows] = True
    families = [family for family, of_family in watched.kinds.items() if there[of_family].any()]
    older = Older(
        first=watched.place(first),
        places=watched.places[columns],
        step=watched.step[columns],
        said=[(family, watched.said[family][columns]) for family in families],
        factors=[(family, watched.factors[family][followed]) for family in families if family in watched.factors],
        rows=own,
        columns=place,
        raw=watched.raw[at],
        centred=watched.centred[at],
        calls=watched.calls[at],
        came=watched.came[rows],
        counted=np.where(watched.counted[rows] < watched.place(end), watched.counted[rows], NEVER),
        has_step=watched.has_step,
        followed=len(followed),
    )
    return older, follower.baselines.normal[at]


def _cells(follower: Follower, end: int, first: int) -> BOOL:
    """(series, runs before `first`): whose values a later run can still be judged by."""
    watched, baselines = follower.watched, follower.baselines
    need = np.zeros((len(watched.names), first), dtype=bool)

    def mark(row: int, columns: Iterable[int]) -> None:
        need[row, [column for column in columns if 0 <= column < first]] = True

    for windows in (baselines.windows.columns, *follower.snapshots.values()):
        own, at = np.nonzero((windows >= 0) & (windows < first))
        need[own, windows[own, at]] = True
    for row, levels in baselines.levels.items():
        for level in levels:
            mark(row, level)
    for tracked in live(follower):
        mark(tracked.row, tracked.baseline)
        mark(tracked.row, tracked.candidate)
        mark(tracked.row, runs_since(watched, tracked, range(end, end)))
        if tracked.change == "level":
            mark(tracked.row, range(tracked.first - MODES_OF, tracked.first))
    suspected = [tracked.suspected for tracked in follower.open.values() if tracked.suspected is not None]
    for family in watched.kinds:
        if is_tagged(family) or family in watched.factors:
            # only runs that say anything of it are its window, however long ago they were
            telling = np.flatnonzero(watched.said[family][: min([end, *suspected])])
            before = telling[-WINDOW:]
            need[np.ix_(watched.kinds[family], before[before < first])] = True
    return need


def _named(found: Sequence[Tracked], first: int) -> BOOL:
    """Which of the runs before `first` findings name."""
    named = np.zeros(first, dtype=bool)
    for tracked in found:
        own = (tracked.last, tracked.turned, tracked.dated, tracked.stepped, tracked.suspected)
        runs = (tracked.first, *tracked.candidate, *tracked.baseline, *tracked.step_baseline)
        places = [place for place in (*own, *runs) if place is not None]
        named[[place for place in places if place < first]] = True
    return named
