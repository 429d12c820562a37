"""The tables of the trees of `--by module|phase|op|kernel`, of one run and of two sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from tracker.columns import Column, Columns, listed, objects
from tracker.compare import coverage, match
from tracker.compare.leaves import OTHER, TreeOptions, grow_tree
from tracker.compare.match import reduce_side
from tracker.compare.operators import own_time
from tracker.compare.overall import step_numbers
from tracker.compare.side import GRAIN
from tracker.compare.tree import (
    DEVICE_SELF,
    DEVICE_TOTAL,
    HOST_SELF,
    HOST_TOTAL,
    NUMBERS,
    Group,
    Numbers,
    Tree,
    list_largest_first,
)
from tracker.results import ADDED, BOTH, REMOVED, TREE_COLUMNS, TREE_DIFF_COLUMNS
from tracker.results.shown_rows import NodeRow
from tracker.schema.column_names import (
    BASELINE_NS,
    CANDIDATE_NS,
    DELTA_NS,
    DIFF,
    DURATION_NS,
    E2E_NS,
    NODE,
    RUN_ID,
    SHARE,
    STEP_SHARE,
    STEPS,
)
from tracker.schema.series import DEVICE_OWN_TIME, HOST_OWN_TIME, KERNEL_TIME, KIND, NO_SERIES, SeriesKey
from tracker.store import queries
from tracker.table import Numbered

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide
    from tracker.compare.verdicts import Judged
    from tracker.results import DiffOptions, ShowOptions

_COLUMNS_OF_SIDE: Final = ("ns", "self_ns", "share", "step_share", *NUMBERS)
_BASELINE_COLUMNS: Final = tuple(f"baseline_{name}" for name in _COLUMNS_OF_SIDE)
_CANDIDATE_COLUMNS: Final = tuple(f"candidate_{name}" for name in _COLUMNS_OF_SIDE)
_JUDGED_PLACES: Final = {
    DEVICE_OWN_TIME.name: (DEVICE_TOTAL, DEVICE_SELF),
    HOST_OWN_TIME.name: (HOST_TOTAL, HOST_SELF),
}
"""Own time of operators -> where in NUMBERS the total and the self time are by which a row is judged."""

Size = dict[int, tuple[float, ...]]
"""Row -> what it is ordered by."""


def show_tree(side: LoadedSide, options: ShowOptions) -> Columns:
    """Return `Shown.tree`: a tree for each rank and step that are kept apart, in their order."""
    tree, grains = Tree(), options.grains
    flat = bool(options.op or options.module) or _lacks_contexts((side,))
    grow_tree(tree, side, TreeOptions(options.tree, grains, options.op, options.module, flat=flat, outside=True))
    groups: list[Group] = []
    nodes: list[NodeRow] = []
    numbers: list[Numbers] = []
    shares: list[tuple[float | None, float | None]] = []
    for group in sorted(tree.values):
        values = tree.values[group]
        _fill_self_times(tree, values)
        of_grain = dict(zip(grains, group[1:], strict=True))
        one_side = _SideOfTree.of(tree, values, own_time(side), _sum_step_times(side, of_grain))
        place_of_row: dict[int, int] = {}
        for node, level in list_largest_first(tree, one_side.find_sizes(options.minimum_ns), options.depth):
            place_of_row[node] = len(nodes)
            groups.append(group)
            nodes.append(_make_node(tree, node, level, place_of_row))
            numbers.append(values[node])
            shares.append((one_side.share_of_ops(node), one_side.share_of_step(node)))
    columns: dict[str, Column] = {}
    for place, name in enumerate(grains, 1):
        columns[name] = Column.of([group[place] for group in groups], np.int64)
    for place, name in enumerate(NUMBERS):
        columns[name] = Column.of([own[place] for own in numbers], np.int64)
    columns[SHARE] = Column.of([of_ops for of_ops, _ in shares], np.float64)
    columns[STEP_SHARE] = Column.of([of_step for _, of_step in shares], np.float64)
    return _make_table(nodes).having(**columns).only([*grains, *TREE_COLUMNS])


def compare_trees(baseline: LoadedSide, candidate: LoadedSide, options: DiffOptions, judged: Judged) -> Columns:
    """Return `Diff.tree`, with verdicts where a row is what one series is."""
    tree, sides = Tree(), coverage.blank_unless_both(baseline, candidate, coverage.OPS)
    flat = bool(options.op or options.module) or _lacks_contexts(sides, by_step=True)
    both = []
    for side, op_map in zip(sides, (options.op_map, {}), strict=True):
        # the rows are those of both sides, their numbers those of one
        tree.values = {}
        tree_options = TreeOptions(
            options.tree,
            GRAIN,
            op=options.op,
            module=options.module,
            with_shapes=options.match == "shape",
            op_map=op_map,
            flat=flat,
        )
        grow_tree(tree, side, tree_options)
        step_ns = step_numbers(side).get(side.measured_by)
        both.append(_SideOfTree.of(tree, _reduce_to_steps(side, tree), own_time(side), step_ns))
    pair = _PairOfTrees(*both)
    place_of_row: dict[int, int] = {}
    rows: list[NodeRow] = []
    for node, level in list_largest_first(tree, pair.find_sizes(options.minimum_ns), options.depth):
        place_of_row[node] = len(rows)
        rows.append(_make_node(tree, node, level, place_of_row))
    nodes = list(place_of_row)
    numbers: dict[str, Any] = {"status": objects([pair.find_status(node) for node in nodes])}
    numbers |= pair.baseline.list_numbers(_BASELINE_COLUMNS, nodes)
    numbers |= pair.candidate.list_numbers(_CANDIDATE_COLUMNS, nodes)
    numbers[DELTA_NS] = np.array([pair.find_delta(node) for node in nodes], dtype=np.float64)
    numbers[DIFF] = match.relative_change(numbers[BASELINE_NS], numbers[CANDIDATE_NS])
    table = _make_table(rows).having(**numbers)
    table = match.with_empty_verdicts(table).only(TREE_DIFF_COLUMNS)
    series = find_series_of_rows(tree, options, judged)
    return judged.fill_verdicts(table, [series.get(node, NO_SERIES) for node in nodes])


class _SideOfTree(Struct, frozen=True):
    """The numbers of the rows of a tree, and which of them the tree is judged by.

    `total_place`, `self_place`: of these in NUMBERS.
    `ops_ns`: the judged time of all ops; `step_ns`: the time of the steps, None where a source does not say.
    """

    tree: Tree
    values: Mapping[int, Numbers]
    total_place: int
    self_place: int
    ops_ns: float
    step_ns: float | None

    @classmethod
    def of(cls, tree: Tree, values: Mapping[int, Numbers], own_time: str, step_ns: float | None) -> _SideOfTree:
        """Return the numbers of a side whose operators are judged by `own_time`."""
        total_place, self_place = _JUDGED_PLACES[own_time]
        ops_ns = 0.0
        for node in tree.roots:
            # a root without self time counts time of other rows once more
            if node in values and values[node][self_place] is not None:
                ops_ns += values[node][total_place] or 0.0
        return cls(tree, values, total_place, self_place, ops_ns, step_ns)

    def find_total(self, node: int) -> float | None:
        """Return the time that ranks a row, None where it is not known."""
        return self.values[node][self.total_place] if node in self.values else None

    def share_of_ops(self, node: int) -> float | None:
        """Return its share of the time of all ops; None for what counts time of other rows once more."""
        return self._share_of(node, self.ops_ns)

    def share_of_step(self, node: int) -> float | None:
        """Return its share of the time of the steps; None outside them."""
        return None if self._is_outside(node) else self._share_of(node, self.step_ns)

    def _share_of(self, node: int, whole: float | None) -> float | None:
        total = self.find_total(node)
        if total is None or not whole:
            return None
        counts_others = self.tree.names[node][0] == "op" and self.values[node][self.self_place] is None
        return None if counts_others else total / whole

    def _is_outside(self, node: int) -> bool:
        while self.tree.parents[node] >= 0:
            node = self.tree.parents[node]
        return self.tree.names[node][0] == "outside"

    def find_sizes(self, minimum_ns: int | None) -> Size:
        """Return by what rows are ordered: the judged time, then the others; without rows below `minimum_ns`."""
        sizes: Size = {}
        for node, numbers in self.values.items():
            total = self.find_total(node) or 0.0
            if minimum_ns is None or total >= minimum_ns:
                sizes[node] = (total, numbers[DEVICE_TOTAL] or 0.0, numbers[HOST_TOTAL] or 0.0)
        return sizes

    def list_numbers(self, columns: Sequence[str], nodes: Sequence[int]) -> dict[str, Any]:
        """Return the numbers of these rows as columns, in the order of _COLUMNS_OF_SIDE; nan for what is not there."""
        rows: list[list[float | None]] = []
        for node in nodes:
            if node in self.values:
                numbers = self.values[node]
                shares = (self.share_of_ops(node), self.share_of_step(node))
                rows.append([numbers[self.total_place], numbers[self.self_place], *shares, *numbers])
            else:
                rows.append([None] * len(columns))
        table = np.array(rows, dtype=np.float64).reshape(len(rows), len(columns))
        return dict(zip(columns, table.T, strict=True))


class _PairOfTrees(Struct, frozen=True):
    """Both sides of one tree."""

    baseline: _SideOfTree
    candidate: _SideOfTree

    def find_status(self, node: int) -> str:
        """Return on which side a row is."""
        if node not in self.baseline.values:
            return ADDED
        return BOTH if node in self.candidate.values else REMOVED

    def find_delta(self, node: int) -> float | None:
        """Return by how much the judged time of a row changed; None where no side states it."""
        before, after = self.baseline.find_total(node), self.candidate.find_total(node)
        if before is None and after is None:
            return None
        return (after or 0.0) - (before or 0.0)

    def find_sizes(self, minimum_ns: int | None) -> Size:
        """Return by what rows are ordered: the size of the change, then the larger side."""
        sizes: Size = {}
        for node in {**self.baseline.values, **self.candidate.values}:
            larger = max(self.baseline.find_total(node) or 0.0, self.candidate.find_total(node) or 0.0)
            if minimum_ns is None or larger >= minimum_ns:
                # changes that differ by rounding are of one size
                sizes[node] = (round(abs(self.find_delta(node) or 0.0), 6), larger)
        return sizes


def _make_node(tree: Tree, node: int, level: int, place_of_row: Mapping[int, int]) -> NodeRow:
    """Return what a row is; it and its parent have their places already."""
    kind, name, shapes = tree.names[node]
    parent = place_of_row.get(tree.parents[node], -1)
    return NodeRow(place_of_row[node], parent, level, kind, tree.spell_path(node), name, shapes)


def _make_table(nodes: Sequence[NodeRow]) -> Columns:
    """Return rows as columns."""
    return Columns(
        {
            "node": Column.of([row.node for row in nodes], np.int64),
            "parent": Column.of([row.parent for row in nodes], np.int64),
            "level": Column.of([row.level for row in nodes], np.int64),
            "kind": objects([row.kind for row in nodes]),
            "path": objects([row.path for row in nodes]),
            "name": objects([row.name for row in nodes]),
            "input_shapes": objects([row.input_shapes for row in nodes]),
        }
    )


def _fill_self_times(tree: Tree, growing_values: Mapping[int, Numbers]) -> None:
    """Fill in that a row whose ops are all in the rows below has no time of its own: 0, not missing."""
    for node, numbers in growing_values.items():
        if tree.names[node][0] in ("module", "phase", "outside"):
            for total_place, self_place in _JUDGED_PLACES.values():
                if numbers[self_place] is None and numbers[total_place] is not None:
                    numbers[self_place] = 0


def _reduce_to_steps(side: LoadedSide, tree: Tree) -> dict[int, Numbers]:
    """Return the numbers per step of each row of trees at GRAIN."""
    for values in tree.values.values():
        _fill_self_times(tree, values)
    rows = [(*group, node, *numbers) for group, values in tree.values.items() for node, numbers in values.items()]
    keys = (RUN_ID, *GRAIN, NODE)
    table = np.array(rows, dtype=np.float64).reshape(-1, len(keys) + len(NUMBERS)).T
    grain = dict(zip(keys, table[: len(keys)].astype(np.int64), strict=True))
    nodes = grain.pop("node")
    numbers = dict(zip(NUMBERS, table[len(keys) :], strict=True))
    reduced = reduce_side(side, Numbered(Columns({**grain, **numbers}), nodes, len(tree.names)), NUMBERS)
    columns = [listed(reduced[name]) for name in NUMBERS]
    return {node: [column[node] for column in columns] for node in sorted(set(nodes.tolist()))}


def _lacks_contexts(sides: Sequence[LoadedSide], *, by_step: bool = False) -> bool:
    """Return whether some run has ops without a known caller."""
    for side in sides:
        runs_with_contexts = set(side.query_op_tree(by_step=by_step).listed(RUN_ID))
        if set(side.query(queries.ops).listed(RUN_ID)) - runs_with_contexts:
            return True
    return False


def _sum_step_times(side: LoadedSide, of_grain: Mapping[str, int]) -> float | None:
    """Return the time of all steps (of the chosen rank and step), E2E without markers; None where a source does not
    say.
    """
    steps = side.steps
    for name, value in of_grain.items():
        steps = steps.taken(steps.integers(name) == value)
    time_of_step = steps.reals(DURATION_NS)
    if not side.has_markers:
        e2e = steps.reals(E2E_NS)
        time_of_step = np.where(np.isnan(e2e), time_of_step, e2e)
    times = time_of_step * steps.integers(STEPS)
    stated = times[~np.isnan(times)]
    return float(stated.sum()) if len(stated) else None


def find_series_of_rows(tree: Tree, options: DiffOptions, judged: Judged) -> dict[int, SeriesKey]:
    """Return number of a row -> its series. A row that sums up several series, or is a part of one, has none.

    An op is its series where it stands in one place of the tree alone and no other ops are in its time; a kernel is at
    the top; a phase is; so is a module that holds no others and runs in one phase. What a filter takes a part of is
    not.
    """
    if judged.verdicts is None or options.module:
        return {}
    series: dict[int, SeriesKey] = {}
    if options.tree != "kernel" and judged.has_op_series:
        series.update(_list_series_of_ops(tree, judged))
    if options.op:
        return series
    if options.tree == "module":
        series.update(_list_series_of_modules(tree, judged))
    elif options.tree == "phase":
        series.update(_list_series_of_phases(tree, judged))
    elif options.tree == "kernel":
        series.update(_list_series_of_kernels(tree))
    return series


def _list_series_of_ops(tree: Tree, judged: Judged) -> Iterator[tuple[int, SeriesKey]]:
    rows_of_op = Counter(name for name in tree.names if name[0] == "op")
    for node, (kind, name, shapes) in enumerate(tree.names):
        if kind != "op" or rows_of_op[kind, name, shapes] > 1:
            continue
        if all(tree.names[child][0] == "kernel" for child in tree.children[node]):
            yield node, judged.key_of_op(name, shapes)


def _list_series_of_kernels(tree: Tree) -> Iterator[tuple[int, SeriesKey]]:
    for node in tree.roots:
        _, name, shapes = tree.names[node]
        yield node, KIND["kernel"].make_key(KERNEL_TIME.name, (name, shapes))


def _list_series_of_phases(tree: Tree, judged: Judged) -> Iterator[tuple[int, SeriesKey]]:
    for node in tree.roots:
        phase = tree.names[node][1]
        if phase != OTHER:  # the ops of no phase, which are no series
            yield node, KIND["phase"].make_key(judged.own_time, (phase,))


def _list_series_of_modules(tree: Tree, judged: Judged) -> Iterator[tuple[int, SeriesKey]]:
    assert judged.verdicts is not None
    keys_of_module: dict[str, list[SeriesKey]] = {}
    for key in judged.verdicts.by_series:
        if key.kind == "module" and key.metric == judged.own_time:
            keys_of_module.setdefault(key.name, []).append(key)
    for node, (kind, _, _) in enumerate(tree.names):
        if kind != "module":
            continue
        keys = keys_of_module.get(tree.spell_path(node), [])
        holds_modules = any(tree.names[child][0] == "module" for child in tree.children[node])
        if len(keys) == 1 and not holds_modules:
            yield node, keys[0]
