"""Rows by key: number the distinct ones, group them, add each group up, and order them.

A key is one or several columns of equal length. Texts are compared once and become whole numbers; all that follows
works with these. Sums of whole numbers are exact.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import Any, Final, Literal, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.columns import F64, I64, Column, Columns, Flags, Texts, known, listed, reals, stacked
from tracker.errors import StoreError

_Scalar = TypeVar("_Scalar", bound=np.generic)
AddUp = Literal["sum", "known", "min", "max"]
"""How numbers become one: `sum` is missing where any of them is; `known` is the sum of those that are there; `known`,
`min` and `max` are missing where all are.
"""

_FUNCTIONS: Final = {"sum": np.add, "known": np.add, "min": np.minimum, "max": np.maximum}
_FEW_CODES: Final = 1 << 10
_BITS: Final = 63
"""Bits of a whole number beside its sign."""
_SURE_TO_FIT: Final = 1 << 62
"""Where the number of rows times the largest of their numbers is below this, no sum of them leaves 64 bits."""


class Groups:
    """Rows that agree in every key column.

    `number`: for each row the number of its group. `first`: for each group the index of its first row.
    `order`: the rows, group by group; left out where they were not sorted to find the groups.
    """

    def __init__(self, number: I64, first: I64, order: I64 | None = None) -> None:
        self.number = number
        self.first = first
        self._order = order

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def order(self) -> I64:
        """The rows, group by group; within a group in their order, or in that of `then` of `group_rows`."""
        if self._order is None:
            return np.argsort(self.number, kind="stable")
        return self._order

    @cached_property
    def counts(self) -> I64:
        """Rows of each group."""
        return np.bincount(self.number, minlength=len(self)).astype(np.int64)

    @cached_property
    def starts(self) -> I64:
        """Where the rows of each group begin in `order`."""
        return np.cumsum(self.counts) - self.counts

    def rows_of(self, group: int) -> I64:
        """Return the rows of one group."""
        start = self.starts[group]
        return self.order[start : start + self.counts[group]]

    def sums(self, values: I64) -> I64:
        """Return the sum of each group, exactly; all values are known.

        The fast path: the caller has made sure that the sums fit into 64 bits.
        """
        return self._reduce_integers(np.add, values)

    def smallest(self, values: I64) -> I64:
        """Return the smallest value of each group; all are known."""
        return self._reduce_integers(np.minimum, values)

    def largest(self, values: I64) -> I64:
        """Return the largest value of each group; all are known."""
        return self._reduce_integers(np.maximum, values)

    def sums_of_squares(self, values: I64) -> F64:
        """Return the sum of the squares of each group as real numbers, since ns2 soon leaves 64 bits."""
        squares: F64 = self._reduce(np.add, values.astype(np.float64) ** 2)
        return squares

    def spread(self, values: F64) -> dict[str, I64 | F64]:
        """Return `calls` (how many values), `mean`, `min` and `max` of each group, however the values are ordered."""
        # a sum of real numbers depends on their order; sorted, equal input gives equal sums
        order = np.lexsort((values, self.number))
        ordered = Groups(self.number, self.first, order)
        return {
            "calls": self.counts,
            "mean": ordered._reduce(np.add, values) / self.counts,
            "min": ordered._reduce(np.minimum, values),
            "max": ordered._reduce(np.maximum, values),
        }

    def add_up(self, column: Any, how: AddUp = "sum") -> Column:
        """Return one number for each group.

        StoreError where a sum of whole numbers is too large for 64 bits.
        """
        is_known = known(column)
        values = column.values if isinstance(column, Column) else column
        if len(self) == len(values):
            # each row is a group of its own, as in most answers of a database, which has summed them up already
            return Column(np.where(is_known, values, 0)[self.first], ~is_known[self.first])
        if is_known.all():
            missing = np.zeros(len(self), dtype=bool)
        else:
            unknown = np.bincount(self.number[~is_known], minlength=len(self))
            missing = unknown > 0 if how == "sum" else unknown == self.counts
            values = np.where(is_known, values, _neutral_value(how, values.dtype))
        numbers = self._reduce(_FUNCTIONS[how], values)
        if how in ("sum", "known"):
            self._check_size(values, numbers)
        return Column(np.where(missing, 0, numbers).astype(values.dtype), missing)

    def add_up_marked(self, values: I64, mark: int, how: AddUp) -> I64:
        """Return one whole number for each group; `mark` stands for a missing one, in `values` and in the result."""
        column = self.add_up(Column(values, values == mark), how)
        return np.where(column.missing, mark, column.values)

    def share_sums(self, column: Column) -> Column:
        """Return for each row the sum of its group, missing where any number of it is."""
        return self.add_up(column)[self.number]

    def _reduce(self, function: np.ufunc, values: NDArray[Any]) -> Any:
        if not len(self):
            return values[:0]
        return function.reduceat(values[self.order], self.starts)

    def _reduce_integers(self, function: np.ufunc, values: NDArray[Any]) -> I64:
        reduced: I64 = self._reduce(function, values.astype(np.int64, copy=False))
        return reduced

    def _check_size(self, values: NDArray[Any], sums: NDArray[Any]) -> None:
        if values.dtype != np.int64 or not len(values):
            return
        largest = max(abs(int(values.max())), abs(int(values.min())))
        if largest * len(values) < _SURE_TO_FIT:
            return
        # A sum that 64 bits do not hold comes out wrong by 2**64. Sums of real numbers are off by their rounding alone,
        # which is far less than a quarter of that.
        rounded_sums = self._reduce(np.add, values.astype(np.float64))
        if (np.abs(sums - rounded_sums) > 2.0**62).any():
            raise StoreError("a sum is too large: 2**63 or more", remedy="ask for fewer ranks and steps")


def _neutral_value(how: AddUp, dtype: np.dtype[Any]) -> float:
    """Return what stands for a missing number, so that a sum, the smallest or the largest is that of the others."""
    if how in ("sum", "known"):
        return 0
    if dtype.kind == "i":
        limits = np.iinfo(dtype)
        return limits.max if how == "min" else limits.min
    return np.inf if how == "min" else -np.inf


def group_rows(*columns: NDArray[Any], then: Sequence[NDArray[Any]] = ()) -> Groups:
    """Return the groups of rows that agree in all `columns`, ordered by these, the first column first.

    `columns`, `then`: numbers of equal length, at least one column. Of real numbers nan is a key, the last one, and 0.0
    and -0.0 are one key. Within a group the rows are ordered by `then`, and by their place where that does not decide.

    >>> groups = group_rows(np.array([7, 3, 7]))
    >>> groups.first.tolist(), groups.number.tolist(), groups.counts.tolist()
    ([1, 0], [1, 0, 1], [1, 2])
    """
    rows = len(columns[0])
    if rows == 0:
        none = np.zeros(0, dtype=np.int64)
        return Groups(none, none, none)
    order, opens = sort_rows(columns, then)
    number = np.empty(rows, dtype=np.int64)
    number[order] = np.cumsum(opens) - 1
    return Groups(number, order[np.flatnonzero(opens)], order)


_NUMBERED_AT_ONCE: Final = 1 << 16
"""Rows whose numbers are held beside what is sorted."""


def sort_rows(columns: Sequence[NDArray[Any]], then: Sequence[NDArray[Any]] = ()) -> tuple[I64, Flags]:
    """Return the rows sorted by all columns, `then` and their place, and which differ in `columns` from the one before.

    >>> order, opens = sort_rows([np.array([7, 3, 7])])
    >>> order.tolist(), opens.tolist()
    ([1, 0, 2], [True, True, False])
    """
    if not then:
        row_bits = len(columns[0]).bit_length()
        packed = _pack_columns(columns, row_bits)
        if packed is not None:
            return _sort_packed(packed, row_bits)
    order = np.lexsort([*reversed(then), *reversed(columns)])
    opens = np.zeros(len(order), dtype=bool)
    opens[0] = True
    for column in columns:
        ordered = column[order]
        differs = ordered[1:] != ordered[:-1]
        if ordered.dtype.kind == "f":
            # nan differs from itself; it is sorted to the end, where all of them are one key
            differs &= ~np.isnan(ordered[:-1])
        opens[1:] |= differs
    return order, opens


def _sort_packed(packed: I64, row_bits: int) -> tuple[I64, Flags]:
    """Return what `sort_rows` does, of one number per row with room for the number of the row.

    One sort of numbers takes a fraction of the time of a stable sort per column. `packed` is written over.
    """
    packed <<= row_bits
    for low in range(0, len(packed), _NUMBERED_AT_ONCE):
        some = packed[low : low + _NUMBERED_AT_ONCE]
        some |= np.arange(low, low + len(some))
    packed.sort()
    order = packed & ((1 << row_bits) - 1)
    packed >>= row_bits
    opens = np.ones(len(packed), dtype=bool)
    np.not_equal(packed[1:], packed[:-1], out=opens[1:])
    return order, opens


def _pack_columns(columns: Sequence[NDArray[Any]], row_bits: int) -> I64 | None:
    """Return one number per row that sorts like all its columns, with room for `row_bits` more.

    None where 63 bits are too few, and for real numbers.
    """
    room = _BITS - row_bits
    packed = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        if column.dtype.kind == "f":
            return None
        low, high = int(column.min()), int(column.max())
        bits = (high - low).bit_length()
        room -= bits
        if room < 0:
            return None
        packed <<= bits
        packed |= np.subtract(column, low, dtype=np.int64)
    return packed


def sort_within(number: I64, values: I64) -> I64:
    """Return the values sorted within the groups of equal `number`, the groups by their number, all ascending.

    >>> sort_within(np.array([1, 0, 1]), np.array([9, 5, 7])).tolist()
    [5, 7, 9]
    """
    if not len(values):
        return values
    packed = _pack_columns((number, values), 0)
    if packed is None:
        return values[np.lexsort((values, number))]
    # one sort of numbers takes a fraction of the time of a sort of rows
    packed.sort()
    # the values are the low bits, counted from the smallest one
    low = int(values.min())
    bits = (int(values.max()) - low).bit_length()
    return (packed & ((1 << bits) - 1)) + low


def sort_distinct(values: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """Return the distinct values in order. `np.unique` without indices would import `numpy.ma`, which takes 10 ms.

    >>> sort_distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    distinct: NDArray[_Scalar] = np.unique(values, return_index=True)[0]
    return distinct


def number_distinct_rows(columns: Iterable[Any]) -> tuple[I64, I64]:
    """Number the distinct rows of `columns` in the order in which they first come.

    Returns the number of each row, and the index of the first row of each number. What is missing is a key like any
    other. There is at least one column.

    >>> number, first = number_distinct_rows([np.array(["b", "a", "b"], dtype=object), np.array([1, 1, 1])])
    >>> number.tolist(), first.tolist()
    ([0, 1, 0], [0, 1])
    """
    number, keys = np.zeros(0, dtype=np.int64), 1
    for column in columns:
        codes, distinct = _number_values(column)
        number = codes if keys == 1 else _number_by_appearance(number * distinct + codes)
        keys = int(number.max(initial=0)) + 1
    rows = len(number)
    first = np.zeros(keys if rows else 0, dtype=np.int64)
    # written from the last row to the first one, so that the first one of each number stays
    first[number[::-1]] = np.arange(rows - 1, -1, -1)
    return number, first


def _number_values(column: Any) -> tuple[I64, int]:
    """Number the distinct values of a column in the order in which they first come, and count them."""
    if not isinstance(column, Column) and column.dtype != object:
        codes = _number_by_appearance(column)
        return codes, int(codes.max(initial=-1)) + 1
    values = listed(column)
    # value -> its first row; setdefault gives the row that is there, else it adds this one
    first_rows: dict[Any, int] = {}
    first_row = np.fromiter(map(first_rows.setdefault, values, count()), np.int64, len(values))
    is_first = first_row == np.arange(len(first_row))
    return (np.cumsum(is_first) - 1)[first_row], len(first_rows)


def _number_by_appearance(numbers: I64 | F64) -> I64:
    """Number the distinct values in the order in which they first come."""
    # NumPy numbers them in the order of their values
    _, first, number_by_value = np.unique(numbers, return_index=True, return_inverse=True)
    number_by_appearance = np.empty(len(first), dtype=np.int64)
    number_by_appearance[np.argsort(first)] = np.arange(len(first))
    return number_by_appearance[number_by_value]


def add_up_rows(table: Columns, key: Sequence[str], numbers: Mapping[str, AddUp]) -> Columns:
    """Return one row per `key`, in the order in which they first come, with these `numbers` added up.

    >>> from tracker.columns import objects
    >>> calls = Columns({"op": objects(["mm", "mm", "add"]), "ns": Column.of([3, None, 5], np.int64)})
    >>> [list(add_up_rows(calls, ["op"], {"ns": how}).rows("op", "ns")) for how in ("known", "sum")]
    [[('mm', 3), ('add', 5)], [('mm', None), ('add', 5)]]
    """
    groups = Groups(*number_distinct_rows([table[name] for name in key]))
    columns = {name: table[name][groups.first] for name in key}
    for name, how in numbers.items():
        columns[name] = groups.add_up(table[name], how)
    return Columns(columns)


def rank_values(column: Any) -> I64:
    """Return for each row the place of its value among the distinct ones in their order; what is missing comes last.

    >>> rank_values(np.array(["b", None, "a", "b"], dtype=object)).tolist()
    [1, 2, 0, 1]
    """
    values = listed(column)
    distinct = sorted({*values} - {None})
    place = {value: index for index, value in enumerate((*distinct, None))}
    return np.fromiter(map(place.__getitem__, values), np.int64, len(values))


def rank_texts(texts: Sequence[str]) -> I64:
    """Return for each text its place among the sorted distinct ones.

    >>> rank_texts(["b", "a", "b"]).tolist()
    [1, 0, 1]
    """
    place = {text: index for index, text in enumerate(sorted(set(texts)))}
    return np.array([place[text] for text in texts], dtype=np.int64)


def rank_codes(codes: NDArray[np.integer], texts: Sequence[str]) -> I64:
    """Return for each code the place of its text among the sorted distinct ones of these codes.

    This is an order of codes that does not depend on the order in which a pool of texts was filled. Texts that no code
    stands for cost nothing: the captures of a trace share one pool.

    >>> rank_codes(np.array([2, 0, 2]), ["b", "unused", "a"]).tolist()
    [0, 1, 0]
    """
    occurring = list_codes(codes)
    if not occurring:
        return np.zeros(len(codes), dtype=np.int64)
    places = np.empty(occurring[-1] + 1, dtype=np.int64)
    places[occurring] = rank_texts([texts[code] for code in occurring])
    found: I64 = places[codes]
    return found


def order_largest_first(sizes: Sequence[Any], then: Sequence[NDArray[Any]] = ()) -> I64:
    """Return the order of rows with the largest `sizes` first, missing ones last; ties by `then`, smallest first."""
    keys = [_key_of_largest_first(column) for column in sizes]
    # NumPy sorts by the last column first
    return np.lexsort([*reversed(then), *reversed(keys)])


def _key_of_largest_first(column: Any) -> NDArray[Any]:
    """Return numbers that sort a column the largest first, missing ones last."""
    if isinstance(column, Column) and column.values.dtype == np.int64:
        # whole numbers stay whole: beyond 2**53 real ones do not tell neighbours apart
        return np.where(column.missing, np.iinfo(np.int64).max, -column.values)
    numbers = reals(column)
    return np.where(np.isnan(numbers), np.inf, -numbers)


def sort_largest_first(table: Columns, sizes: Sequence[str], key: Sequence[str]) -> Columns:
    """Return the rows with the largest `sizes` first, missing ones last; ties in the order of `key`."""
    if not len(table) or not (sizes or key):
        return table
    ties = [rank_values(table[name]) for name in key]
    return table.taken(order_largest_first([table[name] for name in sizes], ties))


def match_rows(keys: Sequence[I64], rows: Sequence[I64]) -> I64:
    """Return for each of `rows` its index among `keys`. A row that is not among them has no meaningful index.

    `keys`, `rows`: the same columns of whole numbers; `keys` are distinct and sorted by them, the first column first.

    >>> match_rows([np.array([1, 1, 2]), np.array([0, 5, 0])], [np.array([2, 1]), np.array([0, 5])]).tolist()
    [2, 1]
    """
    if not len(rows[0]):
        return np.zeros(0, dtype=np.int64)
    lows = [int(column.min()) for column in keys]
    spans = [int(column.max()) - low + 1 for column, low in zip(keys, lows, strict=True)]
    if math.prod(spans) >= 1 << _BITS:
        # values that are far apart; their places among the distinct ones are not
        distinct = [np.unique(column, return_counts=True)[0] for column in keys]
        keys = [np.searchsorted(values, column) for values, column in zip(distinct, keys, strict=True)]
        rows = [np.searchsorted(values, column) for values, column in zip(distinct, rows, strict=True)]
        lows, spans = [0] * len(keys), [len(values) for values in distinct]
    key_codes = np.zeros(len(keys[0]), dtype=np.int64)
    row_codes = np.zeros(len(rows[0]), dtype=np.int64)
    for key_column, row_column, low, span in zip(keys, rows, lows, spans, strict=True):
        key_codes = key_codes * span + (key_column - low)
        row_codes = row_codes * span + (row_column - low)
    size = math.prod(spans)
    if size <= len(row_codes):
        # to look a place up is a tenth of the work of searching it
        places = np.zeros(size, dtype=np.int64)
        places[key_codes] = np.arange(len(key_codes))
        return places.take(row_codes, mode="clip")
    return np.searchsorted(key_codes, row_codes)


def sum_by_number(number: I64, values: I64, count: int) -> I64:
    """Return for each number below `count` the exact sum of the `values` of its rows, 0 where it has none.

    >>> sum_by_number(np.array([2, 0, 2]), np.array([1, 5, 3]), 3).tolist()
    [5, 0, 4]
    """
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, number, values)
    return sums


def split_rows_by_value(values: I64) -> dict[int, I64]:
    """Return value -> the rows that have it, in order.

    >>> {value: rows.tolist() for value, rows in split_rows_by_value(np.array([7, 3, 7])).items()}
    {3: [1], 7: [0, 2]}
    """
    if not len(values):
        return {}
    if (values == values[0]).all():  # as the process of each event of one rank: there is nothing to sort
        return {int(values[0]): np.arange(len(values))}
    order = np.argsort(values, kind="stable")
    distinct, bounds = np.unique(values[order], return_index=True)
    return dict(zip(distinct.tolist(), np.split(order, bounds[1:]), strict=True))


def list_codes(codes: NDArray[np.integer]) -> list[int]:
    """Return the codes that occur, in order; they are small and not negative.

    >>> list_codes(np.array([3, 0, 3]))
    [0, 3]
    """
    # to count many is faster than to sort them; few of a large pool are not worth a count of each of its texts
    if len(codes) > _FEW_CODES:
        occurring = np.flatnonzero(np.bincount(codes))
    else:
        occurring = np.unique(codes, return_counts=True)[0]
    listed_codes: list[int] = occurring.tolist()
    return listed_codes


def look_up_texts(codes: NDArray[Any], texts: Sequence[str]) -> list[str]:
    """Return the text behind each code.

    >>> look_up_texts(np.array([1, 0]), ["", "aten::mm"])
    ['aten::mm', '']
    """
    return [texts[code] for code in codes.tolist()]


def is_among(texts: Texts, chosen: Collection[str]) -> Flags:
    """Return which of the `texts` are among the chosen ones."""
    return np.fromiter(map(chosen.__contains__, texts), bool, len(texts))


class Numbered(Struct, frozen=True, eq=False):
    """Rows with the numbers of their keys, of which there are `count`."""

    rows: Columns
    number: I64
    count: int


def number_tables(tables: Sequence[Columns], key: Sequence[str]) -> tuple[list[Numbered], Columns]:
    """Number the rows of several tables: rows that are equal in `key` have one number, in whichever table they are.

    Returns the tables with their numbers, and the distinct keys by number.
    """
    # one column of all tables at a time: those of a thousand ranks are large
    columns = (stacked([table[name] for table in tables]) for name in key)
    number, first = number_distinct_rows(columns)
    numbers_of_tables = np.split(number, np.cumsum([len(table) for table in tables])[:-1])
    numbered = []
    for table, numbers in zip(tables, numbers_of_tables, strict=True):
        numbered.append(Numbered(table, numbers, len(first)))
    return numbered, Columns({name: stacked([table[name] for table in tables])[first] for name in key})


def stack_numbered(tables: Sequence[Numbered], *columns: str) -> Numbered:
    """Return these columns of the rows of all tables, one after the other, with the numbers of their keys."""
    rows = Columns.stacked([table.rows.only(columns) for table in tables])
    return Numbered(rows, np.concatenate([table.number for table in tables]), tables[0].count)
