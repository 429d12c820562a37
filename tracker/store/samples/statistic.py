"""The number of a row (step, part of the step, op, kernel, module, collective) of a rank, of a run and of several runs.

The median over its steps, the median over the ranks of a stage that have it, the mean over the stages, the geometric
mean over runs. Ingest and compare both call this, so that all commands print the same number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracker.profile import known_medians

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


def sums_per_step(cell: I64, values: F64, shape: tuple[int, int]) -> F64:
    """The sums per (series, step). A step without a row is a true 0; one whose rows are all nan is nan.

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
    """The median of each row of (rows, steps) over the known steps, the mean where that is 0; nan where none is known.
    `weights`: how many steps each column is the mean of.

    >>> steps = np.array([[10.0, 20.0, 90.0], [0.0, 0.0, 90.0], [np.nan, 20.0, 90.0]])
    >>> over_steps(steps, np.ones(3)).tolist(), over_steps(steps, np.array([1.0, 1.0, 8.0])).tolist()
    ([20.0, 30.0, 55.0], [90.0, 90.0, 90.0])
    """
    if table.shape[1] == 1:
        return np.asarray(table[:, 0])
    middle = known_medians(table) if (weights == weights[:1]).all() else _weighted_medians(table, weights)
    return np.where(middle == 0, mean_over_steps(table, weights), middle)


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
    """The mean of each row of (rows, steps) over the known steps; nan where none is known. `weights`: as above."""
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
    """The median of each row of (rows, ranks) over the ranks of a stage that have it, the mean over the stages that do.

    A rank in which it is 0 does not have it; 0 where no rank has it and some state it, nan where none does. `whole`:
    of what these numbers are a part; a rank then has them where that is not 0.

    >>> table, stages = np.array([[10.0, 20.0, 90.0, 40.0], [0.0, np.nan, 6.0, np.nan]]), np.array([0, 0, 0, 1])
    >>> over_ranks(table, stages).tolist(), over_ranks(table, stages, np.ones((2, 4))).tolist()
    ([30.0, 6.0], [30.0, 3.0])
    """
    if table.shape[1] == 1:
        return np.asarray(table[:, 0])
    having = np.where((table if whole is None else whole) == 0, np.nan, table)
    total, count = np.zeros(len(table)), np.zeros(len(table))
    for stage in sorted(set(stages.tolist())):
        middle = known_medians(having[:, stages == stage])
        known = ~np.isnan(middle)
        total, count = total + np.where(known, middle, 0.0), count + known
    found = np.where((table == 0).any(axis=1), 0.0, np.nan)
    return np.asarray(np.divide(total, count, out=found, where=count > 0))


def over_runs(table: F64) -> F64:
    """The geometric mean of each row of (rows, runs) over the runs that have it; 0 and nan as in `over_ranks`.

    >>> over_runs(np.array([[10.0, 40.0], [np.nan, 7.0], [0.0, np.nan], [5.0, 5.0]])).round(9).tolist()
    [20.0, 7.0, 0.0, 5.0]
    """
    if table.shape[1] == 1:
        return np.asarray(table[:, 0])
    having = table > 0
    logs = np.log(np.where(having, table, 1.0)).sum(axis=1)
    count = having.sum(axis=1)
    low = np.where(having, table, np.inf).min(axis=1, initial=np.inf)
    high = np.where(having, table, -np.inf).max(axis=1, initial=-np.inf)
    # what is the same in all runs is not rounded
    mean = np.where(low == high, low, np.exp(logs / np.maximum(count, 1)))
    return np.where(count > 0, mean, np.where((table == 0).any(axis=1), 0.0, np.nan))
