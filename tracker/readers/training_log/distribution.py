"""Medians, quantiles and means of numbers that come piece by piece, equal to those of one array.

A log of 500 MB has millions of numbers, printed with few digits: there are few different ones, which are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Numbers = NDArray[Any]
Pieces = Callable[[], Iterable[Numbers]]
"""Returns numbers in pieces, as often as it is called."""

_MOST_DIFFERENT: Final = 1 << 16
"""More different numbers are sorted as one array: counting them would take longer, and no less memory."""
_PIECE: Final = 1 << 16
_UNROLLED: Final = 8
"""So many numbers numpy adds side by side."""


class PieceReader:
    """The numbers of pieces in their order, as many at once as a caller takes."""

    def __init__(self, pieces: Iterable[Numbers]) -> None:
        self._pieces: Iterator[Numbers] = iter(pieces)
        self._rest: Numbers = np.zeros(0)

    def take(self, count: int) -> Numbers:
        """Return the next numbers."""
        parts = []
        while count:
            if not len(self._rest):
                self._rest = next(self._pieces)
            parts.append(self._rest[:count])
            self._rest = self._rest[count:]
            count -= len(parts[-1])
        return np.concatenate(parts)


def mean_of(pieces: Pieces, count: int) -> float:
    """Return the mean of so many numbers, which are all that the pieces have."""
    return float(_sum_of(PieceReader(pieces()), count) / count)


def _sum_of(reader: PieceReader, count: int) -> Any:
    """Return the sum of the next numbers, to the last bit that of one array: numpy adds the sums of two halves."""
    if count <= _PIECE:
        return reader.take(count).sum()
    half = count // 2
    half -= half % _UNROLLED
    return _sum_of(reader, half) + _sum_of(reader, count - half)


def median_of(pieces: Pieces) -> float | None:
    """Return the median of numbers of which none is missing; None where there are none."""
    counted = _count_different(pieces())
    if counted is None:
        return float(np.median(np.concatenate([*pieces()]), overwrite_input=True))
    different, ends = counted
    if not len(ends):
        return None
    middle = [(int(ends[-1]) - 1) // 2, int(ends[-1]) // 2]
    return float(np.median(_at_ranks(different, ends, middle)))


def quantiles_of(pieces: Pieces, parts: Sequence[float]) -> list[float]:
    """Return quantiles of numbers of which there are some and none is missing."""
    counted = _count_different(pieces())
    if counted is None:
        quantiles = np.quantile(np.concatenate([*pieces()]), parts, overwrite_input=True)
        return [float(quantile) for quantile in quantiles]
    different, ends = counted
    found = []
    for part in parts:
        place = (int(ends[-1]) - 1) * part
        below = int(place)
        neighbours = _at_ranks(different, ends, [below, min(below + 1, int(ends[-1]) - 1)])
        found.append(float(np.quantile(neighbours, place - below)))
    return found


def _at_ranks(different: Numbers, ends: I64, ranks: Sequence[int]) -> Numbers:
    """Return which numbers stand at some ranks, counted from 0, in the order of their size."""
    found: Numbers = different[np.searchsorted(ends, ranks, side="right")]
    return found


def _count_different(pieces: Iterable[Numbers]) -> tuple[Numbers, I64] | None:
    """Return the different numbers in the order of their size, and how many numbers are at most as large as each; None
    where too many are different.
    """
    different: Numbers = np.zeros(0)
    counts: I64 = np.zeros(0, dtype=np.int64)
    for numbers in pieces:
        of_piece, counts_of_piece = np.unique(numbers, return_counts=True)
        both, counts_of_both = np.concatenate([different, of_piece]), np.concatenate([counts, counts_of_piece])
        different, places = np.unique(both, return_inverse=True)
        if len(different) > _MOST_DIFFERENT:
            return None
        counts = np.zeros(len(different), dtype=np.int64)
        np.add.at(counts, places, counts_of_both)
    return different, np.cumsum(counts)
