"""Rows by key: the texts of a key are compared once, and all that follows works with whole numbers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import count
from typing import Any

import numpy as np
from msgspec import Struct

from tracker.columns import F64, I64, Column, Columns, Flags, Texts, listed


def places(columns: Sequence[Any]) -> tuple[I64, I64]:
    """Of each row of these columns the place of its key among the distinct ones, in the order in which they first come;
    and the first row of each. What is missing is a key like any other.
    """
    found, keys = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        codes, distinct = _codes(column)
        found = codes if keys == 1 else _first_come(found * distinct + codes)
        keys = int(found.max(initial=0)) + 1
    first = np.zeros(keys if len(found) else 0, dtype=np.int64)
    first[found[::-1]] = np.arange(len(found) - 1, -1, -1)
    return found, first


def _codes(column: Any) -> tuple[I64, int]:
    """Of each row the place of its value among the distinct ones, in the order in which they first come; and how many
    these are.
    """
    if not isinstance(column, Column) and column.dtype != object:
        codes = _first_come(column)
        return codes, int(codes.max(initial=-1)) + 1
    first: dict[Any, int] = {}
    values = listed(column)
    rows = np.fromiter(map(first.setdefault, values, count()), np.int64, len(values))  # of the row that came first
    return (np.cumsum(rows == np.arange(len(rows))) - 1)[rows], len(first)


def _first_come(numbers: I64 | F64) -> I64:
    """Of each number its place among the distinct ones, in the order in which they first come."""
    _, first, which = np.unique(numbers, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return place[which]


def ranks(texts: Any) -> I64:
    """Of each row the place of its text among the distinct ones in their order; what is missing comes last."""
    values = listed(texts)
    distinct = sorted({*values} - {None})
    place = dict(zip((*distinct, None), range(len(distinct) + 1), strict=True))
    return np.fromiter(map(place.__getitem__, values), np.int64, len(values))


def among(texts: Texts, known: Collection[str]) -> Flags:
    """Which of the `texts` are known."""
    return np.fromiter(map(known.__contains__, texts), bool, len(texts))


class Numbered(Struct, frozen=True, eq=False):
    """Rows with the numbers of their keys, of which there are `count`."""

    rows: Columns
    number: I64
    count: int


def together(rows: Sequence[Numbered], *columns: str) -> Numbered:
    """These columns of the rows of all sides."""
    every = Columns.stacked([own.rows.only(columns) for own in rows])
    return Numbered(every, np.concatenate([own.number for own in rows]), rows[0].count)


def numbered(tables: Sequence[Columns], key: Sequence[str]) -> tuple[list[Numbered], Columns]:
    """The rows of `tables` with numbers: those that are equal in `key` have the same, in whichever table they are; and
    the distinct keys, by number.
    """
    keys = Columns.stacked([table.only(key) for table in tables])
    number, first = places(list(keys.arrays.values()))
    numbers = np.split(number, np.cumsum([len(table) for table in tables])[:-1])
    return [Numbered(*own, len(first)) for own in zip(tables, numbers, strict=True)], keys.taken(first)
