"""Columns of numbers, some of which may be missing, from a driver's rows to the arrays of a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.errors import StoreError
from tracker.lazy import pd

I64 = NDArray[np.int64]


def sums(values: NDArray[Any], starts: I64) -> NDArray[Any]:
    """The sums along the last axis, from each of `starts` to the next; StoreError for a whole number too large."""
    found = np.add.reduceat(values, starts, axis=-1)
    if values.dtype == np.int64:
        # what does not fit comes out wrong by 2**64
        about = np.add.reduceat(values.astype(np.float64), starts, axis=-1)
        if (np.abs(found - about) > 2.0**62).any():
            raise StoreError("a sum is too large: 2**63 or more", remedy="ask for fewer ranks and steps")
    return found


class Column(Struct, frozen=True, eq=False):
    """Whole or real numbers, of which some may be missing (0 there)."""

    values: NDArray[Any]
    missing: NDArray[np.bool_]

    @classmethod
    def of(cls, numbers: Sequence[Any], dtype: type) -> Column:
        """From what a driver gives: None is missing."""
        if None not in numbers:
            return cls(np.array(numbers, dtype=dtype), np.zeros(len(numbers), dtype=bool))
        missing = np.array([number is None for number in numbers], dtype=bool)
        return cls(np.array([number or 0 for number in numbers], dtype=dtype), missing)

    def array(self) -> Any:
        """The same as a nullable array of pandas."""
        kind = pd.arrays.IntegerArray if self.values.dtype == np.int64 else pd.arrays.FloatingArray
        return kind(self.values, self.missing)

    def taken(self, rows: I64) -> Column:
        """These rows of it."""
        return Column(self.values[rows], self.missing[rows])

    def merged(self, how: np.ufunc, order: I64, starts: I64) -> Column:
        """One number for each group of rows: those from each of `starts` on, in this order. A sum is missing where one
        of them is, the smallest and the largest where all are.
        """
        values, missing = self.values[order], self.missing[order]
        if len(starts) == len(values):
            return Column(values, missing)
        if how is not np.add and missing.any():
            # neither the smallest nor the largest
            limits = np.iinfo(np.int64)
            values = np.where(missing, limits.max if how is np.minimum else limits.min, values)
        unknown = (np.logical_or if how is np.add else np.logical_and).reduceat(missing, starts)
        found = sums(values, starts) if how is np.add else how.reduceat(values, starts)
        return Column(np.where(unknown, 0, found).astype(values.dtype), unknown)

    def shared(self, order: I64, starts: I64) -> Column:
        """For each row, in the old order, the sum of its group; groups as in `merged`."""
        sums = self.merged(np.add, order, starts)
        group = np.zeros(len(order), dtype=np.int64)
        group[starts[1:]] = 1
        own = np.empty_like(order)
        own[order] = np.cumsum(group)
        return sums.taken(own)
