"""Which finding a user meant, and with which run that counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracker.judgement.follow.tracked import Tracked, UserAction
from tracker.judgement.follow.watched import WatchedRun


class UncertainError(Exception):
    """What is kept of the older runs does not tell: the line must be followed from its first run."""


def places_of(actions: Sequence[UserAction], runs: Sequence[WatchedRun]) -> list[int]:
    """For each action the run with whose version it counts: the last one here of those that were there when it was
    made, since runs are numbered as they come; so other runs may be excluded, or put into another order, without losing
    it.
    """
    numbers = np.array([run.run_id for run in runs], dtype=np.int64)
    found = [np.flatnonzero(numbers <= (action.after_run or 0)) for action in actions]
    return [int(there[-1]) if len(there) else len(runs) - 1 for there in found]


def meant_by(
    action: UserAction, found: Sequence[Tracked], runs: Sequence[WatchedRun], *, is_whole: bool
) -> list[Tracked]:
    """The findings, of those that were `found`, that a user meant. UncertainError where one may be meant that is not
    among them: `is_whole`: these are all of the line.
    """
    same = [tracked for tracked in found if tracked.key == action.key]
    meant = [tracked for tracked in same if runs[tracked.first].run_id == action.first_run]
    if meant:
        return meant
    if not is_whole:
        raise UncertainError
    version = next((here.version for here in runs if here.run_id == action.first_run), None)
    if version is None:
        return same[-1:]  # the run that raised it is excluded: it began with the next one
    # another run of the version raises it now
    return [tracked for tracked in same if runs[tracked.first].version == version]
