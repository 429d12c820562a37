"""The words in which kinds of rows are declared: a column, a level, and one function per kind of column.

The declarations are in `schema.levels`.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

Kind = Literal[
    "int",  # a whole number
    "ns",  # a time, whose sums must fit into 64 bits
    "bytes",  # a size, whose sums must fit into 64 bits
    "float",  # a real number
    "word",  # a short text, which stands in the row itself
    "text",  # any text: it stands once in detail_text, and rows hold its number
    "optional_text",  # the same, where an empty text is NULL: most rows have none
    "call_stack",  # it stands once in call_stack, and rows hold its number
    "op_key",  # the index of a row of the table op_key
    "kernel_key",  # the index of a row of the table kernel_key
    "communication",  # the index of a row of the table communication
    "group",  # role and size of a process group
    "size_class",  # a whole number that tells rows apart, and so is stored as -1 where it is missing
]
"""What a column holds, and how it is stored."""

AddUp = Literal["", "sum", "real_sum", "known", "min", "max", "mean_by_calls", "mean_by_bytes"]
"""How a number adds up over ranks and steps: `sum` and `real_sum` are missing unless all rows state it, `known` is the
sum of those that do, a mean is weighted by another column. Empty: it tells rows apart, or is not added up.
"""


class Column(Struct, frozen=True):
    """A column of a level.

    `answer`: its name in an answer of the database, where that is another one.
    `answer_behind`: the column behind which it stands in an answer; empty: as in the table.
    `is_required`: it is never missing.
    `least`: the smallest number that can be, None for any.
    `made_by_store`: no reader fills it; the store does when ranks come.
    `is_later`: packs of an earlier version lack it.
    """

    name: str
    kind: Kind
    meaning: str
    adds: AddUp = ""
    answer: str = ""
    answer_behind: str = ""
    is_required: bool = False
    least: int | None = 0
    made_by_store: bool = False
    is_later: bool = False

    @property
    def stored_name(self) -> str:
        """Its name in the database."""
        if self.kind == "group":
            return "process_group_id"
        if self.kind in ("text", "optional_text", "call_stack", "op_key", "kernel_key"):
            return f"{self.name}_id"
        return self.name

    @property
    def row_kinds(self) -> dict[str, str]:
        """Name -> kind of the columns that a reader or the timeline makes for it."""
        if self.made_by_store:
            return {}
        if self.kind == "group":
            return {"group_role": "text", "group_size": "int"}
        if self.kind in ("optional_text", "call_stack", "word"):
            return {self.name: "text"}
        if self.kind in ("op_key", "kernel_key", "communication", "size_class"):
            return {self.name: "int"}
        return {self.name: self.kind}


class Level(Struct, frozen=True):
    """A kind of row.

    `key`: columns in which no two rows of a capture are alike; empty: none are promised.
    `is_numbered`: rows are stored by their position in the capture, as the key is of many columns; else by the key.
    `inside`: the level whose row it is a part of.
    `largest`: the number that orders the rows of an answer, the largest first.
    `is_packed`: all rows of a rank are stored as one value.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    is_numbered: bool = False
    inside: str = ""
    largest: str = ""
    is_packed: bool = False

    def column(self, name: str) -> Column:
        """Return the column of this name."""
        return next(column for column in self.columns if column.name == name)

    @property
    def answer_columns(self) -> list[Column]:
        """The columns in the order of an answer."""
        columns = [column for column in self.columns if not column.answer_behind]
        for column in self.columns:
            if column.answer_behind:
                columns.insert(columns.index(self.column(column.answer_behind)) + 1, column)
        return columns

    @property
    def row_kinds(self) -> dict[str, str]:
        """Column -> kind of the rows that a reader or the timeline makes."""
        kinds: dict[str, str] = {}
        for column in self.columns:
            kinds |= column.row_kinds
        return kinds

    @property
    def stored_key(self) -> tuple[str, ...]:
        """The columns of the primary key behind run and rank."""
        if self.is_numbered:
            return ("ordinal",)
        return tuple(self.column(name).stored_name for name in self.key)


def key(name: str, meaning: str, *, answer: str = "", least: int | None = 0) -> Column:
    """Declare a whole number that tells rows apart and is never missing."""
    return Column(name, "int", meaning, answer=answer, is_required=True, least=least)


def text(name: str, meaning: str) -> Column:
    """Declare a text that tells rows apart."""
    return Column(name, "text", meaning)


def number(
    name: str, adds: AddUp, meaning: str, *, answer_behind: str = "", least: int | None = 0,
    made_by_store: bool = False, is_later: bool = False,
) -> Column:  # fmt: skip
    """Declare a whole number of all calls of a row that is no time and no size."""
    return Column(
        name, "int", meaning, adds, answer_behind=answer_behind, least=least, made_by_store=made_by_store,
        is_later=is_later,
    )  # fmt: skip


def time(
    name: str, adds: AddUp, meaning: str, *, answer_behind: str = "", least: int | None = 0,
    made_by_store: bool = False, is_later: bool = False,
) -> Column:  # fmt: skip
    """Declare a time of all calls of a row."""
    column = number(
        name, adds, meaning, answer_behind=answer_behind, least=least, made_by_store=made_by_store, is_later=is_later
    )
    return replace(column, kind="ns")


def size(name: str, adds: AddUp, meaning: str, *, least: int | None = 0, is_later: bool = False) -> Column:
    """Declare a size of all calls of a row."""
    return replace(number(name, adds, meaning, least=least, is_later=is_later), kind="bytes")


def real(name: str, adds: AddUp, meaning: str, *, least: int | None = 0, is_later: bool = False) -> Column:
    """Declare a real number of all calls of a row."""
    return Column(name, "float", meaning, adds, least=least, is_later=is_later)


def meaning(column: Column, words: str) -> Column:
    """Return a shared column with what it means in one level."""
    return replace(column, meaning=words)
