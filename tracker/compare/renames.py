"""Renames and fusions: operators that went and others that came in their place, under one parent, for about the same
time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tracker.columns import Columns
from tracker.compare import means
from tracker.compare.keys import places
from tracker.results import ADDED, BOTH, REMOVED, Rename

if TYPE_CHECKING:
    from tracker.compare.sides import Loaded

_TOLERANCE: Final = 0.25
_TOP_LEVEL: Final = "(top level)"
_TOP: Final = (_TOP_LEVEL, -1, 0)
_SMALLEST_SHARE: Final = 0.001


def find_renames(baseline: Loaded, candidate: Loaded, ops: Columns) -> tuple[Rename, ...]:
    """Parents below which removed ops took about as long as added ones take: within 25 %, and at least 0.1 % of all
    op time.

    The parent is the nearest op above that both sides have, so that a renamed wrapper does not hide a renamed child.
    Largest first.
    """
    if not {REMOVED, ADDED} <= {*ops["status"].tolist()}:
        return ()
    statuses = status_of_names(ops)
    gone, come = ({name for name, own in statuses.items() if own == status} for status in (REMOVED, ADDED))
    if not gone or not come:
        return ()
    place, first = places([ops["name"]])
    sums = [np.nan_to_num(means.exact_sums(ops[name], place, len(first))) for name in ("baseline_ns", "candidate_ns")]
    time = dict(zip(ops["name"][first].tolist(), zip(*(own.tolist() for own in sums), strict=True), strict=True))
    before, after = _by_parent(baseline, gone), _by_parent(candidate, come)
    smallest = float(sums[0].sum()) * _SMALLEST_SHARE
    found = []
    for parent in before.keys() & after.keys():
        removed_ns = sum(time[name][0] for name in sorted(before[parent]))
        added_ns = sum(time[name][1] for name in sorted(after[parent]))
        if max(removed_ns, added_ns) < smallest or abs(added_ns - removed_ns) > _TOLERANCE * max(removed_ns, added_ns):
            continue
        removed, added = (" + ".join(sorted(group[parent])) for group in (before, after))
        found.append(Rename(removed, added, parent, removed_ns, added_ns))
    return tuple(sorted(found, key=lambda rename: (-rename.removed_ns, rename.parent)))


def status_of_names(ops: Columns) -> dict[str, str]:
    """Name -> the status that all its ops share, BOTH where they differ."""
    found: dict[str, str] = {}
    for name, status in ops.rows("name", "status"):
        found[name] = status if found.get(name, status) == status else BOTH
    return found


def _by_parent(side: Loaded, names: set[str]) -> dict[str, set[str]]:
    """Where each of `names` mostly runs: the nearest op above it that is not itself one of `names`."""
    ranks: dict[tuple[int, int], dict[int, tuple[str, int, int | None]]] = {}
    for run_id, rank, node, *own in side.op_tree().rows("run_id", "rank", "node", "name", "parent", "calls"):
        ranks.setdefault((run_id, rank), {})[node] = (own[0], own[1], own[2])
    weight: dict[tuple[str, str], float] = {}
    for nodes in ranks.values():
        for child, above, count in nodes.values():
            if child not in names:
                continue
            at, upper, _ = nodes.get(above, _TOP)
            while at in names:
                at, upper, _ = nodes.get(upper, _TOP)
            weight[child, at] = weight.get((child, at), 0.0) + (count or 0)
    best: dict[str, tuple[float, str]] = {}
    for (name, parent), calls in weight.items():
        best[name] = max(best.get(name, (-1.0, "")), (calls, parent))
    groups: dict[str, set[str]] = {}
    for name, (_, parent) in best.items():
        groups.setdefault(parent, set()).add(name)
    return groups
