"""The trees of `--by module|phase|op|kernel`, of one run and of two sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from tracker.columns import Column, Columns, listed, objects
from tracker.compare import coverage, match
from tracker.compare.leaves import OTHER, Wanted, plant
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
    Numbers,
    Tree,
    ordered,
)
from tracker.compare.verdicts import Judged
from tracker.results import ADDED, BOTH, NODE, REMOVED, TREE_COLUMNS, TREE_DIFF_COLUMNS
from tracker.schema.series import KERNEL_TIME, KIND, NO_SERIES, SeriesKey
from tracker.store import queries
from tracker.table import Numbered

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide
    from tracker.results import DiffOptions, ShowOptions

_BESIDE: Final = ("ns", "self_ns", "share", "step_share", *NUMBERS)
_COMPARED: Final = (
    "status",
    *(f"{side}_{name}" for side in ("baseline", "candidate") for name in _BESIDE),
    "delta_ns",
)
_PLACES: Final = {"device_self_ns": (DEVICE_TOTAL, DEVICE_SELF), "host_self_ns": (HOST_TOTAL, HOST_SELF)}
"""Where the total and the self time are by which a side is judged."""

Size = dict[int, tuple[float, ...]]


def of_run(side: LoadedSide, options: ShowOptions) -> Columns:
    """Return `Shown.tree`: a tree for each rank and step that are kept apart, in their order."""
    tree, grains = Tree(), options.grains
    flat = bool(options.op or options.module) or _lacks_contexts((side,))
    plant(tree, side, Wanted(options.tree, grains, options.op, options.module, flat=flat, outside=True))
    rows: list[list[Any]] = []
    for group in sorted(tree.values):
        values = tree.values[group]
        _complete(tree, values)
        numbered = _Numbered.of(
            tree, values, own_time(side), _step_time(side, dict(zip(grains, group[1:], strict=True)))
        )
        place: dict[int, int] = {}
        for node, level in ordered(tree, numbered.sizes(options.minimum_ns), options.depth):
            place[node] = len(rows)
            cells = (*values[node], numbered.share(node), numbered.step_share(node))
            rows.append([*group[1:], *_identity(tree, node, level, place), *cells])
    return _columns([*grains, *TREE_COLUMNS], rows)


_TEXTS: Final = frozenset({"kind", "path", "name", "input_shapes", "status"})


def _columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Columns:
    """Shares are real, all other numbers whole."""
    kinds = {name: np.float64 if name.endswith("share") else np.int64 for name in names}
    listed = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    return Columns(
        {name: objects(own) if name in _TEXTS else Column.of(own, kinds[name]) for name, own in listed.items()}
    )


def compared(baseline: LoadedSide, candidate: LoadedSide, options: DiffOptions, verdicts: Judged) -> Columns:
    """Return `Diff.tree`, with verdicts where a row is what one series is."""
    tree, sides = Tree(), coverage.blank_unless_both(baseline, candidate, coverage.OPS)
    flat = bool(options.op or options.module) or _lacks_contexts(sides, by_step=True)
    numbered = []
    for position, side in enumerate(sides):
        tree.values = {}
        wanted = Wanted(
            options.tree,
            GRAIN,
            op=options.op,
            module=options.module,
            with_shapes=options.match == "shape",
            op_map=options.op_map if position == 0 else {},
            flat=flat,
        )
        plant(tree, side, wanted)
        step = step_numbers(side)
        step_ns = step.get(side.measured_by)
        numbered.append(_Numbered.of(tree, _reduced(side, tree), own_time(side), step_ns))
    pair = _Pair(numbered[0], numbered[1])
    rows: list[list[Any]] = []
    place: dict[int, int] = {}
    for node, level in ordered(tree, pair.sizes(options.minimum_ns), options.depth):
        place[node] = len(rows)
        rows.append([*_identity(tree, node, level, place), *pair.cells(node)])
    identity = _columns(NODE, [row[: len(NODE)] for row in rows])
    compared = {name: [row[len(NODE) + at] for row in rows] for at, name in enumerate(_COMPARED)}
    status = objects(compared.pop("status"))
    numbers = {name: np.array(own, dtype=np.float64) for name, own in compared.items()}
    numbers["diff"] = match.relative_change(numbers["baseline_ns"], numbers["candidate_ns"])
    table = match.with_empty_verdicts(identity.having(status=status, **numbers)).only(TREE_DIFF_COLUMNS)
    series = series_of(tree, options, verdicts)
    return verdicts.filled(table, [series.get(node, NO_SERIES) for node in place])


class _Numbered(Struct, frozen=True):
    """The numbers of the rows of a tree, and which of them the tree is judged by.

    `whole`: the sum of that time over all ops; `step_ns`: the time of the steps, None where a source does not say.
    """

    tree: Tree
    values: Mapping[int, Numbers]
    total_at: int
    self_at: int
    whole: float
    step_ns: float | None

    @classmethod
    def of(cls, tree: Tree, values: Mapping[int, Numbers], own: str, step_ns: float | None) -> _Numbered:
        """Return `own`: the self time that ops are judged by."""
        total_at, self_at = _PLACES[own]
        roots = [values[node] for node in tree.roots if node in values]
        whole = sum(numbers[total_at] or 0.0 for numbers in roots if numbers[self_at] is not None)
        return cls(tree, values, total_at, self_at, whole, step_ns)

    def total(self, node: int) -> float | None:
        """Return the time that ranks a row, None where it is not known."""
        return self.values[node][self.total_at] if node in self.values else None

    def share(self, node: int) -> float | None:
        """Of the time of all ops; None for what counts time of other rows once more."""
        return self._of(node, self.whole)

    def step_share(self, node: int) -> float | None:
        """Of the time of the steps; None outside them."""
        return None if self._is_outside(node) else self._of(node, self.step_ns)

    def _of(self, node: int, whole: float | None) -> float | None:
        total = self.total(node)
        if total is None or not whole or (self.values[node][self.self_at] is None and self.tree.names[node][0] == "op"):
            return None
        return total / whole

    def _is_outside(self, node: int) -> bool:
        while self.tree.parents[node] >= 0:
            node = self.tree.parents[node]
        return self.tree.names[node][0] == "outside"

    def sizes(self, minimum_ns: int | None) -> Size:
        """By which rows are ordered: the judged time, then the other one; without rows below `minimum_ns`."""
        sizes = {
            node: (self.total(node) or 0.0, *(numbers[place] or 0.0 for place in (DEVICE_TOTAL, HOST_TOTAL)))
            for node, numbers in self.values.items()
        }
        return {node: size for node, size in sizes.items() if minimum_ns is None or size[0] >= minimum_ns}


class _Pair(Struct, frozen=True):
    """Both sides of one tree."""

    baseline: _Numbered
    candidate: _Numbered

    def cells(self, node: int) -> list[Any]:
        """Return the columns of _COMPARED for one row."""
        sides = (self.baseline, self.candidate)
        there = [node in side.values for side in sides]
        status = BOTH if all(there) else REMOVED if there[0] else ADDED
        return [status, *(cell for side in sides for cell in self._beside(side, node)), self._delta(node)]

    @staticmethod
    def _beside(side: _Numbered, node: int) -> Iterator[Any]:
        if node not in side.values:
            yield from [None] * len(_BESIDE)
            return
        numbers = side.values[node]
        yield from (numbers[side.total_at], numbers[side.self_at], side.share(node), side.step_share(node), *numbers)

    def _delta(self, node: int) -> float | None:
        before, after = self.baseline.total(node), self.candidate.total(node)
        return None if before is None and after is None else (after or 0.0) - (before or 0.0)

    def sizes(self, minimum_ns: int | None) -> Size:
        """By which rows are ordered: the size of the change, then the larger side."""
        found: Size = {}
        for node in {**self.baseline.values, **self.candidate.values}:
            larger = max(self.baseline.total(node) or 0.0, self.candidate.total(node) or 0.0)
            if minimum_ns is None or larger >= minimum_ns:
                found[node] = (round(abs(self._delta(node) or 0.0), 6), larger)
        return found


def _complete(tree: Tree, values: Mapping[int, Numbers]) -> None:
    """A row whose ops are all in the rows below has no time of its own: 0, not missing."""
    for node, numbers in values.items():
        if tree.names[node][0] in ("module", "phase", "outside"):
            for total_at, self_at in _PLACES.values():
                if numbers[self_at] is None and numbers[total_at] is not None:
                    numbers[self_at] = 0


def _reduced(side: LoadedSide, tree: Tree) -> dict[int, Numbers]:
    """Of each row of trees at GRAIN its numbers."""
    for values in tree.values.values():
        _complete(tree, values)
    rows = [(*group, node, *numbers) for group, values in tree.values.items() for node, numbers in values.items()]
    names = ("run_id", *GRAIN, "node", *NUMBERS)
    columns = dict(zip(names, np.array(rows, dtype=np.float64).reshape(-1, len(names)).T, strict=True))
    whole = {name: columns.pop(name).astype(np.int64) for name in names[:4]}
    nodes = whole.pop("node")
    found = reduce_side(side, Numbered(Columns({**whole, **columns}), nodes, len(tree.names)), NUMBERS)
    of_nodes = [listed(found[name]) for name in NUMBERS]
    return {node: [column[node] for column in of_nodes] for node in sorted(set(nodes.tolist()))}


def _identity(tree: Tree, node: int, level: int, place: Mapping[int, int]) -> list[Any]:
    kind, name, shapes = tree.names[node]
    return [place[node], place.get(tree.parents[node], -1), level, kind, tree.path(node), name, shapes]


def _lacks_contexts(sides: Sequence[LoadedSide], *, by_step: bool = False) -> bool:
    """Return whether some run has ops of which nobody knows from where they were called."""
    for side in sides:
        known = set(side.query_op_tree(by_step=by_step).listed("run_id"))
        if set(side.query(queries.ops).listed("run_id")) - known:
            return True
    return False


def _step_time(side: LoadedSide, chosen: Mapping[str, int]) -> float | None:
    """Return the time of all steps (of the chosen rank and step), E2E without markers; None where a source does not
    say.
    """
    steps = side.steps
    for name, value in chosen.items():
        steps = steps.taken(steps.integers(name) == value)
    each = steps.reals("duration_ns")
    if not side.has_markers:
        e2e = steps.reals("e2e_ns")
        each = np.where(np.isnan(e2e), each, e2e)
    times = each * steps.integers("steps")
    known = times[~np.isnan(times)]
    return float(known.sum()) if len(known) else None


Found = Iterator[tuple[int, SeriesKey]]


def series_of(tree: Tree, options: DiffOptions, judged: Judged) -> dict[int, SeriesKey]:
    """Number of a row -> its series. A row that sums up several series, or is a part of one, has none.

    An op is its series where it stands in one place of the tree alone and no other ops are in its time; a kernel is at
    the top; a phase is; so is a module that holds no others and runs in one phase. What a filter takes a part of is
    not.
    """
    if judged.found is None or options.module:
        return {}
    found: dict[int, SeriesKey] = {}
    if options.tree != "kernel" and judged.of_ops:
        found |= _ops(tree, judged)
    if not options.op:
        found |= {"module": _modules, "phase": _phases, "kernel": _kernels, "op": _nothing}[options.tree](tree, judged)
    return found


def _ops(tree: Tree, judged: Judged) -> Found:
    places = Counter(name for name in tree.names if name[0] == "op")
    for node, (kind, name, shapes) in enumerate(tree.names):
        alone = kind == "op" and places[kind, name, shapes] == 1
        if alone and all(tree.names[child][0] == "kernel" for child in tree.children[node]):
            yield node, judged.op_key(name, shapes)


def _kernels(tree: Tree, judged: Judged) -> Found:
    for node in tree.roots:
        _, name, shapes = tree.names[node]
        yield node, KIND["kernel"].make_key(KERNEL_TIME.name, (name, shapes))


def _phases(tree: Tree, judged: Judged) -> Found:
    for node in tree.roots:
        phase = tree.names[node][1]
        if phase != OTHER:  # the ops of no phase, which are no series
            yield node, SeriesKey("phase", judged.metric, phase)


def _modules(tree: Tree, judged: Judged) -> Found:
    assert judged.found is not None
    phases: dict[str, list[SeriesKey]] = {}
    for key in judged.found.said:
        if key[:2] == ("module", judged.metric):
            phases.setdefault(key[2], []).append(key)
    for node, (kind, _, _) in enumerate(tree.names):
        holds_modules = any(tree.names[child][0] == "module" for child in tree.children[node])
        keys = phases.get(tree.path(node), []) if kind == "module" else []
        if len(keys) == 1 and not holds_modules:
            yield node, keys[0]


def _nothing(tree: Tree, judged: Judged) -> Found:
    yield from ()
