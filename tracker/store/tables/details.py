"""Per run, rank and step: one row per distinct thing, with counts and sums; calling contexts and calls are packed.

The tables of levels are made from their declarations. A reference to a dimension ends in `_id`, and so does the number
of a text, which stands in detail_text. `ordinal`: the position of the row in its capture, where its natural key is of
many columns.
"""

from __future__ import annotations

from typing import Any, Final

from tracker.schema.declarations import Level
from tracker.schema.levels import LEVELS, STEP_LEVEL
from tracker.store.tables.base import DETAIL, Base, Binary, key, make_columns, make_table, packed


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


def _make_table_of_level(level: Level) -> type[Base]:
    columns: dict[str, tuple[Any, Any]] = {"run_id": (key(), int), "rank": (key(), int)}
    if level.is_numbered:
        columns["ordinal"] = (key(), int)
    columns |= make_columns(level.columns, level.stored_key)
    name = level.name.title().replace("_", "") + "Row"
    return make_table(name, level.name, level.title, columns, arguments=DETAIL)


LEVEL_TABLES: Final = {
    level.name: _make_table_of_level(level) for level in (STEP_LEVEL, *LEVELS) if not level.is_packed
}
"""Level -> its table."""
