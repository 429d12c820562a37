"""From the rows of a side at (run, rank, step) to the number of each key, with the very functions that ingest uses.

Each column has ranks of its own: those that state it. What medians hide of a sum is in the row `rest` of the sum.
"""

from __future__ import annotations

from math import fsum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from tracker.columns import objects
from tracker.store.samples.statistics import is_sparse, over_ranks, over_runs, over_steps, sparse_steps, sums_per_step
from tracker.table import number_distinct_rows, rank_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracker.columns import F64, I64, Texts
    from tracker.compare.sides import Loaded
    from tracker.table import Numbered

GRAIN: Final = ("rank", "step")
"""How fine a question about a side is asked, so that its rows can be reduced."""
_NO_STEPS: Final = np.array([-1])
Steps = tuple["I64", "F64"]
"""The numbers of the steps of a rank, ascending, and of how many steps each is the mean."""


def of_side(
    side: Loaded,
    rows: Numbered,
    columns: Sequence[str],
    whole: Sequence[str] = (),
    parts: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, F64]:
    """The number of each key per column; nan where no row states it. `rows`: at GRAIN; several of one key add up, as
    far as they are known. In `whole` a key is nan where any row of it is unknown. `parts`: a column -> the one that it
    is a part of, so that it is of the same ranks.
    """
    return of_runs(rows, per_run(side, rows, columns, parts), whole)


def of_runs(rows: Numbered, runs: Mapping[str, F64], whole: Sequence[str] = ()) -> dict[str, F64]:
    """The mean over runs of what `per_run` found."""
    found = {name: over_runs(table) for name, table in runs.items()}
    for name in whole:
        found[name][rows.number[~rows.rows.known(name)]] = np.nan
    return found


def per_run(
    side: Loaded, rows: Numbered, columns: Sequence[str], parts: Mapping[str, str] = MappingProxyType({})
) -> dict[str, F64]:
    """The same before the mean over runs: (keys, runs) per column, in the order of `side.run_ids`."""
    run, rank, step = (rows.rows.integers(name) for name in ("run_id", *GRAIN))
    order = np.lexsort([rank, run])
    run, rank, step, number = run[order], rank[order], step[order], rows.number[order]
    values = {name: rows.rows.reals(name)[order] for name in columns}
    found = {name: np.full((rows.count, len(side.run_ids)), np.nan) for name in columns}
    for at, run_id in enumerate(side.run_ids):
        members = list(_ranks(side, run_id))
        first, last = np.searchsorted(run, [run_id, run_id + 1]).tolist()
        keys, local = np.unique(number[first:last], return_inverse=True)
        cells = []
        for member, _, steps in members:
            start, end = np.searchsorted(rank[first:last], [member, member + 1]).tolist()
            of_rank = slice(first + start, first + end)
            cells.append(_cells_of_rank(local[start:end], step[of_rank], of_rank, steps))
        stages = np.array([stage for _, stage, _ in members], dtype=np.int64)
        shape = (len(keys), len(members))
        for name in columns:
            numbers = _over_steps(cells, values[name], shape)
            # only one or two columns at a time: a run can have thousands of ranks with thousands of keys
            whole = _over_steps(cells, values[parts[name]], shape) if parts.get(name) in values else None
            found[name][keys, at] = over_ranks(numbers, stages, whole)
    return found


class _Cells(Struct, frozen=True):
    """Where the rows of a rank stand in a table of its keys and steps. `rows`: which rows they are; `keys`: those that
    the rank has; `cell`: of each row, key * steps + step; `weights`: of how many steps each step is the mean.
    """

    rows: I64
    keys: I64
    cell: I64
    weights: F64


def _cells_of_rank(number: I64, step: I64, of_rank: slice, steps: Steps) -> _Cells:
    """The cells of the rows `of_rank`, with the keys `number` and the steps `step`; without rows in other steps."""
    numbers, weights = steps
    rows = np.arange(of_rank.start, of_rank.stop)
    place = np.minimum(np.searchsorted(numbers, step), len(numbers) - 1)
    if numbers[0] >= 0:
        inside = np.flatnonzero(numbers[place] == step)
        number, place, rows = number[inside], place[inside], rows[inside]
    keys, own = np.unique(number, return_inverse=True)
    return _Cells(rows, keys, own * len(numbers) + place, weights)


def _over_steps(cells: Sequence[_Cells], values: F64, shape: tuple[int, int]) -> F64:
    """The number of each key over the steps of each rank: (keys, ranks), nan where a rank does not state it."""
    table = np.full(shape, np.nan)
    for place, rank in enumerate(cells):
        own = (len(rank.keys), len(rank.weights))
        if is_sparse(len(rank.rows), own):
            numbers = sparse_steps(rank.cell, values[rank.rows], own, rank.weights).over_steps()
        else:
            numbers = over_steps(sums_per_step(rank.cell, values[rank.rows], own) / rank.weights, rank.weights)
        table[rank.keys, place] = numbers
    return table


def of_steps(side: Loaded, columns: Sequence[str]) -> dict[str, F64]:
    """The number of each run per column of its steps, in the order of `side.run_ids`; nan where no step states it."""
    run, rank = (side.steps.integers(name) for name in ("run_id", "rank"))
    table = np.array([side.steps.reals(name) for name in columns]).reshape(len(columns), len(run))
    weights = side.steps.reals("steps")
    found = np.full((len(columns), len(side.run_ids)), np.nan)
    for at, run_id in enumerate(side.run_ids):
        members = list(_ranks(side, run_id))
        own = [np.flatnonzero((run == run_id) & (rank == member)) for member, _, _ in members]
        of_ranks = [
            over_steps(table[:, rows], weights[rows]) if len(rows) else np.full(len(columns), np.nan) for rows in own
        ]
        stages = np.array([stage for _, stage, _ in members], dtype=np.int64)
        found[:, at] = over_ranks(np.array(of_ranks).reshape(-1, len(columns)).T, stages)
    return dict(zip(columns, found, strict=True))


def _ranks(side: Loaded, run_id: int) -> Iterator[tuple[int, int, Steps]]:
    """The ranks of a run with their stage and steps; a rank without steps is one step."""

    def of_runs() -> dict[int, list[tuple[int, int, Steps]]]:
        steps: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for run, rank, step, count in side.steps.rows("run_id", "rank", "step", "steps"):
            steps.setdefault((run, rank), []).append((step, count))
        found: dict[int, list[tuple[int, int, Steps]]] = {}
        for run, rank, stage in side.captures.rows("run_id", "rank", "stage"):
            own = np.array(sorted(steps.get((run, rank), ())), dtype=np.int64).reshape(-1, 2)
            numbers = (own[:, 0], own[:, 1].astype(np.float64)) if len(own) else (_NO_STEPS, np.ones(1))
            found.setdefault(run, []).append((rank, stage, numbers))
        return found

    yield from side.once("ranks with steps", of_runs).get(run_id, ())


def exact_sums(numbers: F64, place: I64, count: int) -> F64:
    """The sum at each place of what is known there, nan where nothing is; rounded once, so that it does not depend on
    the order and what cancels leaves 0.
    """
    told = ~np.isnan(numbers)
    numbers, place = numbers[told], place[told]
    rows, found = np.bincount(place, minlength=count), np.full(count, np.nan)
    alone = rows[place] == 1
    found[place[alone]] = numbers[alone]
    several: dict[int, list[float]] = {}
    for at, number in zip(place[~alone].tolist(), numbers[~alone].tolist(), strict=True):
        several.setdefault(at, []).append(number)
    for at, own in several.items():
        found[at] = fsum(own)
    return found


def extremes(rows: Numbered, low: str, high: str) -> dict[str, F64]:
    """The smallest `low` and the largest `high` of each key over all runs, ranks and steps; nan without rows."""
    found = {}
    for column, extreme in ((low, np.fmin), (high, np.fmax)):
        found[column] = np.full(rows.count, np.nan)
        extreme.at(found[column], rows.number, rows.rows.reals(column))
    return found


def dominant(rows: Numbered, text: str, weight: str) -> Texts:
    """For each key the non-empty `text` that carries most `weight`; ties go to the first in the alphabet; "" where
    there is none.
    """
    texts = rows.rows.texts(text)
    found, told = objects([""] * rows.count), np.flatnonzero(texts != "")
    if len(told):
        place, first = number_distinct_rows([rows.number[told], texts[told]])
        carried = np.bincount(place, np.nan_to_num(rows.rows.reals(weight))[told], len(first))
        own, names = rows.number[told][first], texts[told][first]
        order = np.lexsort([rank_values(names), -carried, own])[::-1]
        found[own[order]] = names[order]  # the last one stays
    return found


def distinct_texts(rows: Numbered, text: str) -> Texts:
    """For each key its distinct `text` values in order, joined by ` | `; "" where there is none."""
    texts = rows.rows.texts(text)
    first = number_distinct_rows([rows.number, texts])[1]
    own, names = rows.number[first], texts[first]
    found = objects([""] * rows.count)
    found[own] = names
    for key in np.flatnonzero(np.bincount(own, minlength=rows.count) > 1):
        found[key] = " | ".join(sorted({*names[own == key]} - {""}))
    return found
