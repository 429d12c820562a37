"""Rows column by column, as a database answers and as results hold them. A frame of pandas is made for whoever asks for
one: to import pandas takes a sixth of the time of a whole diff.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.lazy import pd

if TYPE_CHECKING:
    from typing import Self

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Texts = NDArray[np.object_]
Flags = NDArray[np.bool_]
Chosen = I64 | Flags | slice
"""Which rows: their places, or whether for each."""
RowKind = TypeVar("RowKind", bound=Struct)
_NOTHING = np.array(None, dtype=object)


class Column(Struct, frozen=True, eq=False):
    """Whole or real numbers, or flags, of which some may be missing, whatever stands there."""

    values: NDArray[Any]
    missing: Flags

    @classmethod
    def of(cls, numbers: Sequence[Any], dtype: type) -> Self:
        """From what a driver gives: None is missing."""
        if None not in numbers:
            return cls(np.array(numbers, dtype=dtype), np.zeros(len(numbers), dtype=bool))
        missing = np.array([number is None for number in numbers], dtype=bool)
        return cls(np.array([number or 0 for number in numbers], dtype=dtype), missing)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Chosen) -> Self:
        """These rows of it."""
        return type(self)(self.values[rows], self.missing[rows])

    def array(self) -> Any:
        """The same as a nullable array of pandas."""
        if self.values.dtype == np.bool_:
            return pd.arrays.BooleanArray(self.values, self.missing)
        kind = pd.arrays.IntegerArray if self.values.dtype == np.int64 else pd.arrays.FloatingArray
        return kind(self.values, self.missing)


class Columns(Struct, frozen=True, eq=False):
    """Columns of one length by name, in order: texts (objects, None for missing), int64 of which none is missing,
    float64 (nan for missing), or a `Column`. Nobody changes them: what differs is made anew.

    >>> rows = Columns({"name": np.array(["mm", None], dtype=object), "calls": Column.of([3, None], np.int64)})
    >>> list(rows.rows("name", "calls")), rows.known("calls").tolist(), rows.integers("calls").tolist()
    ([('mm', 3), (None, None)], [True, False], [3, 0])
    """

    arrays: Mapping[str, Any]

    @classmethod
    def of_frame(cls, frame: pd.DataFrame) -> Self:
        """From a frame of pandas."""
        return cls({str(name): _of_series(frame[name]) for name in frame})

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Self:
        """From rows by name, None or left out for missing; a column without any value is one of texts.

        >>> rows = [{"name": "mm", "calls": 3}, {"name": None}]
        >>> list(Columns.of_rows(rows, ["name", "calls"]).rows("name", "calls"))
        [('mm', 3), (None, None)]
        """
        return cls({name: _of_values([row.get(name) for row in rows]) for name in names})

    @classmethod
    def of_structs(cls, kind: type[Struct], rows: Sequence[Struct]) -> Self:
        """From structs: a column for each field of `kind`, which is their class or a base of it; None is missing.

        >>> class Call(Struct):
        ...     name: str | None
        ...     calls: int | None = None
        >>> list(Columns.of_structs(Call, [Call("mm", 3), Call(None)]).rows("name", "calls"))
        [('mm', 3), (None, None)]
        """
        return cls({name: _of_values([getattr(row, name) for row in rows]) for name in kind.__struct_fields__})

    @classmethod
    def stacked(cls, parts: Sequence[Columns]) -> Self:
        """The rows of all `parts`, which have the same columns, one after the other."""
        return cls({name: stacked([part[name] for part in parts]) for name in parts[0].arrays})

    @property
    def frame(self) -> pd.DataFrame:
        """A frame with nullable dtypes (Int64, Float64, string, boolean); float64 where nan is missing."""
        return pd.DataFrame({name: _of_pandas(column) for name, column in self.arrays.items()}, copy=False)

    def __len__(self) -> int:
        return next((len(column) for column in self.arrays.values()), 0)

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def __getitem__(self, name: str) -> Any:
        return self.arrays[name]

    def texts(self, name: str) -> Texts:
        """The texts of a column, "" for missing."""
        found: Texts = self.arrays[name]
        return np.where(known(found), found, "")

    def reals(self, name: str) -> F64:
        """The numbers of a column, nan for missing."""
        return reals(self.arrays[name])

    def integers(self, name: str, missing: int = 0) -> I64:
        """The whole numbers of a column, `missing` for those."""
        found = self.arrays[name]
        if isinstance(found, Column):
            return np.where(found.missing, missing, found.values) if found.missing.any() else found.values
        numbers: I64 = found
        return numbers

    def known(self, name: str) -> Flags:
        """Which rows have something in a column."""
        return known(self.arrays[name])

    def has(self, name: str) -> bool:
        """Whether any row has something in a column, which may be none of these."""
        return name in self.arrays and bool(self.known(name).any())

    def listed(self, name: str) -> list[Any]:
        """A column as Python values, None for missing."""
        return listed(self.arrays[name])

    def rows(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """These columns row by row, as Python values, None for missing."""
        return zip(*(self.listed(name) for name in names), strict=True)

    def structs(self, kind: type[RowKind]) -> Iterator[RowKind]:
        """The rows as structs of `kind`; None for missing. A field that is no column of these has its default.

        >>> class Call(Struct):
        ...     calls: int | None
        >>> rows = Columns({"name": objects(["mm", None]), "calls": Column.of([3, None], np.int64)})
        >>> [call.calls for call in rows.structs(Call)]
        [3, None]
        """
        names = kind.__struct_fields__
        if names == kind.__match_args__ and all(name in self.arrays for name in names):
            return map(kind, *(self.listed(name) for name in names))
        known = [name for name in names if name in self.arrays]
        return (kind(**dict(zip(known, row, strict=True))) for row in self.rows(*known))

    def records(self) -> list[dict[str, Any]]:
        """The rows by name, as Python values, None for missing."""
        return [dict(zip(self.arrays, row, strict=True)) for row in self.rows(*self.arrays)]

    def taken(self, rows: Chosen) -> Columns:
        """These rows."""
        return Columns({name: column[rows] for name, column in self.arrays.items()})

    def head(self, count: int | None) -> Columns:
        """The first rows, all for None."""
        return self if count is None or count >= len(self) else self.taken(slice(0, count))

    def only(self, names: Sequence[str]) -> Columns:
        """These columns, in this order."""
        return Columns({name: self.arrays[name] for name in names})

    def without(self, *names: str) -> Columns:
        """All columns but these."""
        return Columns({name: column for name, column in self.arrays.items() if name not in names})

    def having(self, **columns: Any) -> Columns:
        """With these columns, in the place of those of their names, else behind all others."""
        return Columns({**self.arrays, **columns})

    def renamed(self, names: Mapping[str, str]) -> Columns:
        """With the columns in `names`, old -> new, under their new ones."""
        return Columns({names.get(name, name): column for name, column in self.arrays.items()})


def _of_values(values: Sequence[Any]) -> Any:
    there = [value for value in values if value is not None]
    for kind, dtype in ((bool, np.bool_), (int, np.int64)):
        if there and all(isinstance(value, kind) for value in there):
            return Column.of(values, dtype)
    if there and all(isinstance(value, float | int) for value in there):
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return objects(values)


def objects(values: Sequence[Any]) -> Texts:
    """Texts as a column."""
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def reals(column: Any) -> F64:
    """The numbers of a column, nan for missing."""
    if isinstance(column, Column):
        return np.where(column.missing, np.nan, column.values)
    return np.asarray(column, dtype=np.float64)


def known(column: Any) -> Flags:
    """Which rows have something."""
    if isinstance(column, Column):
        return ~column.missing
    known: Flags = column != _NOTHING if column.dtype == object else ~np.isnan(column)
    return known


def listed(column: Any) -> list[Any]:
    """The values of a column, None for missing."""
    array, missing = (column.values, column.missing) if isinstance(column, Column) else (column, ~known(column))
    found: list[Any] = array.tolist()
    for at in np.flatnonzero(missing).tolist() if array.dtype != object else ():
        found[at] = None
    return found


def stacked(columns: Sequence[Any]) -> Any:
    """Columns of one kind, one after the other; those without rows may be of any."""
    given = [column for column in columns if len(column)] or columns[:1]
    if any(isinstance(column, Column) for column in given):
        whole = [column if isinstance(column, Column) else _of_array(column) for column in given]
        return Column(
            np.concatenate([column.values for column in whole]), np.concatenate([column.missing for column in whole])
        )
    return np.concatenate(given)


def _of_array(numbers: NDArray[Any]) -> Column:
    missing = np.isnan(numbers)
    return Column(np.where(missing, 0, numbers) if missing.any() else numbers, missing)


def _of_pandas(column: Any) -> Any:
    if isinstance(column, Column):
        return column.array()
    if column.dtype == object:
        return pd.array(column, dtype="string")
    return _of_array(column).array() if column.dtype in (np.int64, np.bool_) else column


def _of_series(series: pd.Series) -> Any:
    kind = str(series.dtype).lower()
    if kind in ("int64", "boolean", "bool") or str(series.dtype) == "Float64":
        missing = series.isna().to_numpy(dtype=bool)
        dtype = {"int64": np.int64, "float64": np.float64}.get(kind, np.bool_)
        return Column(series.to_numpy(dtype=dtype, na_value=dtype(0)), missing)
    if kind == "float64":
        return series.to_numpy(dtype=np.float64)
    return objects([None if pd.isna(value) else value for value in series])
