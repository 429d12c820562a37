"""Per run, rank and step: one row per distinct thing, with counts and sums; calling contexts and calls are packed.

The tables of levels are made from their declarations. A reference to a dimension ends in `_id`, and so does the number
of a text, which stands in detail_text. `ordinal`: the position of the row in its capture, where its natural key is of
many columns.
"""

from __future__ import annotations

from typing import Any, Final

from tracker.schema.levels import LEVELS, Column, Level
from tracker.store.tables.base import (
    DETAIL,
    Base,
    Binary,
    BreakdownColumns,
    key,
    packed,
    real,
    text_number,
    value,
)


class StepKey(Base):
    """What identifies a step; `start_ns` counts from the first event of the capture."""

    run_id: int = key()
    rank: int = key()
    step: int = key()
    start_ns: int = key(primary=False)


class Step(BreakdownColumns, StepKey, table=True):
    """One step of one rank, with its breakdown; none for what lies outside all markers, one without any marker."""

    __tablename__ = "step"
    __table_args__ = DETAIL
    steps: int | None = value()
    data_loading_idle_ns: int | None = value()
    marker_ns: int | None = value()
    host_idle_ns: int | None = value()


class OpTree(Base, table=True):
    """The calls of each op in each calling context, of all steps of one rank in one row."""

    __tablename__ = "op_tree"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    contexts: Binary = packed()


class CollectiveCall(Base, table=True):
    """The collective calls of one rank, in one row."""

    __tablename__ = "collective_call"
    __table_args__ = DETAIL
    run_id: int = key()
    rank: int = key()
    calls: Binary = packed()


def make_table(level: Level) -> type[Base]:
    """Return the table of a level, with its key, its columns and its title."""
    fields: dict[str, Any] = {"run_id": key(), "rank": key()}
    types: dict[str, Any] = {"run_id": int, "rank": int}
    if level.is_numbered:
        fields["ordinal"], types["ordinal"] = key(), int
    for column in level.columns:
        name = column.stored_name
        fields[name], types[name] = _make_field(column, is_key=name in level.stored_key)
    content = {
        **fields,
        "__annotations__": types,
        "__tablename__": level.name,
        "__table_args__": DETAIL,
        "__doc__": level.title,
        "__module__": __name__,
    }
    name = level.name.title().replace("_", "") + "Row"
    make_class: Any = type(Base)
    table: type[Base] = make_class(name, (Base,), content, table=True)
    return table


def _make_field(column: Column, *, is_key: bool) -> tuple[Any, Any]:
    """Return a column as SQLModel has it, and its type."""
    if column.kind == "text":
        return text_number(primary=is_key), int
    if column.kind == "float":
        return real(), float | None
    # no group and no size class have numbers of their own
    if column.is_required or column.kind in ("group", "size_class"):
        return key(primary=is_key), int
    return value(), int | None


LEVEL_TABLES: Final = {level.name: make_table(level) for level in LEVELS if not level.is_packed}
"""Level -> its table."""
