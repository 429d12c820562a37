"""Two sides side by side: the number of each key, one row per key of either side, and the change.

The rows of a side are at (run, rank, step). They become numbers by the functions that ingest uses; each column has
ranks of its own: those that state it. What medians hide of a sum is in the row `rest` of the sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import fsum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np
from msgspec import Struct
from msgspec.structs import fields

from tracker.columns import Column, Columns, objects
from tracker.compare.side import GRAIN
from tracker.results import ADDED, BOTH, DIFF_COLUMNS, REMOVED
from tracker.results.columns import DIFF_ROWS, MATCHED_COLUMNS
from tracker.results.verdicts import RowVerdict
from tracker.schema.column_names import (
    BASELINE_CALLS,
    BASELINE_NS,
    CANDIDATE_CALLS,
    CANDIDATE_NS,
    RANK,
    RUN_ID,
    STAGE,
    STEP,
    STEPS,
)
from tracker.schema.levels import LEVEL
from tracker.store.samples.statistics import (
    is_sparse,
    order_cells,
    over_rank_cells,
    over_ranks,
    over_runs,
    over_steps,
    sparse_steps,
    sums_per_step,
)
from tracker.table import number_distinct_rows, number_tables, rank_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracker.columns import F64, I64, Texts
    from tracker.compare.side import LoadedSide
    from tracker.table import Numbered


_NO_STEPS: Final = np.array([-1])
CELLS_AT_ONCE: Final = 1 << 15
"""Of a table of what ranks have and their steps: as large as takes no time to fill, and little room."""
Steps = tuple["I64", "F64"]
"""The numbers of the steps of a rank, ascending, and of how many steps each is the mean."""


def reduce_side(
    side: LoadedSide,
    rows: Numbered,
    columns: Sequence[str],
    whole: Sequence[str] = (),
    parts: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, F64]:
    """Return the number of each key per column; nan where no row states it.

    `rows`: at GRAIN; several of one key add up, as far as they are known. In `whole` a key is nan where any row of it
    is unknown. `parts`: a column -> the one that it is a part of, so that it is of the same ranks.
    """
    return reduce_runs(rows, reduce_per_run(side, rows, columns, parts), whole)


def reduce_runs(rows: Numbered, runs: Mapping[str, F64], whole: Sequence[str] = ()) -> dict[str, F64]:
    """Return the mean over runs of what `reduce_per_run` found."""
    found = {name: over_runs(table) for name, table in runs.items()}
    for name in whole:
        found[name][rows.number[~rows.rows.known(name)]] = np.nan
    return found


def reduce_per_run(
    side: LoadedSide, rows: Numbered, columns: Sequence[str], parts: Mapping[str, str] = MappingProxyType({})
) -> dict[str, F64]:
    """Return the same before the mean over runs: (keys, runs) per column, in the order of `side.run_ids`."""
    run, rank, step = (rows.rows.integers(name) for name in (RUN_ID, *GRAIN))
    order = np.lexsort([rank, run])
    run, rank, step, number = run[order], rank[order], step[order], rows.number[order]
    values = {name: rows.rows.reals(name)[order] for name in columns}
    found = {name: np.full((rows.count, len(side.run_ids)), np.nan) for name in columns}
    for at, run_id in enumerate(side.run_ids):
        members = list(_ranks_of_run(side, run_id))
        first, last = np.searchsorted(run, [run_id, run_id + 1]).tolist()
        has_row = np.bincount(number[first:last], minlength=rows.count) > 0
        keys = np.flatnonzero(has_row)
        local = (np.cumsum(has_row) - 1)[number[first:last]]
        # of the ranks that have a key: a run can have thousands of ranks with thousands of keys of their own
        key, place = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        of_ranks = {name: [np.zeros(0)] for name in columns}
        for cells in _cells_of_ranks(local, rank[first:last], step[first:last], members):
            key.append(cells.key)
            place.append(cells.place)
            for name in columns:
                of_ranks[name].append(_over_steps(cells, values[name][first:last]))
        stages = np.array([stage for _, stage, _ in members], dtype=np.int64)
        there, order = order_cells(np.concatenate(key), np.concatenate(place), stages, len(keys))
        numbers = {name: np.concatenate(parts_of_ranks)[order] for name, parts_of_ranks in of_ranks.items()}
        for name in columns:
            whole = numbers.get(parts.get(name, "")) if len(members) > 1 else None
            found[name][keys, at] = over_rank_cells(there, numbers[name], whole)
    return found


class _Cells(Struct, frozen=True):
    """Where the rows of ranks with the same steps stand in a table of what each rank has and these steps.

    `rows`: which rows they are; `key`, `place`: of each line of the table its key, and the place of its rank among
    those of the run; `cell`: of each row, line * steps + step; `weights`: of how many steps each step is the mean.
    """

    rows: I64
    key: I64
    place: I64
    cell: I64
    weights: F64


def _cells_of_ranks(number: I64, rank: I64, step: I64, members: Sequence[tuple[int, int, Steps]]) -> Iterator[_Cells]:
    """Yield the cells of the rows of a run, with the keys `number`, by ascending `rank`; without rows in other steps.

    Ranks with the same steps come together, as many as fill a table of CELLS_AT_ONCE cells.
    """
    key_count = int(number.max(initial=0)) + 1
    places_of_steps: dict[tuple[bytes, bytes], list[int]] = {}
    for place, (_, _, (numbers, weights)) in enumerate(members):
        places_of_steps.setdefault((numbers.tobytes(), weights.tobytes()), []).append(place)
    for places in places_of_steps.values():
        _, _, (numbers, weights) = members[places[0]]
        at_once = max(1, CELLS_AT_ONCE // (key_count * len(numbers)))
        for start in range(0, len(places), at_once):
            some = np.array(places[start : start + at_once], dtype=np.int64)
            ranks = np.array([members[place][0] for place in some.tolist()], dtype=np.int64)
            begin, end = np.searchsorted(rank, ranks[0]), np.searchsorted(rank, ranks[-1], side="right")
            own = np.minimum(np.searchsorted(ranks, rank[begin:end]), len(ranks) - 1)
            at = np.minimum(np.searchsorted(numbers, step[begin:end]), len(numbers) - 1)
            is_inside = ranks[own] == rank[begin:end]
            # a capture without markers is one step, in which all of its rows are
            if numbers[0] >= 0:
                is_inside &= numbers[at] == step[begin:end]
            rows = begin + np.flatnonzero(is_inside)
            lines, line = np.unique(own[is_inside] * key_count + number[rows], return_inverse=True)
            cell = line * len(numbers) + at[is_inside]
            yield _Cells(rows, lines % key_count, some[lines // key_count], cell, weights)


def _over_steps(cells: _Cells, values: F64) -> F64:
    """Return the number of each key of a rank over its steps, in the order of `cells`; nan where it is not stated."""
    shape = (len(cells.key), len(cells.weights))
    if is_sparse(len(cells.rows), shape):
        return sparse_steps(cells.cell, values[cells.rows], shape, cells.weights).over_steps()
    return over_steps(sums_per_step(cells.cell, values[cells.rows], shape) / cells.weights, cells.weights)


def reduce_steps(side: LoadedSide, columns: Sequence[str]) -> dict[str, F64]:
    """Return the number of each run per column of its steps, in the order of `side.run_ids`; nan where no step states
    it.
    """
    run, rank = (side.steps.integers(name) for name in (RUN_ID, RANK))
    table = np.array([side.steps.reals(name) for name in columns]).reshape(len(columns), len(run))
    weights = side.steps.reals(STEPS)
    found = np.full((len(columns), len(side.run_ids)), np.nan)
    for at, run_id in enumerate(side.run_ids):
        members = list(_ranks_of_run(side, run_id))
        own = [np.flatnonzero((run == run_id) & (rank == member)) for member, _, _ in members]
        of_ranks = [
            over_steps(table[:, rows], weights[rows]) if len(rows) else np.full(len(columns), np.nan) for rows in own
        ]
        stages = np.array([stage for _, stage, _ in members], dtype=np.int64)
        found[:, at] = over_ranks(np.array(of_ranks).reshape(-1, len(columns)).T, stages)
    return dict(zip(columns, found, strict=True))


def _ranks_of_run(side: LoadedSide, run_id: int) -> Iterator[tuple[int, int, Steps]]:
    """Yield the ranks of a run with their stage and steps; a rank without steps is one step."""

    def of_runs() -> dict[int, list[tuple[int, int, Steps]]]:
        steps: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for run, rank, step, count in side.steps.rows(RUN_ID, RANK, STEP, STEPS):
            steps.setdefault((run, rank), []).append((step, count))
        found: dict[int, list[tuple[int, int, Steps]]] = {}
        for run, rank, stage in side.captures.rows(RUN_ID, RANK, STAGE):
            own = np.array(sorted(steps.get((run, rank), ())), dtype=np.int64).reshape(-1, 2)
            numbers = (own[:, 0], own[:, 1].astype(np.float64)) if len(own) else (_NO_STEPS, np.ones(1))
            found.setdefault(run, []).append((rank, stage, numbers))
        return found

    yield from side.remember("ranks with steps", of_runs).get(run_id, ())


def sum_exactly(numbers: F64, place: I64, count: int) -> F64:
    """Return the sum at each place of what is known there, nan where nothing is; rounded once, so that it does not
    depend on the order and what cancels leaves 0.
    """
    is_stated = ~np.isnan(numbers)
    numbers, place = numbers[is_stated], place[is_stated]
    rows, found = np.bincount(place, minlength=count), np.full(count, np.nan)
    alone = rows[place] == 1
    found[place[alone]] = numbers[alone]
    several: dict[int, list[float]] = {}
    for at, number in zip(place[~alone].tolist(), numbers[~alone].tolist(), strict=True):
        several.setdefault(at, []).append(number)
    for at, own in several.items():
        found[at] = fsum(own)
    return found


def find_extremes(rows: Numbered, low: str, high: str) -> dict[str, F64]:
    """Return the smallest `low` and the largest `high` of each key over all runs, ranks and steps; nan without rows."""
    found = {}
    for column, extreme in ((low, np.fmin), (high, np.fmax)):
        found[column] = np.full(rows.count, np.nan)
        extreme.at(found[column], rows.number, rows.rows.reals(column))
    return found


def dominant_texts(rows: Numbered, text: str, weight: str) -> Texts:
    """Return for each key the non-empty `text` that carries most `weight`; ties go to the first in the alphabet; ""
    where there is none.
    """
    texts = rows.rows.texts(text)
    found, with_text = objects([""] * rows.count), np.flatnonzero(texts != "")
    if len(with_text):
        place, first = number_distinct_rows([rows.number[with_text], texts[with_text]])
        carried = np.bincount(place, np.nan_to_num(rows.rows.reals(weight))[with_text], len(first))
        own, names = rows.number[with_text][first], texts[with_text][first]
        order = np.lexsort([rank_values(names), -carried, own])[::-1]
        found[own[order]] = names[order]  # the last one stays
    return found


def join_distinct_texts(rows: Numbered, text: str) -> Texts:
    """Return for each key its distinct `text` values in order, joined by ` | `; "" where there is none."""
    texts = rows.rows.texts(text)
    first = number_distinct_rows([rows.number, texts])[1]
    own, names = rows.number[first], texts[first]
    found = objects([""] * rows.count)
    found[own] = names
    for key in np.flatnonzero(np.bincount(own, minlength=rows.count) > 1):
        found[key] = " | ".join(sorted({*names[own == key]} - {""}))
    return found


def empty_table(table: str) -> Columns:
    """Return the rows `table` of a Diff where neither side has any: to join nothing with nothing takes as long
    as rows.
    """
    kinds = {**_kinds_of_keys(table), **_kinds_of_fields(DIFF_ROWS[table])}
    # what has no field and is no key is a number
    return Columns({name: _empty_column(kinds.get(name, float)) for name in DIFF_COLUMNS[table]})


def _kinds_of_keys(table: str) -> Mapping[str, Any]:
    """Return the type of each text by which the rows of a declared level are matched; none for other tables."""
    matched = MATCHED_COLUMNS.get(table)
    if matched is None or not matched.level:
        return {}
    kinds_of_level = LEVEL[matched.level].row_kinds
    return {name: str for name in matched.key if kinds_of_level.get(name) == "text"}


@cache
def _kinds_of_fields(kind: type[Struct]) -> Mapping[str, Any]:
    """Return the type of each field of a row."""
    return {field.name: field.type for field in fields(kind)}


def _empty_column(kind: Any) -> Texts | F64 | Column:
    """Return a column without rows. `kind`: the type of its values, or that or None."""
    if kind is str or str in get_args(kind):
        return objects([])
    if kind is int or int in get_args(kind):
        return Column.of([], np.int64)
    return np.zeros(0)


def finish_table(table: str, rows: Columns) -> Columns:
    """Return the rows `table` of a Diff; in their VERDICT_COLUMNS nothing stands yet: `verdicts` fills them."""
    return with_empty_verdicts(rows).only(DIFF_COLUMNS[table])


def with_empty_verdicts(rows: Columns) -> Columns:
    """Return `rows` with VERDICT_COLUMNS in which nothing stands yet."""
    texts, numbers = objects([None] * len(rows)), np.full(len(rows), np.nan)
    kinds = _kinds_of_fields(RowVerdict)
    return rows.having(**{name: texts if str in get_args(kind) else numbers for name, kind in kinds.items()})


def make_table(kind: type[Struct], rows: Sequence[Struct]) -> Columns:
    """Return the rows of a table of a Diff as columns: texts, whole numbers where the fields of `kind` are these, else
    real numbers, nan for missing.
    """
    table = Columns.of_structs(kind, rows)
    numbers: dict[str, F64 | I64] = {}
    for name, type_of_field in _kinds_of_fields(kind).items():
        if type_of_field is int:
            numbers[name] = np.array(table.listed(name), dtype=np.int64)
        elif type_of_field is not str and str not in get_args(type_of_field):
            numbers[name] = table.reals(name)
    return table.having(**numbers)


def match_sums(
    sides: Sequence[LoadedSide], parts: Sequence[Columns], key: Sequence[str], sums: Sequence[str]
) -> Columns:
    """Return the rows of both sides matched by `key`, with their `sums`; see `reduce_side`."""
    rows, keys = number_tables(parts, key)
    return match_rows(keys, rows, [reduce_side(*own, sums) for own in zip(sides, rows, strict=True)])


def match_rows(keys: Columns, rows: Sequence[Numbered], tables: Sequence[Mapping[str, F64]]) -> Columns:
    """Two sides side by side: the keys, `status`, then `baseline_x`, `candidate_x` for each x of their `tables`, which
    have a row per key. `rows`: those of either side, by which it has a key or not.

    A key on one side only is ADDED or REMOVED, and its numbers on the other side are nan.
    """
    there = np.zeros((2, len(keys)), dtype=bool)
    for has, own in zip(there, rows, strict=True):
        has[own.number] = True
    status = objects([REMOVED, ADDED, BOTH])[np.maximum(there[0] + 2 * there[1] - 1, 0)]
    sides = zip(("baseline", "candidate"), tables, strict=True)
    return keys.having(status=status, **{f"{side}_{name}": own for side, table in sides for name, own in table.items()})


def add_difference(rows: Columns, value: str, *, unit: str = "ns") -> Columns:
    """Return `rows` with `delta_<unit>` (candidate - baseline, one-sided rows count the other side as 0) and `diff`,
    largest change first.

    `diff` = candidate / baseline - 1; nan where the baseline is missing or 0 and where the candidate is missing.
    """
    baseline, candidate = rows[f"baseline_{value}"], rows[f"candidate_{value}"]
    delta = np.nan_to_num(candidate) - np.nan_to_num(baseline)
    delta[np.isnan(baseline) & np.isnan(candidate)] = np.nan
    result = rows.having(**{f"delta_{unit}": delta, "diff": relative_change(baseline, candidate)})
    return sort_by_size(result, f"delta_{unit}", np.fmax(baseline, candidate))


def relative_change(baseline: F64, candidate: F64) -> F64:
    """Return candidate / baseline - 1; nan where it says nothing (no baseline or one below 0, or nothing on a side).

    >>> relative_change(np.array([2.0, 0.0, -5.0, 5.0]), np.array([3.0, 1.0, 1.0, np.nan])).tolist()
    [0.5, nan, nan, nan]
    """
    return candidate / np.where(baseline > 0, baseline, np.nan) - 1


def sort_by_size(rows: Columns, delta: str, larger: F64 | None = None) -> Columns:
    """Return rows by |`delta`| descending, missing last; ties by the `larger` number of a row, then by the texts and
    the numbers of the key, so that the order is total.
    """
    change: F64 = rows[delta]
    size = np.round(np.abs(change), 6)
    second = size if larger is None else larger
    order = np.lexsort([-second, -size])
    place, _ = number_distinct_rows([size[order], second[order]])
    tied = np.flatnonzero(np.bincount(place)[place] > 1) if len(place) else place
    if len(tied):
        own = order[tied]
        telling = [rank_values(column[own]) for column in _telling(rows)]
        order[tied] = own[np.lexsort([*reversed(telling), place[tied]])]
    return rows.taken(order)


def _telling(rows: Columns) -> list[Any]:
    """Return the columns that tell rows from each other: the texts, then the whole numbers, which are of the key."""
    texts = []
    whole_numbers = []
    for column in rows.arrays.values():
        if isinstance(column, Column):
            whole_numbers.append(column)
        elif column.dtype == object:
            texts.append(column)
        elif column.dtype == np.int64:
            whole_numbers.append(column)
    return [*texts, *whole_numbers]


def keep_large(rows: Columns, value: str, minimum_ns: int | None) -> Columns:
    """Return the rows in which `value` of one side is at least `minimum_ns`; all rows for None."""
    if minimum_ns is None:
        return rows
    largest = np.fmax(rows[f"baseline_{value}"], rows[f"candidate_{value}"])
    return rows.taken(np.nan_to_num(largest) >= minimum_ns)


def add_average(rows: Columns, total: str, calls: str, into: str) -> Columns:
    """Return `rows` with `<side>_<into>` = `<side>_<total>` / `<side>_<calls>` for both sides, nan without calls."""
    added = {}
    for side in ("baseline", "candidate"):
        count = rows[f"{side}_{calls}"]
        added[f"{side}_{into}"] = rows[f"{side}_{total}"] / np.where(count > 0, count, np.nan)
    return rows.having(**added)


def split_by_calls(rows: Columns) -> Columns:
    """Return the change of each row that is on both sides, split exactly: more calls at the old price, then the new
    price for the new calls.

    delta = (n1 - n0) * t0 + n1 * (t1 - t0), with n calls and t = ns / n of a side; nan where a side has no calls.
    """
    calls0, calls1 = rows[BASELINE_CALLS], rows[CANDIDATE_CALLS]
    price0 = rows[BASELINE_NS] / np.where(calls0 > 0, calls0, np.nan)
    by_calls = np.where(calls1 > 0, (calls1 - calls0) * price0, np.nan)
    delta = rows[CANDIDATE_NS] - rows[BASELINE_NS]
    return rows.having(calls_delta_ns=by_calls, per_call_delta_ns=delta - by_calls)
