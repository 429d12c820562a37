"""Three or more sides beside each other: each against the first one, and judged against the one before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import Columns, objects
from tracker.compare import operators, others, overall, verdicts
from tracker.compare import recorded as recordings
from tracker.compare.filters import check_named
from tracker.compare.notes import warnings
from tracker.compare.references import named
from tracker.compare.sides import load_all
from tracker.compare.tracks import check_one_track
from tracker.errors import UsageError
from tracker.results import MATRIX_COLUMNS, DiffOptions, Matrix, check_matrix
from tracker.units import format_bytes

if TYPE_CHECKING:
    from tracker.compare.sides import Loaded
    from tracker.store import Store

_DEEPEST: Final = 1
"""Level of the overall rows that a matrix shows: the parts of a step, not the categories of kernels."""

Key = tuple[str, str, str, str]
"""Section, name, input shapes and part of a row."""
Row = dict[str, Any]
_KEY: Final = ("section", "name", "input_shapes", "part")
Compare = Callable[["Loaded", "Loaded", DiffOptions], Columns]


class _Neighbours(Struct):
    """A row of two neighbours: both numbers, the change, how it was judged, and how it is shown."""

    before: float | None = None
    after: float | None = None
    diff: float | None = None
    verdict: str | None = None
    q: float | None = None
    level: int = 0
    unit: str = "ns"


def matrix(
    store: Store | None, references: Sequence[str], *, by: str = "op", options: DiffOptions | None = None
) -> Matrix:
    """The numbers of three or more sides; `store` and the sides as for `diff`, `by`: a word of MATRIX_ROWS.

    UsageError for fewer sides, and for options that compare two sides only.
    """
    options = options or DiffOptions()
    if len(references) < 3:
        raise UsageError(f"a matrix of {len(references)} sides", remedy="name three or more")
    check_matrix(options, by)
    whole = replace(options, minimum_ns=None)  # a row may be small in two neighbours and large in a third side
    with ExitStack() as stack:
        references, runs = named(store, references, options.workload, options.config)
        if store is not None:
            check_one_track(store, runs)
        sides = load_all(store, references, options, stack, runs=runs)
        found_of = [recordings.compared(*pair, whole)[0] for pair in pairwise(sides)]
        if any(found.by_name for found in found_of):
            whole = replace(whole, match="name")  # one key for all sides
        judged = [verdicts.judge(*pair, whole, found) for pair, found in zip(pairwise(sides), found_of, strict=True)]
        tables = [
            _of_overall(*pair, found) | _of_rows(*pair, found, by, whole)
            for pair, found in zip(pairwise(sides), judged, strict=True)
        ]
        made = _joined(tables, options.minimum_ns)
        if options.op and {*made["rows"].listed("section")} == {"overall"}:
            everything = [
                operators.compare(*pair, replace(whole, op=None, module=None)).ops for pair in pairwise(sides)
            ]
            names = (name for table in everything for name in table.listed("name"))
            check_named("operator", options.op, names, sides)
        metrics = {operators.own_time(side) for side in sides}
        return Matrix(
            sides=tuple(side.side for side in sides),
            metric=metrics.pop() if len(metrics) == 1 else "self_ns",
            by=by,
            tables=made,
            judged=tuple(" ".join(found.judgement.sentences) for found in judged),
            options=options,
            notes=tuple(dict.fromkeys([*(note for found in found_of for note in found.notes()), *warnings(sides)])),
        )


def _of_overall(before: Loaded, after: Loaded, judged: verdicts.Judged) -> dict[Key, _Neighbours]:
    names = ("title", "metric", "baseline_value", "candidate_value", "diff", "verdict", "q", "level", "unit")
    rows = judged.into("overall", overall.compare(before, after)).rows(*names)
    return {("overall", title, "", metric): _Neighbours(*pair) for title, metric, *pair in rows if pair[-2] <= _DEEPEST}


def _of_rows(
    before: Loaded, after: Loaded, judged: verdicts.Judged, by: str, options: DiffOptions
) -> dict[Key, _Neighbours]:
    table, compare, part = _ROWS[by]
    name = {"communication": "kind", "module": "module"}.get(by, "name")
    found: dict[Key, list[Row]] = {}
    for row in judged.into(table, compare(before, after, options)).records():
        found.setdefault((by, row[name], row.get("input_shapes") or "", part(row)), []).append(row)
    return {key: _together(rows) for key, rows in found.items()}


def _together(rows: Sequence[Row]) -> _Neighbours:
    """Rows that differ in what a matrix does not show (types of cores, sizes of groups) add up, without a verdict."""
    before, after = (
        sum(known) if (known := [row[name] for row in rows if row[name] is not None]) else None
        for name in ("baseline_ns", "candidate_ns")
    )
    diff = after / before - 1 if before and after is not None else None
    judged = (rows[0]["verdict"], rows[0]["q"]) if len(rows) == 1 else ()
    return _Neighbours(before, after, diff, *judged)


def _ops(before: Loaded, after: Loaded, options: DiffOptions) -> Columns:
    return operators.compare(before, after, options).ops


def _kernels(before: Loaded, after: Loaded, options: DiffOptions) -> Columns:
    return others.kernels(before, after, options)[0]


def _collectives(before: Loaded, after: Loaded, options: DiffOptions) -> Columns:
    return others.communication(before, after, options)[0]


def _group(row: Row) -> str:
    size = row["size_class_bytes"] or 0
    return ", ".join(filter(None, (row["group_role"], row["data_type"], format_bytes(size) if size > 0 else "")))


_ROWS: Final[Mapping[str, tuple[str, Compare, Callable[[Row], str]]]] = {
    "op": ("ops", _ops, lambda row: ""),
    "kernel": ("kernels", _kernels, lambda row: str(row["category"])),
    "communication": ("communication", _collectives, _group),
    "module": ("modules", others.modules, lambda row: str(row["phase"])),
}
"""Word of MATRIX_ROWS -> table of a Diff, what makes it, and what tells its rows from others of their name."""


def _joined(tables: Sequence[Mapping[Key, _Neighbours]], minimum_ns: int | None) -> dict[str, Columns]:
    """The tables of a `Matrix` from those of each pair of neighbours."""
    keys = list(dict.fromkeys(key for table in tables for key in table))
    pairs = [[table.get(key, _Neighbours()) for table in tables] for key in keys]
    values = np.array([[own[0].before, *(pair.after for pair in own)] for own in pairs], dtype=np.float64)
    values = values.reshape(len(keys), len(tables) + 1)
    there = ~np.isnan(values)
    filled = np.where(there, values, 0.0)
    most, movement = filled.max(axis=1), filled.max(axis=1) - filled.min(axis=1)
    is_overall = np.array([key[0] == "overall" for key in keys], dtype=bool)
    keep = there.any(axis=1) & (filled != 0).any(axis=1)
    if minimum_ns is not None:
        keep &= (most >= minimum_ns) | is_overall
    # overall in reading order, the others by movement; what overall rows of later pairs add stands behind
    order = np.lexsort((np.arange(len(keys)), np.where(is_overall, 0.0, -movement.round(6)), ~is_overall))
    order = order[keep[order]]
    values, first = values[order], values[order][:, :1]
    with np.errstate(invalid="ignore", divide="ignore"):
        diff = np.where(first != 0, values / first - 1, np.nan)
    of_key = [next(table[keys[at]] for table in tables if keys[at] in table) for at in order.tolist()]
    rows: dict[str, Any] = {
        name: objects([keys[at][place] for at in order.tolist()]) for place, name in enumerate(_KEY)
    }
    rows |= {
        "row": np.arange(len(order)), "level": np.array([own.level for own in of_key], dtype=np.int64),
        "unit": objects([own.unit for own in of_key]), "movement": movement[order],
    }  # fmt: skip
    judged = [pair for at in order.tolist() for pair in (_Neighbours(), *pairs[at])]
    sides = values.shape[1]
    cells = {
        "row": np.repeat(rows["row"], sides), "side": np.tile(np.arange(sides), len(order)), "value": values.ravel(),
        "delta": (values - first).ravel(), "diff": diff.ravel(),
        "previous_diff": np.array([pair.diff for pair in judged], dtype=np.float64),
        "verdict": objects([pair.verdict for pair in judged]),
        "q": np.array([pair.q for pair in judged], dtype=np.float64),
    }  # fmt: skip
    made = {"rows": rows, "cells": cells}
    return {name: Columns(columns).only(MATRIX_COLUMNS[name]) for name, columns in made.items()}
