"""What NumPy does, but dearly."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Scalar = TypeVar("_Scalar", bound=np.generic)
_F64 = NDArray[np.float64]
_WORTH_COUNTING: Final = 1 << 10
_MOST_MARKS: Final = 1 << 16


def each_once(values: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """The values, each once, in their order. Asked for these alone, `numpy.unique` imports `numpy.ma`, which takes
    longer than to read a small profile.

    >>> each_once(np.array([7, 3, 7])).tolist()
    [3, 7]
    """
    if values.dtype.kind == "i" and len(values) > _WORTH_COUNTING:
        low, high = int(values.min()), int(values.max())
        if high - low < _MOST_MARKS:
            # codes and numbers of threads: to mark each is a tenth of the work of sorting them
            is_there = np.zeros(high - low + 1, dtype=bool)
            is_there[np.subtract(values, low, dtype=np.int64)] = True
            return (np.flatnonzero(is_there) + low).astype(values.dtype)
    found: NDArray[_Scalar] = np.unique(values, return_counts=True)[0]
    return found


def are_among(values: NDArray[_Scalar], chosen: ArrayLike) -> NDArray[np.bool_]:
    """Return for each value whether it is one of `chosen`. Of numbers far apart, `numpy.isin` imports `numpy.ma`.

    >>> are_among(np.array([7, 3, 9]), np.array([9, 3])).tolist()
    [False, True, True]
    """
    ordered = np.sort(np.asarray(chosen, dtype=values.dtype))
    if not len(ordered):
        return np.zeros(len(values), dtype=bool)
    place = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    found: NDArray[np.bool_] = ordered[place] == values
    return found


def median(values: ArrayLike, axis: int | None = None) -> Any:
    """The median along an axis, of all values for None; nan where any is nan, and of none. That of NumPy imports
    `numpy.ma` as well.

    >>> float(median([3.0, 1.0, 2.0])), median([[1.0, 4.0], [2.0, 3.0]], axis=1).tolist()
    (2.0, [2.5, 2.5])
    """
    numbers = np.asarray(values, dtype=np.float64)
    ordered = np.sort(numbers.ravel() if axis is None else np.moveaxis(numbers, axis, -1), axis=-1)
    count = ordered.shape[-1]
    if not count:
        return np.full(ordered.shape[:-1], np.nan)[()]
    middle = (ordered[..., (count - 1) // 2] + ordered[..., count // 2]) / 2
    # nan comes last
    return np.where(np.isnan(ordered[..., -1]), np.nan, middle)[()]


def known_medians(rows: _F64) -> _F64:
    """The median of each row (rows, columns) over what is not nan; nan where all is.

    >>> known_medians(np.array([[1.0, np.nan, 2.0], [np.nan, np.nan, np.nan]])).tolist()
    [1.5, nan]
    """
    ordered, count = np.sort(rows, axis=1), rows.shape[1]
    if count and not np.isnan(ordered[:, -1]).any():  # nan comes last: there is none
        return np.asarray((ordered[:, (count - 1) // 2] + ordered[:, count // 2]) / 2)
    known = np.count_nonzero(~np.isnan(rows), axis=1)
    found = np.full(len(rows), np.nan)
    told = np.flatnonzero(known)
    low, high = (known[told] - 1) // 2, known[told] // 2
    found[told] = (ordered[told, low] + ordered[told, high]) / 2
    return found


def medians_of_groups(values: _F64, bounds: NDArray[np.int64]) -> _F64:
    """Return the median of each group of neighbours over what is not nan; nan where all is.

    bounds: where each group begins, and the end of all; no group is empty. Groups of one size are sorted together, so
    that as much memory is taken as there are values.

    >>> medians_of_groups(np.array([1.0, 5.0, np.nan, 2.0, 7.0]), np.array([0, 3, 5])).tolist()
    [3.0, 4.5]
    """
    sizes = np.diff(bounds)
    found = np.full(len(sizes), np.nan)
    for size in each_once(sizes).tolist():
        groups = np.flatnonzero(sizes == size)
        found[groups] = known_medians(values[bounds[groups][:, None] + np.arange(size)])
    return found


def quantiles(values: _F64, shares: _F64) -> _F64:
    """The values at these `shares` of the way from the smallest to the largest, between two of them by the distance to
    each; as `numpy.quantile`.

    >>> quantiles(np.array([10.0, 30.0, 20.0]), np.array([0.0, 0.25, 1.0])).tolist()
    [10.0, 15.0, 30.0]
    """
    ordered = np.sort(values)
    place = shares * (len(ordered) - 1)
    low = np.floor(place).astype(np.int64)
    before, after, part = ordered[low], ordered[np.minimum(low + 1, len(ordered) - 1)], place - low
    step = after - before
    # from the nearer one, so that an equal step to either side is told from rounding
    found: _F64 = np.where(part < 0.5, before + step * part, after - step * (1 - part))
    return found
