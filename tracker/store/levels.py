"""The SQL that sums and lists the rows of a level, made from the declarations in `schema.levels`.

A statement groups by numbers and looks up the texts of the few rows that are left: long names are slow to group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from textwrap import indent
from typing import Any, Final, TypedDict

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import TextClause

from tracker.columns import Columns
from tracker.schema.column_names import SPLIT_BY, SUM_SQUARES_NS2
from tracker.schema.declarations import Column, Level
from tracker.schema.levels import LEVEL, OP_KEY, PROFILER_ALONE, RANKS_OR_PROFILER
from tracker.store.answers import OfKind, Steps, dtype, parameter_list, whole
from tracker.store.failures import CHECK_TELLS, Damaged
from tracker.store.sql import question, select_columns

SUM: Final = "CASE WHEN COUNT(d.{0}) = COUNT(*) THEN CAST(SUM(d.{0}) AS BIGINT) END"
REAL_SUM: Final = "CASE WHEN COUNT(d.{0}) = COUNT(*) THEN SUM(d.{0}) END"
"""Missing unless it is known of every row."""
LEAST: Final = "MIN(d.{0})"
MOST: Final = "MAX(d.{0})"
MEAN_BY_CALLS: Final = "SUM(d.{0} * d.calls) / NULLIF(SUM(CASE WHEN d.{0} IS NOT NULL THEN d.calls END), 0)"
MEAN_BY_BYTES: Final = """COALESCE(
        SUM(d.{0} * d.bytes) / NULLIF(SUM(CASE WHEN d.{0} IS NOT NULL THEN d.bytes END), 0),
        AVG(d.{0})
    )"""
"""Means over the rows that state it."""

KNOWN_SUM: Final = "CAST(SUM(d.{0}) AS BIGINT)"
"""Sum of those rows that state a number."""

_HAS_ROWS: Final = """CASE
        WHEN
            EXISTS (
                SELECT 1
                FROM {0} AS d
                WHERE d.run_id IN :run_ids AND d.run_id = c.run_id AND d.rank = c.rank
            )
            THEN 1
        ELSE 0
    END"""
_JOIN_TEXT: Final = "\nINNER JOIN detail_text AS {0} ON {1} = {0}.id"
_JOIN_GROUP: Final = "\nINNER JOIN process_group AS g ON d.process_group_id = g.id"
_JOIN_OP: Final = "\nINNER JOIN op_key AS k ON d.op_key_id = k.id"

FILLED: Final[Mapping[str, str]] = {
    "communication": "has_communication", "memory": "has_memory", "api": "has_api", "idle": "has_idle",
    "kernel_metric": "has_metrics", "memory_curve": "has_curve", "counter": "has_counters",
}  # fmt: skip
"""Level -> the column that says whether a rank has rows of it."""


class LevelQuery(Struct, frozen=True, eq=False):
    """What a database is asked of a level: rows of `table`, called d.

    `keys`: column of the answer -> what tells its rows apart; an `_id` under another name is the number of a text.
    `numbers`: column -> how it adds up, {0} is the column.
    `joins`: tables that have keys.
    `largest`: the number by which the rows are ordered, the unknown last, and then, or without it, by their keys.
    `step`: the column with the number of the step, "" where there is none.
    """

    table: str
    keys: dict[str, str]
    numbers: dict[str, str]
    joins: str = ""
    largest: str = ""
    step: str = "d.step"

    @property
    def grain(self) -> dict[str, str]:
        """What the rows can be kept apart by; by runs they always are."""
        steps = {"step": self.step} if self.step else {}
        return {"run_id": "d.run_id", "stage": "COALESCE(c.stage, -1)", "rank": "d.rank", **steps}


_IS_OF_KIND: Final = """EXISTS (
        SELECT 1
        FROM step AS n
        WHERE n.run_id = d.run_id AND n.rank = d.rank AND n.step = {0} AND n.kind = :step_kind
    )"""


class Filters(TypedDict, total=False):
    """The part of the runs that a question is about, and how fine its answer is; all optional.

    `by`: the grain, any of `stage`, `rank`, `step`; runs are always kept apart. Grain columns come first.
    `ranks`, `steps`: only these, None for all. `in_steps`: leave out what lies outside all step markers.
    `numbers`: only these of the level, None for all; each is a number for each rank and step.
    """

    by: Sequence[str]
    ranks: Sequence[int] | None
    steps: Steps
    in_steps: bool
    numbers: tuple[str, ...] | None


@cache
def with_numbers(level: LevelQuery, numbers: tuple[str, ...] | None) -> LevelQuery:
    """Return the query of a level with these of its numbers alone, None for all."""
    if numbers is None:
        return level
    return replace(level, numbers={number: level.numbers[number] for number in numbers})


def build_statement(
    level: LevelQuery, run_ids: Sequence[int], *, by: Sequence[str] = (), ranks: Sequence[int] | None = None,
    steps: Steps = None, in_steps: bool = False, numbers: tuple[str, ...] | None = None, summed: bool = True,
) -> tuple[TextClause, dict[str, Any]]:  # fmt: skip
    """Return the statement for this part of a level, and its parameters.

    `summed`: one row for each of the grain; else row by row. ValueError for a grain that the level does not have.
    """
    unknown = set(by) - {"run", *level.grain}
    if unknown:
        raise ValueError(f"no such grain: {', '.join(sorted(unknown))}")
    level = with_numbers(level, numbers)
    is_kind = isinstance(steps, OfKind)
    chosen = {
        "ranks": ranks is not None,
        "steps": steps is not None and not is_kind,
        "in_steps": in_steps,
        "of_kind": is_kind,
    }
    statement = _build_sums(level, tuple(by), **chosen) if summed else _build_rows(level, **chosen)
    parameters = {"run_ids": whole(run_ids), "ranks": parameter_list(ranks)}
    if isinstance(steps, OfKind):
        return statement, parameters | {"step_kind": steps.step_kind}
    return statement, parameters | {"steps": parameter_list(steps)}


@cache
def _build_sums(
    level: LevelQuery, by: tuple[str, ...], *, ranks: bool, steps: bool, in_steps: bool, of_kind: bool
) -> TextClause:
    """Return the statement that sums up the rows of runs (`:run_ids`), for each of the grain `by`.

    NULL is missing; of a level without texts stage -1 is, too.

    `ranks`, `steps`: only these (`:ranks`, `:steps`); `in_steps`: without what lies outside all steps; `of_kind`: only
    steps of one kind (`:step_kind`).
    """
    grain = {name: column for name, column in level.grain.items() if name in ("run_id", *by)}
    groups = grain | level.keys
    selected = groups | {name: how.format(name) for name, how in level.numbers.items()}
    if level.largest:
        selected["largest"] = f"COALESCE(SUM(d.{level.largest}), -1)"
    chosen = {"ranks": ranks, "steps": steps, "in_steps": in_steps, "of_kind": of_kind}
    body = _select(level, selected, stages="stage" in by, **chosen)
    body += f"\nGROUP BY{_listed(groups.values())}"
    texts = {name for name, key in level.keys.items() if key.endswith("_id") and not name.endswith("_id")}
    if not texts:
        # ops and kernels are put in order once their texts are known; Postgres gives groups in no order of its own
        has_own_order = not any(name.endswith("_id") for name in level.keys)
        return question(f"{body}\nORDER BY{_listed(groups.values())}" if has_own_order else body)
    columns = {name: f"t_{name}.text" if name in texts else f"s.{name}" for name in (*groups, *level.numbers)}
    numbers = ["stage", *(name for name in level.keys if dtype(name) != "string")]
    shown = columns | {name: f"NULLIF(s.{name}, -1)" for name in numbers if name in columns}
    order = ["s.largest DESC"] * bool(level.largest) + [columns[name] for name in (*level.keys, *grain)]
    # an inner join would leave out what names no text; see `check_texts`
    joins = "".join(f"\nLEFT JOIN detail_text AS t_{name} ON s.{name} = t_{name}.id" for name in sorted(texts))
    return question(
        f"WITH summed AS (\n{indent(body, '    ')}\n)\n\n"
        f"SELECT{select_columns(shown)}\nFROM summed AS s{joins}\nORDER BY{_listed(order)}"
    )


def check_texts(level: LevelQuery, rows: Columns) -> Columns:
    """Return the rows of a level, as they are; Damaged where a key of one is the number of no text."""
    for name, key in level.keys.items():
        if key.endswith("_id") and not name.endswith("_id") and None in rows.listed(name):
            raise Damaged(f"texts of {level.table}", CHECK_TELLS)
    return rows


def _listed(columns: Iterable[str]) -> str:
    return ",".join(f"\n    {column}" for column in columns)


@cache
def _build_rows(level: LevelQuery, *, ranks: bool, steps: bool, in_steps: bool, of_kind: bool) -> TextClause:
    """Return the statement that gives the rows as they are, with run, rank and step; parameters as of `_build_sums`."""
    columns = {name: column for name, column in level.grain.items() if name != "stage"} | level.keys
    columns |= {name: f"d.{name}" for name in level.numbers}
    return question(_select(level, columns, ranks=ranks, steps=steps, in_steps=in_steps, of_kind=of_kind))


def _select(
    level: LevelQuery, columns: Mapping[str, str], *, ranks: bool, steps: bool, in_steps: bool, of_kind: bool,
    stages: bool = False,
) -> str:  # fmt: skip
    joins = level.joins
    if stages:
        joins += "\nINNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank"
    chosen = {"d.run_id IN :run_ids": True, "d.rank IN :ranks": ranks}
    chosen |= {f"{level.step} IN :steps": steps, f"{level.step} >= 0": in_steps}
    chosen |= {_IS_OF_KIND.format(level.step): of_kind}
    where = "\n    AND ".join(condition for condition, is_asked in chosen.items() if is_asked)
    return f"SELECT{select_columns(columns)}\nFROM {level.table} AS d{joins}\nWHERE\n    {where}"


_ADD_UP: Final = {
    "sum": SUM, "real_sum": REAL_SUM, "known": KNOWN_SUM, "min": LEAST, "max": MOST, "mean_by_calls": MEAN_BY_CALLS,
    "mean_by_bytes": MEAN_BY_BYTES,
}  # fmt: skip
"""Word of a declaration -> SQL."""

_OF_RANKS: Final = """CASE
        WHEN COUNT(d.ranks_{0}) = COUNT(*) THEN CAST(SUM(d.ranks_{0}) AS BIGINT)
        WHEN COUNT(d.{0}) = COUNT(*) THEN CAST(SUM(d.{0}) AS BIGINT)
    END"""
_OF_PROFILER: Final = """CASE
        WHEN COUNT(d.ranks_wait_ns) < COUNT(*) AND COUNT(d.{0}) = COUNT(*) THEN CAST(SUM(d.{0}) AS BIGINT)
    END"""
_SPLIT: Final = dict.fromkeys(RANKS_OR_PROFILER, _OF_RANKS) | dict.fromkeys(PROFILER_ALONE, _OF_PROFILER)
"""The parts of collectives, for which no word of a declaration stands: what all ranks of the group report where each
row has it, which know no other part; else what the profiler states.
"""
_SPLIT_BY: Final = """CASE
        WHEN COUNT(d.ranks_wait_ns) = COUNT(*) THEN 'ranks'
        WHEN COUNT(d.wait_ns) = COUNT(*) OR COUNT(d.transit_ns) = COUNT(*) THEN 'profiler'
    END"""
"""Whose split it is; NULL where neither is known."""

_TEXTS_OF: Final = {
    "op_key": {"op": "k.name_id", "input_shapes": "k.input_shapes_id", "input_types": "k.input_types_id"},
    "kernel_key": {name: f"k.{name}" for name in ("name", "canonical_name", "type", "core_type", "input_shapes")},
}
"""Kind of a reference -> the texts of its key that an answer has."""
_BY_NUMBER: Final = frozenset({"op", "kernel"})
"""Levels whose rows keep the numbers of their keys: thousands of long texts are slow to group. See
`queries.ops_and_kernels`.
"""


@cache
def query_of(name: str) -> LevelQuery:
    """Return the query of the level called `name`."""
    level = LEVEL[name]
    columns = level.answer_columns
    # (column that may tell rows apart, the table that has it)
    candidates = [(column, "d") for column in columns]
    joins = ""
    step = "d.step" if any(column.name == "step" for column in columns) else ""
    if level.inside:
        # the rows of a part have the keys and the step of the row around them, m
        around = LEVEL[level.inside]
        joins = f"\nINNER JOIN {around.name} AS m\n    ON\n        d.run_id = m.run_id\n        AND d.rank = m.rank"
        joins += f"\n        AND d.{around.name} = m.ordinal"
        step = "m.step"
        candidates = [(column, "m") for column in around.columns]
        candidates += [(column, "d") for column in columns if column.kind != around.name]
    keys: dict[str, str] = {}
    for column, row in candidates:
        if column.adds or column.name == "step":
            continue
        keys |= _keys_of(column, row, level.name)
        joins += _join_of(column, row, level.name)
    numbers = {}
    for column in columns:
        if column.adds and not column.made_by_store:
            numbers[column.name] = _ADD_UP[column.adds]
    if level.name == "communication":
        # no answer has the spread of collectives
        del numbers[SUM_SQUARES_NS2]
        numbers |= _SPLIT
        numbers[SPLIT_BY] = _SPLIT_BY
    return LevelQuery(level.name, keys, numbers, joins, level.largest, step)


def _keys_of(column: Column, row: str, level: str) -> dict[str, str]:
    """Return what a column of the table called `row` tells rows apart by: name in the answer -> SQL."""
    if column.kind == "group":
        return {"group_role": "g.role", "group_size": "g.size"}
    if level in _BY_NUMBER:
        return {column.stored_name: f"{row}.{column.stored_name}"}
    if column.kind in ("op_key", "kernel_key"):
        return _TEXTS_OF[column.kind]
    return {column.answer or column.name: f"{row}.{column.stored_name}"}


def _join_of(column: Column, row: str, level: str) -> str:
    """Return the join that the keys of a column need."""
    if column.kind == "group":
        return f"\nINNER JOIN process_group AS g ON {row}.process_group_id = g.id"
    if column.kind in ("op_key", "kernel_key") and level not in _BY_NUMBER:
        return f"\nINNER JOIN {column.kind} AS k ON {row}.{column.stored_name} = k.id"
    return ""


@cache
def list_rows_of_run(level: str, columns: tuple[str, ...]) -> TextClause:
    """Return the statement that lists the rows of one run (`:run_id`) by rank and key: rank, then these columns.

    An op and a kernel are numbers, in columns that end in `_id`; other texts are texts.
    """
    declared = LEVEL[level]
    shown, joins = _columns_of(declared, columns, texts_of_op=False)
    order = ["d.rank", *(f"d.{name}" for name in declared.stored_key)]
    select = select_columns({"rank": "d.rank", **shown})
    return question(f"SELECT{select}\nFROM {level} AS d{joins}\nWHERE d.run_id = :run_id\nORDER BY {', '.join(order)}")


@cache
def list_rows(level: str, columns: tuple[str, ...], order: tuple[str, ...] = (), *, ranks: bool = False) -> TextClause:
    """Return the statement that lists the rows of runs (`:run_ids`): run_id, rank, then these columns.

    An op is its texts, a call stack the number of it in `call_stack_id`. The rows come by run, rank, `order` (SQL of
    columns) and key. `ranks`: only those in `:ranks`.
    """
    declared = LEVEL[level]
    shown, joins = _columns_of(declared, columns, texts_of_op=True)
    by = ["d.run_id", "d.rank", *order, *(f"d.{name}" for name in declared.stored_key)]
    select = select_columns({"run_id": "d.run_id", "rank": "d.rank", **shown})
    chosen = "\nWHERE d.run_id IN :run_ids"
    if ranks:
        chosen = "\nWHERE\n    d.run_id IN :run_ids\n    AND d.rank IN :ranks"
    return question(f"SELECT{select}\nFROM {level} AS d{joins}{chosen}\nORDER BY {', '.join(by)}")


def _columns_of(level: Level, names: Sequence[str], *, texts_of_op: bool) -> tuple[dict[str, str], str]:
    """Return name in the answer -> SQL of these columns, and the joins that they need."""
    shown: dict[str, str] = {}
    joins = ""
    for name in names:
        if name in ("group_role", "group_size"):
            shown[name] = f"g.{name.removeprefix('group_')}"
            joins += "" if _JOIN_GROUP in joins else _JOIN_GROUP
            continue
        column = level.column(name)
        if column.kind == "op_key" and texts_of_op:
            joins += _JOIN_OP
            for text in OP_KEY:
                public = "op" if text == "name" else text
                shown[public] = f"t_{public}.text"
                joins += _JOIN_TEXT.format(f"t_{public}", f"k.{text}_id")
        elif column.kind == "text":
            shown[name] = f"t_{name}.text"
            joins += _JOIN_TEXT.format(f"t_{name}", f"d.{column.stored_name}")
        else:
            shown[column.stored_name] = f"d.{column.stored_name}"
    return shown, joins


_OF_RANKS_AND_STEPS: Final = (
    "WHERE\n    d.run_id IN :run_ids\n    AND (:all_ranks = 1 OR d.rank IN :ranks)\n"
    "    AND (:in_steps = 0 OR d.step >= 0)\n    AND (:all_steps = 1 OR d.step IN :steps)\n"
    f"    AND (:step_kind = '' OR {_IS_OF_KIND.format('d.step')})"
)


@cache
def sum_known_of_ranks(level: str, numbers: tuple[str, ...]) -> TextClause:
    """Return the statement that sums what is known of these numbers, for each rank and key, over runs and steps.

    Parameters: run_ids; all_ranks (1: yes), ranks; all_steps (1: yes), steps; in_steps (1: without what lies outside
    all steps). The texts of a key are numbers.
    """
    keys = [name for name in LEVEL[level].stored_key if name != "step"]
    groups = ["d.rank", *(f"d.{name}" for name in keys)]
    columns = {"rank": "d.rank"} | {name: f"d.{name}" for name in keys}
    columns |= {name: KNOWN_SUM.format(name) for name in numbers}
    listed = ", ".join(groups)
    return question(
        f"SELECT{select_columns(columns)}\nFROM {level} AS d\n"
        f"{_OF_RANKS_AND_STEPS}\nGROUP BY {listed}\nORDER BY {listed}"
    )


@cache
def list_numbers_of_steps(level: str, keys: tuple[str, ...], numbers: tuple[str, ...]) -> TextClause:
    """Return the statement that lists these numbers of each rank, step and key, row by row, in no order.

    Parameters: as of `sum_known_of_ranks`. The texts of a key are numbers.
    """
    columns = {name: f"d.{name}" for name in ("rank", "step", *keys, *numbers)}
    return question(f"SELECT{select_columns(columns)}\nFROM {level} AS d\n{_OF_RANKS_AND_STEPS}")


@cache
def list_filled_levels() -> TextClause:
    """Return the statement that says which ranks of runs (`:run_ids`) have rows of the levels in FILLED, 1 or 0.

    `has_totals`: whether it is known how much the kernels of the rank took together. The runs stand in each part as
    well, so that Postgres plans for the partitions of these alone.
    """
    columns = {
        "run_id": "c.run_id",
        "rank": "c.rank",
        "has_totals": "CASE WHEN c.kernel_total_ns IS NOT NULL THEN 1 ELSE 0 END",
    }
    for level, name in FILLED.items():
        columns[name] = _HAS_ROWS.format(level)
    return question(
        f"SELECT{select_columns(columns)}\nFROM capture AS c\nWHERE c.run_id IN :run_ids\nORDER BY c.run_id, c.rank"
    )
