"""Per run, rank and step one row per distinct thing, with counts and sums; and the texts and keys that recur.

The tables of levels are made from their declarations. A reference to a dimension ends in `_id`, and so does the number
of a text. Dimensions are stored once, unique by their columns or a digest of them.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import UniqueConstraint

from tracker.schema.declarations import Level
from tracker.schema.levels import LEVELS, STEP_LEVEL
from tracker.store.tables.base import (
    DETAIL,
    DETAIL_TEXT,
    Base,
    Binary,
    digest,
    key,
    make_columns,
    make_table,
    packed,
    row_id,
    text_key,
    text_number,
)


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


class DetailText(Base, table=True):
    """A text that detail rows, op keys and call stacks are made of: thousands of them share some hundred."""

    __tablename__ = DETAIL_TEXT
    __table_args__ = (UniqueConstraint("digest"),)
    id: int | None = row_id()
    digest: Binary = digest()
    text: str = text_key()


class OpKey(Base, table=True):
    """What tells one op from another: its texts, in detail_text."""

    __tablename__ = "op_key"
    __table_args__ = (
        UniqueConstraint(
            "name_id", "input_shapes_id", "input_types_id", "module_id", "phase_id", name="uq_op_key_texts"
        ),
    )
    id: int | None = row_id()
    name_id: int = text_number()
    input_shapes_id: int = text_number()
    input_types_id: int = text_number()
    module_id: int = text_number()
    phase_id: int = text_number()


class KernelKey(Base, table=True):
    """What tells one kernel from another."""

    __tablename__ = "kernel_key"
    __table_args__ = (UniqueConstraint("digest"),)
    id: int | None = row_id()
    digest: Binary = digest()
    name: str = text_key()
    canonical_name: str = text_key()
    type: str = text_key()
    core_type: str = text_key()
    input_shapes: str = text_key()
    input_types: str = text_key()
    input_formats: str = text_key()


class ProcessGroup(Base, table=True):
    """A communication group by its role (dp, tp, ...) and size; size -1: the source does not say."""

    __tablename__ = "process_group"
    __table_args__ = (UniqueConstraint("digest"),)
    id: int | None = row_id()
    digest: Binary = digest()
    role: str = text_key()
    size: int = key(primary=False)


class CallStack(Base, table=True):
    """The innermost frame of a call stack, and the stack that it was called from; 0: from none."""

    __tablename__ = "call_stack"
    __table_args__ = (UniqueConstraint("parent_id", "frame_id"),)
    id: int | None = row_id()
    parent_id: int = key(primary=False)
    frame_id: int = text_number()
