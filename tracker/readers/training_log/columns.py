"""Columns of numbers that take little memory: a log of 500 MB has millions of step lines.

A log prints decimals: 2512.3 is 25,123 tenths. Where all numbers of a piece of a column are whole numbers of such a
unit, they are kept as integers of 1, 2 or 4 bytes. Where they are alike or count on evenly, the first one is enough.
Where they are few different ones, each is kept once. Any other piece is kept as it came. The numbers that come out are
those that went in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Numbers = NDArray[Any]
Places = NDArray[np.integer[Any]] | Sequence[int]

_PIECE: Final = 1 << 16
"""Numbers of a piece: so few that what is made of one takes no memory to speak of."""
_DIGITS: Final = (0, 1, 2, 3, 4, 5, 6, -6)
"""Digits behind the point that are tried; -6: times of the day in ns are mostly whole ms."""
_LOOKED_AT: Final = 100
"""So many numbers of a piece show mostly that it has more digits."""
_SMALL_KINDS: Final = (np.uint8, np.uint16, np.uint32)
_SMALL: Final = 2
"""Integers of so many bytes are as small as places of few different numbers."""
_MOST_DIFFERENT: Final = 0.2
"""The largest part of the numbers of a piece that may be different ones where each is kept once."""
_LARGEST: Final = 2.0**52
"""Above it a double does not hold every whole number."""


def are_alike(column: Numbers) -> bool:
    """Whether a column is one number throughout, kept once."""
    return column.strides == (0,) and len(column) > 0


def pick(column: Numbers, at: Places) -> Numbers:
    """Return a column at some places; of one number throughout a column that takes no memory."""
    if are_alike(column):
        alike: Numbers = np.broadcast_to(column[0], (len(at),))
        return alike
    if len(at) == len(column):
        return column  # places are in order, so that these are all
    picked: Numbers = column[at]
    return picked


def blank(values: NDArray[np.float64], is_blank: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return numbers of which some are missing: the same column where it may be written to."""
    if not is_blank.any():
        return values
    blanked = values if values.flags.writeable else values.copy()
    blanked[is_blank] = np.nan
    return blanked


class _Piece(Struct, frozen=True):
    """Neighbouring numbers of a column. Each is `first`, `stride` more than the one before, or, where there are
    `integers`, `first` more than its integer, in units of `digits` behind the point; the largest integer of its kind is
    nan. Where there are `numbers`, it is one of these: the next one, or that at the place which its integer names.
    """

    count: int
    first: float | int = 0
    stride: float | int = 0
    digits: int = 0
    integers: Numbers | None = None
    numbers: Numbers | None = None

    @property
    def is_as_it_came(self) -> bool:
        """Whether each number is kept."""
        return self.numbers is not None and self.integers is None

    def values(self, kind: np.dtype[Any]) -> Numbers:
        """Return the numbers."""
        if self.numbers is not None:
            return self.numbers if self.integers is None else self.numbers[self.integers]
        if self.integers is None:
            if self.stride:
                return (self.first + self.stride * np.arange(self.count)).astype(kind)
            return np.broadcast_to(kind.type(self.first), (self.count,))
        if kind.kind == "i":
            return (self.integers.astype(np.int64) + self.first).astype(kind)
        numbers = self.integers + np.float64(self.first)
        numbers[self.integers == np.iinfo(self.integers.dtype).max] = np.nan
        return _by_unit(numbers, self.digits).astype(kind, copy=False)


class PackedColumn:
    """A column of numbers that grows, packed piece by piece."""

    def __init__(self, kind: type[np.number[Any]] = np.float64) -> None:
        self._kind: np.dtype[Any] = np.dtype(kind)
        self._pieces: list[_Piece] = []
        self._waiting: list[Numbers] = []
        self._count = self._waiting_count = 0
        self._digits = 0

    @classmethod
    def of(cls, numbers: Numbers | Sequence[float]) -> PackedColumn:
        """Return a column of some numbers."""
        values = np.asarray(numbers)
        column = cls(values.dtype.type)
        if are_alike(values):
            column._pieces.append(_Piece(len(values), values[0]))
            column._count = len(values)
            return column
        for begin in range(0, len(values), _PIECE):
            column.extend(values[begin : begin + _PIECE])
            if column._pieces and column._pieces[-1].is_as_it_came:
                # numbers with too many digits: the rest is kept as it is, without a copy
                column._pieces[-1] = _Piece(len(values) - begin, numbers=values[begin:])
                column._count = len(values)
                break
        column._pack_waiting()
        return column

    @classmethod
    def of_places(cls, count: int) -> PackedColumn:
        """Return the places of so many rows: 0, 1, 2 and so on."""
        column = cls(np.int32)
        for begin in range(0, count, _PIECE):
            column._pieces.append(_Piece(min(_PIECE, count - begin), begin, stride=1))
        column._count = count
        return column

    def __len__(self) -> int:
        return self._count

    def extend(self, numbers: Numbers | Sequence[float]) -> None:
        """Append some numbers."""
        values = np.asarray(numbers, dtype=self._kind)
        if not len(values):
            return
        self._waiting.append(values)
        self._count += len(values)
        self._waiting_count += len(values)
        if self._waiting_count >= _PIECE:
            self._pack_waiting()

    def fill(self, count: int, value: float) -> None:
        """Append one number several times."""
        for begin in range(0, count, _PIECE):
            self.extend(np.full(min(_PIECE, count - begin), value, dtype=self._kind))

    def values(self) -> Numbers:
        """Return the numbers; of one number throughout a column that takes no memory."""
        return self.computed(lambda numbers: numbers)

    def computed(self, compute: Callable[[Numbers], Numbers]) -> Numbers:
        """Return what a function makes of the numbers, each for itself."""
        self._pack_waiting()
        if self._pieces and self._are_alike():
            return np.broadcast_to(compute(self._pieces[0].values(self._kind)[:1])[0], (self._count,))
        whole = np.empty(self._count, dtype=self._kind)
        begin = 0
        for numbers in self.pieces():
            whole[begin : begin + len(numbers)] = compute(numbers)
            begin += len(numbers)
        return whole

    def is_missing(self) -> NDArray[np.bool_]:
        """Return which numbers are missing; where none is, that takes no memory."""
        is_missing: NDArray[np.bool_] = np.broadcast_to(np.False_, (self._count,))
        begin = 0
        for numbers in self.pieces():
            of_piece = np.isnan(numbers)
            if of_piece.any():
                is_missing = is_missing if is_missing.flags.writeable else is_missing.copy()
                is_missing[begin : begin + len(numbers)] = of_piece
            begin += len(numbers)
        return is_missing

    def where(self, is_picked: NDArray[np.bool_]) -> Numbers:
        """Return the numbers of some rows."""
        picked = np.empty(int(is_picked.sum()), dtype=self._kind)
        count = 0
        for some in self.pieces_where(is_picked):
            picked[count : count + len(some)] = some
            count += len(some)
        return picked

    def pieces_where(self, is_picked: NDArray[np.bool_]) -> Iterator[Numbers]:
        """Yield the numbers of some rows piece by piece."""
        begin = 0
        for numbers in self.pieces():
            yield numbers[is_picked[begin : begin + len(numbers)]]
            begin += len(numbers)

    def first(self, count: int) -> Numbers:
        """Return the first numbers."""
        found: list[Numbers] = []
        for numbers in self.pieces():
            found.append(numbers[:count])
            count -= len(found[-1])
            if count <= 0:
                break
        return np.concatenate(found) if found else np.empty(0, dtype=self._kind)

    def pieces(self) -> Iterator[Numbers]:
        """Yield the numbers piece by piece."""
        self._pack_waiting()
        for piece in self._pieces:
            numbers = piece.values(self._kind)
            for begin in range(0, piece.count, _PIECE):
                yield numbers[begin : begin + _PIECE]

    def has_number(self) -> bool:
        """Whether a number is none that is missing."""
        self._pack_waiting()
        return any(_has_number(piece, self._kind) for piece in self._pieces)

    def at(self, places: Places | PackedColumn) -> PackedColumn:
        """Return the column at some places, which are in order."""
        if len(places) == len(self):
            return self
        numbers_of_places = places.values() if isinstance(places, PackedColumn) else np.asarray(places)
        self._pack_waiting()
        picked = PackedColumn(self._kind.type)
        begin = 0
        for piece in self._pieces:
            first, last = np.searchsorted(numbers_of_places, (begin, begin + piece.count)).tolist()
            if first < last:
                numbers = piece.values(self._kind)
                for cut in range(first, last, _PIECE):
                    picked.extend(numbers[numbers_of_places[cut : min(cut + _PIECE, last)] - begin])
            begin += piece.count
        return picked

    def changed_by(self, change: Callable[[Numbers], Numbers]) -> PackedColumn:
        """Return a column of what a function makes of the numbers, each for itself."""
        self._pack_waiting()
        if self._pieces and self._are_alike():
            return PackedColumn.of(self.computed(change))
        if all(np.array_equal(change(numbers), numbers, equal_nan=True) for numbers in self.pieces()):
            return self
        changed = PackedColumn(self._kind.type)
        for numbers in self.pieces():
            changed.extend(change(numbers))
        return changed

    def _are_alike(self) -> bool:
        """Whether all numbers are one, which may be nan."""
        first = self._pieces[0].first
        for piece in self._pieces:
            if piece.integers is not None or piece.numbers is not None or piece.stride:
                return False
            if piece.first != first and not (np.isnan(piece.first) and np.isnan(first)):
                return False
        return True

    def _pack_waiting(self) -> None:
        if not self._waiting_count:
            return
        numbers = np.concatenate(self._waiting)
        self._waiting, self._waiting_count = [], 0
        with np.errstate(invalid="ignore", over="ignore"):  # a damaged number may be infinite
            piece = _even_piece(numbers) or self._piece_of_integers(numbers)
        if piece is None or (piece.integers is not None and piece.integers.itemsize > _SMALL):
            piece = _piece_of_few(numbers) or piece
        self._pieces.append(piece or _Piece(len(numbers), numbers=numbers))

    def _piece_of_integers(self, numbers: Numbers) -> _Piece | None:
        """Return a piece of small integers; None where numbers have too many digits."""
        if self._kind.kind == "i":
            return _whole_piece(numbers)
        is_known = ~np.isnan(numbers)
        known = numbers if is_known.all() else numbers[is_known]
        # the digits of the piece before first
        for digits in (self._digits, *_DIGITS):
            if not _are_in_unit(known[:_LOOKED_AT], digits) or not _are_in_unit(known, digits):
                continue
            self._digits = digits
            units = np.rint(_in_unit(numbers, digits))
            smallest = float(np.nanmin(units))
            units -= smallest
            kind = _kind_for(float(np.nanmax(units)))
            if kind is None:
                return None
            units[~is_known] = np.iinfo(kind).max
            return _Piece(len(numbers), smallest, digits=digits, integers=units.astype(kind))
        return None


def _has_number(piece: _Piece, kind: np.dtype[Any]) -> bool:
    if piece.integers is None and piece.numbers is None:
        return not np.isnan(piece.first)
    return bool((~np.isnan(piece.values(kind))).any())


def _even_piece(numbers: Numbers) -> _Piece | None:
    """Return a piece of numbers that are alike or count on evenly in whole numbers; None for others."""
    first = numbers[0]
    if np.isnan(first):
        return _Piece(len(numbers), first) if np.isnan(numbers).all() else None
    if len(numbers) == 1 or (numbers == first).all():
        return _Piece(len(numbers), first)
    stride = numbers[1] - first
    if np.isnan(stride) or stride != np.rint(stride) or first != np.rint(first) or not abs(numbers[-1]) < _LARGEST:
        return None
    expected = first + stride * np.arange(len(numbers))
    return _Piece(len(numbers), first, stride) if (numbers == expected).all() else None


def _whole_piece(numbers: Numbers) -> _Piece | None:
    smallest = int(numbers.min())
    kind = _kind_for(int(numbers.max()) - smallest)
    if kind is None:
        return None
    return _Piece(len(numbers), smallest, integers=(numbers.astype(np.int64) - smallest).astype(kind))


def _piece_of_few(numbers: Numbers) -> _Piece | None:
    """Return a piece of numbers that are few different ones; None for others."""
    different, places = np.unique(numbers, return_inverse=True)
    if len(different) > _MOST_DIFFERENT * len(numbers):
        return None
    kind = np.uint8 if len(different) <= 1 << 8 else np.uint16
    return _Piece(len(numbers), numbers=different, integers=places.astype(kind))


def _kind_for(largest: float) -> type[np.unsignedinteger[Any]] | None:
    """Return the smallest kind of integers that holds a number, and one above it for nan."""
    return next((kind for kind in _SMALL_KINDS if largest < np.iinfo(kind).max), None)


def _in_unit(numbers: Numbers, digits: int) -> Numbers:
    wide = numbers.astype(np.float64)
    return wide * 10.0**digits if digits >= 0 else wide / 10.0**-digits


def _by_unit(units: Numbers, digits: int) -> Numbers:
    return units / 10.0**digits if digits >= 0 else units * 10.0**-digits


def _are_in_unit(numbers: Numbers, digits: int) -> bool:
    """Whether numbers are whole numbers of a unit, to the last bit."""
    units = np.rint(_in_unit(numbers, digits))
    if not (np.abs(units) < _LARGEST).all():
        return False
    return bool((_by_unit(units, digits).astype(numbers.dtype) == numbers).all())
