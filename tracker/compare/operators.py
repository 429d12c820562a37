"""Operators of two sides: which rows there are, how they are matched, and what each consists of.

Without options a row is an op by its own (self) time, so that the rows add up to the time of the timeline.
`max_kernels` and `op_map` look at calling contexts instead: an op may then stand for everything below it, and nothing
is counted twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from tracker.columns import Column, Columns, objects
from tracker.compare import coverage, match
from tracker.compare.filters import matching
from tracker.compare.side import GRAIN
from tracker.schema.column_names import (
    AVERAGE_NS,
    BASELINE_HOST_SELF_NS,
    BASELINE_NAME,
    CALLS,
    CANDIDATE_HOST_SELF_NS,
    CANONICAL_NAME,
    CATEGORY,
    HOST_SELF_NS,
    HOST_TOTAL_NS,
    INPUT_SHAPES,
    INPUT_TYPES,
    IS_WHOLE,
    KERNEL_COUNT,
    MAX_NS,
    MIN_NS,
    NAME,
    NODE,
    NS,
    OP,
    OP_INPUT_SHAPES,
    OWN_NS,
    PARENT,
    RANK,
    RUN_ID,
    STEP,
    TOTAL_CALLS,
    TOTAL_NS,
)
from tracker.schema.series import own_time_of
from tracker.store import queries
from tracker.table import Numbered, number_tables

if TYPE_CHECKING:
    from tracker.columns import F64, I64, Flags, Texts
    from tracker.compare.side import LoadedSide
    from tracker.results import DiffOptions

_MATCH: Final = [NAME, INPUT_SHAPES]
_TIMES: Final = ["host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns"]
_PARTS: Final = (RUN_ID, RANK, STEP, OP, OP_INPUT_SHAPES, CANONICAL_NAME, CATEGORY, CALLS, TOTAL_NS)
_PART_NAMES: Final = ("run_id", "rank", "step", "name", "input_shapes", "kernel", "category", "calls", "ns")
_SUMS: Final = [CALLS, OWN_NS, *_TIMES]


class Operators(Struct, frozen=True, eq=False):
    """`ops` and `op_details` of a Diff; `everything`: `ops` without the filters, which an explanation needs to add up.

    `opened`: name and shapes of the operators whose children are compared, where the others stand for all below them;
    None where each operator counts its own kernels.
    `names`: a row per name, all shapes of an operator as one, which is the number that is judged of a name: medians do
    not add up.
    `baseline_rows`, `candidate_rows`: what they were made of (grain run_id, rank, step, op; column `own_ns`). `keys`,
    `runs`: name and shapes of each operator, and per side the time of its runs.
    """

    ops: Columns
    everything: Columns
    names: Columns
    details: Columns
    baseline_rows: Columns
    candidate_rows: Columns
    opened: frozenset[tuple[str, str]] | None = None
    keys: tuple[tuple[str, str], ...] = ()
    runs: tuple[F64, F64] | None = None


def own_time(side: LoadedSide) -> str:
    """Return the column that judges an op on this side: its device self time, or host self time without device
    activity.
    """
    return own_time_of(side.side.timeline)


def compare(baseline: LoadedSide, candidate: LoadedSide, options: DiffOptions) -> Operators:
    """Return the `ops` and `op_details` of a Diff."""
    baseline, candidate = sides = coverage.blank_unless_both(baseline, candidate, coverage.OPS)
    drilled: set[tuple[str, str]] | None = None
    if options.max_kernels is None and not options.op_map:
        rows = [_self_rows(side) for side in sides]
        parts = [_kernel_parts(side) for side in sides]
    else:
        trees = [side.query_op_tree(by_step=True) for side in sides]
        drilled = _drilled(trees, options.max_kernels)
        named = (set(options.op_map), set(options.op_map.values()))
        listed = [
            _context_rows(side, tree, drilled, names) for side, tree, names in zip(sides, trees, named, strict=True)
        ]
        rows = [pair[0] for pair in listed]
        parts = [
            Columns.stacked([_kernel_parts(side, _own_keys(own)), below])
            for side, (own, below) in zip(sides, listed, strict=True)
        ]
    rows[0], parts[0] = _rename(rows[0], options.op_map), _rename(parts[0], options.op_map)
    if options.match == "name":
        rows, parts = ([_without_shapes(table) for table in tables] for tables in (rows, parts))
    rows_of_names, rows = _keep_own(sides, rows, by_name=True), _keep_own(sides, rows)
    parts = _keep_own(sides, parts)
    joined = _join_ops(sides, rows)
    ops = everything = joined.ops
    if options.op or options.module:
        ops = _join_ops(sides, [_filtered(table, options) for table in rows]).ops
    ops = match.keep_large(ops, "ns", options.minimum_ns)
    details = _join_details(sides, parts, ops)
    whole = match.finish_table("ops", everything)
    shown = whole if ops is everything else match.finish_table("ops", ops)
    names = whole
    if any(whole.listed(INPUT_SHAPES)):
        names = match.finish_table("ops", _join_ops(sides, [_without_shapes(table) for table in rows_of_names]).ops)
    opened = None if drilled is None else frozenset(drilled)
    return Operators(shown, whole, names, details, rows[0], rows[1], opened, joined.keys, joined.runs)


def _keep_own(sides: Sequence[LoadedSide], tables: Sequence[Columns], *, by_name: bool = False) -> list[Columns]:
    return [side.keep_own("ops", table, by_name=by_name) for side, table in zip(sides, tables, strict=True)]


def _self_rows(side: LoadedSide) -> Columns:
    table = with_host_spread(side, side.query(queries.ops))
    return table.having(own_ns=table[own_time(side)])


def _without_shapes(table: Columns) -> Columns:
    return table.having(input_shapes=objects([""] * len(table)))


def _filtered(table: Columns, options: DiffOptions) -> Columns:
    return matching(matching(table, "name", options.op), "module", options.module)


def _rename(table: Columns, op_map: Mapping[str, str]) -> Columns:
    """Return the baseline's rows under the names of the candidate; `baseline_name` keeps the old name of a mapped op,
    else "".
    """
    if not op_map:
        return table.having(baseline_name=objects([""] * len(table)))
    old = table[NAME].tolist()
    return table.having(
        name=objects([op_map.get(name, name) for name in old]),
        baseline_name=objects([name if name in op_map else "" for name in old]),
    )


class _JoinedOps(Struct, frozen=True, eq=False):
    """The operators of both sides beside each other. `keys`, `runs`: as in Operators, in the order of the keys."""

    ops: Columns
    keys: tuple[tuple[str, str], ...]
    runs: tuple[F64, F64]


def _join_ops(sides: Sequence[LoadedSide], parts: Sequence[Columns]) -> _JoinedOps:
    rows, keys = number_tables(parts, _MATCH)
    each = [match.reduce_per_run(*own, _SUMS) for own in zip(sides, rows, strict=True)]
    tables = [match.reduce_runs(*own) for own in zip(rows, each, strict=True)]
    before_of_runs, after_of_runs = (table[OWN_NS] for table in each)
    for table, own in zip(tables, rows, strict=True):
        calls = np.bincount(own.number, np.nan_to_num(own.rows.reals(CALLS)), own.count)
        table[TOTAL_CALLS] = np.where(np.bincount(own.number, minlength=own.count) > 0, calls, np.nan)
        table[NS] = table.pop(OWN_NS)
        table.update(_extremes(own))
    for table, side in zip(tables, sides, strict=True):
        total = table[own_time(side).replace("self", "total")]
        table[AVERAGE_NS] = total / np.where(table[CALLS] > 0, table[CALLS], np.nan)
    joined = match.split_by_calls(match.match_rows(keys, rows, tables))
    mapped = match.join_distinct_texts(rows[0], BASELINE_NAME)
    types = _changed(*(match.join_distinct_texts(own, INPUT_TYPES) for own in rows))
    before, after = joined[BASELINE_HOST_SELF_NS], joined[CANDIDATE_HOST_SELF_NS]
    joined = joined.having(
        baseline_name=objects([name or None for name in mapped]), input_types=types, host_delta_ns=after - before,
        host_diff=match.relative_change(before, after),
    )  # fmt: skip
    ops = match.add_difference(joined, "ns")
    names = tuple((name, shapes) for name, shapes in keys.rows(*_MATCH))
    return _JoinedOps(ops, names, (before_of_runs, after_of_runs))


def _extremes(own: Numbered) -> dict[str, F64]:
    """Return the shortest and the longest call; nan where ops stand for everything below them, of which nobody knows
    it.
    """
    if MIN_NS not in own.rows.arrays:
        return {name: np.full(own.count, np.nan) for name in ("min_ns", "max_ns", "host_min_ns", "host_max_ns")}
    host = match.find_extremes(own, "host_min_ns", "host_max_ns")
    return match.find_extremes(own, MIN_NS, MAX_NS) | host


def with_host_spread(side: LoadedSide, ops: Columns) -> Columns:
    """Return the rows of ops with their extremes on the host: on a host timeline all extremes are of it."""
    if side.side.timeline != "host":
        return ops
    found = {}
    for name in (MIN_NS, MAX_NS):
        own = ops.known(f"host_{name}")
        values = np.where(own, ops.integers(f"host_{name}"), ops.integers(name))
        found[f"host_{name}"] = Column(values, ~(own | ops.known(name)))
    return ops.having(**found)


def _changed(before: Texts, after: Texts) -> Texts:
    """Return one text for both sides; where both have one and they differ, `before -> after`."""
    differ = (before != "") & (after != "") & (before != after)
    return np.where(differ, before + " -> " + after, np.where(after != "", after, before))


def _kernel_parts(side: LoadedSide, keys: Set[tuple[str, str]] | None = None) -> Columns:
    """Return the kernels of each op: rows run_id, rank, step, name, input_shapes, kernel, category, calls, ns.

    `keys`: only these ops.
    """
    table = side.query(queries.kernels).only(_PARTS).renamed(dict(zip(_PARTS, _PART_NAMES, strict=True)))
    if keys is None:
        return table
    return table.taken(np.array([pair in keys for pair in table.rows(*_MATCH)], dtype=bool))


def _own_keys(rows: Columns) -> set[tuple[str, str]]:
    return set(rows.taken(~rows[IS_WHOLE]).rows(*_MATCH))


def _join_details(sides: Sequence[LoadedSide], parts: Sequence[Columns], ops: Columns) -> Columns:
    joined = match.match_sums(sides, parts, [*_MATCH, "kernel", "category"], ["calls", "ns"])
    types = dict(zip(ops.rows(*_MATCH), ops[INPUT_TYPES], strict=True))
    joined = joined.having(input_types=objects([types.get(pair) for pair in joined.rows(*_MATCH)]))
    return match.finish_table("op_details", match.add_difference(joined.taken(joined.known(INPUT_TYPES)), "ns"))


def _drilled(trees: Sequence[Columns], max_kernels: int | None) -> set[tuple[str, str]]:
    """Ops (name, shapes) that launch more than `max_kernels` kernels in a call on either side: their children are
    compared.
    """
    drilled: set[tuple[str, str]] = set()
    for tree in trees:
        calls, kernels = tree.integers(CALLS), tree.integers(KERNEL_COUNT)
        large = None if max_kernels is None else kernels > max_kernels * np.where(calls > 0, calls, 1)
        drilled.update((tree if large is None else tree.taken(large)).rows(*_MATCH))
    return drilled


def _context_rows(
    side: LoadedSide, tree: Columns, drilled: Set[tuple[str, str]], whole_names: Set[str]
) -> tuple[Columns, Columns]:
    """Return rows that share out the tree: an op that is not drilled, or is named in `whole_names`, stands for all
    below it.

    Returns the rows (as `_self_rows`, with `is_whole`) and what the whole ones consist of (as `_kernel_parts`).
    """
    total, own = (
        ("device_total_ns", "device_self_ns") if side.side.timeline == "device" else (HOST_TOTAL_NS, HOST_SELF_NS)
    )
    above = _parents(tree)
    tree = tree.having(host_self_ns=_host_self(tree, above))
    owner, is_whole = _owners(tree, above, drilled, whole_names)
    stands = owner == np.arange(len(tree))
    own_ns = np.where(is_whole, tree.reals(total), tree.reals(own))
    inner, head = tree.taken(~stands), tree.only(_MATCH).taken(owner[~stands])
    below = Columns(
        {
            **{name: inner[name] for name in (RUN_ID, *GRAIN)},
            "name": head[NAME], "input_shapes": head[INPUT_SHAPES],
            "kernel": inner[NAME], "category": objects(["op"] * len(inner)),
            "calls": inner[CALLS], "ns": inner[own],
        }
    )  # fmt: skip
    return tree.having(is_whole=is_whole, own_ns=own_ns).taken(stands), below.taken(below.reals(NS) > 0)


def _parents(tree: Columns) -> I64:
    """Of each row the place of the one above it, -1 for none."""
    ranks = list(tree.rows(RUN_ID, *GRAIN))
    place = {(*rank, node): at for at, (rank, node) in enumerate(zip(ranks, tree.listed(NODE), strict=True))}
    above = zip(ranks, tree.listed(PARENT), strict=True)
    return np.array([place.get((*rank, parent), -1) for rank, parent in above], dtype=np.int64)


def _host_self(tree: Columns, above: I64) -> F64:
    """Return the host time of each context without those below it."""
    total = tree.reals(HOST_TOTAL_NS)
    inside = above >= 0
    return total - np.bincount(above[inside], np.nan_to_num(total[inside]), len(total))


def _owners(tree: Columns, above: I64, drilled: Set[tuple[str, str]], whole_names: Set[str]) -> tuple[I64, Flags]:
    """Of each row the place of the one that stands for it, and whether it stands for all below it; parents come before
    their children.
    """
    owner, is_whole = list(range(len(tree))), [False] * len(tree)
    for at, (parent, pair) in enumerate(zip(above.tolist(), tree.rows(*_MATCH), strict=True)):
        if parent >= 0 and (is_whole[owner[parent]] or owner[parent] != parent):
            owner[at] = owner[parent]
        else:
            is_whole[at] = pair[0] in whole_names or pair not in drilled
    return np.array(owner, dtype=np.int64), np.array(is_whole, dtype=bool)
