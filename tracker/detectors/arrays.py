"""Checked input: (series, runs) arrays of float64 with nan for missing, and their means and medians over runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
BOOL = NDArray[np.bool_]
Columns = dict[str, NDArray[Any]]
"""A table: arrays of one length by name."""


def table(values: ArrayLike, name: str) -> F64:
    """`values` as a (series, runs) float64 array; ValueError where it has another number of dimensions."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2:
        raise ValueError(f"{name} must have one row per series and one column per run; its shape is {array.shape}")
    return array


def pair(baseline: ArrayLike, candidate: ArrayLike) -> tuple[F64, F64]:
    """Both sides as (series, runs) arrays; ValueError where they differ in the number of series."""
    one, other = table(baseline, "baseline"), table(candidate, "candidate")
    if len(one) != len(other):
        raise ValueError(
            f"baseline has {len(one)} series, candidate {len(other)}; row i must be the same series in both"
        )
    return one, other


def cut(values: F64, rows: I64, columns: Sequence[int]) -> F64:
    """The values of `rows` in `columns`. A column lies together in memory: sums over few runs of many series, as nearly
    all here, take several times as long along rows.
    """
    return values.T[np.ix_(np.array(columns, dtype=np.int64), rows)].T


def logs(values: F64, name: str) -> F64:
    """Natural logs of positive values, nan staying nan; ValueError names the first value that has no log."""
    bad = ~np.isnan(values) & ~((values > 0) & np.isfinite(values))
    if bad.any():
        row, run = np.argwhere(bad)[0]
        raise ValueError(
            f"{name}[{row}, {run}] is {values[row, run]}: medians must be positive and finite, nan for a missing run"
        )
    return np.log(values)


def per_series(values: ArrayLike | None, series: int, name: str) -> F64 | None:
    """`values` as one float64 per series, None staying None; ValueError where the number differs."""
    if values is None:
        return None
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (series,):
        raise ValueError(f"{name} must have one number per series, {series}; its shape is {array.shape}")
    return array


def counts(values: F64) -> I64:
    """Known values per row."""
    return np.asarray((~np.isnan(values)).sum(axis=1), dtype=np.int64)


def mean_of_rows(values: F64) -> F64:
    """Mean of the known values of each row, nan where none is."""
    known = ~np.isnan(values)
    number = known.sum(axis=1)
    total = np.where(known, values, 0.0).sum(axis=1)
    return np.asarray(np.divide(total, number, out=np.full(len(values), np.nan), where=number > 0))


def median_of_rows(values: F64) -> F64:
    """Median of the known values of each row, nan where none is."""
    if values.shape[1] == 0:
        return np.full(len(values), np.nan)
    ordered = np.sort(values, axis=1)  # nan comes last
    number = counts(values)
    row = np.arange(len(values))
    low = ordered[row, np.maximum(number - 1, 0) // 2]
    high = ordered[row, np.minimum(number // 2, values.shape[1] - 1)]
    return np.asarray(np.where(number > 0, 0.5 * (low + high), np.nan))


def squares_about_mean(values: F64) -> F64:
    """Per row the sum of squared distances of the known values from their mean; 0 where fewer than two are known."""
    away = values - mean_of_rows(values)[:, None]
    return np.asarray(np.where(np.isnan(away), 0.0, away * away).sum(axis=1))
