"""The tables of a diff whose rows are matched by a key: each declared once, and one function that makes them.

A row of such a table is a key with the numbers of both sides. Its key and numbers are declared in
`tracker.results.columns`, its words in `tracker.results.sections`; here stands where its rows come from. Of a table
whose rows are those of a level as they are, nothing stands here. Tables that are made in another way have modules of
their own: overall, operators, memory, kernels (metrics), collectives (links), counters, environment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from tracker.columns import Column, Columns, objects
from tracker.compare import coverage, match
from tracker.compare.collectives import (
    Pairing,
    calls_of,
    name_task_waits,
    one_split,
    pair_collectives,
    rename_to_pairs,
    roles_by_size,
    with_roles,
)
from tracker.compare.filters import matching
from tracker.compare.kernels import pair_cores, pair_planes, with_canonical_names
from tracker.compare.operators import own_time
from tracker.results import BOTH, COMMUNICATION_KEY
from tracker.results.columns import AVERAGE, MATCHED_COLUMNS, SHORTEST
from tracker.schema.column_names import (
    AVERAGE_NS,
    CALLS,
    CATEGORY,
    EXPOSED_NS,
    GROUP_ROLE,
    GROUP_SIZE,
    IDLE_NS,
    INPUT_SHAPES,
    MAX_NS,
    MIN_NS,
    MODULE,
    NAME,
    NS,
    OP,
    PHASE,
    SIZE_CLASS_BYTES,
    SPLIT_BY,
    TOTAL_NS,
    TYPE,
    VENDOR,
)
from tracker.schema.series import API_NAMES, MODULE_NAMES, NAMES
from tracker.store import queries
from tracker.table import Numbered, number_distinct_rows, number_tables, rank_values, stack_numbered

if TYPE_CHECKING:
    from tracker.columns import F64, Texts
    from tracker.compare.side import LoadedSide
    from tracker.results import DiffOptions
    from tracker.results.columns import DiffTable

Sides = tuple["LoadedSide", "LoadedSide"]

_UNKNOWN_SIZES: Final = (GROUP_SIZE, SIZE_CLASS_BYTES)
_PARTS_OF_COLLECTIVES: Final = MappingProxyType(
    {
        "wait_ns": "ns",
        "transit_ns": "ns",
        "synchronization_ns": "ns",
        "idle_ns": "ns",
        "exposed_wait_ns": EXPOSED_NS,
    }
)
"""Parts of the time of collectives, and of which: no part of all of it where one of them does not say it."""


class MatchedTable(Struct, frozen=True):
    """How a table of a diff is made.

    `table`: its name in `Diff.tables`, and in `MATCHED_COLUMNS`.
    `question`: about a side; where both sides have no rows of it, the table has none.
    `needs`: what both sides must report, else nothing is compared: a table of `coverage`; "" for nothing.
    `rows`: from both sides to their rows, with the time `ns`.
    `parts`: a sum -> the one that it is a part of.
    `complete`: what else the matched rows say.
    `keeps_small`: --min-us leaves its rows.
    `key_rests_on`: how sides must be recorded alike (words of `schema.series`) for a key of one side to be ADDED or
    REMOVED; else its row is UNMATCHED.
    """

    table: str
    question: queries.Question
    needs: str
    rows: Callable[[Sides, DiffOptions], Sequence[Columns]]
    parts: Mapping[str, str] = MappingProxyType({})
    complete: Callable[[Sides, Sequence[Numbered], Columns], Columns] | None = None
    keeps_small: bool = False
    key_rests_on: frozenset[str] = frozenset({NAMES})

    @property
    def columns(self) -> DiffTable:
        """Its key and its numbers."""
        return MATCHED_COLUMNS[self.table]


def compare_table(declared: MatchedTable, baseline: LoadedSide, candidate: LoadedSide, options: DiffOptions) -> Columns:
    """Return the rows of a declared table of both sides, the largest change first.

    Columns: those of `DIFF_COLUMNS[declared.table]`. Numbers are per step, nan where a side does not state them.
    """
    sides: Sides = (baseline, candidate)
    if declared.needs:
        sides = coverage.blank_unless_both(baseline, candidate, declared.needs)
    if all(side.is_empty(declared.question) for side in sides):
        return match.empty_table(declared.table)
    tables = declared.rows(sides, options)
    if not any(map(len, tables)):
        return match.empty_table(declared.table)
    columns = declared.columns
    tables = [side.keep_own(declared.table, table) for side, table in zip(sides, tables, strict=True)]
    rows, keys = number_tables(tables, columns.key)
    numbers = []
    for side, own_rows in zip(sides, rows, strict=True):
        of_side = match.reduce_side(side, own_rows, columns.sums, list(declared.parts), declared.parts)
        if SHORTEST in columns.measures:
            of_side |= match.find_extremes(own_rows, MIN_NS, MAX_NS)
        numbers.append(of_side)
    matched = match.match_rows(keys, rows, numbers)
    if AVERAGE in columns.measures:
        matched = match.add_average(matched, NS, CALLS, AVERAGE_NS)
    if declared.complete is not None:
        matched = declared.complete(sides, rows, matched)
    changed = match.add_difference(matched, "ns")
    if not declared.keeps_small:
        changed = match.keep_large(changed, "ns", options.minimum_ns)
    return _without_stand_ins(match.finish_table(declared.table, changed))


def _without_stand_ins(table: Columns) -> Columns:
    """Return `table` with sizes that were -1, to be keys, as missing again."""
    sizes = {}
    for name in _UNKNOWN_SIZES:
        if name in table:
            size = table.integers(name)
            sizes[name] = Column(size, size < 0)
    return table.having(**sizes) if sizes else table


def _kernel_rows(sides: Sides, options: DiffOptions) -> list[Columns]:
    return pair_cores(_named_kernels(sides, options), [NAME, INPUT_SHAPES, CATEGORY])


def _named_kernels(sides: Sides, options: DiffOptions) -> list[Columns]:
    """Return the kernels of both sides under canonical names, those of the baseline by ops of the candidate's names."""
    found = []
    for side, op_map in zip(sides, (options.op_map, {}), strict=True):
        named = with_canonical_names(side.query(queries.kernels), op_map)
        found.append(matching(named, "op", options.op))
    return found


def _add_launching_ops(sides: Sides, rows: Sequence[Numbered], matched: Columns) -> Columns:
    """Return kernels with the op that explains the change, how many others launch it, and its type; `why` is empty."""
    op, more_ops = _launching_ops(sides, rows)
    kinds = match.dominant_texts(stack_numbered(rows, "type", "ns"), "type", "ns")
    return matched.having(op=op, more_ops=more_ops, type=kinds, why=objects([""] * len(matched)))


def _launching_ops(sides: Sides, rows: Sequence[Numbered]) -> tuple[Texts, F64]:
    """Return for each kernel the op whose time in it changed most, and how many others launch it.

    Of ops with equal changes it is the one with more time (first on the candidate's side); "" for none.
    """
    every = stack_numbered(rows, "op")
    ops = every.rows.texts(OP)
    place, first = number_distinct_rows([every.number, ops])
    numbers = np.split(place, [len(rows[0].number)])
    times = []
    for side, own_rows, number in zip(sides, rows, numbers, strict=True):
        of_ops = Numbered(own_rows.rows, number, len(first))
        times.append(np.nan_to_num(match.reduce_side(side, of_ops, ["ns"])[NS]))
    before, after = times
    kernel, names = every.number[first], ops[first]
    change = np.round(np.abs(after - before), 6)
    order = np.lexsort([-rank_values(names), before, after, change, names != "", kernel])
    found = objects([""] * every.count)
    found[kernel[order]] = names[order]  # the last one stays
    named = np.bincount(kernel[names != ""], minlength=every.count)
    return found, np.maximum(named - 1.0, 0.0)


def _kernel_type_rows(sides: Sides, options: DiffOptions) -> list[Columns]:
    """Return the kernels whose type an NPU's profiler names, none of GPUs or of Ascend's Level0.

    Collectives are left out, as in op_statistic.csv: `communication` has them.
    """
    typed = []
    for table in _named_kernels(sides, options):
        typed.append(table.taken((table[TYPE] != "") & (table[CATEGORY] != "communication")))
    return pair_cores(typed, ["type"]) if any(map(len, typed)) else typed


def _collective_rows(sides: Sides, options: DiffOptions) -> list[Columns]:
    tables = _exchanged(sides, queries.communication, options)
    names = pairing_of(*sides, options).names
    return [
        one_split(rename_to_pairs(table, of_side), COMMUNICATION_KEY)
        for table, of_side in zip(tables, names, strict=True)
    ]


def _task_rows(sides: Sides, options: DiffOptions) -> list[Columns]:
    tables = _exchanged(sides, queries.communication_tasks, options)
    names = pairing_of(*sides, options).names
    paired = [rename_to_pairs(table, of_side) for table, of_side in zip(tables, names, strict=True)]
    return pair_planes(paired, [*COMMUNICATION_KEY, "name"])


def _exchanged(sides: Sides, question: queries.Question, options: DiffOptions) -> list[Columns]:
    """Return the chosen collectives or their tasks of both sides, with the roles that groups without one are given."""
    found = []
    for side, roles in zip(sides, roles_by_size(*sides), strict=True):
        table = side.query(question)
        if question is queries.communication:
            table = name_task_waits(side, table)
        table = with_roles(table, roles)
        sizes = {name: table.integers(name, missing=-1) for name in _UNKNOWN_SIZES}
        table = table.having(**sizes, ns=table[TOTAL_NS])
        found.append(matching(matching(table, "kind", options.kind), GROUP_ROLE, options.group))
    return found


def pairing_of(baseline: LoadedSide, candidate: LoadedSide, options: DiffOptions) -> Pairing:
    """Return how the collectives of two sides are paired in `communication`; of none where a side has no collectives.

    Made once for the two, for several tables and notes rest on it.
    """
    sides = coverage.blank_unless_both(baseline, candidate, coverage.COLLECTIVES)
    key = ("pairing of collectives", sides[0].side, options.kind, options.group, options.match)
    return sides[1].remember(key, lambda: _pair(sides, options))


def _pair(sides: Sides, options: DiffOptions) -> Pairing:
    tables = _exchanged(sides, queries.communication, options)
    calls = [calls_of(side, table) for side, table in zip(sides, tables, strict=True)]
    vendors = [{*side.runs.listed(VENDOR)} - {None, ""} for side in sides]
    has_other_vendor = bool(vendors[0] and vendors[1]) and not vendors[0] & vendors[1]
    return pair_collectives(*calls, by_name=options.match == "name", other_vendor=has_other_vendor)


def _add_sources_of_split(sides: Sides, rows: Sequence[Numbered], matched: Columns) -> Columns:
    """Return collectives with where their transit and wait come from on either side, None where they are unknown."""
    words = {}
    for name, own_rows in zip(("baseline", "candidate"), rows, strict=True):
        split_by = match.dominant_texts(own_rows, SPLIT_BY, NS)
        split_by[split_by == ""] = None
        words[f"{name}_split_by"] = split_by
    return matched.having(**words)


def _module_rows(sides: Sides, options: DiffOptions) -> list[Columns]:
    """Return the ops of modules and phases by their own time; those outside all modules and phases are left out."""
    found = []
    for side in sides:
        ops = side.query(queries.ops)
        placed = ops.taken((ops[MODULE] != "") | (ops[PHASE] != ""))
        chosen = matching(placed, "module", options.module)
        found.append(chosen.having(ns=chosen[own_time(side)]))
    return found


def _api_rows(sides: Sides, options: DiffOptions) -> list[Columns]:
    return [side.query(queries.api).renamed({TOTAL_NS: "ns"}) for side in sides]


def _idle_rows(sides: Sides, options: DiffOptions) -> list[Columns]:
    """Return why the devices idle; nothing where a side that idles does not say it, or by other rules than another."""
    if not all(_says_why_it_idles(side) for side in sides) or len(coverage.find_idle_rules(sides)) > 1:
        return []
    return [side.query(queries.idle) for side in sides]


def _says_why_it_idles(side: LoadedSide) -> bool:
    if not side.is_empty(queries.idle):
        return True
    return bool(side.steps.known(IDLE_NS).any()) and not side.steps.integers(IDLE_NS).any()


def _fill_idle(sides: Sides, rows: Sequence[Numbered], matched: Columns) -> Columns:
    """Return causes of idle time with 0 where a side has none of it: its rows add up to all of its idle time."""
    # the rows add up to all idle time: what has no row takes none
    names = [f"{side}_{number}" for side in ("baseline", "candidate") for number in ("ns", "gaps")]
    numbers = {name: np.nan_to_num(matched[name]) for name in names}
    return matched.having(status=objects([BOTH] * len(matched)), **numbers)


KERNELS: Final = MatchedTable(
    table="kernels",
    question=queries.kernels,
    needs=coverage.KERNELS,
    rows=_kernel_rows,
    complete=_add_launching_ops,
)
KERNEL_TYPES: Final = MatchedTable(
    table="kernel_types",
    question=queries.kernels,
    needs=coverage.KERNELS,
    rows=_kernel_type_rows,
)
COMMUNICATION: Final = MatchedTable(
    table="communication",
    question=queries.communication,
    needs=coverage.COLLECTIVES,
    rows=_collective_rows,
    parts=_PARTS_OF_COLLECTIVES,
    complete=_add_sources_of_split,
)
COMMUNICATION_DETAILS: Final = MatchedTable(
    table="communication_details",
    question=queries.communication_tasks,
    needs=coverage.COLLECTIVES,
    rows=_task_rows,
    keeps_small=True,
)
MODULES: Final = MatchedTable(
    table="modules",
    question=queries.ops,
    needs=coverage.OPS,
    rows=_module_rows,
    key_rests_on=frozenset({NAMES, MODULE_NAMES}),
)
API: Final = MatchedTable(
    table="api",
    question=queries.api,
    needs=coverage.API,
    rows=_api_rows,
    key_rests_on=frozenset({API_NAMES}),
)
IDLE: Final = MatchedTable(
    table="idle",
    question=queries.idle,
    needs="",
    rows=_idle_rows,
    key_rests_on=frozenset(),
    complete=_fill_idle,
)


def _table_of_level(table: str) -> MatchedTable:
    """Return how a table is made whose rows are those of a level as they are."""
    question = queries.of_level(MATCHED_COLUMNS[table].level)

    def list_rows(sides: Sides, options: DiffOptions) -> list[Columns]:
        return [side.query(question).renamed({TOTAL_NS: "ns"}) for side in sides]

    return MatchedTable(table=table, question=question, needs="", rows=list_rows)


MATCHED_TABLES: Final = (
    KERNELS, KERNEL_TYPES, COMMUNICATION, COMMUNICATION_DETAILS, MODULES, API, IDLE,
    *(_table_of_level(name) for name, columns in MATCHED_COLUMNS.items() if columns.level),
)  # fmt: skip
