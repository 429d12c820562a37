"""Why: the cause of a finding in words, operators that took the place of others, and what else changed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from tracker.columns import Columns
from tracker.detect import DEFAULTS
from tracker.profile import OF_A_RUN, OF_THE_CODE
from tracker.regressions.track import TrackRuns
from tracker.results import CONFIRMED_STATES, REPLACED_BY, TOP_LEVEL
from tracker.schema.series import IDLE_SERIES, KINDS
from tracker.store import Store, queries
from tracker.units import some_of

Row = dict[str, Any]
_SAME_TIME: Final = 0.10
"""By how much what came may differ from what went, to be called the same work under another name."""

_ALIKE: Final = 0.6
"""How alike two names must be, 0 to 1, to be one operator renamed."""

_NEW_SHAPES: Final = 0.5
"""Part of the change of an operator that new shapes of it must make to be its cause."""

_COUNTED: Final = frozenset(kind.word for kind in KINDS if kind.is_called)
_OF_RUN: Final = {
    "data loading": "data loading", "peak memory": "memory", "idle time": "idle time",
    "exposed communication": "communication",
}  # fmt: skip
_SHAPE: Final = re.compile(r"\[(\d[\d, ]*)\]")
_MOVERS: Final = frozenset({
    "alias", "as_strided", "cat", "chunk", "clone", "contiguous", "copy", "copys", "detach", "empty", "empty_like",
    "empty_strided", "expand", "fill", "narrow", "npu_dtype_cast", "npu_format_cast", "ones", "ones_like", "permute",
    "repeat", "reshape", "reshape_alias", "resize", "select", "slice", "split", "squeeze", "stack", "t", "to",
    "to_copy", "transpose", "unbind", "unsafe_split", "unsafe_view", "unsqueeze", "view", "zero", "zeros", "zeros_like",
})  # fmt: skip
"""Operators that move, view or fill tensors, in lower case without underscores around them: they come with others that
compute, and take the place of none.
"""
_NODE: Final = re.compile(r"backwards?\d*$")
MOVED: Final = 0.02
"""Calls that changed by less are no more and no fewer calls: a capture may cut a step."""


def cause_words(before: float, after: float, calls_before: float, calls_after: float) -> tuple[str, float, float]:
    """Say what changed an operator: the word, and its change (ns per step) by calls and by time per call; both add up.

    Change = calls gained x old time per call + new calls x change of the time per call. The larger part names it.

    >>> cause_words(100.0, 200.0, 10.0, 20.0)
    ('more calls', 100.0, 0.0)
    >>> cause_words(100.0, 130.0, 10.0, 10.0)[0], cause_words(0.0, 5.0, 0.0, 1.0)
    ('slower per call', ('new', 5.0, 0.0))
    """
    if before == 0 or after == 0:
        return ("new" if before == 0 else "gone"), after - before, 0.0
    if not (calls_before > 0 and calls_after > 0):
        return ("slower" if after > before else "faster"), 0.0, after - before
    by_calls = (calls_after - calls_before) * before / calls_before
    by_time = after - before - by_calls
    if abs(by_calls) > abs(by_time):
        return ("more calls" if by_calls > 0 else "fewer calls"), by_calls, by_time
    return ("slower per call" if by_time > 0 else "faster per call"), by_calls, by_time


def mark_cause(row: Row) -> None:
    """Give a finding its cause, a word or two for what changed: "" for the step itself, which others explain; and the
    two parts of its change that add up, by more calls and by slower ones: None for what is not counted.
    """
    counted = row["kind"] in _COUNTED and row["unit"] == "ns"
    is_presence, worse = row["change"] == "presence", row["direction"] == "regression"
    by_calls, per_call = None, None
    if counted and is_presence:
        by_calls, per_call = row["delta"], 0.0
    elif counted and row["baseline_calls"] and row["candidate_calls"]:
        ends = (row[name] for name in ("baseline_value", "candidate_value", "baseline_calls", "candidate_calls"))
        _, by_calls, per_call = cause_words(*ends)
    slower, faster = (
        ("new operator", "operator gone") if is_presence
        else ("more calls", "fewer calls") if abs(by_calls or 0.0) > abs(per_call or 0.0)
        else ("slower communication", "faster communication") if row["kind"] == "communication"
        else ("slower per call", "faster per call")
    )  # fmt: skip
    cause = slower if worse else faster
    if row["kind"] in ("run", "memory"):
        own = row["name"].removeprefix(IDLE_SERIES) if row["name"].startswith(IDLE_SERIES) else ""
        cause = _OF_RUN.get(row["name"], own) if row["kind"] == "run" else "memory"
    if row["change"] == "gradual":
        cause = "gradual slowdown"
    elif row["change"] == "machine":
        cause = "machine-wide drift"
    row |= {"cause": cause, "by_calls": by_calls, "by_time_per_call": per_call}


def mark_renamed(rows: Sequence[Row]) -> None:
    """Mark series that came with a version while others of the same time went: one work under other names.

    Their state is `renamed` where a name alone changed.

    First one by one, alike in name; then all that is left of a kind together, where its sums agree: a fusion.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["change"] == "presence" and row["incident_id"] is not None and row["kind"] in _COUNTED:
            groups.setdefault((row["incident_id"], row["kind"]), []).append(row)
    for own in groups.values():
        added = [row for row in own if row["direction"] == "regression"]
        removed = [row for row in own if row["direction"] == "improvement"]
        for came in list(added):
            same = [(alike, row) for row in removed if (alike := _same_work(came, row))]
            went = max(same, key=lambda pair: pair[0])[1] if same else None
            if went is not None:
                came["cause"], went["cause"] = f"renamed, was {went['name']}", f"renamed, is {came['name']}"
                if _is_as_long(came["delta"], -went["delta"]):
                    # nothing got slower or faster: an incident would be noise
                    for row in (came, went):
                        if row["state"] in CONFIRMED_STATES:
                            row |= {"state": "renamed", "is_new": False}
                added.remove(came)
                removed.remove(went)
        if added and removed and _equal(sum(row["delta"] for row in added), -sum(row["delta"] for row in removed)):
            for row in (*added, *removed):
                row["cause"] = "renamed or fused"


def mark_new_shapes(rows: Sequence[Row]) -> None:
    """Mark operators whose change is mostly in shapes that came or went: no call of before became slower or
    faster by it. `rows`: with what each is under.
    """
    of_shapes: dict[int, float] = {}
    for row in rows:
        if row["change"] == "presence" and row["kind"] == "op" and row["under"] is not None:
            of_shapes[row["under"]] = of_shapes.get(row["under"], 0.0) + (row["delta"] or 0.0)
    for row in rows:
        part = of_shapes.get(row["finding_id"], 0.0)
        if row["change"] != "level" or row["replaced"] or not row["delta"] or part / row["delta"] < _NEW_SHAPES:
            continue
        more = (row["candidate_calls"] or 0) > (row["baseline_calls"] or 0)
        came = "more calls of new shapes" if more else "new shapes"
        row["cause"] = came if row["direction"] == "regression" else "shapes gone"


def _same_work(came: Row, went: Row) -> float:
    """Return how alike two operators are in name, 0 where they do not look like one that was renamed."""
    short, long = sorted((came["name"], went["name"]), key=len)
    alike = SequenceMatcher(None, came["name"], went["name"]).ratio()
    return alike if (short in long or alike >= _ALIKE) and _equal(came["delta"], -went["delta"]) else 0.0


def _is_as_long(one: float, other: float) -> bool:
    """Return whether two times differ by less than makes a finding."""
    return abs(one - other) < DEFAULTS.ratio * max(abs(one), abs(other))


def _equal(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME_TIME * max(abs(one), abs(other))


class Moved(Struct, frozen=True):
    """An operator whose calls rose or fell, or that came or went: its change (ns per step), the calls per step that it
    gained, its shapes, and the parents and modules that call it.
    """

    name: str
    change: float
    calls: float
    shapes: str = ""
    places: frozenset[str] = frozenset()


def replacements(moved: Sequence[Moved]) -> list[tuple[list[Moved], list[Moved]]]:
    """Return operators that lost calls, and those that gained them in their place.

    Those in one place belong together, a parent or module that both have, where the calls that one gained are those
    that the other lost, or a multiple of them; and those of the same shapes, with as many gained as lost. Operators
    that only move data replace nothing, and nothing replaces them.
    """
    group = {one.name: one.name for one in moved}
    for at, one in enumerate(moved):
        for other in moved[at + 1 :]:
            is_swap = one.calls == -other.calls and bool(one.shapes) and one.shapes == other.shapes
            if is_swap or (one.places & other.places and _are_multiples(one.calls, other.calls)):
                target, source = group[one.name], group[other.name]
                group = {name: target if own == source else own for name, own in group.items()}
    found = []
    for own in dict.fromkeys(group[one.name] for one in moved if one.calls < 0):
        together = [one for one in moved if group[one.name] == own]
        gone = [one for one in together if one.calls < 0]
        come = [one for one in together if one.calls > 0]
        if all(any(not _is_mover(one.name) for one in side) for side in (gone, come)):
            found.append((gone, come))
    return found


def _are_multiples(one: float, other: float) -> bool:
    """Return whether two numbers of calls are whole multiples of each other, whatever their signs.

    >>> _are_multiples(-12, 24), _are_multiples(-12, 12.1), _are_multiples(-12, 18)
    (True, True, False)
    """
    small, large = sorted((abs(one), abs(other)))
    ratio = large / small
    return abs(ratio - round(ratio)) <= MOVED * ratio


def _is_mover(name: str) -> bool:
    """Return whether an operator, or a node of autograd, only moves, views or fills tensors.

    >>> _is_mover("aten::copy_"), _is_mover("autograd::engine::evaluate_function: ViewBackward0"), _is_mover("aten::mm")
    (True, True, False)
    """
    plain = _NODE.sub("", name.rpartition(":")[2].strip().lower()).strip("_")
    return plain in _MOVERS


def mark_replaced(store: Store, rows: Sequence[Row], incidents: Collection[int], *, with_invalid: bool = False) -> None:
    """Give the findings of each replacement the key `replaced`: `head`, the finding that stands for it, and the columns
    that this has as the `whole` of it; None for others.

    `rows`: of whole incidents; looked at are those of `incidents`, since where operators are called from takes a while
    to read. `with_invalid`: also false positives.
    """
    groups: dict[int, dict[str, Row]] = {}
    for row in rows:
        row["replaced"] = None
        before, after = _calls(row)
        has_moved = abs(after - before) > MOVED * max(before, after)
        counts = with_invalid or row["state"] != "invalid"
        if has_moved and counts and row["incident_id"] in incidents and row["kind"] == "op_name":
            groups.setdefault(row["incident_id"], {})[row["name"]] = row
    for moved in groups.values():
        if len({_calls(row)[1] > _calls(row)[0] for row in moved.values()}) < 2:
            continue
        first = next(iter(moved.values()))
        sides = [int(first[side].split()[-1]) for side in ("baseline_runs", "candidate_runs") if first[side]]
        trees = [queries.op_tree(store, [run_id]) for run_id in sides]
        both = set.intersection(*({*tree["name"]} if len(tree) else set() for tree in trees))
        where: dict[str, set[str]] = {name: set() for name in moved}
        for run_id, tree in zip(sides, trees, strict=True):
            ops = queries.ops(store, [run_id])
            for name, places in places_of(tree, ops, moved.keys(), both - moved.keys()).items():
                where[name].update(places)
        changed = [
            Moved(name, row["delta"], _calls(row)[1] - _calls(row)[0], places=frozenset(where[name]))
            for name, row in moved.items()
        ]
        for pair in replacements(changed):
            gone, come = (
                sorted((moved[one.name] for one in side), key=lambda row: (-abs(row["delta"]), row["name"]))
                for side in pair
            )
            together = [*gone, *come]
            shared = set.intersection(*(where[row["name"]] for row in together))
            parents = [place for place in sorted(shared) if not place.startswith(TOP_LEVEL)]
            gone_names, come_names = (some_of([row["name"] for row in side]) for side in (gone, come))
            before = -sum(min(row["delta"], 0.0) for row in together)
            after = sum(max(row["delta"], 0.0) for row in together)
            whole = {
                "name": f"{gone_names}{REPLACED_BY}{come_names}", "input_shapes": "", "change": "level",
                "ratio": after / before - 1 if before else None, "baseline_value": before, "candidate_value": after,
                "contribution": sum(row["contribution"] for row in together), "delta": after - before,
                "verdict": "REGRESSED" if after > before else "IMPROVED",
                "cause": f"replaced under {parents[0]}" if parents else "replaced",
                **dict.fromkeys(("baseline_calls", "candidate_calls", "by_calls", "by_time_per_call")),
            }  # fmt: skip
            head = (come if sum(row["delta"] for row in together) > 0 else gone)[0]["finding_id"]
            for row in together:
                row["replaced"] = {"head": head, "whole": whole}
                if not str(row["cause"]).startswith("renamed"):
                    row["cause"] = f"replaced by {come_names}" if row in gone else f"replaces {gone_names}"


def as_one(row: Row) -> Row:
    """Return a finding as it is shown: one that stands for a replacement as the whole of it, net."""
    of = row["replaced"]
    return row if of is None or of["head"] != row["finding_id"] else row | of["whole"]


def net_contribution(row: Row) -> float:
    """Return the part of the step that a finding changed; of one that stands for a replacement, net."""
    of = row["replaced"]
    if of is None:
        return row["contribution"] or 0.0
    return float(of["whole"]["contribution"]) if of["head"] == row["finding_id"] else 0.0


def _calls(row: Row) -> tuple[float, float]:
    return row["baseline_calls"] or 0.0, row["candidate_calls"] or 0.0


def places_of(
    tree: Columns, ops: Columns, names: Collection[str], parents: Collection[str]
) -> dict[str, dict[str, float]]:
    """Return, per operator, where a run calls it from, and how often: the nearest operator above that is one of
    `parents`, else its module, else the top level with the tensors that come in there: the shapes of the outermost
    operator above it that has any. `tree`, `ops`: of `queries.op_tree` and `ops`.
    """
    found: dict[str, dict[str, float]] = {}
    modules: dict[str, set[str]] = {}
    for name, module in ops.rows("name", "module"):
        if name in names and module:
            modules.setdefault(name, set()).add(module)
    rows = list(tree.rows("rank", "name", "parent", "input_shapes", "calls")) if len(tree) else []
    # most rows are only passed on the way up, so that all that is kept of them is where they stand
    row_of_node = dict(zip(tree.rows("rank", "node"), range(len(rows)), strict=True)) if rows else {}
    for rank, name, parent, shapes, calls in rows:
        if name not in names:
            continue
        above, outermost = row_of_node.get((rank, parent)), shapes
        while above is not None and rows[above][1] not in parents:
            _, _, parent_above, shapes_above, _ = rows[above]
            outermost = shapes_above if _SHAPE.search(shapes_above) else outermost
            above = row_of_node.get((rank, parent_above))
        top = modules.get(name) or {f"{TOP_LEVEL} {text}" for text in _tensors(outermost)}
        for place in top if above is None else {rows[above][1]}:
            own = found.setdefault(name, {})
            own[place] = own.get(place, 0.0) + (calls or 0.0)
    for name in modules.keys() - found.keys():
        found[name] = dict.fromkeys(modules[name], 1.0)
    return found


def _tensors(shapes: str) -> list[str]:
    """Return the shapes of the tensors among inputs, without scalars and vectors where there are others.

    >>> _tensors("[[8,96,768],[768],[]]"), _tensors("[[2],[]]")
    (['8,96,768'], ['2'])
    """
    found = _SHAPE.findall(shapes)
    return [text for text in found if "," in text] or found[:1]


def changed_between(store: Store, incident: Row) -> list[Row]:
    """Return the facts and profiler settings that no run of one side of an incident shares with one of the other."""
    sides = ("baseline_runs", "candidate_runs")
    side_of = {int(run): side for side in sides for run in incident[side].split()}
    recorded = []
    for run_id, settings, steps in queries.captures(store, list(side_of)).rows("run_id", "settings", "steps"):
        said = queries.settings_of(settings) | {"steps": str(steps)}
        recorded += [(run_id, f"profiler {key}", value) for key, value in said.items()]
    known = _stated(store, side_of, recorded)
    return [
        {"incident_id": incident["incident_id"], "key": key, "before": before, "after": after}
        for key, before, after in differing(*(known.get(side, {}) for side in sides))
    ]


def changes(store: Store, track: TrackRuns) -> list[tuple[str, str, str | None, str | None]]:
    """Return the facts that no run of a version shares with any run of the version before: version, key, and its values
    before and in it.

    Several values of a version join with ` | `; what differs from run to run is no change of the version.
    """
    version_of = {run.run_id: run.version for run in track.runs}
    known = [*_stated(store, version_of).items()]
    return [
        (version, *change) for (_, before), (version, after) in pairwise(known) for change in differing(before, after)
    ]


def _stated(
    store: Store, group_of: Mapping[int, str], more: Iterable[tuple[int, str, str]] = ()
) -> dict[str, dict[str, set[str]]]:
    """Group of runs -> their environment by key, without what names the run and its code. `more`: run, key, value."""
    known: dict[str, dict[str, set[str]]] = {group: {} for group in group_of.values()}
    facts = queries.facts(store, list(group_of), kind="fact").rows("run_id", "key", "value")
    for run_id, key, value in (*facts, *more):
        if key not in OF_A_RUN | OF_THE_CODE:
            known[group_of[run_id]].setdefault(key, set()).add(value)
    return known


def differing(
    before: Mapping[str, set[str]], after: Mapping[str, set[str]]
) -> list[tuple[str, str | None, str | None]]:
    """Return the keys whose values the two sides do not share, with those of each; None for nothing.

    What only one side says is no change where the other one does not know: it counts for settings of the profiler, and
    for a variable of a job that stated its variables.

    >>> differing({"driver": {"535"}}, {"driver": {"550"}, "python_version": {"3.11"}, "NCCL_ALGO": {"Ring"}})
    [('driver', '535', '550')]
    >>> differing({"python_version": {"3.11"}}, {"python_version": {"3.11"}, "NCCL_ALGO": {"Ring"}})
    [('NCCL_ALGO', None, 'Ring')]
    """
    found = []
    for key in sorted(before.keys() | after.keys()):
        one, other = before.get(key, set()), after.get(key, set())
        counts = bool(one and other) or key.startswith("profiler ")
        other_side = after if one else before
        states_variables = "python_version" in other_side or any(name[:1].isupper() for name in other_side)
        if not one & other and (counts or (key[:1].isupper() and states_variables)):
            found.append((key, " | ".join(sorted(one)) or None, " | ".join(sorted(other)) or None))
    return found
