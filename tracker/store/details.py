"""The rows of captures: from the columns of `tracker.profile.Rows` to the detail tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from tracker.profile import MISSING, ROW_COLUMNS, Breakdown, Capture, Rows, Table
from tracker.store import bulk, partitions
from tracker.store.bulk import Column, clean, cleaned
from tracker.store.contexts import packed
from tracker.store.dimensions import KERNEL_KEY, PROCESS_GROUP, Key, ids, op_keys_and_stacks

NO_SIZE: Final = -1
"""A group size or size class that the source does not say, as a match key."""

_SORTED_BY: Final = {
    "op": ("step", "op_key"),
    "kernel": ("step", "kernel_key", "op_key"),
    "kernel_metric": ("kernel_key",),
    "memory": ("step", "op_key"),
}
"""Rows that arrive in the order of their primary key fill the pages of a clustered table."""

_NUMBERED: Final = frozenset(
    {"api", "communication", "communication_link", "communication_task", "counter", "memory_curve"}
)
_PARALLEL: Final = ("stage", "dp_index", "tp_index", "pp_index", "ep_index", "cp_index")


@dataclass(frozen=True, slots=True)
class Placed:
    """A capture that belongs to a run now."""

    run_id: int
    rank: int
    capture: Capture

    @property
    def rows(self) -> Rows:
        """The rows of the capture, which `save` has made sure of."""
        assert self.capture.rows is not None
        return self.capture.rows


@dataclass(frozen=True, slots=True)
class _Ids:
    """The ids of what the captures of one ingest name."""

    process_group: dict[Key, int]
    call_stack: dict[str, int]
    arrays: dict[tuple[str, int, int], NDArray[np.int64]]
    """(dimension, run, rank) -> the id of each row of this capture's dimension table."""

    def of(self, dimension: str, item: Placed) -> NDArray[np.int64]:
        """The id of each row of this capture's dimension table."""
        return self.arrays[dimension, item.run_id, item.rank]


def load(connection: Connection, placed: Sequence[Placed]) -> None:
    """Write captures, steps and details of `placed`, table by table in one order for all writers."""
    if not placed:
        return
    for run_id in sorted({item.run_id for item in placed}):
        partitions.ensure(connection, run_id)
    _load_captures(connection, placed)
    known = _dimension_ids(connection, placed)
    for item in placed:
        _load_steps(connection, item)
    for table in partitions.DETAIL_TABLES[1:]:
        for item in placed:
            if table in item.rows.tables:
                columns = _packed_tree(item, known) if table == "op_tree" else _columns(table, item, known)
                bulk.load(connection, table, columns)


def _load_captures(connection: Connection, placed: Sequence[Placed]) -> None:
    own = ("run_id", "rank", "host", "device_ordinal", *_PARALLEL, "settings", "quality", "quality_reason")
    names = (*own, "started_at_ns", "ended_at_ns", *(f.name for f in fields(Breakdown)))
    rows = []
    for item in placed:
        capture = item.capture
        settings = json.dumps(dict(sorted(capture.settings.items())), ensure_ascii=True)
        rows.append(
            (
                item.run_id,
                item.rank,
                clean(capture.host),
                capture.device_ordinal,
                *(capture.parallel.get(name.removesuffix("_index")) for name in _PARALLEL),
                settings,
                capture.quality,
                clean(capture.quality_reason),
                capture.started_at_ns,
                capture.ended_at_ns,
                *_breakdown_values(item.rows.overall),
            )
        )
    bulk.insert(connection, "capture", names, rows)


def _breakdown_values(breakdown: Breakdown) -> list[Any]:
    return [getattr(breakdown, f.name) for f in fields(Breakdown)]


def _load_steps(connection: Connection, item: Placed) -> None:
    steps = sorted(item.rows.steps, key=lambda row: row.step)
    columns = [
        Column("run_id", "int", [item.run_id] * len(steps)),
        Column("rank", "int", [item.rank] * len(steps)),
        Column("step", "int", [row.step for row in steps]),
        Column("start_ns", "int", [row.start_ns for row in steps]),
        Column("steps", "int", [row.steps if row.steps > 1 else None for row in steps]),
    ]
    for field in fields(Breakdown):
        kind: bulk.Kind = "text" if field.name == "timeline" else "int"
        kind = "float" if field.name == "samples_per_second" else kind
        columns.append(Column(field.name, kind, [getattr(row.breakdown, field.name) for row in steps]))
    bulk.load(connection, "step", columns)


def _dimension_ids(connection: Connection, placed: Sequence[Placed]) -> _Ids:
    groups: set[Key] = set()
    stacks: set[str] = set()
    own = {
        (name, item.run_id, item.rank): _keys(item.rows.tables, name)
        for item in placed
        for name in ("op_key", "kernel_key")
    }
    for item in placed:
        tables = item.rows.tables
        groups.update(_group_keys(tables.get("communication")))
        stacks.update(clean(text) for text in set(tables["op"]["call_stack"]) if text) if "op" in tables else None
    op_keys, kernel_keys = (
        {key for (of, *_), keys in own.items() if of == name for key in keys} for name in ("op_key", "kernel_key")
    )
    op_ids, stack_ids = op_keys_and_stacks(connection, op_keys, stacks)
    known = {"op_key": op_ids, "kernel_key": ids(connection, KERNEL_KEY, kernel_keys)}
    arrays = {at: np.array([known[at[0]][key] for key in keys], dtype=np.int64) for at, keys in own.items()}
    return _Ids(ids(connection, PROCESS_GROUP, groups), stack_ids, arrays)


def _keys(tables: Any, dimension: str) -> list[Key]:
    """The keys of a dimension table of `Rows`, by position."""
    if dimension not in tables:
        return []
    return list(zip(*(cleaned(tables[dimension][name]) for name in ROW_COLUMNS[dimension]), strict=True))


def _group_keys(communication: Table | None) -> list[Key]:
    """The process group of each row of `communication`."""
    if communication is None:
        return []
    sizes = _or_no_size(communication["group_size"]).tolist()
    roles = [clean(role) for role in communication["group_role"]]
    return list(zip(roles, sizes, strict=True))


def _or_no_size(values: Any) -> NDArray[np.int64]:
    numbers = np.asarray(values, dtype=np.int64)
    return np.where(numbers == MISSING, NO_SIZE, numbers)


def _packed_tree(item: Placed, known: _Ids) -> list[Column]:
    """The columns of op_tree, with one row for all calling contexts; none without any."""
    rows = {name: np.asarray(values) for name, values in item.rows.tables["op_tree"].items()}
    rows["op_key_id"] = known.of("op_key", item)[rows["op_key"]]
    if not len(rows["step"]):
        return []
    contexts = Column("contexts", "binary", [packed(rows)])
    return [Column("run_id", "int", [item.run_id]), Column("rank", "int", [item.rank]), contexts]


def _columns(table: str, item: Placed, known: _Ids) -> list[Column]:
    """The columns of a detail table, in the order of its primary key where that is cheap."""
    source = item.rows.tables[table]
    kinds = ROW_COLUMNS[table]
    length = len(source[next(iter(kinds))])
    order = None
    if table in _SORTED_BY and length:
        ranked = [_sort_values(name, item, known, source) for name in reversed(_SORTED_BY[table])]
        order = np.lexsort(ranked)
    columns = [
        Column("run_id", "int", [item.run_id] * length),
        Column("rank", "int", [item.rank] * length),
    ]
    if table in _NUMBERED:
        columns.append(Column("ordinal", "int", range(length)))
    if table == "communication":
        groups = [known.process_group[key] for key in _group_keys(source)]
        columns.append(Column("process_group_id", "int", groups))
    for name, kind in kinds.items():
        if name not in {"group_role", "group_size"}:
            columns.append(_column(name, kind, source, item, known, order))
    return columns


def _sort_values(name: str, item: Placed, known: _Ids, source: Table) -> NDArray[Any]:
    values = np.asarray(source[name])
    return known.of(name, item)[values] if name in {"op_key", "kernel_key"} else values


def _column(name: str, kind: str, source: Table, item: Placed, known: _Ids, order: NDArray[np.intp] | None) -> Column:
    if kind == "text":
        texts: Any = source[name] if order is None else [source[name][at] for at in order.tolist()]
        if name == "call_stack":
            stacks = {text: known.call_stack[clean(text)] if text else None for text in set(texts)}
            return Column("call_stack_id", "int", [stacks[text] for text in texts])
        return bulk.texts(name, texts)
    values: NDArray[Any] = np.asarray(source[name])
    values = values if order is None else values[order]
    if name in {"op_key", "kernel_key"}:
        return Column(f"{name}_id", "int", known.of(name, item)[values].tolist())
    if name == "size_class_bytes":
        values = _or_no_size(values)
    return bulk.floats(name, values) if kind == "float" else bulk.integers(name, values)
