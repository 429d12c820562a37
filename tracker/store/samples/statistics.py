"""The number of a series: of a rank, of a run and of several runs, also over many rows that are empty in most steps.

The median over the steps of a rank, the median over the ranks of a stage that have it, the mean over the stages, the
geometric mean over the runs. Ingest and compare both use it, so that all commands print the same number.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import known_medians, medians_of_groups
from tracker.profile.odd_runs import LEAST_RUNS, find_odd_runs

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


LARGE_TABLE: Final = 1 << 20
"""Cells of a table that is small enough to be made, however few of them are filled."""

FEWEST_STEPS: Final = 3
"""Of fewer steps the median is half of what comes in one of them, as that of the step is."""

_FILLED: Final = 8
"""A table of which one cell in so many is filled is made: it takes no more than the rows that it is made of."""


def sums_per_step(cell: I64, values: F64, shape: tuple[int, int]) -> F64:
    """Return the sums per (series, step). A step without a row is a true 0; one whose rows are all nan is nan.

    >>> sums_per_step(np.array([0, 0, 2]), np.array([3.0, 4.0, np.nan]), (2, 2)).tolist()
    [[7.0, 0.0], [nan, 0.0]]
    """
    unknown = np.isnan(values)
    size = shape[0] * shape[1]
    # of no rows at all, bincount makes whole numbers
    sums = np.bincount(cell, np.where(unknown, 0.0, values), size).astype(np.float64)
    if unknown.any():
        stated = np.bincount(cell[~unknown], minlength=size) > 0
        sums[np.bincount(cell[unknown], minlength=size).astype(bool) & ~stated] = np.nan
    return sums.reshape(shape)


def over_steps(table: F64, weights: F64) -> F64:
    """Return the median of each row of (rows, steps) over the known steps; the mean where that is 0, for what comes in
    some steps only; 0 for what comes in one of three steps or more, which is no part of a usual step; nan where none is
    known. `weights`: how many steps each column is the mean of.

    >>> steps = np.array([[10.0, 20.0, 90.0], [0.0, 0.0, 90.0], [np.nan, 20.0, 90.0], [np.nan, 0.0, 90.0]])
    >>> over_steps(steps, np.ones(3)).tolist(), over_steps(steps[:3], np.array([1.0, 1.0, 8.0])).tolist()
    ([20.0, 0.0, 55.0, 45.0], [90.0, 90.0, 90.0])
    """
    if table.shape[1] == 1:
        return np.asarray(table[:, 0])
    middle = known_medians(table) if (weights == weights[:1]).all() else _weighted_medians(table, weights)
    found = np.where(middle == 0, mean_over_steps(table, weights), middle)
    if table.shape[1] < FEWEST_STEPS:
        return found
    has_it = (table > 0).sum(axis=1)
    # what few steps know is not known to be rare
    known = (~np.isnan(table)).sum(axis=1)
    return np.where((middle == 0) & (has_it == 1) & (known >= FEWEST_STEPS), 0.0, found)


def without_filling(times: F64, markers: F64) -> F64:
    """Return the times of the steps of a rank, in order of time, the first one nan where it holds the filling of the
    queue: its window is not the marker of the host, so that the device ran on behind it. `markers`: nan where a step is
    no window of the device.

    >>> without_filling(np.array([30.0, 20.0]), np.array([5.0, 5.0])).tolist()
    [nan, 20.0]
    """
    if len(times) < 2 or np.isnan(markers[0]) or times[0] == markers[0]:
        return times
    return np.append(np.nan, times[1:])


def mean_over_steps(table: F64, weights: F64) -> F64:
    """Return the mean of each row of (rows, steps) over the known steps; nan where none is known. `weights`: as
    in `over_steps`.
    """
    weight = np.where(np.isnan(table), 0.0, weights)
    total, number = (np.nan_to_num(table) * weight).sum(axis=1), weight.sum(axis=1)
    return np.asarray(np.divide(total, number, out=np.full(len(table), np.nan), where=number > 0))


def _weighted_medians(table: F64, weights: F64) -> F64:
    order = np.argsort(table, axis=1)  # nan comes last
    ordered = np.take_along_axis(table, order, axis=1)
    passed = np.cumsum(np.where(np.isnan(ordered), 0.0, weights[order]), axis=1)
    half, row = passed[:, -1:] / 2, np.arange(len(table))
    low, high = np.argmax(passed >= half, axis=1), np.argmax(passed > half, axis=1)
    return np.asarray((ordered[row, low] + ordered[row, high]) / 2)


def over_ranks(table: F64, stages: I64, whole: F64 | None = None) -> F64:
    """Return the median of each row of (rows, ranks) over the ranks of a stage that have it, the mean over the stages
    that do.

    A rank in which it is 0 does not have it; 0 where no rank has it and some state it, nan where none does. `whole`:
    of what these numbers are a part; a rank then has them where that is not 0.

    >>> table, stages = np.array([[10.0, 20.0, 90.0, 40.0], [0.0, np.nan, 6.0, np.nan]]), np.array([0, 0, 0, 1])
    >>> over_ranks(table, stages).tolist(), over_ranks(table, stages, np.ones((2, 4))).tolist()
    ([30.0, 6.0], [30.0, 3.0])
    """
    if table.shape[1] == 1:
        return np.asarray(table[:, 0])
    order = np.argsort(stages, kind="stable")
    table, stages = table[:, order], stages[order]
    row, rank = np.nonzero(~np.isnan(table))
    cells = RankCells(row, rank, stages[rank], len(table))
    of_cells = None if whole is None else whole[:, order][row, rank]
    return over_rank_cells(cells, table[row, rank], of_cells)


class RankCells(Struct, frozen=True):
    """Which rank has which series: one cell per pair that is there, ordered by series, then by stage.

    Of 512 ranks with 20 names each of their own, a table of ranks and names has 5 million cells, and 10,000 are there.

    `row`: of each cell the number of its series, below `row_count`; `rank`: of its rank; `stage`: of that rank.
    """

    row: I64
    rank: I64
    stage: I64
    row_count: int

    def bounds_of_stages(self) -> I64:
        """Return where the cells of each series in a stage begin, and the end of all."""
        is_other = (np.diff(self.row) != 0) | (np.diff(self.stage) != 0)
        return _bounds(is_other, len(self.row))

    def bounds_of_rows(self) -> I64:
        """Return where the cells of each series that has some begin, and the end of all."""
        return _bounds(np.diff(self.row) != 0, len(self.row))

    def any_of_row(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return for each series whether a flag of one of its cells is set."""
        return np.asarray(np.bincount(self.row[flags], minlength=self.row_count) > 0)

    def take(self, chosen: NDArray[np.bool_]) -> RankCells:
        """Return the chosen cells; the series keep their numbers."""
        return RankCells(self.row[chosen], self.rank[chosen], self.stage[chosen], self.row_count)


def _bounds(is_other: NDArray[np.bool_], count: int) -> I64:
    """Return the bounds of groups, where each value says whether the next one is of another group."""
    if not count:
        return np.zeros(1, dtype=np.int64)
    return np.concatenate([[0], np.flatnonzero(is_other) + 1, [count]])


def order_cells(row: I64, rank: I64, stages: I64, row_count: int) -> tuple[RankCells, I64]:
    """Return the cells of pairs of a series and a rank, and the order of the pairs in which they stand.

    stages: of each rank.

    >>> cells, order = order_cells(np.array([0, 1, 0]), np.array([0, 0, 1]), np.array([0, 0]), 2)
    >>> cells.row.tolist(), cells.rank.tolist(), order.tolist()
    ([0, 0, 1], [0, 1, 0], [0, 2, 1])
    """
    order = np.lexsort([rank, stages[rank], row])
    return RankCells(row[order], rank[order], stages[rank[order]], row_count), order


def over_rank_cells(cells: RankCells, values: F64, whole: F64 | None = None) -> F64:
    """Return what `over_ranks` does, of values per cell: what has no cell is nan there."""
    having = ~np.isnan(values) & ((values if whole is None else whole) != 0)
    taken = cells.take(having)
    bounds = taken.bounds_of_stages()
    middle = medians_of_groups(values[having], bounds)
    row_of_stage = taken.row[bounds[:-1]]
    total = np.bincount(row_of_stage, middle, cells.row_count).astype(np.float64)
    count = np.bincount(row_of_stage, minlength=cells.row_count)
    found = np.where(cells.any_of_row(values == 0), 0.0, np.nan)
    return np.asarray(np.divide(total, count, out=found, where=count > 0))


def over_runs(table: F64) -> F64:
    """Return the geometric mean of each row of (rows, runs) over the runs that have it; 0 and nan as in `over_ranks`.
    A run that stands alone, far from three others or more, counts in none: see `find_odd_runs`.

    >>> over_runs(np.array([[10.0, 40.0], [np.nan, 7.0], [0.0, np.nan], [5.0, 5.0]])).round(9).tolist()
    [20.0, 7.0, 0.0, 5.0]
    >>> over_runs(np.array([[100.0, 100.0, 100.0, 200.0]])).tolist()
    [100.0]
    """
    if table.shape[1] == 1:
        return np.asarray(table[:, 0])
    having = table > 0
    if table.shape[1] >= LEAST_RUNS:
        having = having & ~find_odd_runs(np.log(np.where(having, table, np.nan)))
    logs = np.log(np.where(having, table, 1.0)).sum(axis=1)
    count = having.sum(axis=1)
    low = np.where(having, table, np.inf).min(axis=1, initial=np.inf)
    high = np.where(having, table, -np.inf).max(axis=1, initial=-np.inf)
    # what is the same in all runs is not rounded
    mean = np.where(low == high, low, np.exp(logs / np.maximum(count, 1)))
    return np.where(count > 0, mean, np.where((table == 0).any(axis=1), 0.0, np.nan))


def is_sparse(filled: int, shape: tuple[int, int]) -> bool:
    """Return whether a table of (rows, steps) with so many filled cells is better not made.

    >>> is_sparse(10, (100, 100)), is_sparse(10_000, (10_000, 10_000)), is_sparse(5_000_000, (5_000, 5_000))
    (False, True, False)
    """
    cells = shape[0] * shape[1]
    return cells > LARGE_TABLE and filled * _FILLED < cells


class SparseSteps(Struct, frozen=True):
    """The numbers of the steps of each row.

    A table of 10,000 steps with 10,000 operators has 100 million cells, of which a profile fills some thousand. Sums of
    many reals may differ from those of a table in their last digit.

    One entry per known cell, and one for the steps in which a row has nothing,
    which are a true 0; the entries of a row stand together, ordered by their value.

    `bounds`: where the entries of each row begin, and the end of all. Per entry `row`, `value`, `weight` (of how many
    steps of the program it is the number) and `count` (of how many steps of the profile).
    """

    bounds: I64
    row: I64
    value: F64
    weight: F64
    count: I64

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def sum_rows(self, numbers: F64 | I64) -> F64:
        """Return the sum of a number per entry over each row."""
        return np.bincount(self.row, numbers, len(self)).astype(np.float64)

    @property
    def known(self) -> I64:
        """In how many steps each row is known."""
        return self.sum_rows(self.count).astype(np.int64)

    def mean(self) -> F64:
        """Return the mean of each row over the known steps, by their weights; nan where none is known."""
        total, weight = self.sum_rows(self.value * self.weight), self.sum_rows(self.weight)
        return np.asarray(np.divide(total, weight, out=np.full(len(self), np.nan), where=weight > 0))

    def over_steps(self) -> F64:
        """Return what `over_steps` gives: the median by weights, or the mean where that is 0."""
        weight = self.sum_rows(self.weight)
        is_known = weight > 0
        # weights are whole numbers: their sums are exact
        passed = np.cumsum(self.weight)
        before = np.append(0.0, passed)[self.bounds[:-1]]
        half = before + weight / 2
        low = np.searchsorted(passed, half[is_known], side="left")
        high = np.searchsorted(passed, half[is_known], side="right")
        middle = np.full(len(self), np.nan)
        middle[is_known] = (self.value[low] + self.value[high]) / 2
        has_it = self.sum_rows(np.where(self.value > 0, self.count, 0.0))
        is_once = (middle == 0) & (has_it == 1) & (self.known >= FEWEST_STEPS)
        return np.where(is_once, 0.0, np.where(middle == 0, self.mean(), middle))

    def quantile(self, fraction: float) -> F64:
        """Return the quantile of the known steps of each row, linear between neighbours; nan where none is known."""
        known = self.known
        place = fraction * np.maximum(known - 1, 0)
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, np.maximum(known - 1, 0))
        passed = np.cumsum(self.count)
        before = np.append(0, passed)[self.bounds[:-1]]
        is_known = known > 0
        below, above = (
            self.value[np.searchsorted(passed, (before + at)[is_known], side="right")] for at in (low, high)
        )
        found = np.full(len(self), np.nan)
        found[is_known] = below + (above - below) * (place - low)[is_known]
        return found

    def deviation(self) -> F64:
        """Return the standard deviation of the known steps of each row about its mean by weights; nan for fewer than
        two.
        """
        away = self.value - self.mean()[self.row]
        known = self.known
        spare = np.where(known > 1, known - 1, np.nan)
        return np.asarray(np.sqrt(self.sum_rows(away * away * self.count) / spare))

    def are_intermittent(self) -> NDArray[np.bool_]:
        """Return which rows are above 0 in less than half of their steps, by weights."""
        return 2 * self.sum_rows(np.where(self.value > 0, self.weight, 0.0)) < self.sum_rows(self.weight)

    def take(self, chosen: NDArray[np.bool_]) -> SparseSteps:
        """Return the chosen rows, with new numbers."""
        number = np.cumsum(chosen) - 1
        kept = chosen[self.row]
        row = number[self.row[kept]]
        bounds = np.append(0, np.cumsum(np.bincount(row, minlength=int(chosen.sum()))))
        return SparseSteps(bounds, row, self.value[kept], self.weight[kept], self.count[kept])


def sparse_steps(cell: I64, values: F64, shape: tuple[int, int], weights: F64) -> SparseSteps:
    """Return the numbers per (row, step), as `sums_per_step` and a division by `weights` would give them.

    cell: of each value, row * steps + step. What has several values is their sum, as far as they are known; where all
    are nan the step is not known. weights: of how many steps each step of the profile is the mean.

    >>> steps = sparse_steps(np.array([0, 0, 2]), np.array([3.0, 4.0, np.nan]), (2, 2), np.ones(2))
    >>> steps.known.tolist(), steps.mean().tolist(), steps.over_steps().tolist()
    ([2, 1], [3.5, 0.0], [3.5, 0.0])
    """
    row_count, step_count = shape
    filled, number = np.unique(cell, return_inverse=True)
    is_unknown = np.isnan(values)
    sums = np.bincount(number, np.where(is_unknown, 0.0, values), len(filled)).astype(np.float64)
    is_stated = np.bincount(number[~is_unknown], minlength=len(filled)) > 0
    row, step = filled // step_count, filled % step_count
    empty_steps = step_count - np.bincount(row, minlength=row_count)
    empty_weight = weights.sum() - np.bincount(row, weights[step], row_count)
    has_empty = np.flatnonzero(empty_steps > 0)
    rows = np.concatenate([row[is_stated], has_empty])
    value = np.concatenate([(sums / weights[step])[is_stated], np.zeros(len(has_empty))])
    weight = np.concatenate([weights[step][is_stated], empty_weight[has_empty]])
    count = np.concatenate([np.ones(int(is_stated.sum()), dtype=np.int64), empty_steps[has_empty]])
    order = np.lexsort((value, rows))
    bounds = np.append(0, np.cumsum(np.bincount(rows, minlength=row_count)))
    return SparseSteps(bounds, rows[order], value[order], weight[order], count[order])
