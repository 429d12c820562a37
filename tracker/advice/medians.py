"""The numbers of a usual step: medians over the steps of each rank, as `show` prints them.

What most steps do not have has the mean instead, as anywhere. What comes in one step alone is no part of a usual step:
a first collective that waits for the last rank to start, or one late batch. Of waiting the median holds in any case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from tracker.columns import F64, I64, Columns
from tracker.profile import known_medians
from tracker.schema.column_names import KEY, RANK, STEP
from tracker.store.samples.statistics import is_sparse, over_steps, sparse_steps, sums_per_step
from tracker.table import split_rows_by_value

if TYPE_CHECKING:
    from tracker.store.queries.ops_and_kernels import StepRows


class RankSteps(Struct, frozen=True, eq=False):
    """The steps of a rank, ascending, and of how many steps each is the mean."""

    numbers: I64
    weights: F64

    @property
    def count(self) -> float:
        """How many steps were captured."""
        return float(self.weights.sum())


def median_over_steps(table: F64, weights: F64) -> F64:
    """Return the median of each row of (rows, steps), 0 for what most steps do not have; nan where none knows it.

    >>> median_over_steps(np.array([[0.0, 0.0, 90.0], [10.0, 20.0, 90.0]]), np.ones(3)).tolist()
    [0.0, 20.0]
    """
    if (weights == weights[:1]).all():
        return known_medians(table)
    has_it = np.where(np.isnan(table), 0.0, (table > 0) * weights).sum(axis=1)
    is_known = np.where(np.isnan(table), 0.0, weights).sum(axis=1)
    # over_steps gives the mean where the median is 0
    return np.where(2 * has_it < is_known, 0.0, over_steps(table, weights))


def steps_of_ranks(steps: Columns) -> dict[int, RankSteps]:
    """Return the steps of each rank. steps: rank, step and steps of each."""
    rank, step, weight = (steps.integers(name) for name in ("rank", "step", "steps"))
    order = np.argsort(step, kind="stable")
    rank, step, weight = rank[order], step[order], weight[order]
    found = {}
    for number, own in split_rows_by_value(rank).items():
        found[number] = RankSteps(step[own], weight[own].astype(np.float64))
    return found


class UsualRows(Struct, frozen=True, eq=False):
    """What `reduce_rows` gives: of each rank and key, in their order, the numbers of a usual step."""

    rank: I64
    key: I64
    numbers: Mapping[str, F64]


def reduce_rows(found: StepRows, steps: Mapping[int, RankSteps], names: Sequence[str]) -> UsualRows:
    """Return the numbers of each rank and key in a usual step, as far as the rows lie in `steps`."""
    step, key = found.rows.integers(STEP), found.rows.integers(KEY)
    of_rank = split_rows_by_value(found.rows.integers(RANK))
    values = {name: found.rows.reals(name) for name in names}
    parts: list[tuple[int, I64, dict[str, F64]]] = []
    for number, own in steps.items():
        rows = of_rank.get(number, np.zeros(0, dtype=np.int64))
        place = np.minimum(np.searchsorted(own.numbers, step[rows]), len(own.numbers) - 1)
        inside = own.numbers[place] == step[rows]
        rows, place = rows[inside], place[inside]
        keys, local = np.unique(key[rows], return_inverse=True)
        shape = (len(keys), len(own.numbers))
        cell = local * shape[1] + place
        parts.append((number, keys, {name: _reduce(cell, values[name][rows], shape, own.weights) for name in names}))
    return UsualRows(
        rank=np.concatenate([np.full(len(keys), number) for number, keys, _ in parts] or [np.zeros(0, dtype=np.int64)]),
        key=np.concatenate([keys for _, keys, _ in parts] or [np.zeros(0, dtype=np.int64)]),
        numbers={name: np.concatenate([own[name] for _, _, own in parts] or [np.zeros(0)]) for name in names},
    )


def _reduce(cell: I64, values: F64, shape: tuple[int, int], weights: F64) -> F64:
    """Return the number of each row of a table (rows, steps) of which `cell` are filled, the others 0."""
    if not is_sparse(len(cell), shape):
        return over_steps(sums_per_step(cell, values, shape) / weights, weights)
    return sparse_steps(cell, values, shape, weights).over_steps()
