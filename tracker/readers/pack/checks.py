"""What must hold of the rows in a pack, so that the database takes them as it takes those of a profile."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracker.profile import (
    CALL_COLUMNS,
    GROUP_COLUMNS,
    MISSING,
    PHASES,
    ROW_COLUMNS,
    Capture,
    Column,
    Table,
    ranks_in,
    ranks_text,
)
from tracker.readers.pack.columns import BREAKDOWNS, BadColumn
from tracker.schema.declarations import Column as LevelColumn
from tracker.schema.levels import KERNEL_KEY, LEVELS, OP_KEY, STEP_LEVEL

_LARGEST: Final = (1 << 62) - 1
_RANKS: Final = re.compile(r"(?:\d{1,9}(?:,\d{1,9})*)?", re.ASCII)


def _lowest_number(column: LevelColumn) -> float:
    if column.least is not None:
        return column.least
    return -math.inf if column.kind == "float" else -_LARGEST


_LOWEST: Final[Mapping[tuple[str, str], float]] = {
    **{(level.name, column.name): _lowest_number(column) for level in LEVELS for column in level.columns},
    ("collective_calls", "step"): -1,
    ("collective_calls", "group"): -1,
    ("collective_calls", "peer"): -1,
    **{("breakdowns", column.name): _lowest_number(column) for column in STEP_LEVEL.columns},
    # moments count from a clock that may begin later
    ("collective_calls", "start_ns"): -_LARGEST,
}
"""(table, column) -> the lowest number; 0 for all others."""

REQUIRED: Final = frozenset(column.name for level in LEVELS for column in level.columns if column.is_required) | {
    "start_ns", "steps", "elapse_ns", "group",
}  # fmt: skip
"""Columns of numbers that are never missing."""

_REFERS_TO: Final = {
    "op_key": "op_key",
    "kernel_key": "kernel_key",
    "communication": "communication",
    "group": "groups",
}

UNIQUE: Final[Mapping[str, Sequence[str]]] = {
    "op_key": OP_KEY,
    "kernel_key": KERNEL_KEY,
    **{level.name: level.key for level in LEVELS if level.key},
}
"""Table -> columns in which no two rows are alike."""


def check_tables(tables: Mapping[str, Table], calls: Table, groups: Table) -> None:
    """A BadColumn where the tables of a capture, its collective calls or its groups hold what no profile does."""
    lengths = {name: len(next(iter(table.values()))) for name, table in tables.items()}
    for name, table in tables.items():
        _check_numbers(name, ROW_COLUMNS[name], table, lengths)
        _check_unique(name, table)
    lengths["groups"] = len(groups["role"]) if groups else 0
    _check_numbers("collective_calls", CALL_COLUMNS if calls else {}, calls, lengths)
    _check_numbers("groups", GROUP_COLUMNS if groups else {}, groups, lengths)
    _check_members(groups["ranks"] if groups else [])
    _check_words("op_key", "phase", tables["op_key"]["phase"], PHASES)


def _check_members(members: Column) -> None:
    """Each text is one that `ranks_text` writes."""
    for text in set(members):
        if not _RANKS.fullmatch(text) or ranks_text(ranks_in(text)) != text:
            raise BadColumn(f"table groups: column ranks holds {ascii(text)[:80]}, which no profile has")


def check_breakdowns(table: Table) -> None:
    """A BadColumn where the breakdowns of a capture hold what no profile does."""
    if not len(table["step"]):
        raise BadColumn("table breakdowns: is empty")
    # a pack of an earlier version lacks columns
    _check_numbers("breakdowns", {name: kind for name, kind in BREAKDOWNS.items() if name in table}, table, {})
    _check_words("breakdowns", "timeline", table["timeline"], ("device", "host"))
    steps = np.asarray(table["step"])[1:]
    if len(np.unique(steps)) < len(steps):
        raise BadColumn("table breakdowns: has a step twice")


def check_capture(capture: Capture) -> None:
    """A BadColumn where what is said of a capture as a whole is no profile's."""
    _check_words("capture", "quality", [capture.quality], ("ok", "partial"))
    _check_words("capture", "parallel", list(capture.parallel), ("stage", "dp", "tp", "pp", "ep", "cp"))
    start, end = capture.started_at_ns, capture.ended_at_ns
    if start is not None and end is not None and end < start:
        raise BadColumn("ends before it starts")
    if capture.rank is not None and capture.world_size is not None and capture.rank >= capture.world_size:
        raise BadColumn(f"is rank {capture.rank} of {capture.world_size}")


def _check_numbers(name: str, kinds: Mapping[str, str], table: Table, lengths: Mapping[str, int]) -> None:
    for column, kind in kinds.items():
        if kind == "text":
            continue
        values = np.asarray(table[column])
        if kind == "float":
            _check_floats(name, column, values)
            continue
        missing = values == MISSING
        if column in REQUIRED and missing.any():
            raise _bad(name, column, missing, "lacks a number")
        bad = ~missing & ((values < _LOWEST.get((name, column), 0)) | (values > _LARGEST))
        if bad.any():
            raise _bad(name, column, bad, f"is {values[bad][0]}, which no profile has")
        target = lengths.get(_REFERS_TO.get(column, ""))
        if target is not None and (bad := values >= target).any():
            raise _bad(name, column, bad, f"refers to row {values[bad][0]} of {target}")


def _check_floats(name: str, column: str, values: NDArray[Any]) -> None:
    bad = np.isinf(values) | (values < _LOWEST.get((name, column), 0))
    if bad.any():
        raise _bad(name, column, bad, f"is {values[bad][0]}, which no profile has")


def _bad(name: str, column: str, rows: NDArray[Any], problem: str) -> BadColumn:
    return BadColumn(f"table {name}, row {int(np.flatnonzero(rows)[0]) + 1}: column {column} {problem}")


def _check_words(name: str, column: str, found: Column, known: Sequence[str]) -> None:
    others = set(found) - set(known)
    if others:
        raise BadColumn(f"table {name}: column {column} holds {ascii(min(others))[:80]}, which is none of its words")


def _check_unique(name: str, table: Table) -> None:
    if name not in UNIQUE:
        return
    columns = [_comparable(table[column]) for column in UNIQUE[name]]
    if len(set(zip(*columns, strict=True))) < len(columns[0]):
        raise BadColumn(f"table {name}: has two rows of one {' and '.join(UNIQUE[name])}")


def _comparable(column: Column) -> list[Any]:
    """The values as the database tells them apart: it holds no NUL, and writes it out."""
    return [text.replace("\0", "\\x00") for text in column] if isinstance(column, list) else column.tolist()
