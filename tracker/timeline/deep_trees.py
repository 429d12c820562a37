"""Walks trees row by row where they are deep and narrow.

A tree passes values down and up in one NumPy step per level, which is fast where thousands of rows share a level. A
trace whose spans are all equal, or lie in each other, has a level per row: there each NumPy step does the work of one
row, and costs a hundred times as much as plain Python does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracker.profile import I64

_FEW_LEVELS: Final = 128
"""So many levels are walked by NumPy, however narrow they are: programs nest as deep."""

_NARROW: Final = 48
"""Rows per level below which plain Python is faster."""

Levels = Sequence[NDArray[np.integer]]


def are_narrow(levels: Levels) -> bool:
    """Return whether the levels of a tree are so many and so narrow that its rows are walked one by one."""
    if len(levels) <= _FEW_LEVELS:
        return False
    return sum(map(len, levels)) < _NARROW * len(levels)


def pass_down(values: I64, parent: NDArray[np.integer], levels: Levels, *, unset: int) -> I64:
    """Return `values`, where those that are `unset` have the value of the nearest row above that has one."""
    passed, above = values.tolist(), parent.tolist()
    for rows in levels[1:]:
        for row in rows.tolist():
            if passed[row] == unset:
                passed[row] = passed[above[row]]
    return np.array(passed, dtype=values.dtype)


def find_outermost(found: I64, beyond: NDArray[np.bool_], parent: NDArray[np.integer], levels: Levels) -> I64:
    """Return for each row the outermost chosen one of itself and those above it, below any row `beyond`; or -1.

    found: each chosen row itself, -1 for the others.
    """
    outermost, is_beyond, above = found.tolist(), beyond.tolist(), parent.tolist()
    for rows in levels[1:]:
        for row in rows.tolist():
            if is_beyond[row]:
                outermost[row] = -1
            elif outermost[above[row]] >= 0:
                outermost[row] = outermost[above[row]]
    return np.array(outermost, dtype=np.int64)


def sum_up(values: I64, parent: NDArray[np.integer], levels: Levels) -> I64:
    """Return for each row the sum of `values` over it and all rows below it."""
    total, above = values.tolist(), parent.tolist()
    for rows in reversed(levels[1:]):
        for row in rows.tolist():
            total[above[row]] += total[row]
    return np.array(total, dtype=values.dtype)


def number_paths(key: NDArray[Any], parent: NDArray[np.integer], levels: Levels) -> tuple[I64, list[list[Any]]]:
    """Return the path of each row, and parent, key and depth of each path, as `Tree.paths` numbers them: level by
    level, in order of the path above and the key.
    """
    keys, above = key.tolist(), parent.tolist()
    path_of_row = [0] * len(keys)
    columns: list[list[Any]] = [[], [], []]
    count = 0
    for depth, level in enumerate(levels):
        rows = level.tolist()
        pairs = [(path_of_row[above[row]] if depth else -1, keys[row]) for row in rows]
        numbers = {}
        for pair in sorted(set(pairs)):
            numbers[pair] = count
            count += 1
            for column, value in zip(columns, (*pair, depth), strict=True):
                column.append(value)
        for row, pair in zip(rows, pairs, strict=True):
            path_of_row[row] = numbers[pair]
    return np.array(path_of_row, dtype=np.int64), columns
