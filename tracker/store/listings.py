"""The SQL that gives rows of a level as they are, with texts in place of their numbers, made from the declarations.

Beside it what else is asked of every row of a rank: sums of what is known, and whether there are rows at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from sqlalchemy import TextClause

from tracker.schema.declarations import Level
from tracker.schema.levels import LEVEL, OP_KEY
from tracker.store.sql import question

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
_TEXT: Final = "\nINNER JOIN detail_text AS {0} ON {1} = {0}.id"
_GROUP: Final = "\nINNER JOIN process_group AS g ON d.process_group_id = g.id"
_OP: Final = "\nINNER JOIN op_key AS k ON d.op_key_id = k.id"

FILLED: Final[Mapping[str, str]] = {
    "communication": "has_communication", "memory": "has_memory", "api": "has_api", "idle": "has_idle",
    "kernel_metric": "has_metrics", "memory_curve": "has_curve", "counter": "has_counters",
}  # fmt: skip
"""Level -> the column that says whether a rank has rows of it."""


def select_columns(columns: Mapping[str, str]) -> str:
    """Return what stands behind SELECT: name in the answer -> SQL.

    >>> print(select_columns({"rank": "d.rank", "calls": "SUM(d.calls)"}))
    <BLANKLINE>
        d.rank,
        SUM(d.calls) AS calls
    """
    listed = []
    for name, column in columns.items():
        is_so_called = column.partition(".")[2] == name
        listed.append(column if is_so_called else f"{column} AS {name}")
    return ",".join(f"\n    {column}" for column in listed)


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
            joins += "" if _GROUP in joins else _GROUP
            continue
        column = level.column(name)
        if column.kind == "op_key" and texts_of_op:
            joins += _OP
            for text in OP_KEY:
                public = "op" if text == "name" else text
                shown[public] = f"t_{public}.text"
                joins += _TEXT.format(f"t_{public}", f"k.{text}_id")
        elif column.kind == "text":
            shown[name] = f"t_{name}.text"
            joins += _TEXT.format(f"t_{name}", f"d.{column.stored_name}")
        else:
            shown[column.stored_name] = f"d.{column.stored_name}"
    return shown, joins


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
        "WHERE\n    d.run_id IN :run_ids\n    AND (:all_ranks = 1 OR d.rank IN :ranks)\n"
        "    AND (:in_steps = 0 OR d.step >= 0)\n    AND (:all_steps = 1 OR d.step IN :steps)\n"
        f"GROUP BY {listed}\nORDER BY {listed}"
    )


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
