"""Which findings of an incident are one change: operators that went, and those that came in their place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from sqlalchemy import Connection

from tracker.columns import Columns
from tracker.judgement.causes import Row
from tracker.judgement.families import leaf_of
from tracker.judgement.incidents import centre_between
from tracker.judgement.judging import Values, step_of
from tracker.judgement.replaced import Calls, Context, Contexts, Net, Replacement, net_of, replacements
from tracker.judgement.thresholds import Thresholds
from tracker.results import REPLACED_BY, TOP_LEVEL
from tracker.store import Store, queries, thresholds
from tracker.store.chosen import Known
from tracker.store.judged import Line
from tracker.units import some_of

MOVED: Final = 0.02
"""Calls that changed by less are no more and no fewer calls."""


class Replaced(Struct, frozen=True):
    """A replacement and its net. `head`: the finding that stands for it, one of what came where the net is a loss."""

    head: int
    incident_id: int
    one: Replacement
    net: Net

    @property
    def row(self) -> Row:
        """As in FINDINGS_COLUMNS["replacements"]."""
        return {
            "incident_id": self.incident_id,
            "finding_id": self.head,
            "parent": self.one.parent,
            "gone": ", ".join(self.one.gone),
            "come": ", ".join(self.one.come),
            "delta_ns": self.net.delta_ns,
            **{name: getattr(self.net, name) for name in self.net.__struct_fields__},
        }


def mark_replaced(store: Store, rows: Sequence[Row], wanted: Callable[[Row], bool]) -> None:
    """Give the findings of each replacement the key `replaced`, the Replaced that they are part of; None for others.

    `rows`: of whole incidents, with what each is under. `wanted`: looked at are incidents of which any finding is
    wanted, since where ops are called from takes a while to read.
    """
    known = Known()
    for row in rows:
        row["replaced"] = None
    shown = {row["incident_id"] for row in rows if wanted(row)}
    own = sorted(
        (row for row in rows if _counts(row) and row["incident_id"] in shown), key=lambda row: row["incident_id"]
    )
    for _, group in groupby(own, key=lambda row: row["incident_id"]):
        members = {str(row["name"]): row for row in group}
        calls = {
            name: Calls(row["baseline_calls"] or 0.0, row["candidate_calls"] or 0.0) for name, row in members.items()
        }
        moved = {name: own for name, own in calls.items() if abs(own.change) > MOVED * max(own.before, own.after)}
        if len({own.change > 0 for own in moved.values()}) == 2:
            _mark(store, members, moved, known)
    whole = {row["finding_id"]: row["replaced"] for row in own}
    for row in rows:
        row["replaced"] = row["replaced"] or whole.get(row["under"])


def put_under_heads(rows: Sequence[Row]) -> None:
    """The findings of a replacement are under the one that stands for it, where that is among them."""
    there = {row["finding_id"] for row in rows}
    for row in rows:
        of = row["replaced"]
        if of is not None and row["under"] is None and row["finding_id"] != of.head and of.head in there:
            row["under"] = of.head


def as_one(row: Row) -> Row:
    """A finding as it is shown: one that stands for a replacement as the whole of it, net; others as they are."""
    of = row["replaced"]
    return row if of is None or of.head != row["finding_id"] else with_net(row, of.row)


def with_net(row: Row, replacement: Row) -> Row:
    """The finding that stands for a replacement, a row of FINDINGS_COLUMNS["replacements"], as the whole of it."""
    parent = replacement["parent"]
    return row | {
        "name": REPLACED_BY.join(some_of(str(replacement[side]).split(", ")) for side in ("gone", "come")),
        "input_shapes": "",
        "change": "level",
        "verdict": replacement["verdict"],
        "ratio": replacement["ratio"],
        "q": replacement["q"],
        "contribution": replacement["contribution"],
        "baseline_value": replacement["before_ns"],
        "candidate_value": replacement["after_ns"],
        "delta": replacement["delta_ns"],
        "effect": None,
        "cause": "replaced" if parent == TOP_LEVEL else f"replaced under {parent}",
        **dict.fromkeys(("baseline_calls", "candidate_calls", "by_calls", "by_time_per_call")),
    }


def _counts(row: Row) -> bool:
    """Whether a finding is of an operator, all shapes together, whose calls are counted."""
    whole = row["kind"] == "op_name" or (row["kind"] == "op" and not row["input_shapes"] and row["under"] is None)
    return whole and row["incident_id"] is not None and row["state"] != "invalid" and row["change"] != "creep"


def _mark(store: Store, members: Mapping[str, Row], changes: Mapping[str, Calls], known: Known) -> None:
    """The replacements among the findings `members` of one incident, by name."""
    first = next(iter(members.values()))
    sides = [_runs(members.values(), side) for side in ("baseline", "candidate")]
    if not all(sides):
        return
    before, after = (contexts_of(store, side[-1], changes) for side in sides)
    found = replacements(before, after, changes)
    if not found:
        return
    line = Line(first["workload_id"], first["configuration_id"], first["device_id"])
    with store.connect() as connection:
        judge = _Judge.of(connection, line, sides, known)
    for one in (_largest_first(one, members) for one in found):
        net = judge.net(one)
        if not net.holds(one):
            continue
        part = one.come if net.is_worse else one.gone
        own = [members[name] for name in part]
        head = max(own, key=lambda row: (abs(row["delta"] or 0.0), -row["finding_id"]))
        replaced = Replaced(head["finding_id"], head["incident_id"], one, net)
        for name in one.names:
            _say(members[name], replaced)


def _largest_first(one: Replacement, members: Mapping[str, Row]) -> Replacement:
    """The same with the ops that changed most first."""

    def ordered(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(sorted(names, key=lambda name: (-abs(members[name]["delta"] or 0.0), name)))

    return Replacement(one.parent, ordered(one.gone), ordered(one.come), one.is_sure)


def _say(row: Row, of: Replaced) -> None:
    row["replaced"] = of
    if str(row["cause"]).startswith("renamed"):
        return
    went = row["name"] in of.one.gone
    others = some_of(of.one.come if went else of.one.gone)
    row["cause"] = f"replaced by {others}" if went else f"replaces {others}"


def _runs(rows: Iterable[Row], side: str) -> list[int]:
    """The runs of a side that most of the findings rest on."""
    texts = [str(row[f"{side}_runs"] or "") for row in rows]
    return [int(number) for number in max(texts, key=lambda text: (texts.count(text), text), default="").split()]


class _Judge(Struct, frozen=True):
    """Two sides of runs of one line, ready to judge nets. `baseline`: how many of the columns of `values`."""

    values: Values
    baseline: int
    limits: Thresholds

    @classmethod
    def of(cls, connection: Connection, line: Line, sides: Sequence[Sequence[int]], known: Known) -> _Judge:
        """`sides`: the runs of both."""
        series = known.series_of(connection, line)
        values, calls = known.values_of(connection, [run for side in sides for run in side], series)
        limits = Thresholds(thresholds.of_line(connection, line))
        return cls(Values.of_keys(series.keys, values, calls), len(sides[0]), limits)

    def net(self, one: Replacement) -> Net:
        """The net of a replacement, judged with the limits that hold for operators."""
        count = self.values.values.shape[1]
        sides = range(self.baseline), range(self.baseline, count)
        leaf = leaf_of(self.values.families)
        step = step_of(self.values, *sides)
        centre = centre_between(self.values, self.baseline, count - self.baseline, 0.0 if np.isnan(step) else step)
        family = leaf or ("op", "")
        limits = self.limits.limits(family, [one.come[0]])
        return net_of(
            one, self.values, *sides, metric=family[1], step=step, centre=centre, limits=limits
        )  # fmt: skip


def contexts_of(store: Store, run_id: int, names: Collection[str]) -> Contexts:
    """Where the ops of a run are called from; without a tree, each by itself at the top level."""
    return contexts_in(queries.op_tree.columns(store, [run_id]), queries.ops.columns(store, [run_id]), names)


def contexts_in(tree: Columns, ops: Columns, names: Collection[str]) -> Contexts:
    """The same from the answers of `queries.op_tree` and `queries.ops`: of as many runs and ranks as have these ops."""
    own = ops.taken(np.isin(ops["name"], list(names)))
    modules: dict[str, dict[str, float]] = {}
    rows = []
    for at, (name, shapes, module, calls) in enumerate(own.rows("name", "input_shapes", "module", "calls")):
        rows.append(Context((0, 0, at), (0, 0, -1), name, shapes, calls or 0.0))
        if module:
            count = modules.setdefault(name, {})
            count[module] = count.get(module, 0.0) + (calls or 0.0)
    if len(tree):
        numbers = ("run_id", "rank", "node", "parent", "name", "input_shapes", "calls")
        rows = [
            Context((run, rank, node), (run, rank, above), name, shapes, calls or 0.0)
            for run, rank, node, above, name, shapes, calls in tree.taken(_enough(tree, names)).rows(*numbers)
        ]
    return Contexts(rows, {name: max(own, key=lambda module: (own[module], module)) for name, own in modules.items()})


def _enough(tree: Columns, names: Collection[str]) -> NDArray[np.bool_]:
    """The rows of the first runs and ranks that have all ops between them: most ranks do the same."""
    there = np.isin(tree["name"], list(names))
    known: set[str] = set()
    taken = np.zeros(len(tree), dtype=bool)
    captures = np.stack([tree.integers("run_id"), tree.integers("rank")], axis=1)
    for capture in np.unique(captures, axis=0):
        of_capture = (captures == capture).all(axis=1)
        found = set(tree["name"][of_capture & there])
        if not found <= known:
            known |= found
            taken |= of_capture
    return taken
