"""Sums of columns, group by group."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.columns import I64, Column
from tracker.errors import StoreError


def sums(values: NDArray[Any], starts: I64) -> NDArray[Any]:
    """The sums along the last axis, from each of `starts` to the next; StoreError for a whole number too large."""
    found = np.add.reduceat(values, starts, axis=-1)
    if values.dtype == np.int64:
        # what does not fit comes out wrong by 2**64
        about = np.add.reduceat(values.astype(np.float64), starts, axis=-1)
        if (np.abs(found - about) > 2.0**62).any():
            raise StoreError("a sum is too large: 2**63 or more", remedy="ask for fewer ranks and steps")
    return found


def merged(column: Column, how: np.ufunc, order: I64, starts: I64) -> Column:
    """One number for each group of rows: those from each of `starts` on, in this order. A sum is missing where one
    of them is, the smallest and the largest where all are.
    """
    values, missing = column.values[order], column.missing[order]
    if len(starts) == len(values):
        return Column(values, missing)
    if how is not np.add and missing.any():
        # neither the smallest nor the largest
        limits = np.iinfo(np.int64)
        values = np.where(missing, limits.max if how is np.minimum else limits.min, values)
    unknown = (np.logical_or if how is np.add else np.logical_and).reduceat(missing, starts)
    found = sums(values, starts) if how is np.add else how.reduceat(values, starts)
    return Column(np.where(unknown, 0, found).astype(values.dtype), unknown)


def shared(column: Column, order: I64, starts: I64) -> Column:
    """For each row, in the old order, the sum of its group; groups as in `merged`."""
    group = np.zeros(len(order), dtype=np.int64)
    group[starts[1:]] = 1
    own = np.empty_like(order)
    own[order] = np.cumsum(group)
    return merged(column, np.add, order, starts)[own]
