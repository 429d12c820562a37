"""Findings that are one change: operators that went, and those that came in their place."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, Final

from tracker.columns import Columns
from tracker.regressions.incidents import Moved, replacements
from tracker.results import REPLACED_BY, TOP_LEVEL
from tracker.store import Store, queries
from tracker.units import some_of

Row = dict[str, Any]

_FIRST_SHAPE: Final = re.compile(r"\[(\d[\d, ]*)\]")
_MOVED: Final = 0.02
"""Calls that changed by less are no more and no fewer calls: a capture may cut a step."""


def mark_replaced(store: Store, rows: Sequence[Row], incidents: Collection[int]) -> None:
    """Give the findings of each replacement the key `replaced`: its numbers, and `head`, the finding that stands for it
    and that the others are under; None for others.

    `rows`: of whole incidents, with what each is under; looked at are those of `incidents`, since where operators are
    called from takes a while to read.
    """
    groups: dict[int, dict[str, Row]] = {}
    for row in rows:
        row["replaced"] = None
        if row["incident_id"] in incidents and row["kind"] == "op_name" and row["state"] != "invalid" and (
            _calls(row)[0] != _calls(row)[1]
        ):  # fmt: skip
            groups.setdefault(row["incident_id"], {})[row["name"]] = row
    for members in groups.values():
        moved = {name: row for name, row in members.items() if _has_moved(row)}
        if len({_calls(row)[1] > _calls(row)[0] for row in moved.values()}) == 2:
            _mark(store, moved)
    cover_replaced(rows)


def cover_replaced(rows: Sequence[Row]) -> None:
    """Put the findings of each replacement under the one that stands for it, where `rows` have that."""
    heads = {row["finding_id"] for row in rows if row["replaced"] is not None}
    for row in rows:
        of = row["replaced"]
        if of is not None and row["under"] is None and row["finding_id"] != of["head"] and of["head"] in heads:
            row["under"] = of["head"]


def as_one(row: Row) -> Row:
    """A finding as it is shown: one that stands for a replacement as the whole of it, net; others as they are."""
    of = row["replaced"]
    if of is None or of["head"] != row["finding_id"]:
        return row
    before, after = of["before"], of["after"]
    return row | {
        "name": REPLACED_BY.join(some_of(names) for names in (of["gone"], of["come"])),
        "input_shapes": "", "change": "level", "ratio": after / before - 1 if before else None,
        "contribution": of["contribution"], "baseline_value": before, "candidate_value": after,
        "delta": after - before, "verdict": "REGRESSED" if after > before else "IMPROVED",
        "cause": "replaced" if of["parent"] == TOP_LEVEL else f"replaced under {of['parent']}",
        **dict.fromkeys(("baseline_calls", "candidate_calls", "by_calls", "by_time_per_call")),
    }  # fmt: skip


def net_contribution(row: Row) -> float:
    """The part of the step that a finding changed; of one that stands for a replacement, net."""
    of = row.get("replaced")
    if of is None:
        return row["contribution"] or 0.0
    return float(of["contribution"]) if of["head"] == row["finding_id"] else 0.0


def _calls(row: Row) -> tuple[float, float]:
    return row["baseline_calls"] or 0.0, row["candidate_calls"] or 0.0


def _has_moved(row: Row) -> bool:
    before, after = _calls(row)
    return abs(after - before) > _MOVED * max(before, after)


def _mark(store: Store, moved: dict[str, Row]) -> None:
    names = list(moved)
    first = moved[names[0]]
    sides = [int(first[side].split()[-1]) for side in ("baseline_runs", "candidate_runs") if first[side]]
    trees = [queries.op_tree.columns(store, [run_id]) for run_id in sides]
    both = set.intersection(*({*tree["name"]} if len(tree) else set() for tree in trees))
    where: dict[str, dict[str, float]] = {}
    for run_id, tree in zip(sides, trees, strict=True):
        for name, places in places_of(tree, queries.ops.columns(store, [run_id]), names, both - set(names)).items():
            own = where.setdefault(name, {})
            for place, calls in places.items():
                own[place] = own.get(place, 0.0) + calls
    found = replacements(
        [
            Moved(at, row["delta"], *_calls(row), places=frozenset(where.get(name, ())))
            for at, (name, row) in enumerate(moved.items())
        ]
    )
    for one in found:
        gone, come = (
            sorted((moved[names[at]] for at in part), key=lambda row: (-abs(row["delta"]), row["name"]))
            for part in (one.gone, one.come)
        )
        part = come if one.net > 0 else gone
        shared = [{*where.get(row["name"], ())} for row in (*gone, *come)]
        parents = [place for place in sorted(set.intersection(*shared)) if not place.startswith(TOP_LEVEL)]
        of = {
            "head": part[0]["finding_id"],
            "gone": [row["name"] for row in gone],
            "come": [row["name"] for row in come],
            "parent": parents[0] if parents else TOP_LEVEL,
            "before": -sum(min(row["delta"], 0.0) for row in (*gone, *come)),
            "after": sum(max(row["delta"], 0.0) for row in (*gone, *come)),
            "contribution": sum(row["contribution"] for row in (*gone, *come)),
        }
        for row in (*gone, *come):
            row["replaced"] = of
            if not str(row["cause"]).startswith("renamed"):
                row["cause"] = (
                    f"replaced by {some_of(of['come'])}" if row in gone else f"replaces {some_of(of['gone'])}"
                )


def places_of(
    tree: Columns, ops: Columns, names: Collection[str], parents: Collection[str]
) -> dict[str, dict[str, float]]:
    """Operator -> where a run calls it from, and how often: the nearest operator above that is one of `parents`, else
    its module, else the top level with the shape of its first input. `tree`, `ops`: of `queries.op_tree` and `ops`.
    """
    above: dict[tuple[int, int], tuple[str, int]] = {}
    found: dict[str, dict[str, float]] = {}
    modules: dict[str, set[str]] = {}
    for name, module in ops.rows("name", "module"):
        if name in names and module:
            modules.setdefault(name, set()).add(module)
    rows = tree.rows("rank", "node", "parent", "name", "input_shapes", "calls") if len(tree) else ()
    for rank, node, parent, name, shapes, calls in rows:
        above[rank, node] = (name, parent)
        if name not in names:
            continue
        at = above.get((rank, parent))
        while at is not None and at[0] not in parents:
            at = above.get((rank, at[1]))
        shape = _FIRST_SHAPE.findall(shapes)[:1]
        top = modules.get(name) or {f"{TOP_LEVEL} {text}" for text in shape}
        for place in top if at is None else {at[0]}:
            own = found.setdefault(name, {})
            own[place] = own.get(place, 0.0) + (calls or 0.0)
    for name in modules.keys() - found.keys():
        found[name] = dict.fromkeys(modules[name], 1.0)
    return found
