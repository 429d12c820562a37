"""Memory of two sides: what ops allocated, through which helpers; by these alone where a side knows no more."""

from __future__ import annotations

import json
from itertools import compress
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracker.columns import Columns, objects
from tracker.compare import join, knowing, reduction
from tracker.compare.filters import matching
from tracker.compare.headline import short_labels
from tracker.profile import OWNER_SETTING
from tracker.results import OP_KEY
from tracker.store import queries
from tracker.table import number_distinct_rows, number_tables, stack_numbered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracker.columns import F64
    from tracker.compare.sides import Loaded
    from tracker.results import DiffOptions
    from tracker.table import Numbered

_SUMS: Final = ("bytes", "calls", "held_ns", "unreleased_bytes")


def compare(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> tuple[Columns, Columns]:
    """The `memory` and `memory_details` of a Diff: bytes that ops allocated, and in which component and by which
    helpers. `allocator`: the helper with most bytes, `more_allocators`: how many others.
    """
    sides = knowing.both(baseline, candidate, knowing.MEMORY)
    if not any(len(side.captures) and side.has_rows(queries.memory) for side in sides):
        return join.nothing("memory"), join.nothing("memory_details")
    by_allocator = rules_differ((baseline, candidate))
    tables = []
    for side, renames in zip(sides, (options.op_map, {}), strict=True):
        table = _allocators(side) if by_allocator else _owners(side)
        if renames:
            table = table.having(name=objects([renames.get(name, name) for name in table["name"].tolist()]))
        if options.match == "name":
            table = table.having(input_shapes=objects([""] * len(table)))
        tables.append(matching(table, "name", options.op))
    if not any(map(len, tables)):
        return join.nothing("memory"), join.nothing("memory_details")
    rows, _ = number_tables(tables, OP_KEY[:2])
    types = reduction.distinct_texts(stack_numbered(rows, "input_types"), "input_types")
    tables = [own.rows.having(input_types=types[own.number]) for own in rows]
    rows, keys = number_tables(tables, OP_KEY)
    sums = [reduction.of_side(side, own, _SUMS[:2]) for side, own in zip(sides, rows, strict=True)]
    whole = join.matched(keys, rows, sums).having(**_helpers(rows))
    parts = join.summed(sides, tables, [*OP_KEY, "component", "allocator"], _SUMS)
    whole, parts = (join.with_difference(joined, "bytes", unit="bytes") for joined in (whole, parts))
    return join.finished("memory", whole), join.finished("memory_details", parts)


def rules_differ(sides: Sequence[Loaded]) -> bool:
    """Whether the captures of these sides that know memory count it to ops by more than one rule (OWNER_SETTING), so
    that only the allocators mean the same on both.
    """
    return len({rule for side in sides for rule in _rules(side).values()}) > 1


def note(baseline: Loaded, candidate: Loaded) -> tuple[str, ...]:
    """A sentence where memory is compared by the allocator."""
    if not rules_differ((baseline, candidate)):
        return ()
    old = short_labels([side.side.label for side in (baseline, candidate) if None in _rules(side).values()])
    why = f"no more is known of {' and '.join(old)}" if old else "the sides count it to operators by different rules"
    return (
        f"Memory is compared by allocator (aten::empty, ...): {why}. If an older tracker ingested a run, delete it and "
        "ingest its profile again.",
    )


def _rules(side: Loaded) -> dict[tuple[int, int], str | None]:
    """(run, rank) -> the rule by which its memory is counted to ops, of the captures that have any."""
    filled = side.filled()
    having = set(compress(filled.rows("run_id", "rank"), filled.integers("has_memory") == 1))
    return {
        (run_id, rank): json.loads(settings or "{}").get(OWNER_SETTING)
        for run_id, rank, settings in side.captures.rows("run_id", "rank", "settings")
        if (run_id, rank) in having
    }


def _owners(side: Loaded) -> Columns:
    """The rows of ops, as fine as the allocators in them; without these where the source does not know them."""
    fine = side.ask(queries.memory_allocators) if side.has_rows(queries.memory_allocators) else None
    if fine is not None and len(fine):
        return fine.renamed({"op": "name"})
    table = side.ask(queries.memory).renamed({"op": "name"})
    return table.having(allocator=objects([""] * len(table)))


def _allocators(side: Loaded) -> Columns:
    """Rows whose name is that of the allocator, without shapes: an old row has no other name."""
    fine, coarse = (side.ask(question) for question in (queries.memory_allocators, queries.memory))
    old = {rank for rank, rule in _rules(side).items() if rule is None}
    kept = np.array([rank in old for rank in coarse.rows("run_id", "rank")], dtype=bool)
    coarse = coarse.taken(kept)
    names = ["run_id", *reduction.GRAIN, "name", "component", *_SUMS]
    parts = (fine.renamed({"allocator": "name"}), coarse.renamed({"op": "name"}))
    table = Columns.stacked([part.only(names) for part in parts])
    empty = objects([""] * len(table))
    return table.having(input_shapes=empty, input_types=empty, allocator=table["name"])


def _helpers(rows: Sequence[Numbered]) -> dict[str, Any]:
    """The allocator of most bytes of each key, and how many others there are."""
    every = stack_numbered(rows, "allocator", "bytes")
    found = reduction.dominant(every, "allocator", "bytes")
    named = every.rows.texts("allocator") != ""
    _, first = number_distinct_rows([every.number[named], every.rows.texts("allocator")[named]])
    more: F64 = np.maximum(np.bincount(every.number[named][first], minlength=every.count) - 1.0, 0.0)
    return {"allocator": found, "more_allocators": more}
