"""Columns that grow chunk by chunk."""

from __future__ import annotations

import math
import mmap
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Final, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.profile import F64, I64

T = TypeVar("T", bound=Struct)
Array = NDArray[Any]
_REAL: Final = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,18})?")
INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
FIRST_ROWS: Final = 1 << 14
"""So many rows have their place from the start."""

_WHOLE: Final = frozenset((int, type(None)))
_LARGEST: Final = int(np.iinfo(np.int64).max)


def joined_rows(parts: Sequence[T]) -> T:
    """The rows of all `parts`, one after the other: Structs of which every field is a column, an array or a tuple.

    At least one part.
    """
    columns = {name: [getattr(part, name) for part in parts] for name in parts[0].__struct_fields__}
    return replace(
        parts[0],
        **{
            name: tuple(chain(*blocks)) if isinstance(blocks[0], tuple) else np.concatenate(blocks)
            for name, blocks in columns.items()
        },
    )


class Growing:
    """A table of columns, given as name=dtype, to which blocks of equal length are added. `dtypes`: its columns, in
    the order in which they were given.

    Rows are copied at once into memory outside of the heap: thousands of small arrays between the short-lived objects
    of decoding would keep the memory of those from being used again.
    """

    def __init__(self, **dtypes: type) -> None:
        self.rows = 0
        self.dtypes = dtypes
        self._columns = {name: _MappedColumn(np.dtype(dtype)) for name, dtype in dtypes.items()}

    def add(self, **columns: Sequence[Any] | Array) -> None:
        """Adds one block; every column must be given, in equal length."""
        arrays: dict[str, Array] = {name: np.asarray(columns[name], dtype=dtype) for name, dtype in self.dtypes.items()}
        lengths = {len(array) for array in arrays.values()}
        if len(lengths) != 1:
            raise ValueError(f"columns of different length: {sorted(lengths)}")
        for name, array in arrays.items():
            self._columns[name].put(self.rows, array)
        self.rows += lengths.pop()

    def done(self) -> Mapping[str, Array]:
        """The whole columns, in the memory in which they grew; no rows can be added any more."""
        return {name: self._columns.pop(name).first(self.rows) for name in self.dtypes}


class _MappedColumn:
    """One column. Its memory is as long as it may soon be, but takes room only where something was written."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._memory = _map_memory(FIRST_ROWS * dtype.itemsize)
        self._values: Array = np.frombuffer(self._memory, dtype=dtype)

    def put(self, row: int, values: Array) -> None:
        """Write values from `row` on."""
        end = row + len(values)
        if end > len(self._values):
            self._grow(end + end // 2)
        self._values[row:end] = values

    def first(self, rows: int) -> Array:
        """Return the first rows."""
        return self._values[:rows]

    def _grow(self, rows: int) -> None:
        size = rows * self._dtype.itemsize
        self._values = self._values[:0].copy()  # memory that an array looks at cannot be moved
        try:
            self._memory.resize(size)
        except SystemError:  # only Linux can move it without a copy
            larger = _map_memory(size)
            larger[: len(self._memory)] = memoryview(self._memory)
            self._memory = larger
        self._values = np.frombuffer(self._memory, dtype=self._dtype)


def _map_memory(size: int) -> mmap.mmap:
    """Return memory outside of the heap."""
    if hasattr(mmap, "MAP_PRIVATE"):  # what other processes might share grows no further than it was made
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return mmap.mmap(-1, size)


def int_column(values: Sequence[Any], missing: int) -> I64:
    """int64 of JSON values, each as by `as_int`.

    >>> int_column([1, None, "7", "x", 2**70, 8.0, 8.5], -1).tolist()
    [1, -1, 7, -1, -1, 8, -1]
    """
    if set(map(type, values)) <= _WHOLE:  # NumPy has rules of its own for texts and fractions
        with suppress(OverflowError):
            return np.array([missing if value is None else value for value in values], dtype=np.int64)
    return np.array([as_int(value, missing) for value in values], dtype=np.int64)


def real_column(values: Sequence[Any]) -> F64:
    """float64 of JSON values, each a finite number or the text of one; NaN for anything else.

    >>> real_column([1, None, "7.5", "x", True, 2**70, 10**400]).tolist()
    [1.0, nan, 7.5, nan, nan, 1.1805916207174113e+21, nan]
    """
    return np.array([_as_real(value) for value in values], dtype=np.float64)


def _as_real(value: object) -> float:
    if isinstance(value, str) and _REAL.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    with suppress(OverflowError):
        return float(value) if math.isfinite(value) else math.nan
    return math.nan


def as_int(value: object, missing: int) -> int:
    """The integer that a JSON value says, as a number or as text; `missing` where it says none, or one too large."""
    if isinstance(value, str):
        value = int(value) if INTEGER.fullmatch(value) else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or not -_LARGEST <= value <= _LARGEST:
        return missing
    return value
