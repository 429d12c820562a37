"""The rows of ranks that are in the database already, as they were when they came."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

import numpy as np
from sqlalchemy import Connection

from tracker.profile import MISSING, OWNER_SETTING, STEP_RULES, STEP_SETTING, Breakdown, StepRow, Table
from tracker.store.listings import list_rows_of_run
from tracker.store.samples.families import RankRows, unit_of, way_of
from tracker.store.sql import statement

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "op": ("step", "op_key", "calls", "host_self_ns", "device_self_ns"),
    "kernel": ("step", "kernel_key", "category", "calls", "total_ns"),
    "communication": ("step", "kind", "group_role", "size_class_bytes", "calls", "total_ns", "exposed_ns"),
    "memory": ("step", "op_key", "calls", "bytes"),
    "api": ("step", "level", "name", "calls", "total_ns", "self_ns"),
    "idle": ("step", "cause", "ns"),
}
"""Level -> its columns that samples are made from."""
_KEYS: Final[Mapping[str, str]] = {"op_key": "sample_op_keys", "kernel_key": "sample_kernel_keys"}
_TEXTS: Final = frozenset({"category", "cause", "kind", "group_role", "level", "name"})


def ranks_of(connection: Connection, run_id: int, *, but: Set[int] = frozenset()) -> list[RankRows]:
    """The ranks of a run, without those in `but`, in order."""
    captures = [row for row in _rows(connection, "captures", run_ids=[run_id]) if row.rank not in but]
    if not captures:
        return []
    steps: dict[int, list[StepRow]] = {}
    for row in _rows(connection, "steps", run_ids=[run_id]):
        step = StepRow(row.step, row.start_ns, _breakdown(row), row.steps, row.marker_ns)
        steps.setdefault(row.rank, []).append(step)
    wanted = {row.rank for row in captures}
    dimensions, places = _dimensions(connection, run_id)
    tables = {name: _by_rank(connection, name, run_id, wanted, places) for name in COLUMNS}
    return [
        RankRows(
            row.rank,
            -1 if row.stage is None else row.stage,
            way_of(json.loads(row.settings)),
            _breakdown(row),
            steps.get(row.rank, []),
            dimensions | {name: found[row.rank] for name, found in tables.items() if row.rank in found},
            OWNER_SETTING in json.loads(row.settings),
            unit_of(json.loads(row.settings)),
            json.loads(row.settings).get(STEP_SETTING) == STEP_RULES,
        )
        for row in captures
    ]


def _breakdown(row: Any) -> Breakdown:
    return Breakdown(**{name: getattr(row, name) for name in Breakdown.__struct_fields__})


def _dimensions(connection: Connection, run_id: int) -> tuple[dict[str, Table], dict[str, dict[int, int]]]:
    """The dimension tables of a run, and for each the place of every id."""
    tables: dict[str, Table] = {}
    places: dict[str, dict[int, int]] = {}
    for name, question in _KEYS.items():
        result = connection.execute(statement(question), {"run_id": run_id})
        names, rows = list(result.keys()), result.all()
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        tables[name] = {column: list(values) for column, values in zip(names, columns, strict=True) if column != "id"}
        places[name] = {number: place for place, number in enumerate(columns[names.index("id")])}
    return tables, places


def _by_rank(
    connection: Connection, table: str, run_id: int, wanted: Set[int], places: Mapping[str, Mapping[int, int]]
) -> dict[int, Table]:
    """The rows of a detail table, by rank."""
    result = connection.execute(list_rows_of_run(table, COLUMNS[table]), {"run_id": run_id})
    names, rows = list(result.keys()), result.all()
    if not rows:
        return {}
    columns: dict[str, Any] = {}
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        key = name.removesuffix("_id")
        columns[key] = list(values) if name in _TEXTS else _numbers(values, places.get(key) if key != name else None)
    rank = columns.pop("rank")
    found: dict[int, Table] = {}
    for number in sorted(wanted & set(rank.tolist())):
        own = np.flatnonzero(rank == number)
        found[number] = {
            name: values[own] if isinstance(values, np.ndarray) else [values[at] for at in own]
            for name, values in columns.items()
        }
    return found


def _numbers(values: Sequence[Any], places: Mapping[int, int] | None) -> Any:
    """Whole numbers with MISSING for None; ids as places in their dimension table."""
    if places is not None:
        return np.array([places[number] for number in values], dtype=np.int64)
    return np.array([MISSING if number is None else number for number in values], dtype=np.int64)


def _rows(connection: Connection, question: str, **parameters: Any) -> list[Any]:
    return list(connection.execute(statement(question), parameters).all())
