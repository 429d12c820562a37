"""Group by equal columns, with sums that stay exact integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import F64, I64, MISSING


class Groups(Struct, frozen=True):
    """Rows that agree in every key column form a group; groups are ordered by the key columns, first column first.

    `first`: for each group the index of its first row. `group`: for each row the number of its group. `order`,
    `bounds`: the rows sorted by group, and where in `order` each group starts.
    """

    first: I64
    group: I64
    order: I64
    bounds: I64

    def __len__(self) -> int:
        return len(self.first)

    @property
    def counts(self) -> I64:
        """Rows per group."""
        return np.bincount(self.group, minlength=len(self)).astype(np.int64)

    def sums(self, values: I64) -> I64:
        """Sum of `values` per group, exact; values must be known."""
        return self._reduce(np.add, values, 0)

    def rows_of(self, group: int) -> I64:
        """The rows of one group."""
        stop = self.bounds[group + 1] if group + 1 < len(self) else len(self.order)
        return self.order[self.bounds[group] : stop]

    def known_sums(self, values: I64) -> I64:
        """Sum per group of the values that are known; MISSING where none is."""
        known = values != MISSING
        sums = self.sums(np.where(known, values, 0))
        return np.where(self.sums(known.astype(np.int64)) > 0, sums, MISSING)

    def complete_sums(self, values: I64) -> I64:
        """Sum of `values` per group; MISSING where any of them is: a sum of some of them would be too little."""
        known = values != MISSING
        return np.where(self.sums((~known).astype(np.int64)) == 0, self.sums(np.where(known, values, 0)), MISSING)

    def smallest(self, values: I64) -> I64:
        """Smallest value per group."""
        return self._reduce(np.minimum, values, MISSING)

    def largest(self, values: I64) -> I64:
        """Largest value per group."""
        return self._reduce(np.maximum, values, MISSING)

    def sums_of_squares(self, values: I64) -> F64:
        """Sum of the squares per group, as float since ns2 soon leaves the int64."""
        squares = values[self.order].astype(np.float64) ** 2
        return np.add.reduceat(squares, self.bounds) if len(self) else squares

    def spread(self, values: F64) -> dict[str, I64 | F64]:
        """`calls` (how many values), `mean`, `min` and `max` of real numbers per group, in whatever order they come."""
        # a sum of floats depends on their order; sorted, equal input gives equal sums
        ordered = values[np.lexsort((values, self.group))]
        if len(self) == 0:
            return {"calls": self.counts, "mean": ordered, "min": ordered, "max": ordered}
        return {
            "calls": self.counts,
            "mean": np.add.reduceat(ordered, self.bounds) / self.counts,
            "min": np.minimum.reduceat(ordered, self.bounds),
            "max": np.maximum.reduceat(ordered, self.bounds),
        }

    def _reduce(self, function: np.ufunc, values: I64, default: int) -> I64:
        if len(self) == 0:
            return np.zeros(0, dtype=np.int64) + default
        reduced: I64 = function.reduceat(values.astype(np.int64, copy=False)[self.order], self.bounds)
        return reduced


def group_by(*columns: NDArray[Any]) -> Groups:
    """The groups of rows that agree in all `columns` (integers, equal lengths, at least one).

    >>> groups = group_by(np.array([7, 3, 7])); groups.first.tolist(), groups.group.tolist(), groups.counts.tolist()
    ([1, 0], [1, 0, 1], [1, 2])
    """
    rows = len(columns[0])
    if rows == 0:
        none = np.zeros(0, dtype=np.int64)
        return Groups(none, none, none, none)
    order, opens = _ordered(columns)
    group = np.empty(rows, dtype=np.int64)
    group[order] = np.cumsum(opens) - 1
    bounds = np.flatnonzero(opens)
    return Groups(order[bounds], group, order, bounds)


def _ordered(columns: Sequence[NDArray[Any]]) -> tuple[I64, NDArray[np.bool_]]:
    """The rows sorted by all columns, equal ones in their order, and which of them differ from the one before."""
    rows = len(columns[0])
    opens = np.ones(rows, dtype=bool)
    packed = _packed(columns)
    if packed is not None:
        bits = rows.bit_length()
        packed <<= bits
        packed |= np.arange(rows)
        packed.sort()
        order = packed & ((1 << bits) - 1)
        packed >>= bits
        np.not_equal(packed[1:], packed[:-1], out=opens[1:])
        return order, opens
    order = np.lexsort(tuple(columns[::-1]))
    opens[1:] = False
    for column in columns:
        ordered = column[order]
        opens[1:] |= ordered[1:] != ordered[:-1]
    return order, opens


def _packed(columns: Sequence[NDArray[Any]]) -> I64 | None:
    """One number per row that sorts like all its columns, with room for the number of the row; None where 63 bits are
    too few. One sort of numbers takes a fraction of the time of a stable sort per column.
    """
    room = 63 - len(columns[0]).bit_length()
    packed = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        low, high = int(column.min()), int(column.max())
        bits = (high - low).bit_length()
        room -= bits
        if room < 0:
            return None
        packed <<= bits
        packed |= column.astype(np.int64) - low
    return packed


def distinct(codes: NDArray[np.integer]) -> list[int]:
    """The codes that occur, in order; codes are small and not negative, so that counting is faster than sorting.

    >>> distinct(np.array([3, 0, 3]))
    [0, 3]
    """
    found: list[int] = np.flatnonzero(np.bincount(codes)).tolist()
    return found


def texts_of(codes: NDArray[Any], texts: Sequence[str]) -> list[str]:
    """The text behind each code.

    >>> texts_of(np.array([1, 0]), ["", "aten::mm"])
    ['aten::mm', '']
    """
    return [texts[code] for code in codes.tolist()]


def rank_of_texts(texts: Sequence[str]) -> I64:
    """For each code its place among the sorted texts: an order that does not depend on that of the input.

    Equal texts share a place.

    >>> rank_of_texts(["b", "a", "b"]).tolist()
    [1, 0, 1]
    """
    place = {text: index for index, text in enumerate(sorted(set(texts)))}
    return np.array([place[text] for text in texts], dtype=np.int64)
