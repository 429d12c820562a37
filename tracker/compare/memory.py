"""Memory of two sides: what operators allocated, who owned it at its peak, and the largest single allocations."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from itertools import compress
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracker.columns import Columns, objects
from tracker.compare import coverage, match
from tracker.compare.explain import code_line
from tracker.compare.filters import matching
from tracker.compare.references import short_labels
from tracker.compare.side import GRAIN
from tracker.profile import MAX_BLOCKS, OWNER_SETTING
from tracker.results import ADDED, BOTH, DIFF_COLUMNS, ONE_BY_ONE, OP_KEY, REMOVED
from tracker.store import queries
from tracker.table import add_up_rows, number_distinct_rows, number_tables, stack_numbered
from tracker.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracker.columns import F64
    from tracker.compare.side import LoadedSide
    from tracker.results import DiffOptions
    from tracker.results.diff import Curve
    from tracker.store import Store
    from tracker.table import Numbered


_ALLOCATION_SUMS: Final = ("bytes", "calls", "held_ns", "unreleased_bytes")

SIDE_NAMES: Final = ("baseline", "candidate")
Row = dict[str, Any]
PEAK_KEY: Final = ("component", "name", "input_shapes", "module", "allocator")
BLOCK_KEY: Final = ("name", "input_shapes", "component", "allocator")
_CURVE: Final = ("run_id", "rank", "component", "time_ns", "allocated_bytes")
_LINES: Final = ("code_line", "call_stack")
_TEXTS: Final = frozenset(
    {*PEAK_KEY, *_LINES, "input_types", "status", *(f"{side}_{name}" for side in SIDE_NAMES for name in _LINES)}
)
_OWNED: Final = ("bytes", "calls", "largest_bytes", "first_ns", "first_step")
_SINGLE: Final = ("bytes", "held_ns", "time_ns", "step", "is_released", *_LINES)


def compare_allocations(baseline: LoadedSide, candidate: LoadedSide, options: DiffOptions) -> tuple[Columns, Columns]:
    """Return the `memory` and `memory_details` of a Diff: bytes that ops allocated, and in which component and by which
    helpers. `allocator`: the helper with most bytes, `more_allocators`: how many others.
    """
    sides = coverage.blank_unless_both(baseline, candidate, coverage.MEMORY)
    if not any(len(side.captures) and side.may_have_rows(queries.memory) for side in sides):
        return match.empty_table("memory"), match.empty_table("memory_details")
    by_allocator = rules_differ((baseline, candidate))
    tables = []
    for side, renames in zip(sides, (options.op_map, {}), strict=True):
        table = _rows_by_allocator(side) if by_allocator else _rows_by_owner(side)
        if renames:
            table = table.having(name=objects([renames.get(name, name) for name in table["name"].tolist()]))
        if options.match == "name":
            table = table.having(input_shapes=objects([""] * len(table)))
        tables.append(side.keep_own("memory", matching(table, "name", options.op)))
    if not any(map(len, tables)):
        return match.empty_table("memory"), match.empty_table("memory_details")
    rows, _ = number_tables(tables, OP_KEY[:2])
    types = match.join_distinct_texts(stack_numbered(rows, "input_types"), "input_types")
    tables = [own.rows.having(input_types=types[own.number]) for own in rows]
    rows, keys = number_tables(tables, OP_KEY)
    sums = [match.reduce_side(side, own, _ALLOCATION_SUMS[:2]) for side, own in zip(sides, rows, strict=True)]
    whole = match.match_rows(keys, rows, sums).having(**_helpers(rows))
    parts = match.match_sums(sides, tables, [*OP_KEY, "component", "allocator"], _ALLOCATION_SUMS)
    whole, parts = (match.add_difference(joined, "bytes", unit="bytes") for joined in (whole, parts))
    return match.finish_table("memory", whole), match.finish_table("memory_details", parts)


def rules_differ(sides: Sequence[LoadedSide]) -> bool:
    """Return whether the captures of these sides that know memory count it to ops by more than one rule
    (OWNER_SETTING), so that only the allocators mean the same on both.
    """
    return len({rule for side in sides for rule in _rules(side).values()}) > 1


def note_on_rules(baseline: LoadedSide, candidate: LoadedSide) -> tuple[str, ...]:
    """Return a sentence where memory is compared by the allocator."""
    if not rules_differ((baseline, candidate)):
        return ()
    old = short_labels([side.side.label for side in (baseline, candidate) if None in _rules(side).values()])
    why = f"no more is known of {' and '.join(old)}" if old else "the sides count it to operators by different rules"
    return (
        f"Memory is compared by allocator (aten::empty, ...): {why}. If an older tracker ingested a run, delete it and "
        "ingest its profile again.",
    )


def _rules(side: LoadedSide) -> dict[tuple[int, int], str | None]:
    """(run, rank) -> the rule by which its memory is counted to ops, of the captures that have any."""
    filled = side.filled_tables()
    having = set(compress(filled.rows("run_id", "rank"), filled.integers("has_memory") == 1))
    return {
        (run_id, rank): json.loads(settings or "{}").get(OWNER_SETTING)
        for run_id, rank, settings in side.captures.rows("run_id", "rank", "settings")
        if (run_id, rank) in having
    }


def _rows_by_owner(side: LoadedSide) -> Columns:
    """Return the rows of ops, as fine as the allocators in them; without these where the source does not know them."""
    fine = side.query(queries.memory_allocators) if side.may_have_rows(queries.memory_allocators) else None
    if fine is not None and len(fine):
        return fine.renamed({"op": "name"})
    table = side.query(queries.memory).renamed({"op": "name"})
    return table.having(allocator=objects([""] * len(table)))


def _rows_by_allocator(side: LoadedSide) -> Columns:
    """Return rows whose name is that of the allocator, without shapes: an old row has no other name."""
    fine, coarse = (side.query(question) for question in (queries.memory_allocators, queries.memory))
    old = {rank for rank, rule in _rules(side).items() if rule is None}
    kept = np.array([rank in old for rank in coarse.rows("run_id", "rank")], dtype=bool)
    coarse = coarse.taken(kept)
    names = ["run_id", *GRAIN, "name", "component", *_ALLOCATION_SUMS]
    parts = (fine.renamed({"allocator": "name"}), coarse.renamed({"op": "name"}))
    table = Columns.stacked([part.only(names) for part in parts])
    empty = objects([""] * len(table))
    return table.having(input_shapes=empty, input_types=empty, allocator=table["name"])


def _helpers(rows: Sequence[Numbered]) -> dict[str, Any]:
    """Return the allocator of most bytes of each key, and how many others there are."""
    every = stack_numbered(rows, "allocator", "bytes")
    found = match.dominant_texts(every, "allocator", "bytes")
    named = every.rows.texts("allocator") != ""
    _, first = number_distinct_rows([every.number[named], every.rows.texts("allocator")[named]])
    more: F64 = np.maximum(np.bincount(every.number[named][first], minlength=every.count) - 1.0, 0.0)
    return {"allocator": found, "more_allocators": more}


def chosen_capture(side: LoadedSide) -> tuple[int, int] | None:
    """Return the run and the rank that stand for `side`; None without captures.

    It is the rank with the highest peak, of the run whose peak is in the middle of its runs: owners and blocks are rows
    of single moments, of which there are no means.
    """
    of_runs: dict[int, tuple[int, int]] = {}
    for run_id, rank, peak in side.captures.rows("run_id", "rank", "peak_allocated_bytes"):
        size = (-1 if peak is None else peak, -rank)
        of_runs[run_id] = max(of_runs.get(run_id, size), size)
    ordered = sorted((peak, run_id, -rank) for run_id, (peak, rank) in of_runs.items())
    if not ordered:
        return None
    _, run_id, rank = ordered[(len(ordered) - 1) // 2]
    return run_id, rank


def owners(side: LoadedSide) -> Columns:
    """Return what the chosen capture of `side` held at the peak of each component; see `queries.memory_owners`.

    Nothing of chosen steps: a peak is one of the whole capture.
    """
    found = _of_chosen(side, queries.memory_owners)
    return found.head(0) if side.chosen_steps is not None else found


def blocks(side: LoadedSide) -> Columns:
    """Return the largest allocations of the chosen capture of `side`, of its chosen steps; see
    `queries.memory_blocks`.
    """
    found = _of_chosen(side, queries.memory_blocks)
    if side.chosen_steps is None:
        return found
    return found.taken(np.isin(found.integers("step"), list(side.chosen_steps)))


def curves(baseline: LoadedSide, candidate: LoadedSide) -> tuple[Curve, ...]:
    """Return the memory of the chosen captures over time, of the component with the highest peak: seconds, bytes;
    nothing where only one side knows it.
    """
    sides = [(side, chosen_capture(side)) for side in (baseline, candidate) if side.may_have_rows(queries.memory_curve)]
    chosen = [(side, *own) for side, own in sides if own is not None]
    if len(chosen) < 2:
        return ()
    asked: dict[Store, list[tuple[int, int]]] = {}
    for side, run_id, rank in chosen:
        asked.setdefault(side.store, []).append((run_id, rank))
    points: dict[tuple[Store, int, int], dict[str, list[tuple[float, float]]]] = {}
    for store, captures in asked.items():
        run_ids, ranks = zip(*captures, strict=True)
        rows = queries.memory_curve(store, list(dict.fromkeys(run_ids)), ranks=list(dict.fromkeys(ranks)))
        for run_id, rank, component, time_ns, size in rows.rows(*_CURVE):
            if size is not None:
                own = points.setdefault((store, run_id, rank), {}).setdefault(component, [])
                own.append((time_ns / NS_PER_S, float(size)))
    found = [points.get((side.store, run_id, rank), {}) for side, run_id, rank in chosen]
    return tuple(
        tuple(max(own.values(), key=lambda curve: max(size for _, size in curve), default=())) for own in found
    )


def note_on_blocks(side: LoadedSide, captures: Collection[tuple[int, int]]) -> tuple[str, ...]:
    """Return a sentence where these `captures` (run, rank) made more allocations than are kept one by one."""
    if not side.may_have_rows(queries.memory_blocks):
        return ()
    blocks = side.query_with(queries.memory_blocks)
    kept: Counter[tuple[int, int, str]] = Counter(blocks.rows("run_id", "rank", "component"))
    full = {key for key, count in kept.items() if count >= MAX_BLOCKS and key[:2] in captures}
    made: Counter[tuple[int, int, str]] = Counter()
    memory = side.query_with(queries.memory, by=("run", "rank"), in_steps=False) if full else None
    for *key, calls in () if memory is None else memory.rows("run_id", "rank", "component", "calls"):
        made[*key] += calls or 0
    if not any(made[key] > kept[key] for key in full):
        return ()
    one_by_one = sum(count for key, count in kept.items() if key[:2] in captures)
    every = sum(count for key, count in made.items() if key[:2] in captures)
    return (
        f"{side.side.label}: {one_by_one:,} of {every:,} allocations are listed {ONE_BY_ONE}: the largest, at most "
        f"{MAX_BLOCKS} of a rank in each kind of memory.",
    )


def notes_on_blocks(baseline: LoadedSide, candidate: LoadedSide) -> tuple[str, ...]:
    """Return the same of the captures that stand for two sides, each sentence once."""
    chosen = [(side, chosen_capture(side)) for side in (baseline, candidate)]
    return tuple(dict.fromkeys(note for side, own in chosen if own for note in note_on_blocks(side, [own])))


def _of_chosen(side: LoadedSide, question: queries.Question) -> Columns:
    chosen = chosen_capture(side)
    found = side.query_with(question)
    run_id, rank = chosen or (-1, -1)
    return found.taken((found.integers("run_id") == run_id) & (found.integers("rank") == rank))


def compare_owners(baseline: LoadedSide, candidate: LoadedSide, options: DiffOptions) -> Columns:
    """Return the `memory_peak` of a Diff; nothing where only one side knows it."""
    sides = _both(baseline, candidate, owners, options)
    if not all(map(len, sides)):
        return match.empty_table("memory_peak")
    tables = [_by_key(own) for own in sides]
    rows = []
    for key in dict.fromkeys(key for table in tables for key in table):
        before, after = (table.get(key) for table in tables)
        row: Row = dict(zip(PEAK_KEY, key, strict=True)) | _status(before, after)
        larger = max((own for own in (before, after) if own), key=lambda own: own["bytes"] or 0)
        rows.append(row | {name: larger[name] for name in _LINES} | _beside(before, after, _OWNED))
    rows.sort(key=lambda row: (-abs(row["delta_bytes"] or 0), -_larger(row), *(row[name] for name in PEAK_KEY)))
    return _table("memory_peak", rows)


def compare_totals(baseline: LoadedSide, candidate: LoadedSide) -> Columns:
    """Return the `memory_peak_totals` of a Diff: the peaks whose owners `memory_peak` has, the largest first."""
    sides = [owners(side) for side in (baseline, candidate) if side.may_have_rows(queries.memory_owners)]
    if len(sides) < 2 or not all(map(len, sides)):
        return match.empty_table("memory_peak_totals")
    rows, keys = number_tables([add_up_rows(own, ["component"], {"bytes": "sum"}) for own in sides], ["component"])
    numbers = []
    for own in rows:
        sizes = np.full(own.count, np.nan)
        sizes[own.number] = own.rows.reals("bytes")
        numbers.append({"bytes": sizes})
    joined = match.add_difference(match.match_rows(keys, rows, numbers), "bytes", unit="bytes")
    return match.finish_table("memory_peak_totals", joined)


def compare_blocks(baseline: LoadedSide, candidate: LoadedSide, options: DiffOptions, memory: Columns) -> Columns:
    """Return the `memory_blocks` of a Diff: the largest of an op against the largest of it, the second against the
    second (`place`). What one side has alone is ADDED or REMOVED only where the other one would have kept it:
    MAX_BLOCKS of each component are kept. `memory`: the table of ops, which says the types under which a row stands
    there.
    """
    sides = _both(baseline, candidate, blocks, options)
    if not all(map(len, sides)):
        return match.empty_table("memory_blocks")
    types = {(name, shapes): own for name, shapes, own in memory.rows("name", "input_shapes", "input_types")}
    tables, least = [_by_place(own) for own in sides], [_least_kept(own) for own in sides]
    rows = []
    for key in dict.fromkeys(key for table in tables for key in table):
        before, after = (table.get(key) for table in tables)
        row: Row = dict(zip((*BLOCK_KEY, "place"), key, strict=True)) | _status(before, after)
        row["input_types"] = types.get((row["name"], row["input_shapes"]), "")
        row |= _beside(before, after, _SINGLE)
        if not (before and after) and _larger(row) <= least[before is not None].get(row["component"], -1):
            row |= {"status": "", "delta_bytes": None, "diff": None}
        rows.append(row)
    rows.sort(key=lambda row: (-_larger(row), *(row[name] for name in BLOCK_KEY), row["place"]))
    return _table("memory_blocks", rows)


def _both(
    baseline: LoadedSide, candidate: LoadedSide, ask: Callable[[LoadedSide], Columns], options: DiffOptions
) -> list[list[Row]]:
    """Return the rows of both sides; none where one of them has none."""
    if not all(side.may_have_rows(queries.memory_owners) for side in (baseline, candidate)):
        return [[], []]
    return [_asked(baseline, ask, options, options.op_map), _asked(candidate, ask, options, {})]


def _asked(
    side: LoadedSide, ask: Callable[[LoadedSide], Columns], options: DiffOptions, renames: Mapping[str, str]
) -> list[Row]:
    """Return the rows that pass the filters, under the names by which they are matched."""
    table = ask(side).renamed({"op": "name"})
    if renames:
        table = table.having(name=objects([renames.get(name, name) for name in table["name"].tolist()]))
    if options.match == "name":
        table = table.having(input_shapes=objects([""] * len(table)))
    table = matching(matching(table, "name", options.op), "module", options.module)
    names = list(table.arrays)
    rows: list[Row] = [dict(zip(names, row, strict=True)) for row in table.rows(*names)]
    return [{**row, "code_line": code_line(row["call_stack"] or "")} for row in rows]


def _by_key(rows: Sequence[Row]) -> dict[tuple[Any, ...], Row]:
    """Return the rows of each key together: sums, the largest block, the oldest, the line of code with most bytes."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:  # the most bytes first
        own = found.setdefault(tuple(row[name] for name in PEAK_KEY), row)
        if own is row:
            continue
        for name in ("bytes", "calls"):
            own[name] = None if own[name] is None or row[name] is None else own[name] + row[name]
        own["largest_bytes"] = max(own["largest_bytes"], row["largest_bytes"])
        first = min((own["first_ns"], own["first_step"]), (row["first_ns"], row["first_step"]))
        own["first_ns"], own["first_step"] = first
    return found


def _by_place(rows: Sequence[Row]) -> dict[tuple[Any, ...], Row]:
    """Return the rows by key and place among those of it, the largest first."""
    count: dict[tuple[Any, ...], int] = {}
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = tuple(row[name] for name in BLOCK_KEY)
        count[key] = count.get(key, 0) + 1
        found[*key, count[key]] = row
    return found


def _least_kept(rows: Sequence[Row]) -> dict[str, int]:
    """Return the size of the smallest block of each component of which some were not kept."""
    sizes: dict[str, list[int]] = {}
    for row in rows:
        sizes.setdefault(row["component"], []).append(row["bytes"])
    return {component: min(own) for component, own in sizes.items() if len(own) >= MAX_BLOCKS}


def _status(before: Row | None, after: Row | None) -> Row:
    return {"status": BOTH if before and after else REMOVED if before else ADDED}


def _beside(before: Row | None, after: Row | None, names: Sequence[str]) -> Row:
    """Return the numbers of both sides, and the change of the bytes; unknown where a side does not know its own."""
    row: Row = {}
    for side, own in zip(SIDE_NAMES, (before, after), strict=True):
        row |= {f"{side}_{name}": None if own is None else own[name] for name in names}
    unknown = any(own is not None and own["bytes"] is None for own in (before, after))
    sizes = (row["baseline_bytes"], row["candidate_bytes"])
    row["delta_bytes"] = None if unknown else (sizes[1] or 0) - (sizes[0] or 0)
    row["diff"] = None if unknown or not all(sizes) else sizes[1] / sizes[0] - 1
    return row


def _larger(row: Row) -> float:
    return float(max(row["baseline_bytes"] or 0, row["candidate_bytes"] or 0))


def _table(name: str, rows: Sequence[Row]) -> Columns:
    """Return the table `name` of these rows: texts as they are, numbers as float64 with nan for missing."""
    columns: dict[str, Any] = {}
    for column in DIFF_COLUMNS[name]:
        values = [row[column] for row in rows]
        if column in _TEXTS:
            columns[column] = objects([value or "" for value in values] if column != "status" else values)
        else:
            columns[column] = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return Columns(columns)
