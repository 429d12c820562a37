"""Columns that grow chunk by chunk."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from mmap import mmap
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
SLAB_ROWS: Final = 1 << 17
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

    Rows are copied into slabs outside of the heap at once: thousands of small arrays between the short-lived objects of
    decoding would keep the memory of those from being used again.
    """

    def __init__(self, **dtypes: type) -> None:
        self.rows = 0
        self.dtypes = dtypes
        self._slabs: dict[str, list[Array]] = {name: [] for name in dtypes}

    def add(self, **columns: Sequence[Any] | Array) -> None:
        """Adds one block; every column must be given, in equal length."""
        arrays: dict[str, Array] = {name: np.asarray(columns[name], dtype=dtype) for name, dtype in self.dtypes.items()}
        lengths = {len(array) for array in arrays.values()}
        if len(lengths) != 1:
            raise ValueError(f"columns of different length: {sorted(lengths)}")
        for name, array in arrays.items():
            self._put(self._slabs[name], array)
        self.rows += lengths.pop()

    def done(self) -> Mapping[str, Array]:
        """The whole columns; the slabs are given up."""
        return {name: self._joined(name) for name in self.dtypes}

    def _put(self, slabs: list[Array], array: Array) -> None:
        used = self.rows % SLAB_ROWS
        while len(array):
            if used == 0:
                slabs.append(_slab(array.dtype))
            part, array = array[: SLAB_ROWS - used], array[SLAB_ROWS - used :]
            slabs[-1][used : used + len(part)] = part
            used = (used + len(part)) % SLAB_ROWS

    def _joined(self, name: str) -> Array:
        slabs = self._slabs.pop(name)
        whole: Array = np.empty(self.rows, dtype=self.dtypes[name])
        for start in range(0, self.rows, SLAB_ROWS):
            whole[start : start + SLAB_ROWS] = slabs.pop(0)[: self.rows - start]
        return whole


def _slab(dtype: np.dtype[Any]) -> Array:
    return np.frombuffer(mmap(-1, SLAB_ROWS * dtype.itemsize), dtype=dtype)


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
