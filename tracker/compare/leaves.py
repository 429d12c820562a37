"""From the tables of a side to the rows of a tree: what `--by module|phase|op|kernel` sums up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from tracker.compare.filters import matching
from tracker.compare.tree import (
    CALLS,
    DEVICE_SELF,
    DEVICE_TOTAL,
    HOST_SELF,
    HOST_TOTAL,
    Group,
    Leaf,
    Name,
    Tree,
    Value,
    grown,
    plus,
)
from tracker.profile import MODULE_CALLS, NO_STEP
from tracker.store import queries

if TYPE_CHECKING:
    from tracker.columns import Columns
    from tracker.compare.side import LoadedSide

NO_MODULE: Final = "(no module)"
OTHER: Final = "other"
OUTSIDE: Final[Name] = ("outside", "(outside all steps)", "")
"""Names of the rows for ops of no module, of no phase, and outside all step markers."""

Counted = dict[tuple[Group, tuple[Name, ...]], Value]
Rows = Iterator[dict[str, Any]]


class Wanted(Struct, frozen=True):
    """Which tree of a side: `word` of TREES, apart by `grains`; patterns `op` and `module`; shapes and names as in a
    diff. `flat`: ops are not shown where they were called.

    `outside`: what lies outside all steps stands under OUTSIDE; else it is left out.
    """

    word: str
    grains: tuple[str, ...] = ()
    op: str | None = None
    module: str | None = None
    with_shapes: bool = True
    op_map: Mapping[str, str] = field(default_factory=dict)
    flat: bool = False
    outside: bool = False


class _Source(Struct, frozen=True):
    """The tables of one side, inside its steps or outside of all."""

    side: LoadedSide
    wanted: Wanted
    steps: Sequence[int] | None
    in_steps: bool
    under: tuple[Name, ...] = ()

    def rows(self, question: queries.Question, *patterns: tuple[str, str | None]) -> Rows:
        """Return the rows of a question at the grain of the tree that match `patterns`, None for missing."""
        side, by = self.side, ("run", *self.wanted.grains)
        if self.under:
            chosen = {"by": by, "ranks": side.ranks, "steps": self.steps, "in_steps": False}
            table = question(side.store, side.run_ids, **chosen)
        else:
            table = side.query(question, by=by, in_steps=self.in_steps)
        for column, pattern in patterns:
            table = matching(table, column, pattern)
        return _plain(table)

    def ops(self) -> Rows:
        """Return the ops that the patterns let through, named as in the diff."""
        for row in self.rows(queries.ops, ("name", self.wanted.op), ("module", self.wanted.module)):
            yield row | {"op": self.name(row["name"], row["input_shapes"])}

    def real_ops(self) -> Rows:
        """Return the same without the sums of phases; these stand in where a source has no times of ops."""
        rows = list(self.ops())
        parted = {self.group(row) for row in rows if _own_time(row) is not None}
        return (row for row in rows if not (_is_sum(row) and self.group(row) in parted))

    def name(self, name: str, shapes: str) -> Name:
        """Return the row of an op."""
        return ("op", self.wanted.op_map.get(name, name), shapes if self.wanted.with_shapes else "")

    def group(self, row: Mapping[str, Any]) -> Group:
        """Return the tree that a row belongs to."""
        return (row["run_id"], *(row[name] for name in self.wanted.grains))


def plant(tree: Tree, side: LoadedSide, wanted: Wanted) -> None:
    """Fills `tree` with what `wanted` says of `side`."""
    by_step = "step" in wanted.grains
    outside = wanted.outside and side.chosen_steps is None
    sources = [_Source(side, wanted, side.chosen_steps, in_steps=not (outside and by_step))]
    if outside and not by_step:
        sources.append(_Source(side, wanted, (NO_STEP,), in_steps=False, under=(OUTSIDE,)))
    for source in sources:
        _PLANTS[wanted.word](tree, source)


def _modules(tree: Tree, source: _Source) -> None:
    leaves, counted = [], Counted()
    for row in source.real_ops():
        path = (*source.under, *_module_path(row["module"]))
        leaves.append(_leaf(source.group(row), (*path, row["op"]), row))
        if row["name"] == path[-1][1]:  # a range or a layer that is the module
            at = (source.group(row), path)
            counted[at] = plus(counted.get(at), row["calls"])
    frames = Counted()
    for row in source.rows(queries.counters):
        if row["source"] == MODULE_CALLS:
            at = (source.group(row), (*source.under, *_module_path(row["name"])))
            frames[at] = plus(frames.get(at), row["calls"])
    grown(leaves, counted | frames, tree)


def _module_path(module: str) -> tuple[Name, ...]:
    return tuple(("module", part, "") for part in module.split("/")) if module else (("module", NO_MODULE, ""),)


def _phases(tree: Tree, source: _Source) -> None:
    """Ops under their phases; of a source that has sums per phase these alone, since its ops do not say theirs."""
    rows = list(source.ops())
    sums = [row for row in rows if _is_sum(row)]
    summed = {source.group(row) for row in sums}
    leaves = [
        _leaf(source.group(row), (*source.under, _phase(row["phase"]), row["op"]), row)
        for row in rows
        if source.group(row) not in summed
    ]
    counted = Counted()
    for row in sums:
        at = (source.group(row), (*source.under, _phase(row["phase"])))
        leaves.append(Leaf(*at, None, row["host_total_ns"], row["device_total_ns"]))
        counted[at] = plus(counted.get(at), row["calls"])
    leaves += [leaf for group in summed for leaf in _rest_of_steps(source, group, sums)]
    grown(leaves, counted, tree)


def _phase(word: str) -> Name:
    return ("phase", word or OTHER, "")


def _is_sum(row: Mapping[str, Any]) -> bool:
    """Return whether a row is the sum of a phase and no op."""
    return bool(row["phase"]) and _own_time(row) is None


def _own_time(row: Mapping[str, Any]) -> Value:
    return plus(row["host_self_ns"], row["device_self_ns"])


def _rest_of_steps(source: _Source, group: Group, sums: Iterable[Mapping[str, Any]]) -> Iterator[Leaf]:
    """Yield the host time of the steps that is in no phase; nothing of the device, of which such a source has
    no total.
    """
    steps = source.side.steps
    for name, value in zip(("run_id", *source.wanted.grains), group, strict=True):
        steps = steps.taken(steps.integers(name) == value)
    known = [row["host_total_ns"] for row in sums if source.group(row) == group]
    if not source.under and len(steps) and steps.known("duration_ns").all() and None not in known:
        rest = int((steps.integers("duration_ns") * steps.integers("steps")).sum()) - sum(known)
        if rest > 0 and not (source.wanted.op or source.wanted.module):
            yield Leaf(group, (_phase(""),), None, rest, None)


def _kernels(tree: Tree, source: _Source) -> None:
    leaves = []
    for row in source.rows(queries.kernels, ("op", source.wanted.op)):
        kernel = ("kernel", row["canonical_name"] or row["name"], row["input_shapes"])
        op = (source.name(row["op"], row["op_input_shapes"]),) if row["op"] else ()
        path = (*source.under, kernel, *op)
        leaves.append(Leaf(source.group(row), path, row["calls"], None, row["total_ns"]))
    grown(leaves, {}, tree)


def _ops(tree: Tree, source: _Source) -> None:
    if source.wanted.flat:
        _flat_ops(tree, source)
    else:
        _contexts(tree, source)
    if source.under:
        outside = tree.below(source.under)
        for group in list(tree.values):
            inside = [tree.values[group][node] for node in tree.children[outside] if node in tree.values[group]]
            for place in (HOST_TOTAL, DEVICE_TOTAL) if inside else ():
                for numbers in inside:
                    outer = tree.numbers(group, outside)
                    outer[place] = plus(outer[place], numbers[place])


def _contexts(tree: Tree, source: _Source) -> None:
    """Ops where they were called, with the time of their calls."""
    side, by_step = source.side, "step" in source.wanted.grains
    if source.in_steps:
        table = side.query_op_tree(by_step=by_step)
    else:
        table = queries.op_tree(
            side.store, side.run_ids, ranks=side.ranks, steps=source.steps, in_steps=False, by_step=by_step
        )
    rows = list(_plain(table))
    inner: dict[tuple[int, ...], Value] = {}
    for row in rows:
        above = (row["run_id"], row["rank"], row["step"], row["parent"])
        inner[above] = plus(inner.get(above), row["host_total_ns"])
    here: dict[tuple[int, ...], int] = {}
    top = tree.below(source.under)
    for row in rows:
        capture = (row["run_id"], row["rank"], row["step"])
        own = tree.at(here.get((*capture, row["parent"]), top), source.name(row["name"], row["input_shapes"]))
        here[*capture, row["node"]] = own
        numbers = tree.numbers(source.group(row), own)
        host, below = row["host_total_ns"], inner.get((*capture, row["node"]))
        host_self = host if host is None or below is None else host - below
        found = ((CALLS, row["calls"]), (HOST_TOTAL, host), (HOST_SELF, host_self))
        for place, value in (*found, (DEVICE_TOTAL, row["device_total_ns"]), (DEVICE_SELF, row["device_self_ns"])):
            numbers[place] = plus(numbers[place], value)


def _flat_ops(tree: Tree, source: _Source) -> None:
    """Ops with their own time, or all of it where a source does not part it, and below them their kernels."""
    known = set()
    for row in source.real_ops():
        group = source.group(row)
        known.add((group, row["op"]))
        numbers = tree.numbers(group, tree.below((*source.under, row["op"])))
        host, device = row["host_self_ns"], row["device_self_ns"]
        alone = host is None and device is None
        found = ((CALLS, row["calls"]), (HOST_SELF, host), (HOST_TOTAL, row["host_total_ns"] if alone else host))
        device_total = row["device_total_ns"] if alone else device
        for place, value in (*found, (DEVICE_SELF, device), (DEVICE_TOTAL, device_total)):
            numbers[place] = plus(numbers[place], value)
    for row in source.rows(queries.kernels, ("op", source.wanted.op)):
        op = source.name(row["op"], row["op_input_shapes"])
        if (source.group(row), op) in known:
            kernel = ("kernel", row["canonical_name"] or row["name"], row["input_shapes"])
            numbers = tree.numbers(source.group(row), tree.below((*source.under, op, kernel)))
            for place, value in ((CALLS, row["calls"]), (DEVICE_TOTAL, row["total_ns"])):
                numbers[place] = plus(numbers[place], value)


def _leaf(group: Group, path: tuple[Name, ...], row: Mapping[str, Any]) -> Leaf:
    return Leaf(
        group, path, row["calls"], row["host_self_ns"], row["device_self_ns"], row["host_total_ns"],
        row["device_total_ns"],
    )  # fmt: skip


def _plain(table: Columns) -> Rows:
    """Return the rows with None for missing and plain Python numbers."""
    for values in table.rows(*table.arrays):
        yield dict(zip(table.arrays, values, strict=True))


_PLANTS: Final[Mapping[str, Callable[[Tree, _Source], None]]] = {
    "module": _modules,
    "phase": _phases,
    "op": _ops,
    "kernel": _kernels,
}
