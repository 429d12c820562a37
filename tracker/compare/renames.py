"""Replaced operators of a diff: those that went, and those that came in their place below one parent or module."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

import numpy as np

from tracker.columns import Columns
from tracker.compare import means
from tracker.compare.keys import places
from tracker.regressions.incidents import Moved, Replacement, replacements
from tracker.results import ADDED, BOTH, REMOVED, TOP_LEVEL, Rename
from tracker.store import queries

if TYPE_CHECKING:
    from tracker.compare.sides import Loaded

_MOVED: Final = 0.02
"""Calls that changed by less are no more and no fewer calls: a capture may cut a step."""
_SMALLEST_SHARE: Final = 0.001
_WORSE: Final = 0.25
"""How much longer what came may take than what went, to be the same work under another name."""
_NUMBERS: Final = ("baseline_ns", "candidate_ns", "baseline_calls", "candidate_calls")


def find_renames(baseline: Loaded, candidate: Loaded, ops: Columns) -> tuple[Rename, ...]:
    """What replaced what, both of at least 0.1 % of all op time, with its net. Largest first.

    An op of which only one side can have recorded anything neither went nor came.
    """
    changed = _changed(ops)
    if len({calls1 > calls0 for _, _, calls0, calls1 in changed.values()}) < 2:
        return ()
    where: dict[str, dict[str, float]] = {}
    for side, own in ((baseline, 2), (candidate, 3)):
        _add_places(where, side, {name for name, numbers in changed.items() if numbers[own] > 0}, changed.keys())
    shapes = {name: " ".join(dict.fromkeys(texts)) for name, texts in _shapes(ops, changed.keys()).items()}
    names = list(changed)
    moved = [
        Moved(at, after - before, calls0, calls1, shapes.get(name, ""), frozenset(where.get(name, ())))
        for at, (name, (before, after, calls0, calls1)) in enumerate(changed.items())
    ]
    smallest = float(np.nansum(ops["baseline_ns"])) * _SMALLEST_SHARE
    found = [_rename(one, names, moved, where) for one in replacements(moved)]
    found = [one for one in found if min(one.removed_ns, one.added_ns) >= smallest]
    return tuple(sorted(found, key=lambda one: (-max(one.removed_ns, one.added_ns), one.parent)))


def _changed(ops: Columns) -> dict[str, tuple[float, float, float, float]]:
    """Name -> ns, then calls per step on both sides, of the ops that came, went, or are called more or less often."""
    place, first = places([ops["name"]])
    sums = [np.nan_to_num(means.exact_sums(ops[name], place, len(first))).tolist() for name in _NUMBERS]
    statuses = status_of_names(ops)
    found = {}
    for name, before, after, calls0, calls1 in zip(ops["name"][first].tolist(), *sums, strict=True):
        status = statuses[name]
        if status == ADDED:
            found[name] = (before, after, 0.0, calls1 or 1.0)
        elif status == REMOVED:
            found[name] = (before, after, calls0 or 1.0, 0.0)
        elif status == BOTH and calls0 and calls1 and abs(calls1 - calls0) > _MOVED * max(calls0, calls1):
            found[name] = (before, after, calls0, calls1)
    return found


def _shapes(ops: Columns, names: Collection[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, shapes in ops.rows("name", "input_shapes"):
        if name in names and shapes:
            found.setdefault(name, []).append(shapes)
    return found


def _add_places(
    where: dict[str, dict[str, float]], side: Loaded, names: Collection[str], moved: Collection[str]
) -> None:
    """Add to each of the `names` where a side calls it from, and how often: the nearest op above that did not come or
    go itself, else its module.
    """
    tree = side.op_tree()
    above: dict[tuple[int, int, int], tuple[str, tuple[int, int, int]]] = {}
    rows = tree.rows("run_id", "rank", "node", "parent", "name", "calls") if len(tree) else ()
    for run, rank, node, parent, name, calls in rows:
        above[run, rank, node] = (name, (run, rank, parent))
        if name not in names:
            continue
        at = above.get((run, rank, parent))
        while at is not None and at[0] in moved:
            at = above.get(at[1])
        if at is not None:
            own = where.setdefault(name, {})
            own[at[0]] = own.get(at[0], 0.0) + (calls or 0.0)
    for name, module, calls in side.ask(queries.ops).rows("name", "module", "calls"):
        if name in names and module and name not in where:
            where[name] = {module: calls or 0.0}


def _rename(one: Replacement, names: list[str], moved: list[Moved], where: dict[str, dict[str, float]]) -> Rename:
    gone, come = (
        sorted((moved[row] for row in rows), key=lambda one: -abs(one.change)) for rows in (one.gone, one.come)
    )
    removed_ns, added_ns = (
        sum(max(sign * own.change, 0.0) for own in side) for side, sign in ((gone, -1.0), (come, 1.0))
    )
    calls: dict[str, float] = {}
    for own in (*gone, *come):
        for place, count in where.get(names[own.series], {}).items():
            calls[place] = calls.get(place, 0.0) + count
    return Rename(
        " + ".join(names[own.series] for own in gone),
        " + ".join(names[own.series] for own in come),
        max(calls, key=lambda place: (calls[place], place), default=TOP_LEVEL),
        removed_ns,
        added_ns,
        added_ns - removed_ns > _WORSE * removed_ns,
    )


def status_of_names(ops: Columns) -> dict[str, str]:
    """Name -> the status that all its ops share, BOTH where they differ."""
    found: dict[str, str] = {}
    for name, status in ops.rows("name", "status"):
        found[name] = status if found.get(name, status) == status else BOTH
    return found
