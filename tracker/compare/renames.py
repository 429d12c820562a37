"""Replaced operators of a diff: those that went, and those that came in their place below one parent or module."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from tracker.columns import Columns
from tracker.compare import match
from tracker.regressions.causes import MOVED, Moved, places_of, replacements
from tracker.results import ADDED, BOTH, REMOVED, TOP_LEVEL, Rename
from tracker.store import queries
from tracker.table import number_distinct_rows

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide

_SMALLEST_SHARE: Final = 0.001
_WORSE: Final = 0.25
"""How much longer what came may take than what went, to be the same work under another name."""
_NUMBERS: Final = ("baseline_ns", "candidate_ns", "baseline_calls", "candidate_calls")


def find_renames(baseline: LoadedSide, candidate: LoadedSide, ops: Columns) -> tuple[Rename, ...]:
    """Return what replaced what, both of at least 0.1 % of all op time, with its net. Largest first.

    An op of which only one side can have recorded anything neither went nor came.
    """
    changed = _changed(ops)
    if len({calls1 > calls0 for _, _, calls0, calls1 in changed.values()}) < 2:
        return ()
    where = _places(baseline, candidate, changed)
    shapes = {name: " ".join(dict.fromkeys(texts)) for name, texts in _shapes(ops, changed.keys() - where).items()}
    moved = [
        Moved(
            name,
            after - before,
            calls1 - calls0,
            shapes.get(name, ""),
            where.get(name, frozenset()),
        )
        for name, (before, after, calls0, calls1) in changed.items()
    ]
    smallest = float(np.nansum(ops["baseline_ns"])) * _SMALLEST_SHARE
    found = [_rename(gone, come) for gone, come in replacements(moved)]
    found = [one for one in found if min(one.removed_ns, one.added_ns) >= smallest]
    return tuple(sorted(found, key=lambda one: (-max(one.removed_ns, one.added_ns), one.parent)))


def _changed(ops: Columns) -> dict[str, tuple[float, float, float, float]]:
    """Name -> ns, then calls per step on both sides, of the ops that came, went, or are called more or less often."""
    place, first = number_distinct_rows([ops["name"]])
    sums = [np.nan_to_num(match.sum_exactly(ops[name], place, len(first))).tolist() for name in _NUMBERS]
    statuses = status_of_names(ops)
    found = {}
    for name, before, after, calls0, calls1 in zip(ops["name"][first].tolist(), *sums, strict=True):
        status = statuses[name]
        if status == ADDED:
            found[name] = (before, after, 0.0, calls1 or 1.0)
        elif status == REMOVED:
            found[name] = (before, after, calls0 or 1.0, 0.0)
        elif status == BOTH and calls0 and calls1 and abs(calls1 - calls0) > MOVED * max(calls0, calls1):
            found[name] = (before, after, calls0, calls1)
    return found


def _shapes(ops: Columns, names: Collection[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, shapes in ops.rows("name", "input_shapes"):
        if name in names and shapes:
            found.setdefault(name, []).append(shapes)
    return found


def _places(
    baseline: LoadedSide, candidate: LoadedSide, changed: Mapping[str, tuple[float, float, float, float]]
) -> dict[str, frozenset[str]]:
    """Operator -> where most of its calls changed, by a run of each side; see `places_of`."""
    trees = []
    for side in (baseline, candidate):
        own = []
        for table in (side.query_op_tree(), side.query(queries.ops)):
            runs = table.integers("run_id")
            own.append(table.taken(runs == runs.min()) if len(table) else table)
        trees.append(own)
    both = set.intersection(*({*tree["name"]} for tree, _ in trees)) - changed.keys()
    found = [places_of(tree, ops, changed.keys(), both) for tree, ops in trees]
    where = {}
    for name, (_, _, *calls) in changed.items():
        moved: dict[str, float] = {}
        for sign, of_side, number in zip((-1.0, 1.0), found, calls, strict=True):
            total = sum(of_side.get(name, {}).values())
            for place, count in of_side.get(name, {}).items():
                moved[place] = moved.get(place, 0.0) + sign * number * (count / total if total else 0.0)
        most = max(map(abs, moved.values()), default=0.0)
        if moved:
            where[name] = frozenset(place for place, count in moved.items() if abs(count) >= most / 2)
    return where


def _rename(gone: list[Moved], come: list[Moved]) -> Rename:
    gone, come = (sorted(side, key=lambda own: -abs(own.change)) for side in (gone, come))
    removed_ns, added_ns = (
        sum(max(sign * own.change, 0.0) for own in side) for side, sign in ((gone, -1.0), (come, 1.0))
    )
    shared = frozenset.intersection(*(own.places for own in (*gone, *come)))
    place = min(shared or gone[0].places, default=TOP_LEVEL)
    return Rename(
        " + ".join(own.name for own in gone),
        " + ".join(own.name for own in come),
        TOP_LEVEL if place.startswith(TOP_LEVEL) else place,
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
