"""What took the place of what: operators that went, or are called less, and those that came where they were called.

One grouping for diffs, findings, incidents, gates and alerts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from statistics import median
from typing import Final, NamedTuple

from msgspec import Struct

from tracker.columns import Columns
from tracker.detect import DEFAULTS
from tracker.results import REPLACED_BY, TOP_LEVEL
from tracker.results.replaced_names import AUTOGRAD_NODE
from tracker.schema.column_names import CALLS, INPUT_SHAPES, MODULE, NAME, NODE, PARENT, RANK

_SHAPE: Final = re.compile(r"\[(\d[\d, ]*)\]")
_MOVERS: Final = frozenset({
    "alias", "asstrided", "cat", "chunk", "clone", "contiguous", "copy", "copys", "detach", "empty", "emptylike",
    "emptystrided", "expand", "fill", "narrow", "npudtypecast", "npuformatcast", "ones", "oneslike", "permute",
    "repeat", "reshape", "reshapealias", "resize", "resulttype", "select", "slice", "split", "squeeze", "stack", "t",
    "to", "tocopy", "transpose", "unbind", "unsafesplit", "unsafeview", "unsqueeze", "view", "zero", "zeros",
    "zeroslike",
})  # fmt: skip
"""Operators that move, view or fill tensors, in lower case without underscores: they come with others that
compute, and take the place of none.
"""
_NODE: Final = re.compile(r"backwards?\d*$")
_NAMESPACE: Final = re.compile(r"\b\w+::")
_BACKWARD: Final = re.compile(r"_?[Bb]ackwards?\d*$")
_ALIKE: Final = 0.6
"""How alike two names must be, 0 to 1, to be one operator renamed."""
MOVED: Final = 0.02
"""Calls that changed by less are no more and no fewer calls: a capture may cut a step."""


class OperatorChange(NamedTuple):
    """What changed of an operator, over all its shapes: times in ns and calls, both per step, before and after.

    `shapes`: of its inputs, in words; what takes the place of what where it is not known from where it is called.
    `places`: the parents and modules from which most of its calls changed, where that is known.
    """

    name: str
    before_ns: float
    after_ns: float
    calls_before: float
    calls_after: float
    shapes: str = ""
    places: frozenset[str] = frozenset()

    @property
    def delta_ns(self) -> float:
        """By how much it changed, per step."""
        return self.after_ns - self.before_ns

    @property
    def gained_calls(self) -> float:
        """By how many calls a step it is called more often; below 0 where it is called less."""
        return self.calls_after - self.calls_before

    @property
    def has_moved(self) -> bool:
        """Whether it came, went, or is called more or less often."""
        return abs(self.gained_calls) > MOVED * max(self.calls_before, self.calls_after)


class CallingContexts(Struct, frozen=True):
    """From where one run calls its operators: `tree` of `queries.op_tree`, `ops` of `queries.ops`."""

    tree: Columns
    ops: Columns


class Replacement(Struct, frozen=True):
    """Operators that went, or are called less, and those that came in their place; those that changed most first.

    `parent`: the operator or module that calls all of them, TOP_LEVEL where there is none.
    """

    gone: tuple[OperatorChange, ...]
    come: tuple[OperatorChange, ...]
    parent: str

    @property
    def members(self) -> tuple[OperatorChange, ...]:
        """All operators that take part, those that went first."""
        return (*self.gone, *self.come)

    @property
    def removed_ns(self) -> float:
        """What its operators took before, and do not take any more."""
        return sum(max(one.before_ns - one.after_ns, 0.0) for one in self.members)

    @property
    def added_ns(self) -> float:
        """What its operators take now, and did not take before."""
        return sum(max(one.after_ns - one.before_ns, 0.0) for one in self.members)

    @property
    def is_renamed(self) -> bool:
        """Whether only the name of one operator or kernel changed: called as often and as long, under a like name."""
        if len(self.gone) != 1 or len(self.come) != 1:
            return False
        went, came = self.members
        is_swap = not went.calls_after and not came.calls_before
        is_as_often = _are_equal(went.calls_before, came.calls_after)
        is_as_long = abs(self.added_ns - self.removed_ns) < DEFAULTS.ratio * max(self.added_ns, self.removed_ns)
        return is_swap and is_as_often and is_as_long and name_likeness(came.name, went.name) > 0


def find_replacements(
    changes: Iterable[OperatorChange], before: CallingContexts, after: CallingContexts
) -> list[Replacement]:
    """Return what took the place of what, of operators that came, went, or are called more or less often.

    `changes`: a diff gives those of all operators, findings have only those with a verdict: small operators that came
    with others are in the group of a diff alone, and may join groups that have no other operator in common.
    `before`, `after`: from where a run of each side calls them.
    """
    moved = {change.name: change for change in changes if change.has_moved}
    if len({change.gained_calls > 0 for change in moved.values()}) < 2:
        # nothing can have taken the place of anything
        return []
    places = _find_changed_places(before, after, moved)
    placed = []
    for name, change in moved.items():
        shapes = "" if name in places else change.shapes
        placed.append(change._replace(shapes=shapes, places=places.get(name, frozenset())))
    found = []
    for gone, come in pair_changes(placed):
        shared = frozenset.intersection(*(one.places for one in (*gone, *come)))
        place = min(shared or gone[0].places, default=TOP_LEVEL)
        sides = [tuple(sorted(side, key=lambda one: (-abs(one.delta_ns), one.name))) for side in (gone, come)]
        found.append(Replacement(sides[0], sides[1], TOP_LEVEL if place.startswith(TOP_LEVEL) else place))
    return found


def pair_kernels(changes: Iterable[OperatorChange]) -> list[Replacement]:
    """Return which kernels took the place of which, of kernels that no operator launched: nothing says from where a
    graph calls them, so that they are of one kind of work, and as often launched as those that went were.

    `changes`: with the kind of work as `shapes`.
    """
    found = []
    for gone, come in pair_changes([change for change in changes if change.has_moved]):
        sides = [tuple(sorted(side, key=lambda one: (-abs(one.delta_ns), one.name))) for side in (gone, come)]
        found.append(Replacement(sides[0], sides[1], TOP_LEVEL))
    return found


def name_likeness(new_name: str, old_name: str) -> float:
    """Return how alike the names of two operators or kernels are, 0 where they do not look like one that was renamed.

    A namespace and the word backward say nothing of what an operator computes: many share them.
    """
    (new_core, is_new_backward), (old_core, is_old_backward) = core_name(new_name), core_name(old_name)
    if is_new_backward != is_old_backward:
        return 0.0
    short, long = sorted((new_core, old_core), key=len)
    alike = SequenceMatcher(None, new_core, old_core).ratio()
    return alike if short in long or alike >= _ALIKE else 0.0


def core_name(name: str) -> tuple[str, bool]:
    """Return the name of an operator or kernel without its namespaces, and whether it belongs to a backward pass.

    >>> core_name("aten::gelu_backward"), core_name("autograd::engine::evaluate_function: MulBackward0")
    (('gelu', True), ('Mul', True))
    >>> core_name("void at::native::fill<at::half>(float*)")
    ('void fill<half>(float*)', False)
    """
    plain = _NAMESPACE.sub("", name).rpartition(": ")[2]
    core = _BACKWARD.sub("", plain)
    return core, core != plain


def name_replacement(gone: Sequence[str], come: Sequence[str]) -> str:
    """Return the name of a replacement: what went, and what came, without operators that only move tensors and nodes of
    autograd, which come with others.

    >>> name_replacement(["aten::gelu", "GeluBackward0"], ["aten::mul", "aten::to", "MulBackward0", "aten::tanh"])
    'aten::gelu -> aten::mul, aten::tanh'
    """
    return REPLACED_BY.join(", ".join(main_names(side)) for side in (gone, come))


def main_names(names: Sequence[str]) -> list[str]:
    """Return the names of one side of a replacement that say what it is."""
    main = [name for name in names if not _is_mover(name) and not AUTOGRAD_NODE.search(name)]
    return main or list(names)


def _find_changed_places(
    before: CallingContexts, after: CallingContexts, changes: Mapping[str, OperatorChange]
) -> dict[str, frozenset[str]]:
    """Return operator -> where most of its calls changed; see `places_of`."""
    names_before, names_after = ({*one.tree.listed(NAME)} if len(one.tree) else set() for one in (before, after))
    parents = (names_before & names_after) - changes.keys() - _find_moved_names(before.ops, after.ops)
    calls_before, calls_after = (places_of(one.tree, one.ops, changes.keys(), parents) for one in (before, after))
    places = {}
    for name, change in changes.items():
        moved: dict[str, float] = {}
        _add_calls(moved, calls_before.get(name, {}), -change.calls_before)
        _add_calls(moved, calls_after.get(name, {}), change.calls_after)
        if moved:
            most = max(map(abs, moved.values()))
            places[name] = frozenset(place for place, calls in moved.items() if abs(calls) >= most / 2)
    return places


def _find_moved_names(before: Columns, after: Columns) -> set[str]:
    """Return the operators of both runs that one calls more or less often than the other, in a step.

    Half of the operators are called as often as before, so that their counts say how many steps the runs have.
    """
    calls_before, calls_after = _sum_calls(before), _sum_calls(after)
    names = [name for name in calls_before.keys() & calls_after.keys() if calls_before[name] and calls_after[name]]
    if not names:
        return set()
    steps = median(calls_after[name] / calls_before[name] for name in names)
    changes = (OperatorChange(name, 0.0, 0.0, calls_before[name] * steps, calls_after[name]) for name in names)
    return {change.name for change in changes if change.has_moved}


def _sum_calls(ops: Columns) -> dict[str, float]:
    calls: dict[str, float] = {}
    for name, count in ops.rows(NAME, CALLS):
        calls[name] = calls.get(name, 0.0) + (count or 0.0)
    return calls


def _add_calls(growing_calls: dict[str, float], calls_of_place: Mapping[str, float], calls: float) -> None:
    """Share out `calls` over the places from which a run makes them."""
    total = sum(calls_of_place.values())
    for place, count in calls_of_place.items():
        share = count / total if total else 0.0
        growing_calls[place] = growing_calls.get(place, 0.0) + calls * share


def pair_changes(changes: Sequence[OperatorChange]) -> list[tuple[list[OperatorChange], list[OperatorChange]]]:
    """Return operators that lost calls, and those that gained them in their place.

    Those in one place belong together, a parent or module that both have, where the calls that one gained are those
    that the other lost, or a multiple of them; and those of the same shapes, with as many gained as lost. Operators
    that only move data replace nothing, and nothing replaces them.
    """
    group = {one.name: one.name for one in changes}
    for at, one in enumerate(changes):
        for other in changes[at + 1 :]:
            is_swap = one.gained_calls == -other.gained_calls and bool(one.shapes) and one.shapes == other.shapes
            if is_swap or (one.places & other.places and _are_multiples(one.gained_calls, other.gained_calls)):
                target, source = group[one.name], group[other.name]
                group = {name: target if own == source else own for name, own in group.items()}
    found = []
    for own in dict.fromkeys(group[one.name] for one in changes if one.gained_calls < 0):
        together = [one for one in changes if group[one.name] == own]
        gone = [one for one in together if one.gained_calls < 0]
        come = [one for one in together if one.gained_calls > 0]
        if all(any(not _is_mover(one.name) for one in side) for side in (gone, come)):
            found.append((gone, come))
    return found


def _are_equal(one: float, other: float) -> bool:
    return abs(one - other) <= MOVED * max(one, other)


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

    >>> _is_mover("aten::_to_copy"), _is_mover("ToCopyBackward0"), _is_mover("aten::mm")
    (True, True, False)
    """
    plain = _NODE.sub("", name.rpartition(":")[2].strip().lower())
    return plain.replace("_", "") in _MOVERS


def places_of(
    tree: Columns, ops: Columns, names: Collection[str], parents: Collection[str]
) -> dict[str, dict[str, float]]:
    """Return, per operator, where a run calls it from, and how often: the nearest operator above that is one of
    `parents`, else its module, else the top level with the tensors that come in there: the shapes of the outermost
    operator above it that has any. `tree`, `ops`: of `queries.op_tree` and `ops`.
    """
    found: dict[str, dict[str, float]] = {}
    modules: dict[str, set[str]] = {}
    for name, module in ops.rows(NAME, MODULE):
        if name in names and module:
            modules.setdefault(name, set()).add(module)
    rows = list(tree.rows(RANK, NAME, PARENT, INPUT_SHAPES, CALLS)) if len(tree) else []
    # most rows are only passed on the way up, so that all that is kept of them is where they stand
    row_of_node = dict(zip(tree.rows(RANK, NODE), range(len(rows)), strict=True)) if rows else {}
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
