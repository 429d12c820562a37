"""Fits a table into a terminal: shortens long names in the middle, folds columns under others, leaves some out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from rich.cells import cell_len, chop_cells, set_cell_size

from tracker.reports._human import Column, Table
from tracker.units import MISSING_TEXT, printable

GAP: Final = 2
_WORD: Final = re.compile(r"\s*+\S+\s*")
_WIDE: Final = 24  # an elastic column keeps at least this, before columns fold
_NARROW: Final = 26  # and this, before columns are left out
_LEAST: Final = 8


class Fitted(Struct, frozen=True):
    """A table that fits: `rows` hold the lines of each cell, `widths` the cells that each column takes. `left_out`: the
    headers of columns for which there was no room.
    """

    columns: tuple[Column, ...]
    widths: tuple[int, ...]
    rows: tuple[tuple[tuple[str, ...], ...], ...]
    left_out: tuple[str, ...] = ()


class _Plan(Struct, frozen=True):
    """Which columns stand beside each other, which fold under column `main`, and the least width of an elastic one."""

    kept: tuple[int, ...]
    folded: tuple[int, ...]
    main: int
    least: int


def shorten(text: str, width: int) -> str:
    """`text` in at most `width` terminal cells, cut in the middle: names differ at both ends.

    >>> shorten("void at::native::vectorized_kernel<4>", 16), shorten("relu", 16)
    ('void at:…rnel<4>', 'relu')
    """
    if cell_len(text) <= width:
        return text
    if width < 2:
        return "…"[:width]
    head = set_cell_size(text, width // 2)
    return f"{head}…{_end(text, width - 1 - cell_len(head))}"


def shorten_place(text: str, width: int) -> str:
    """`text` of code lines and modules in at most `width` terminal cells: folders go first, the longest first; file
    names, lines and functions stay as long as they can.

    >>> shorten_place("/home/me/project/main.py(366): train", 24), shorten_place("Net_0/Linear_1, a/b.py(2)", 22)
    ('…/main.py(366): train', '…/Linear_1, a/b.py(2)')
    """
    parts = text.split(", ")
    while cell_len(", ".join(parts)) > width:
        longest = max(range(len(parts)), key=lambda at: len(parts[at].rpartition("/")[0]))
        folder, _, name = parts[longest].rpartition("/")
        if folder in ("", "…"):
            break
        parts[longest] = f"…/{name}"
    short = ", ".join(parts)
    return short if cell_len(short) <= width else f"…{_end(short, width - 1)}"


def _end(text: str, width: int) -> str:
    """As much of the end of `text` as takes at most `width` terminal cells."""
    end = ""
    for char in reversed(text):
        if cell_len(char + end) > width:
            break
        end = char + end
    return end


def wrapped(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` terminal cells, broken before words; a word that is longer than a line is cut.

    >>> wrapped("all of it was wrapped", 8)
    ['all of ', 'it was ', 'wrapped']
    """
    lines = [""]
    for word in _WORD.findall(text) if text.strip() else []:
        size = cell_len(word.rstrip())
        if cell_len(lines[-1]) + size <= width:
            lines[-1] += word
        elif size <= width:
            lines.append(word)
        else:
            lines += chop_cells(word, width)
    whole = lines if lines[0] or len(lines) == 1 else lines[1:]
    return [line if cell_len(line) <= width else set_cell_size(line, width) for line in whole]


def shortened(text: str, column: Column, width: int) -> str:
    """`text` of a cell under `column` in at most `width` terminal cells."""
    return shorten_place(text, width) if column.place else shorten(text, width)


def fit(table: Table, width: int) -> Fitted:
    """`table` in at most `width` terminal cells, as far as its fixed columns allow."""
    cells = [[printable(cell) for cell in row] for row in table.rows]
    natural = [
        max([*map(cell_len, column.header.split("\n")), *(cell_len(row[index]) for row in cells)])
        for index, column in enumerate(table.columns)
    ]
    empty = frozenset(
        index for index, column in enumerate(table.columns) if column.fold and not any(row[index] for row in cells)
    )
    for plan in _plans(table.columns, empty):
        widths = _widths(table.columns, natural, plan, width)
        if widths is not None:
            break
    else:
        raise AssertionError("the last plan always fits")
    rows = tuple(_cells(row, table.columns, plan, widths) for row in cells)
    shown = {*plan.kept, *plan.folded, *empty}
    left_out = tuple(
        " ".join(column.header.split()) for index, column in enumerate(table.columns) if index not in shown
    )
    return Fitted(tuple(table.columns[index] for index in plan.kept), widths, rows, left_out)


def _plans(columns: Sequence[Column], empty: frozenset[int]) -> Iterator[_Plan]:
    kept = tuple(index for index in range(len(columns)) if index not in empty)
    main = next((index for index in kept if columns[index].elastic), -1)
    yield _Plan(kept, (), main, _WIDE)
    folded = tuple(index for index in kept if columns[index].fold and index != main)
    kept = tuple(index for index in kept if index not in folded)
    yield _Plan(kept, folded, main, _NARROW)
    for drop in sorted({column.drop for column in columns if column.drop}, reverse=True):
        kept = tuple(index for index in kept if columns[index].drop < drop)
        yield _Plan(kept, folded, main, _NARROW)
    yield _Plan(kept, folded, main, 0)


def _widths(columns: Sequence[Column], natural: list[int], plan: _Plan, width: int) -> tuple[int, ...] | None:
    """The width of each kept column, None where an elastic one would get too little. The last plan (least 0) fits."""
    wanted = {index: natural[index] for index in plan.kept}
    elastic = [index for index in plan.kept if columns[index].elastic]
    if plan.folded:
        wanted[plan.main] = max(wanted[plan.main], *(natural[index] + GAP for index in plan.folded))
    fixed = sum(size for index, size in wanted.items() if index not in elastic)
    room = width - fixed - GAP * (len(plan.kept) - 1)
    needed = sum(min(wanted[index], plan.least or _LEAST) for index in elastic)
    if plan.least and room < needed:
        return None
    # the narrowest first: what they do not need goes to the wider ones
    for position, index in enumerate(sorted(elastic, key=lambda index: wanted[index])):
        fair = room // (len(elastic) - position)
        wanted[index] = min(wanted[index], max(fair, _LEAST))
        room -= wanted[index]
    return tuple(wanted[index] for index in plan.kept)


def _cells(
    row: Sequence[str], columns: Sequence[Column], plan: _Plan, widths: tuple[int, ...]
) -> tuple[tuple[str, ...], ...]:
    cells = []
    for index, size in zip(plan.kept, widths, strict=True):
        below = [under for under in plan.folded if row[under] not in ("", MISSING_TEXT)] if index == plan.main else ()
        lines = [" " * GAP + shortened(row[under], columns[under], size - GAP) for under in below]
        cells.append((shortened(row[index], columns[index], size), *lines))
    return tuple(cells)
