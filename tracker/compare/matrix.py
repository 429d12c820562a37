"""Three or more sides beside each other: each against the first one, and judged against the one before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import Columns, objects
from tracker.compare import comparable as recordings
from tracker.compare import match, operators, overall, sections, verdicts
from tracker.compare.bubbles import with_known_bubbles
from tracker.compare.filters import check_named
from tracker.compare.loading import load_all
from tracker.compare.match import sum_exactly
from tracker.compare.notes import warnings
from tracker.compare.pairs import check_one_track
from tracker.compare.references import find_named, needs_store
from tracker.compare.sections import compare_table
from tracker.compare.step_kinds import keep_shared_kind
from tracker.errors import UsageError
from tracker.results import DiffOptions, Matrix, check_matrix
from tracker.schema.column_names import (
    CATEGORY,
    DATA_TYPE,
    GROUP_ROLE,
    INPUT_SHAPES,
    LEVEL,
    METRIC,
    NAME,
    PHASE,
    SECTION,
    SIZE_CLASS_BYTES,
    TITLE,
)
from tracker.table import Numbered, number_tables
from tracker.units import format_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracker.columns import F64, I64, Texts
    from tracker.compare.side import LoadedSide
    from tracker.store import Store

_DEEPEST: Final = 1
"""Level of the overall rows that a matrix shows: the parts of a step, not the categories of kernels."""

_KEY: Final = ("section", "name", "input_shapes", "part", "level", "unit")


def matrix(
    store: Store | None, references: Sequence[str], *, by: str = "op", options: DiffOptions | None = None
) -> Matrix:
    """Return the numbers of three or more sides; `store` and the sides as for `diff`, `by`: a word of MATRIX_ROWS.

    UsageError for fewer sides, and for options that compare two sides only.
    """
    options = options or DiffOptions()
    if len(references) < 3:
        raise UsageError(f"a matrix of {len(references)} sides", remedy="name three or more")
    check_matrix(options, by)
    whole = replace(options, minimum_ns=None)  # a row may be small in two neighbours and large in a third side
    with ExitStack() as stack:
        if store is not None and all(map(needs_store, references)):
            stack.enter_context(store.reading())
        chosen = find_named(store, references, options.workload, options.config)
        references, runs = chosen.references, chosen.runs
        if store is not None:
            check_one_track(store, runs)
        loaded = [with_known_bubbles(side) for side in load_all(store, references, options, stack, runs=runs)]
        sides, on_kinds = keep_shared_kind(loaded, options.step_kind)
        found_of = [recordings.compare_recordings(*pair, whole)[0] for pair in pairwise(sides)]
        if any(found.by_name for found in found_of):
            whole = replace(whole, match="name")  # one key for all sides
        judged = [verdicts.judge(*pair, whole, found) for pair, found in zip(pairwise(sides), found_of, strict=True)]
        pairs = [
            Columns.stacked([_of_overall(*pair, found), _of_rows(*pair, found, by, whole)])
            for pair, found in zip(pairwise(sides), judged, strict=True)
        ]
        tables = _joined(pairs, options.minimum_ns)
        if options.op and by not in tables["rows"][SECTION]:
            everything = [
                operators.compare(*pair, replace(whole, op=None, module=None)).ops for pair in pairwise(sides)
            ]
            names = (name for table in everything for name in table.listed(NAME))
            check_named("operator", options.op, names, sides)
        metrics = {operators.own_time(side) for side in sides}
        of_recordings = [note for found in found_of for note in found.notes()]
        return Matrix(
            sides=tuple(side.side for side in sides),
            metric=metrics.pop() if len(metrics) == 1 else "self_ns",
            by=by,
            tables=tables,
            judged=tuple(" ".join(found.judgement.sentences) for found in judged),
            options=options,
            notes=tuple(dict.fromkeys([*chosen.notes, *on_kinds, *of_recordings, *warnings(sides)])),
        )


def _of_overall(before: LoadedSide, after: LoadedSide, judged: verdicts.Judged) -> Columns:
    found = judged.add_verdicts("overall", overall.compare_overall(before, after))
    found = found.taken(found.integers(LEVEL) <= _DEEPEST)
    return _section("overall", found, "value", name=found[TITLE], part=found[METRIC])


def _of_rows(before: LoadedSide, after: LoadedSide, judged: verdicts.Judged, by: str, options: DiffOptions) -> Columns:
    name, compare, parts = _ROWS[by]
    found = judged.add_verdicts(name, compare(before, after, options))
    named = found[{"communication": "kind", "module": "module"}.get(by, "name")]
    ns = {"level": np.zeros(len(found), dtype=np.int64), "unit": objects(["ns"] * len(found))}
    return _section(by, found, "ns", name=named, part=objects(parts(found)), **ns)


def _section(section: str, found: Columns, value: str, **columns: Any) -> Columns:
    """Return the rows of a section of a matrix, with the numbers of two neighbours."""
    shapes = found[INPUT_SHAPES] if INPUT_SHAPES in found else objects([""] * len(found))
    ends = {"before": found[f"baseline_{value}"], "after": found[f"candidate_{value}"]}
    made = found.having(section=objects([section] * len(found)), input_shapes=shapes, **ends, **columns)
    return made.only([*_KEY, *ends, "diff", "verdict", "q", "reason"])


def _ops(before: LoadedSide, after: LoadedSide, options: DiffOptions) -> Columns:
    return operators.compare(before, after, options).ops


def _groups(found: Columns) -> list[str]:
    rows = found.rows(GROUP_ROLE, DATA_TYPE, SIZE_CLASS_BYTES)
    return [", ".join(filter(None, (*texts, format_bytes(size) if size and size > 0 else ""))) for *texts, size in rows]


_ROWS: Final[
    Mapping[str, tuple[str, Callable[[LoadedSide, LoadedSide, DiffOptions], Columns], Callable[[Columns], list[str]]]]
] = {
    "op": ("ops", _ops, lambda found: [""] * len(found)),
    "kernel": ("kernels", partial(compare_table, sections.KERNELS), lambda found: found.listed(CATEGORY)),
    "communication": ("communication", partial(compare_table, sections.COMMUNICATION), _groups),
    "module": ("modules", partial(compare_table, sections.MODULES), lambda found: found.listed(PHASE)),
}
"""Word of MATRIX_ROWS -> table of a Diff, what makes it, and what tells its rows from others of their name."""


def _joined(pairs: Sequence[Columns], minimum_ns: int | None) -> dict[str, Columns]:
    """Return the tables of a matrix from those of each pair of neighbours."""
    rows, keys = number_tables(pairs, _KEY)
    found = [_summed(own) for own in rows]
    values = np.array([found[0].before, *(own.after for own in found)]).T
    filled = np.nan_to_num(values)
    movement = filled.max(axis=1) - filled.min(axis=1)
    is_overall = keys[SECTION] == "overall"
    keep = (filled != 0).any(axis=1)
    if minimum_ns is not None:
        keep &= (filled.max(axis=1) >= minimum_ns) | is_overall
    # overall in reading order, the others by movement; what overall rows of later pairs add stands behind
    order = np.lexsort((np.arange(len(values)), np.where(is_overall, 0.0, -movement.round(6)), ~is_overall))
    order = order[keep[order]]
    values, first = values[order], values[order, :1]
    count, sides = values.shape
    with np.errstate(invalid="ignore", divide="ignore"):
        diff = np.where(first != 0, values / first - 1, np.nan)
    no_number, no_word = np.full(len(keep), np.nan), objects([None] * len(keep))
    # against the side before, which the first one does not have
    previous = [no_number, *(own.diff for own in found)]
    verdicts = [no_word, *(own.verdict for own in found)]
    chances = [no_number, *(own.q for own in found)]
    reasons = [no_word, *(own.reason for own in found)]
    made = {"row": np.arange(count), **keys.taken(order).arrays, "movement": movement[order]}
    cells = {
        "row": np.repeat(np.arange(count), sides), "side": np.tile(np.arange(sides), count), "value": values.ravel(),
        "delta": (values - first).ravel(), "diff": diff.ravel(), "previous_diff": _lay_out(previous, order),
        "verdict": _lay_out(verdicts, order), "q": _lay_out(chances, order), "reason": _lay_out(reasons, order),
    }  # fmt: skip
    return {"rows": Columns(made), "cells": Columns(cells)}


def _lay_out(of_sides: Sequence[NDArray[Any]], order: I64) -> NDArray[Any]:
    """Return a column of each side as one of cells: the rows in this order, in each row the sides."""
    return np.stack([column[order] for column in of_sides], axis=1).ravel()


class _Summed(Struct, frozen=True, eq=False):
    """The rows of two neighbours, one for each key of a matrix."""

    before: F64
    after: F64
    diff: F64
    verdict: Texts
    q: F64
    reason: Texts


def _summed(rows: Numbered) -> _Summed:
    """Return rows that differ in what a matrix does not show (types of cores, sizes of groups) add up, without a
    verdict.
    """
    before, after = (sum_exactly(rows.rows.reals(side), rows.number, rows.count) for side in ("before", "after"))
    no_word = objects([None] * rows.count)
    return _Summed(
        before=before,
        after=after,
        diff=_keep_of_alone(rows, "diff", match.relative_change(before, after)),
        verdict=_keep_of_alone(rows, "verdict", no_word),
        q=_keep_of_alone(rows, "q", np.full(rows.count, np.nan)),
        reason=_keep_of_alone(rows, "reason", no_word),
    )


def _keep_of_alone(rows: Numbered, name: str, summed: NDArray[Any]) -> NDArray[Any]:
    """Return a column of sums, with what rows say of themselves that are the only ones of their key."""
    is_alone = np.bincount(rows.number, minlength=rows.count)[rows.number] == 1
    column = summed.copy()
    column[rows.number[is_alone]] = rows.rows[name][is_alone]
    return column
