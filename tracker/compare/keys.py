"""Rows by key: the texts of a key are compared once, and all that follows works with whole numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracker.lazy import pd

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

KEY: Final = "key"
"""The column of `numbered`."""


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


def numbered(frames: Sequence[pd.DataFrame], key: Sequence[str]) -> tuple[list[pd.DataFrame], pd.DataFrame]:
    """`frames` with the column KEY, in which rows that are equal in `key` have the same number, in whichever frame they
    are; and the distinct keys, by number.
    """
    rows = pd.concat([frame[list(key)] for frame in frames], ignore_index=True)
    number, first = places([rows[name] for name in key])
    numbers = np.split(number, np.cumsum([len(frame) for frame in frames])[:-1])
    keys = rows.take(first).reset_index(drop=True)
    return [frame.assign(**{KEY: own}) for frame, own in zip(frames, numbers, strict=True)], keys
