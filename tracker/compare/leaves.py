"""From the tables of a side to the rows of a tree: what `--by module|phase|op|kernel` sums up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

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
    add_leaves,
    plus,
)
from tracker.profile import MODULE_CALLS, NO_STEP
from tracker.schema.column_names import DURATION_NS, RUN_ID, STEPS
from tracker.store import queries

if TYPE_CHECKING:
    from tracker.columns import Columns
    from tracker.compare.side import LoadedSide

NO_MODULE: Final = "(no module)"
OTHER: Final = "other"
OUTSIDE: Final[Name] = ("outside", "(outside all steps)", "")
"""Names of the rows for ops of no module, of no phase, and outside all step markers."""

CallsOfRows = dict[tuple[Group, tuple[Name, ...]], Value]
"""Path of a row in a group -> how often it was called."""


class TreeOptions(Struct, frozen=True):
    """Which tree is made of a side.

    `word`: of TREES.
    `grains`: what is kept apart, beside runs: ranks, steps.
    `op`, `module`: patterns of the operators that are in it.
    `with_shapes`, `op_map`: by what operators are matched, as in a diff.
    `flat`: operators are not shown where they were called.
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


class _OpRow(Struct, frozen=True):
    """A row of `queries.ops`; the times are None where the source does not say them."""

    name: str
    input_shapes: str
    module: str
    phase: str
    calls: Value
    host_total_ns: Value
    host_self_ns: Value
    device_total_ns: Value
    device_self_ns: Value

    @property
    def own_time(self) -> Value:
        """The time that no other op counts, None where the source does not part it."""
        return plus(self.host_self_ns, self.device_self_ns)

    @property
    def is_sum_of_phase(self) -> bool:
        """Whether it is the sum of a phase and no op."""
        return bool(self.phase) and self.own_time is None


class _KernelRow(Struct, frozen=True):
    """A row of `queries.kernels`; `op`, `op_input_shapes`: what launched it, "" for nothing that is known."""

    name: str
    canonical_name: str
    input_shapes: str
    op: str
    op_input_shapes: str
    calls: Value
    total_ns: Value


class _CounterRow(Struct, frozen=True):
    """A row of `queries.counters`."""

    source: str
    name: str
    calls: Value


class _ContextRow(Struct, frozen=True):
    """A row of `queries.op_tree`: an op where it was called. `node`, `parent`: numbers in its run, rank and step."""

    run_id: int
    rank: int
    step: int
    node: int
    parent: int
    name: str
    input_shapes: str
    calls: Value
    host_total_ns: Value
    device_total_ns: Value
    device_self_ns: Value


class _Op(Struct, frozen=True):
    """An op of a tree. `group`: the tree that it belongs to; `op`: its row there; `row`: its numbers."""

    group: Group
    op: Name
    row: _OpRow

    def make_leaf(self, path: tuple[Name, ...]) -> Leaf:
        """Return the leaf at a path of its tree."""
        row = self.row
        return Leaf(
            self.group, path, row.calls, row.host_self_ns, row.device_self_ns, row.host_total_ns, row.device_total_ns
        )


class _Source(Struct, frozen=True):
    """The tables of one side, inside its steps or outside of all.

    `top`: the rows of the tree under which all of it stands.
    """

    side: LoadedSide
    options: TreeOptions
    steps: queries.Steps
    in_steps: bool
    top: tuple[Name, ...] = ()

    def query(self, question: queries.Question, *patterns: tuple[str, str | None]) -> Columns:
        """Return the rows of a question at the grain of the tree whose columns match `patterns`."""
        by = ("run", *self.options.grains)
        if self.top:
            side = self.side
            table = question(side.store, side.run_ids, by=by, ranks=side.ranks, steps=self.steps, in_steps=False)
        else:
            table = self.side.query(question, by=by, in_steps=self.in_steps)
        for column, pattern in patterns:
            table = matching(table, column, pattern)
        return table

    def list_groups(self, table: Columns) -> Iterator[Group]:
        """Yield the tree that each row of a table belongs to."""
        return table.rows(RUN_ID, *self.options.grains)

    def list_ops(self) -> Iterator[_Op]:
        """Yield the ops that the patterns let through."""
        table = self.query(queries.ops, ("name", self.options.op), ("module", self.options.module))
        for group, row in zip(self.list_groups(table), table.structs(_OpRow), strict=True):
            yield _Op(group, self.name_op(row.name, row.input_shapes), row)

    def list_real_ops(self) -> Iterator[_Op]:
        """Yield the same without the sums of phases; these stand in where a source has no times of ops."""
        ops = list(self.list_ops())
        groups_with_times = {op.group for op in ops if op.row.own_time is not None}
        for op in ops:
            if not op.row.is_sum_of_phase or op.group not in groups_with_times:
                yield op

    def list_kernels(self) -> Iterator[tuple[Group, _KernelRow]]:
        """Yield the kernels of the ops that the pattern lets through, each with the tree that it belongs to."""
        table = self.query(queries.kernels, ("op", self.options.op))
        return zip(self.list_groups(table), table.structs(_KernelRow), strict=True)

    def name_op(self, name: str, shapes: str) -> Name:
        """Return the row of an op, named as in the diff."""
        return ("op", self.options.op_map.get(name, name), shapes if self.options.with_shapes else "")


def grow_tree(growing_tree: Tree, side: LoadedSide, options: TreeOptions) -> None:
    """Add the rows of a side to a tree."""
    by_step = "step" in options.grains
    outside = options.outside and side.chosen_steps is None
    # by step, what lies outside is a step of its own: NO_STEP
    sources = [_Source(side, options, side.asked_steps, in_steps=not (outside and by_step))]
    if outside and not by_step:
        sources.append(_Source(side, options, (NO_STEP,), in_steps=False, top=(OUTSIDE,)))
    for source in sources:
        _GROW[options.word](growing_tree, source)


def _grow_modules(tree: Tree, source: _Source) -> None:
    leaves, calls_of_rows = [], CallsOfRows()
    for op in source.list_real_ops():
        path = (*source.top, *_path_of_module(op.row.module))
        leaves.append(op.make_leaf((*path, op.op)))
        if op.row.name == path[-1][1]:
            # a range or a layer that is the module: called as often
            _add_calls(calls_of_rows, (op.group, path), op.row.calls)
    calls_of_frames = CallsOfRows()
    counters = source.query(queries.counters)
    for group, counter in zip(source.list_groups(counters), counters.structs(_CounterRow), strict=True):
        if counter.source == MODULE_CALLS:
            path = (*source.top, *_path_of_module(counter.name))
            _add_calls(calls_of_frames, (group, path), counter.calls)
    # where the profiler counted the calls of a module, an op of its name does not say them
    add_leaves(tree, leaves, calls_of_rows | calls_of_frames)


def _add_calls(growing_calls: CallsOfRows, key: tuple[Group, tuple[Name, ...]], calls: Value) -> None:
    growing_calls[key] = plus(growing_calls.get(key), calls)


def _path_of_module(module: str) -> tuple[Name, ...]:
    if not module:
        return (("module", NO_MODULE, ""),)
    return tuple(("module", part, "") for part in module.split("/"))


def _grow_phases(tree: Tree, source: _Source) -> None:
    """Add ops under their phases; of a source that has sums per phase these alone, since its ops do not say theirs."""
    ops = list(source.list_ops())
    sums = [op for op in ops if op.row.is_sum_of_phase]
    groups_with_sums = {op.group for op in sums}
    leaves = []
    for op in ops:
        if op.group not in groups_with_sums:
            leaves.append(op.make_leaf((*source.top, _name_phase(op.row.phase), op.op)))
    calls_of_rows = CallsOfRows()
    for op in sums:
        key = (op.group, (*source.top, _name_phase(op.row.phase)))
        leaves.append(Leaf(*key, None, op.row.host_total_ns, op.row.device_total_ns))
        _add_calls(calls_of_rows, key, op.row.calls)
    for group in groups_with_sums:
        rest = _find_rest_of_steps(source, group, sums)
        if rest is not None:
            leaves.append(rest)
    add_leaves(tree, leaves, calls_of_rows)


def _name_phase(word: str) -> Name:
    return ("phase", word or OTHER, "")


def _find_rest_of_steps(source: _Source, group: Group, sums: Iterable[_Op]) -> Leaf | None:
    """Return the host time of the steps that is in no phase, None where it is not known or there is none; nothing of
    the device, whose total such a source does not have.
    """
    if source.top or source.options.op or source.options.module:
        return None
    steps = source.side.steps
    for name, value in zip((RUN_ID, *source.options.grains), group, strict=True):
        steps = steps.taken(steps.integers(name) == value)
    times_of_phases = []
    for op in sums:
        if op.group == group:
            if op.row.host_total_ns is None:
                return None
            times_of_phases.append(op.row.host_total_ns)
    if not len(steps) or not steps.known(DURATION_NS).all():
        return None
    rest = int((steps.integers(DURATION_NS) * steps.integers(STEPS)).sum()) - sum(times_of_phases)
    return Leaf(group, (_name_phase(""),), None, rest, None) if rest > 0 else None


def _grow_kernels(tree: Tree, source: _Source) -> None:
    leaves = []
    for group, kernel in source.list_kernels():
        ops = (source.name_op(kernel.op, kernel.op_input_shapes),) if kernel.op else ()
        path = (*source.top, _name_kernel(kernel), *ops)
        leaves.append(Leaf(group, path, kernel.calls, None, kernel.total_ns))
    add_leaves(tree, leaves, {})


def _name_kernel(kernel: _KernelRow) -> Name:
    return ("kernel", kernel.canonical_name or kernel.name, kernel.input_shapes)


def _grow_ops(tree: Tree, source: _Source) -> None:
    if source.options.flat:
        _grow_flat_ops(tree, source)
    else:
        _grow_contexts(tree, source)
    if source.top:
        _sum_up_outside(tree, source)


def _sum_up_outside(tree: Tree, source: _Source) -> None:
    """Give the row under which the ops outside all steps stand their totals."""
    outside = tree.number_path(source.top)
    for group in list(tree.values):
        for child in tree.children[outside]:
            numbers = tree.values[group].get(child)
            if numbers is not None:
                _add_numbers(tree, group, outside, {place: numbers[place] for place in (HOST_TOTAL, DEVICE_TOTAL)})


def _add_numbers(growing_tree: Tree, group: Group, node: int, numbers: Mapping[int, Value]) -> None:
    """Add numbers, by their places in NUMBERS, to a row."""
    growing = growing_tree.growing_numbers(group, node)
    for place, value in numbers.items():
        growing[place] = plus(growing[place], value)


def _grow_contexts(tree: Tree, source: _Source) -> None:
    """Add ops where they were called, with the time of their calls."""
    side, by_step = source.side, "step" in source.options.grains
    if source.in_steps:
        table = side.query_op_tree(by_step=by_step)
    else:
        table = queries.op_tree(
            side.store, side.run_ids, ranks=side.ranks, steps=source.steps, in_steps=False, by_step=by_step
        )
    contexts = list(table.structs(_ContextRow))
    # a context is a node of a capture: its run, rank and step
    time_inside: dict[tuple[int, ...], Value] = {}
    for row in contexts:
        parent = (row.run_id, row.rank, row.step, row.parent)
        time_inside[parent] = plus(time_inside.get(parent), row.host_total_ns)
    row_of_context: dict[tuple[int, ...], int] = {}
    top = tree.number_path(source.top)
    for group, row in zip(source.list_groups(table), contexts, strict=True):  # parents come first
        parent = (row.run_id, row.rank, row.step, row.parent)
        context = (row.run_id, row.rank, row.step, row.node)
        node = tree.number_child(row_of_context.get(parent, top), source.name_op(row.name, row.input_shapes))
        row_of_context[context] = node
        host_total, inside = row.host_total_ns, time_inside.get(context)
        host_self = host_total if host_total is None or inside is None else host_total - inside
        numbers = {
            CALLS: row.calls,
            HOST_TOTAL: host_total,
            HOST_SELF: host_self,
            DEVICE_TOTAL: row.device_total_ns,
            DEVICE_SELF: row.device_self_ns,
        }
        _add_numbers(tree, group, node, numbers)


def _grow_flat_ops(tree: Tree, source: _Source) -> None:
    """Add ops with their own time, or all of it where a source does not part it, and below them their kernels."""
    ops_of_groups = set()
    for op in source.list_real_ops():
        row = op.row
        ops_of_groups.add((op.group, op.op))
        numbers = {CALLS: row.calls, HOST_SELF: row.host_self_ns, DEVICE_SELF: row.device_self_ns}
        if row.own_time is None:
            numbers |= {HOST_TOTAL: row.host_total_ns, DEVICE_TOTAL: row.device_total_ns}
        else:
            numbers |= {HOST_TOTAL: row.host_self_ns, DEVICE_TOTAL: row.device_self_ns}
        _add_numbers(tree, op.group, tree.number_path((*source.top, op.op)), numbers)
    for group, kernel in source.list_kernels():
        name = source.name_op(kernel.op, kernel.op_input_shapes)
        if (group, name) in ops_of_groups:
            node = tree.number_path((*source.top, name, _name_kernel(kernel)))
            _add_numbers(tree, group, node, {CALLS: kernel.calls, DEVICE_TOTAL: kernel.total_ns})


_GROW: Final[Mapping[str, Callable[[Tree, _Source], None]]] = {
    "module": _grow_modules,
    "phase": _grow_phases,
    "op": _grow_ops,
    "kernel": _grow_kernels,
}
"""Word of TREES -> what adds the rows of its tree."""
