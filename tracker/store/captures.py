"""The rows of captures: from the columns of `tracker.profile.Rows` to the detail tables.

Postgres keeps these tables in partitions of PARTITION_RUNS runs each; SQLite has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from tracker.profile import MISSING, ROW_COLUMNS, Breakdown, Capture, Rows, Table
from tracker.profile import Column as RowColumn
from tracker.schema.breakdown import BREAKDOWN
from tracker.schema.column_names import (
    GROUP,
    GROUP_ROLE,
    GROUP_SIZE,
    OP_KEY,
    OP_KEY_ID,
    ROLE,
    SIZE,
    START_NS,
    STEP,
)
from tracker.schema.levels import LEVELS, columns_of_kind
from tracker.store import bulk
from tracker.store.bulk import Column, clean, cleaned
from tracker.store.calls import groups
from tracker.store.dimensions import KERNEL_KEY, PROCESS_GROUP, Key, Named, OpTexts, ids, named
from tracker.store.labels import lock
from tracker.store.packing import pack_calls, pack_contexts

DETAIL_TABLES: Final = ("step", *(level.name for level in LEVELS), "collective_call")
"""In the order in which an ingest writes them."""

PARTITION_RUNS: Final = 1_000

_EXISTS: Final = text("SELECT to_regclass(:name) IS NOT NULL")
_LACKS_ANY: Final = text(
    "SELECT bool_or(to_regclass(t.name || :suffix) IS NULL) FROM unnest(CAST(:tables AS TEXT [])) AS t (name)"
)

NO_SIZE: Final = -1
"""A group size or size class that the source does not say, as a match key."""

NOT_NAMED: Final[Key] = ("", NO_SIZE)
"""The process group of calls that name none."""

_SORTED_BY: Final = {level.name: level.stored_key for level in LEVELS if not level.is_numbered and not level.is_packed}
"""Rows that arrive in the order of their primary key fill the pages of a clustered table."""

_NUMBERED: Final = frozenset(level.name for level in LEVELS if level.is_numbered)
_CALL_STACKS: Final = [(level.name, column.name) for level, column in columns_of_kind("call_stack")]
_OF_GROUP: Final = frozenset({"group_role", "group_size"})
_TEXTS: Final = [(level.name, column.name) for level, column in columns_of_kind("text", "optional_text")]
"""Columns of rows whose texts are stored as such, once each."""
_OPTIONAL_TEXTS: Final = frozenset((level.name, column.name) for level, column in columns_of_kind("optional_text"))
_SIZE_CLASSES: Final = frozenset((level.name, column.name) for level, column in columns_of_kind("size_class"))

_BULK_KINDS: Final[Mapping[str, bulk.Kind]] = {"word": "text", "float": "float"}
"""Kind of a column of a breakdown -> how it is loaded; all others are whole numbers."""

_PARALLEL: Final = ("stage", "dp_index", "tp_index", "pp_index", "ep_index", "cp_index")


def ensure_partitions(connection: Connection, run_id: int) -> None:
    """Make the partitions for `run_id` where they are missing, in the open transaction."""
    if connection.dialect.name != "postgresql":
        return
    first = run_id // PARTITION_RUNS * PARTITION_RUNS
    # a newer program may have made those of the tables that are new in it, and of these alone
    every = {"tables": list(DETAIL_TABLES), "suffix": f"_p{first}"}
    if not connection.execute(_LACKS_ANY, every).scalar_one():
        return
    lock(connection, "partitions", first)
    for table in DETAIL_TABLES:
        name = f"{table}_p{first}"
        if connection.execute(_EXISTS, {"name": name}).scalar_one():
            continue
        # Attached rather than created as a partition: that waits for no reader and no writer of the table.
        connection.exec_driver_sql(f"CREATE TABLE {name} (LIKE {table} INCLUDING ALL)")
        connection.exec_driver_sql(
            f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({first}) TO ({first + PARTITION_RUNS})"
        )


class Placed(Struct, frozen=True):
    """A capture that belongs to a run now."""

    run_id: int
    rank: int
    capture: Capture

    @property
    def rows(self) -> Rows:
        """Rows of the capture; `save` takes none without them."""
        assert self.capture.rows is not None
        return self.capture.rows


class _Ids(Struct, frozen=True):
    """The ids of what the captures of one ingest name."""

    process_group: dict[Key, int]
    named: Named
    arrays: dict[tuple[str, int, int], NDArray[np.int64]]
    """(dimension, run, rank) -> the id of each row of this capture's dimension table."""
    groups: dict[tuple[int, int], NDArray[np.int64]]
    """(run, rank) -> the number of each group of this capture in its run, and that of no group behind them."""

    def of(self, dimension: str, item: Placed) -> NDArray[np.int64]:
        """Return the id of each row of this capture's dimension table."""
        return self.arrays[dimension, item.run_id, item.rank]


def write_captures(connection: Connection, placed: Sequence[Placed]) -> set[int]:
    """Write captures, steps and details of `placed`, table by table in one order for all writers.

    Returns the runs that have got process groups with them. The transaction holds the runs.
    """
    if not placed:
        return set()
    for run_id in sorted({item.run_id for item in placed}):
        ensure_partitions(connection, run_id)
    _load_captures(connection, placed)
    known, regrouped = _dimension_ids(connection, placed)
    for item in placed:
        _load_steps(connection, item)
    for table in DETAIL_TABLES[1:]:
        for item in placed:
            bulk.load(connection, table, _table(table, item, known))
    return regrouped


def _table(table: str, item: Placed, known: _Ids) -> list[Column]:
    """Return the columns of a detail table; none without rows."""
    if table == "collective_call":
        return _packed_calls(item, known)
    if table not in item.rows.tables:
        return []
    return _packed_tree(item, known) if table == "op_tree" else _columns(table, item, known)


def _load_captures(connection: Connection, placed: Sequence[Placed]) -> None:
    own = ("run_id", "rank", "host", "device_ordinal", *_PARALLEL, "settings", "quality", "quality_reason")
    names = (*own, "started_at_ns", "ended_at_ns", "identity", *Breakdown.__struct_fields__)
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
                capture.identity or None,
                *_breakdown_values(item.rows.overall),
            )
        )
    bulk.insert(connection, "capture", names, rows)


def _breakdown_values(breakdown: Breakdown) -> list[Any]:
    return [getattr(breakdown, name) for name in Breakdown.__struct_fields__]


def _load_steps(connection: Connection, item: Placed) -> None:
    steps = sorted(item.rows.steps, key=lambda row: row.step)
    columns = [
        Column("run_id", "int", [item.run_id] * len(steps)),
        Column("rank", "int", [item.rank] * len(steps)),
        Column("step", "int", [row.step for row in steps]),
        Column("start_ns", "int", [row.start_ns for row in steps]),
        Column("steps", "int", [row.steps if row.steps > 1 else None for row in steps]),
        Column("marker_ns", "int", [row.marker_ns for row in steps]),
        Column("kind", "text", [clean(row.kind) for row in steps]),
    ]
    for column in BREAKDOWN:
        kind = _BULK_KINDS.get(column.kind, "int")
        columns.append(Column(column.name, kind, [getattr(row.breakdown, column.name) for row in steps]))
    bulk.load(connection, "step", columns)


def _dimension_ids(connection: Connection, placed: Sequence[Placed]) -> tuple[_Ids, set[int]]:
    """Return the ids of all that the captures name, and the runs that have got groups."""
    groups: set[Key] = set()
    stacks: set[str] = set()
    texts: set[str] = set()
    # most ranks name the same: each key is held once
    op_keys: dict[OpTexts, OpTexts] = {}
    kernel_keys: dict[OpTexts, OpTexts] = {}
    own: dict[tuple[str, int, int], list[OpTexts]] = {}
    for item in placed:
        tables = item.rows.tables
        for dimension, keys in (("op_key", op_keys), ("kernel_key", kernel_keys)):
            named_here = _keys(tables, dimension)
            own[dimension, item.run_id, item.rank] = [keys.setdefault(key, key) for key in named_here]
        groups.update(_group_keys(tables.get("communication")), _group_keys_of(item.rows.groups))
        if _has_unnamed(item.rows):
            groups.add(NOT_NAMED)
        stacks |= _distinct_texts(tables, _CALL_STACKS) - {""}
        texts |= _distinct_texts(tables, _TEXTS)
    found = named(connection, texts, op_keys, stacks)
    known = {"op_key": found.op_keys, "kernel_key": ids(connection, KERNEL_KEY, kernel_keys)}
    arrays = {at: np.array([*map(known[at[0]].__getitem__, keys)], dtype=np.int64) for at, keys in own.items()}
    process_group = ids(connection, PROCESS_GROUP, groups)
    numbers, regrouped = _number_groups(connection, placed, process_group)
    return _Ids(process_group, found, arrays, numbers), regrouped


def _number_groups(
    connection: Connection, placed: Sequence[Placed], process_group: Mapping[Key, int]
) -> tuple[dict[tuple[int, int], NDArray[np.int64]], set[int]]:
    """Return the groups of each capture, numbered within its run, and the runs that have got any."""
    named: dict[int, list[groups.NamedGroups]] = {}
    for item in placed:
        own = np.array([process_group[key] for key in _group_keys_of(item.rows.groups)], dtype=np.int64)
        unnamed = process_group[NOT_NAMED] if _has_unnamed(item.rows) else None
        ranks = list(item.rows.groups.get("ranks", ()))
        named.setdefault(item.run_id, []).append(groups.NamedGroups(item.rank, own, ranks, unnamed))
    numbers: dict[tuple[int, int], NDArray[np.int64]] = {}
    regrouped = set()
    for run_id, captures in sorted(named.items()):
        found = groups.number_groups(connection, run_id, sorted(captures, key=lambda capture: capture.rank))
        numbers |= {(run_id, rank): own for rank, own in found.numbers.items()}
        if found.is_new:
            regrouped.add(run_id)
    return numbers, regrouped


def _has_unnamed(rows: Rows) -> bool:
    """Return whether any call names no group."""
    return bool((np.asarray(rows.collective_calls.get("group", ())) < 0).any())


def _distinct_texts(tables: Mapping[str, Table], columns: Iterable[tuple[str, str]]) -> set[str]:
    """Return the texts of these columns (table, name), as they are stored; of a table's columns one after the other."""
    texts: set[str] = set()
    for name, of_table in groupby(columns, key=itemgetter(0)):
        # of many ranks the tables are packed: each is unpacked once
        table = tables.get(name, {})
        for _, column in of_table:
            texts.update(map(clean, set(table.get(column, ()))))
    return texts


def _keys(tables: Mapping[str, Table], dimension: str) -> list[OpTexts]:
    """Return the keys of a dimension table of `Rows`, by position."""
    if dimension not in tables:
        return []
    table = tables[dimension]
    return list(zip(*(cleaned(table[name]) for name in ROW_COLUMNS[dimension]), strict=True))


def _group_keys(communication: Table | None) -> list[Key]:
    """Return the process group of each row of `communication`."""
    if communication is None:
        return []
    return _group_keys_of({"role": communication[GROUP_ROLE], "size": communication[GROUP_SIZE]})


def _group_keys_of(groups: Table) -> list[Key]:
    """Return role and size of each of these groups, as they are stored."""
    if not groups:
        return []
    sizes = _or_no_size(groups[SIZE]).tolist()
    return list(zip([clean(role) for role in groups[ROLE]], sizes, strict=True))


def _or_no_size(values: Any) -> NDArray[np.int64]:
    numbers = np.asarray(values, dtype=np.int64)
    return np.where(numbers == MISSING, NO_SIZE, numbers)


def _packed_tree(item: Placed, known: _Ids) -> list[Column]:
    """Return the columns of op_tree, with one row for all calling contexts; none without any."""
    rows = {name: np.asarray(values) for name, values in item.rows.tables["op_tree"].items()}
    rows[OP_KEY_ID] = known.of("op_key", item)[rows[OP_KEY]]
    if not len(rows[STEP]):
        return []
    contexts = Column("contexts", "binary", [pack_contexts(rows)])
    return [Column("run_id", "int", [item.run_id]), Column("rank", "int", [item.rank]), contexts]


def _packed_calls(item: Placed, known: _Ids) -> list[Column]:
    """Return the columns of collective_call, with one row for all calls; none without any."""
    columns = {name: np.asarray(values, dtype=np.int64) for name, values in item.rows.collective_calls.items()}
    if not columns or not len(columns[START_NS]):
        return []
    columns[GROUP] = known.groups[item.run_id, item.rank][columns[GROUP]]
    packed_calls = Column("calls", "binary", [pack_calls(columns)])
    return [Column("run_id", "int", [item.run_id]), Column("rank", "int", [item.rank]), packed_calls]


def _columns(table: str, item: Placed, known: _Ids) -> list[Column]:
    """Return the columns of a detail table, in the order of its primary key."""
    source = item.rows.tables[table]
    own = [name for name in ROW_COLUMNS[table] if name not in _OF_GROUP]
    values = dict(_values(table, name, source[name], item, known) for name in own)
    if table == "communication":
        groups = [known.process_group[key] for key in _group_keys(source)]
        values["process_group_id"] = np.array(groups, dtype=np.int64)
    length = len(next(iter(values.values())))
    if table in _SORTED_BY:
        order = np.lexsort([values[name] for name in reversed(_SORTED_BY[table])])
        values = {name: numbers[order] for name, numbers in values.items()}
    columns = [Column("run_id", "int", [item.run_id] * length), Column("rank", "int", [item.rank] * length)]
    if table in _NUMBERED:
        columns.append(Column("ordinal", "int", range(length)))
    for name, numbers in values.items():
        make_column = bulk.floats if numbers.dtype == np.float64 else bulk.integers
        columns.append(make_column(name, numbers))
    return columns


def _values(table: str, name: str, source: RowColumn, item: Placed, known: _Ids) -> tuple[str, NDArray[Any]]:
    """Return a column of the rows as the database holds it: its name there, and its numbers with MISSING or NaN."""
    kind = ROW_COLUMNS[table][name]
    if name in {"op_key", "kernel_key"}:
        return f"{name}_id", known.of(name, item)[np.asarray(source, dtype=np.int64)]
    if kind == "text":
        numbers = known.named.call_stacks if name == "call_stack" else known.named.texts
        if name == "call_stack" or (table, name) in _OPTIONAL_TEXTS:
            numbers = {**numbers, "": MISSING}
        of_texts = {text: numbers[clean(text)] for text in set(source)}
        return f"{name}_id", np.fromiter(map(of_texts.__getitem__, source), np.int64, len(source))
    if (table, name) in _SIZE_CLASSES:
        return name, _or_no_size(source)
    return name, np.asarray(source, dtype=np.float64 if kind == "float" else np.int64)
