"""Memory of two sides: what operators allocated, who owned it at its peak, and the largest single allocations."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from itertools import compress
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import Columns, objects
from tracker.compare import coverage, match
from tracker.compare.filters import matching
from tracker.compare.references import short_names
from tracker.compare.side import GRAIN
from tracker.profile import MAX_BLOCKS, OWNER_SETTING
from tracker.profile.code_lines import code_line
from tracker.results import ADDED, BOTH, ONE_BY_ONE, OP_KEY, REMOVED
from tracker.results.diff_rows import MemoryBlockRow, MemoryPeakRow
from tracker.schema.column_names import (
    ALLOCATOR,
    BYTES,
    CALLS,
    COMPONENT,
    HAS_MEMORY,
    INPUT_SHAPES,
    INPUT_TYPES,
    NAME,
    PEAK_ALLOCATED_BYTES,
    RANK,
    RUN_ID,
    SETTINGS,
    STEP,
)
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
_CURVE: Final = ("run_id", "rank", "component", "time_ns", "allocated_bytes")

PeakKey = tuple[str, str, str, str, str]
"""Component, name, input shapes, module and allocator of a row of `memory_peak`."""
BlockKey = tuple[str, str, str, str, int]
"""Name, input shapes, component and allocator of a row of `memory_blocks`, and its place among those of them."""


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
            table = table.having(name=objects([renames.get(name, name) for name in table[NAME].tolist()]))
        if options.match == "name":
            table = table.having(input_shapes=objects([""] * len(table)))
        tables.append(side.keep_own("memory", matching(table, "name", options.op)))
    if not any(map(len, tables)):
        return match.empty_table("memory"), match.empty_table("memory_details")
    rows, _ = number_tables(tables, OP_KEY[:2])
    types = match.join_distinct_texts(stack_numbered(rows, INPUT_TYPES), INPUT_TYPES)
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
    old = short_names([side.side for side in (baseline, candidate) if None in _rules(side).values()])
    why = f"no more is known of {' and '.join(old)}" if old else "the sides count it to operators by different rules"
    return (
        f"Memory is compared by allocator (aten::empty, ...): {why}. If an older tracker ingested a run, delete it and "
        "ingest its profile again.",
    )


def _rules(side: LoadedSide) -> dict[tuple[int, int], str | None]:
    """(run, rank) -> the rule by which its memory is counted to ops, of the captures that have any."""
    filled = side.filled_tables()
    having = set(compress(filled.rows(RUN_ID, RANK), filled.integers(HAS_MEMORY) == 1))
    return {
        (run_id, rank): json.loads(settings or "{}").get(OWNER_SETTING)
        for run_id, rank, settings in side.captures.rows(RUN_ID, RANK, SETTINGS)
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
    kept = np.array([rank in old for rank in coarse.rows(RUN_ID, RANK)], dtype=bool)
    coarse = coarse.taken(kept)
    names = [RUN_ID, *GRAIN, NAME, COMPONENT, *_ALLOCATION_SUMS]
    parts = (fine.renamed({"allocator": "name"}), coarse.renamed({"op": "name"}))
    table = Columns.stacked([part.only(names) for part in parts])
    empty = objects([""] * len(table))
    return table.having(input_shapes=empty, input_types=empty, allocator=table[NAME])


def _helpers(rows: Sequence[Numbered]) -> dict[str, Any]:
    """Return the allocator of most bytes of each key, and how many others there are."""
    every = stack_numbered(rows, "allocator", "bytes")
    found = match.dominant_texts(every, "allocator", "bytes")
    named = every.rows.texts(ALLOCATOR) != ""
    _, first = number_distinct_rows([every.number[named], every.rows.texts(ALLOCATOR)[named]])
    more: F64 = np.maximum(np.bincount(every.number[named][first], minlength=every.count) - 1.0, 0.0)
    return {"allocator": found, "more_allocators": more}


def chosen_capture(side: LoadedSide) -> tuple[int, int] | None:
    """Return the run and the rank that stand for `side`; None without captures.

    It is the rank with the highest peak, of the run whose peak is in the middle of its runs: owners and blocks are rows
    of single moments, of which there are no means.
    """
    of_runs: dict[int, tuple[int, int]] = {}
    for run_id, rank, peak in side.captures.rows(RUN_ID, RANK, PEAK_ALLOCATED_BYTES):
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
    return found.taken(np.isin(found.integers(STEP), list(side.chosen_steps)))


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
    kept: Counter[tuple[int, int, str]] = Counter(blocks.rows(RUN_ID, RANK, COMPONENT))
    full = {key for key, count in kept.items() if count >= MAX_BLOCKS and key[:2] in captures}
    made: Counter[tuple[int, int, str]] = Counter()
    memory = side.query_with(queries.memory, by=("run", "rank"), in_steps=False) if full else None
    for *key, calls in () if memory is None else memory.rows(RUN_ID, RANK, COMPONENT, CALLS):
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
    return found.taken((found.integers(RUN_ID) == run_id) & (found.integers(RANK) == rank))


class _PeakOwner(Struct, frozen=True):
    """What an op held from one line of code at the peak of a component: a row of `queries.memory_owners`.

    Of an op that a side does not have, nothing but its key is known.
    """

    component: str
    name: str
    input_shapes: str
    module: str
    allocator: str
    bytes: int | None = None
    calls: int | None = None
    largest_bytes: int | None = None
    first_ns: int | None = None
    first_step: int | None = None
    call_stack: str | None = None

    @property
    def key(self) -> PeakKey:
        """By what it is matched with the other side."""
        return (self.component, self.name, self.input_shapes, self.module, self.allocator)

    def join(self, other: _PeakOwner) -> _PeakOwner:
        """Return what two rows of one key held together, from the line of code of the first."""
        oldest = min(self, other, key=lambda owner: (owner.first_ns or 0, owner.first_step or 0))
        largest = [owner.largest_bytes for owner in (self, other) if owner.largest_bytes is not None]
        return replace(
            self,
            bytes=_add_known(self.bytes, other.bytes),
            calls=_add_known(self.calls, other.calls),
            largest_bytes=max(largest, default=None),
            first_ns=oldest.first_ns,
            first_step=oldest.first_step,
        )


def _add_known(one: int | None, other: int | None) -> int | None:
    """Return the sum, None where either is not known."""
    return None if one is None or other is None else one + other


class _Block(Struct, frozen=True):
    """A single allocation: a row of `queries.memory_blocks`. Of one that a side does not have, nothing but its key is
    known.
    """

    name: str
    input_shapes: str
    component: str
    allocator: str
    bytes: int | None = None
    held_ns: int | None = None
    time_ns: int | None = None
    step: int | None = None
    is_released: int | None = None
    call_stack: str | None = None

    @property
    def code_line(self) -> str:
        """From where it was allocated, "" where that is not known."""
        return code_line(self.call_stack or "")


def compare_owners(baseline: LoadedSide, candidate: LoadedSide, options: DiffOptions) -> Columns:
    """Return the `memory_peak` of a Diff; nothing where only one side knows it."""
    tables = _query_both(baseline, candidate, owners, options)
    if not all(map(len, tables)):
        return match.empty_table("memory_peak")
    before, after = (_join_by_key(table.structs(_PeakOwner)) for table in tables)
    rows = [_compare_owner(key, before.get(key), after.get(key)) for key in dict.fromkeys([*before, *after])]
    rows.sort(key=_by_change_and_key)
    return match.make_table(MemoryPeakRow, rows)


def _join_by_key(owners: Iterable[_PeakOwner]) -> dict[PeakKey, _PeakOwner]:
    """Return the rows of each key together; the one with most bytes comes first, and says the line of code."""
    joined: dict[PeakKey, _PeakOwner] = {}
    for owner in owners:
        known = joined.get(owner.key)
        joined[owner.key] = owner if known is None else known.join(owner)
    return joined


def _compare_owner(key: PeakKey, before: _PeakOwner | None, after: _PeakOwner | None) -> MemoryPeakRow:
    component, name, input_shapes, module, allocator = key
    old, new = before or _PeakOwner(*key), after or _PeakOwner(*key)
    larger = max((owner for owner in (before, after) if owner is not None), key=lambda owner: owner.bytes or 0)
    delta, diff = _compare_bytes(before, after)
    return MemoryPeakRow(
        component=component,
        name=name,
        input_shapes=input_shapes,
        module=module,
        allocator=allocator,
        status=_find_status(before, after),
        baseline_bytes=old.bytes,
        candidate_bytes=new.bytes,
        baseline_calls=old.calls,
        candidate_calls=new.calls,
        baseline_largest_bytes=old.largest_bytes,
        candidate_largest_bytes=new.largest_bytes,
        baseline_first_ns=old.first_ns,
        candidate_first_ns=new.first_ns,
        baseline_first_step=old.first_step,
        candidate_first_step=new.first_step,
        delta_bytes=delta,
        diff=diff,
        code_line=code_line(larger.call_stack or ""),
        call_stack=larger.call_stack or "",
    )


def _by_change_and_key(row: MemoryPeakRow) -> tuple[float, float, str, str, str, str, str]:
    """Order rows: the largest change first, then the larger row, then by what tells rows from each other."""
    key = (row.component, row.name, row.input_shapes, row.module, row.allocator)
    return (-abs(row.delta_bytes or 0), -row.larger_bytes, *key)


def _find_status(before: _PeakOwner | _Block | None, after: _PeakOwner | _Block | None) -> str:
    if before is None:
        return ADDED
    return REMOVED if after is None else BOTH


def _compare_bytes(
    before: _PeakOwner | _Block | None, after: _PeakOwner | _Block | None
) -> tuple[float | None, float | None]:
    """Return the change of the bytes, and as a ratio, which says nothing without bytes on a side; None where a side
    does not know its own.
    """
    sizes = [own.bytes for own in (before, after) if own is not None]
    if None in sizes:
        return None, None
    old, new = (0 if own is None else own.bytes or 0 for own in (before, after))
    return new - old, new / old - 1 if old and new else None


def compare_totals(baseline: LoadedSide, candidate: LoadedSide) -> Columns:
    """Return the `memory_peak_totals` of a Diff: the peaks whose owners `memory_peak` has, the largest first."""
    sides = [owners(side) for side in (baseline, candidate) if side.may_have_rows(queries.memory_owners)]
    if len(sides) < 2 or not all(map(len, sides)):
        return match.empty_table("memory_peak_totals")
    rows, keys = number_tables([add_up_rows(own, ["component"], {"bytes": "sum"}) for own in sides], ["component"])
    numbers = []
    for own in rows:
        sizes = np.full(own.count, np.nan)
        sizes[own.number] = own.rows.reals(BYTES)
        numbers.append({"bytes": sizes})
    joined = match.add_difference(match.match_rows(keys, rows, numbers), "bytes", unit="bytes")
    return match.finish_table("memory_peak_totals", joined)


def compare_blocks(baseline: LoadedSide, candidate: LoadedSide, options: DiffOptions, memory: Columns) -> Columns:
    """Return the `memory_blocks` of a Diff: the largest of an op against the largest of it, the second against the
    second (`place`). What one side has alone is ADDED or REMOVED only where the other one would have kept it:
    MAX_BLOCKS of each component are kept. `memory`: the table of ops, which says the types under which a row stands
    there.
    """
    tables = _query_both(baseline, candidate, blocks, options)
    if not all(map(len, tables)):
        return match.empty_table("memory_blocks")
    types = {(name, shapes): own for name, shapes, own in memory.rows(NAME, INPUT_SHAPES, INPUT_TYPES)}
    (before, least_before), (after, least_after) = (_place_blocks(list(table.structs(_Block))) for table in tables)
    rows = []
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key), after.get(key)
        row = _compare_block(key, old, new, types.get(key[:2], ""))
        least_of_other = least_before if old is None else least_after
        if _find_status(old, new) != BOTH and row.larger_bytes <= least_of_other.get(row.component, -1):
            # the other side may have one as large, and did not keep it
            row = replace(row, status="", delta_bytes=None, diff=None)
        rows.append(row)
    rows.sort(key=_by_size_and_key)
    return match.make_table(MemoryBlockRow, rows)


def _place_blocks(blocks: Sequence[_Block]) -> tuple[dict[BlockKey, _Block], dict[str, int]]:
    """Return blocks by key and place, the largest first; and the size of the smallest block of each component that
    has more than are kept.
    """
    count: Counter[tuple[str, str, str, str]] = Counter()
    placed: dict[BlockKey, _Block] = {}
    sizes: dict[str, list[int]] = {}
    for block in blocks:
        key = (block.name, block.input_shapes, block.component, block.allocator)
        count[key] += 1
        placed[*key, count[key]] = block
        sizes.setdefault(block.component, []).append(block.bytes or 0)
    return placed, {component: min(own) for component, own in sizes.items() if len(own) >= MAX_BLOCKS}


def _compare_block(key: BlockKey, before: _Block | None, after: _Block | None, types: str) -> MemoryBlockRow:
    name, input_shapes, component, allocator, place = key
    old, new = before or _Block(*key[:4]), after or _Block(*key[:4])
    delta, diff = _compare_bytes(before, after)
    return MemoryBlockRow(
        name=name,
        input_shapes=input_shapes,
        input_types=types or "",
        component=component,
        allocator=allocator,
        place=place,
        status=_find_status(before, after),
        baseline_bytes=old.bytes,
        candidate_bytes=new.bytes,
        baseline_held_ns=old.held_ns,
        candidate_held_ns=new.held_ns,
        baseline_time_ns=old.time_ns,
        candidate_time_ns=new.time_ns,
        baseline_step=old.step,
        candidate_step=new.step,
        baseline_is_released=old.is_released,
        candidate_is_released=new.is_released,
        delta_bytes=delta,
        diff=diff,
        baseline_code_line=old.code_line,
        candidate_code_line=new.code_line,
        baseline_call_stack=old.call_stack or "",
        candidate_call_stack=new.call_stack or "",
    )


def _by_size_and_key(row: MemoryBlockRow) -> tuple[float, str, str, str, str, float]:
    """Order rows: the largest first, then by what tells rows from each other."""
    return (-row.larger_bytes, row.name, row.input_shapes, row.component, row.allocator, row.place)


def _query_both(
    baseline: LoadedSide, candidate: LoadedSide, ask: Callable[[LoadedSide], Columns], options: DiffOptions
) -> list[Columns]:
    """Return what `ask` says of both sides, those of the baseline by ops of the candidate's names, as far as it passes
    the filters; nothing where one of them has none.
    """
    sides = (baseline, candidate)
    if not all(side.may_have_rows(queries.memory_owners) for side in sides):
        return [Columns({}), Columns({})]
    tables = []
    for side, renames in zip(sides, (options.op_map, {}), strict=True):
        table = ask(side).renamed({"op": "name"})
        if renames:
            table = table.having(name=objects([renames.get(name, name) for name in table[NAME].tolist()]))
        if options.match == "name":
            table = table.having(input_shapes=objects([""] * len(table)))
        tables.append(matching(matching(table, "name", options.op), "module", options.module))
    return tables
