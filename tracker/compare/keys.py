"""Rows by key: the texts of a key are compared once, and all that follows works with whole numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.lazy import pd

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

Columns = dict[str, Any]
"""A table column by column: name -> an array of NumPy or pandas, all of the same length."""


def places(columns: Sequence[Any]) -> tuple[I64, I64]:
    """Of each row of these columns the place of its key among the distinct ones, in the order in which they first come;
    and the first row of each. What is missing is a key like any other.
    """
    found, count = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        codes, distinct = pd.factorize(column, use_na_sentinel=False)
        found = codes if count == 1 else pd.factorize(found * len(distinct) + codes)[0]
        count = int(found.max(initial=0)) + 1
    first = np.zeros(count if len(found) else 0, dtype=np.int64)
    first[found[::-1]] = np.arange(len(found) - 1, -1, -1)
    return found, first


def reals(column: pd.Series) -> F64:
    """The numbers of a column, nan for missing."""
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def values(frame: pd.DataFrame, *columns: str) -> Iterator[tuple[Any, ...]]:
    """The rows of these columns: pandas takes much longer to give the texts of a column one by one."""
    return zip(*(frame[name].to_numpy(dtype=object) for name in columns), strict=True)


def ranks(texts: Any) -> I64:
    """Of each row the place of its text among the distinct ones in their order; what is missing comes last."""
    found, distinct = pd.factorize(texts, sort=True)
    return np.where(found < 0, len(distinct), found)


def length(columns: Columns) -> int:
    """How many rows there are."""
    return len(next(iter(columns.values())))


def taken(columns: Columns, rows: I64) -> Columns:
    """These rows of all columns."""
    return {name: column.take(rows) for name, column in columns.items()}


class Numbered(Struct, frozen=True, eq=False):
    """Rows with the numbers of their keys, of which there are `count`."""

    frame: pd.DataFrame
    number: I64
    count: int


def together(rows: Sequence[Numbered], *columns: str) -> Numbered:
    """These columns of the rows of all sides."""
    frame = pd.concat([own.frame[list(columns)] for own in rows], ignore_index=True)
    return Numbered(frame, np.concatenate([own.number for own in rows]), rows[0].count)


def numbered(frames: Sequence[pd.DataFrame], key: Sequence[str]) -> tuple[list[Numbered], Columns]:
    """The rows of `frames` with numbers: those that are equal in `key` have the same, in whichever frame they are; and
    the distinct keys, by number.
    """
    rows = {name: pd.concat([frame[name] for frame in frames], ignore_index=True).array for name in key}
    number, first = places(list(rows.values()))
    numbers = np.split(number, np.cumsum([len(frame) for frame in frames])[:-1])
    return [Numbered(*own, len(first)) for own in zip(frames, numbers, strict=True)], taken(rows, first)
