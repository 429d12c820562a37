"""Who comes last to a call of a group that was captured whole, and how long each other rank waits for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracker.columns import Columns, objects
from tracker.store.calls.splitting import Matched, RunCalls
from tracker.table import group_rows

_COLUMNS = ("rank", "step", "role", "peer", "calls", "ns", "longest_ns")
_Key = tuple[int, int, str, int]


def sum_waits_for_last(calls: RunCalls) -> Columns:
    """Return how long each rank waits in each step for each `peer` that comes last, by the role of the group; -1: calls
    in no step. Only of groups whose clocks can be compared, and of calls to which one rank alone comes last.
    """
    roles = {number: group.role or "unknown" for number, group in calls.groups.items()}
    sums: dict[_Key, list[int]] = {}
    for matched in calls.matched:
        if matched.places.shape[1] and calls.without_clock.isdisjoint(matched.ranks):
            _add_waits(sums, calls, matched, roles)
    rows = [(*key, *numbers) for key, numbers in sums.items()]
    columns: dict[str, Any] = {}
    for place, name in enumerate(_COLUMNS):
        values = [row[place] for row in rows]
        columns[name] = objects(values) if name == "role" else np.array(values, dtype=np.int64)
    return Columns(columns)


def _add_waits(sums: dict[_Key, list[int]], calls: RunCalls, matched: Matched, roles: dict[int, str]) -> None:
    """Collect the waits in the calls of one group: their number, their sum and the longest."""
    of_ranks = [calls.calls[rank].taken(places) for rank, places in zip(matched.ranks, matched.places, strict=True)]
    starts = np.stack([own.start_ns - ahead for own, ahead in zip(of_ranks, matched.ahead_ns, strict=True)])
    elapse = np.stack([own.elapse_ns for own in of_ranks])
    waits = elapse - elapse.min(axis=0)
    last = starts.argmax(axis=0)
    is_alone = (starts == starts.max(axis=0)).sum(axis=0) == 1
    for place, rank in enumerate(matched.ranks):
        waiting = np.flatnonzero(is_alone & (waits[place] > 0) & (last != place))
        step, group, late = of_ranks[place].step[waiting], of_ranks[place].group[waiting], last[waiting]
        own_ns = waits[place, waiting]
        # there are few groups and late ranks, and many calls
        kinds = group_rows(step, group, late)
        numbers = (kinds.counts.tolist(), kinds.sums(own_ns).tolist(), kinds.largest(own_ns).tolist())
        for at, count, total, most in zip(kinds.first.tolist(), *numbers, strict=True):
            key = (rank, int(step[at]), roles[int(group[at])], matched.ranks[int(late[at])])
            found = sums.setdefault(key, [0, 0, 0])
            found[:] = found[0] + count, found[1] + total, max(found[2], most)


def is_number_in_job(calls: RunCalls, rank: int, role: str, peer: int) -> bool:
    """Return whether a place in the groups of a role of a rank is the number of a rank in the job: the members of each
    are known, and are the first ranks of the job.
    """
    groups = [group.ranks for group in calls.groups.values() if (group.role or "unknown") == role]
    own = [ranks for ranks in groups if rank in ranks or not ranks]
    return bool(own) and all(peer < len(ranks) and ranks == tuple(range(len(ranks))) for ranks in own)
