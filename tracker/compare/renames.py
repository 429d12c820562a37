"""Renames and fusions: operators that went and others that came in their place, under one parent, for about the same
time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracker.compare.keys import values
from tracker.lazy import pd
from tracker.results import ADDED, BOTH, REMOVED, Rename

if TYPE_CHECKING:
    from tracker.compare.sides import Loaded

_TOLERANCE: Final = 0.25
_TOP_LEVEL: Final = "(top level)"
_SMALLEST_SHARE: Final = 0.001


def find_renames(baseline: Loaded, candidate: Loaded, ops: pd.DataFrame) -> tuple[Rename, ...]:
    """Parents below which removed ops took about as long as added ones take: within 25 %, and at least 0.1 % of all
    op time.

    The parent is the nearest op above that both sides have, so that a renamed wrapper does not hide a renamed child.
    Largest first.
    """
    if not {REMOVED, ADDED} <= set(ops["status"].unique()):
        return ()
    statuses = status_of_names(ops)
    gone, come = ({name for name, own in statuses.items() if own == status} for status in (REMOVED, ADDED))
    if not gone or not come:
        return ()
    time = ops.groupby("name")[["baseline_ns", "candidate_ns"]].sum()
    before, after = _by_parent(baseline, gone), _by_parent(candidate, come)
    smallest = float(time["baseline_ns"].sum()) * _SMALLEST_SHARE
    found = []
    for parent in before.keys() & after.keys():
        removed_ns = sum(time.loc[name, "baseline_ns"] for name in sorted(before[parent]))
        added_ns = sum(time.loc[name, "candidate_ns"] for name in sorted(after[parent]))
        if max(removed_ns, added_ns) < smallest or abs(added_ns - removed_ns) > _TOLERANCE * max(removed_ns, added_ns):
            continue
        removed, added = (" + ".join(sorted(group[parent])) for group in (before, after))
        found.append(Rename(removed, added, parent, float(removed_ns), float(added_ns)))
    return tuple(sorted(found, key=lambda rename: (-rename.removed_ns, rename.parent)))


def status_of_names(ops: pd.DataFrame) -> dict[str, str]:
    """Name -> the status that all its ops share, BOTH where they differ."""
    found: dict[str, str] = {}
    for name, status in values(ops, "name", "status"):
        found[name] = status if found.get(name, status) == status else BOTH
    return found


def _by_parent(side: Loaded, names: set[str]) -> dict[str, set[str]]:
    """Where each of `names` mostly runs: the nearest op above it that is not itself one of `names`."""
    tree = side.op_tree()
    tree["calls"] = tree["calls"].fillna(0)
    weight: dict[tuple[str, str], float] = {}
    for _, part in tree.groupby(["run_id", "rank"], sort=False):
        above = dict(zip(part["node"], zip(part["name"], part["parent"], strict=True), strict=True))
        for row in part[part["name"].isin(names)].itertuples():
            name, parent = above.get(row.parent, (_TOP_LEVEL, -1))
            while name in names:
                name, parent = above.get(parent, (_TOP_LEVEL, -1))
            weight[row.name, name] = weight.get((row.name, name), 0.0) + float(row.calls)
    best: dict[str, tuple[float, str]] = {}
    for (name, parent), calls in weight.items():
        best[name] = max(best.get(name, (-1.0, "")), (calls, parent))
    groups: dict[str, set[str]] = {}
    for name, (_, parent) in best.items():
        groups.setdefault(parent, set()).add(name)
    return groups
