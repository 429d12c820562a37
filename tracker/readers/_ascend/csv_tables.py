"""CSV files of Ascend profilers: cells with a trailing TAB (against spreadsheets that round), quotes, `N/A` and blanks.

Their times are decimal microseconds that no double can hold; they are read as text.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from tracker.errors import SourceError
from tracker.profile import F64, I64, MISSING, Source, Strings
from tracker.readers._ascend.spellings import SPELLINGS, column_of, unit_of
from tracker.readers._source import ReadOptions, SourceText
from tracker.units import us_to_ns

NOTHING: Final = frozenset(("", "N/A", "NA", "NULL", "None", "nan", "inf"))
_BYTES_PER: Final = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_LONGEST_CELL: Final = 1 << 24
_MAX_NS: Final = 1 << 62


class CsvTable:
    """One CSV file in memory, column by column; cells are text without blanks and TABs around it."""

    def __init__(self, path: Path, source: Source, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self.path = path
        self.source = source
        self.header = tuple(title.strip() for title in header)
        self.columns: list[list[str]] = [[row[i].strip() for row in rows] for i in range(len(self.header))]

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def has(self, word: str) -> bool:
        """True where the table has the column that means `word` (see `spellings`)."""
        return column_of(self.header, word) is not None

    def texts(self, word: str) -> list[str] | None:
        """The cells of the column that means `word`, None where the table has none."""
        position = column_of(self.header, word)
        return None if position is None else self.columns[position]

    def need(self, *words: str) -> None:
        """A SourceError names the file and its header where one of the columns is missing."""
        for word in words:
            if not self.has(word):
                known = " or ".join(f"'{title}'" for title in SPELLINGS[word])
                problem = f"no column {known} in the header: {', '.join(self.header)}"
                raise SourceError(self.path, "row 1", problem, remedy="export the profile again with its own parser")

    def ns(self, word: str) -> I64:
        """Times or durations in us -> ns, exact; MISSING for empty cells and for a column that is not there."""
        return self._numbers(word, _ns, "a number of microseconds")

    def ints(self, word: str, missing: int = MISSING) -> I64:
        """Whole numbers; `missing` for empty cells, `N/A` and a column that is not there."""
        column = self._numbers(word, _int, "a whole number")
        return column if missing == MISSING else np.where(column == MISSING, missing, column)

    def sizes(self, word: str, *, bytes_per_mb: int = 1 << 20) -> I64:
        """Sizes -> bytes, rounded to the nearest; the unit stands in the title. MISSING as in `ns`."""
        position = column_of(self.header, word)
        unit = unit_of(self.header[position]) if position is not None else ""
        factor = bytes_per_mb if unit == "MB" else _BYTES_PER.get(unit, 1)
        return self._numbers(word, lambda cell: round(float(cell) * factor), f"a size in {unit or 'bytes'}")

    def codes(self, word: str, strings: Strings, translate: Callable[[str], str]) -> list[int]:
        """Codes of the translated cells, 0 for all where the column is missing; a distinct cell is translated once."""
        cells = self.texts(word)
        if cells is None:
            return [0] * len(self)
        known: dict[str, int] = {}
        for cell in cells:
            if cell not in known:
                known[cell] = strings.code(translate(cell))
        return [known[cell] for cell in cells]

    def floats(self, position: int) -> F64:
        """The numbers of one column by its position, NaN for every cell that is none."""
        return np.array([_float(cell) for cell in self.columns[position]], dtype=np.float64)

    def _numbers(self, word: str, read: Callable[[str], int], expected: str) -> I64:
        cells = self.texts(word)
        if cells is None:
            return np.full(len(self), MISSING, dtype=np.int64)
        values = np.empty(len(cells), dtype=np.int64)
        for row, cell in enumerate(cells):
            try:
                value = MISSING if cell in NOTHING else read(cell)
            except (ValueError, OverflowError):
                value = _MAX_NS
            if value != MISSING and abs(value) >= _MAX_NS:
                title = self.header[column_of(self.header, word) or 0]
                problem = f"column '{title}' is {cell[:40]!r}, expected {expected}"
                raise SourceError(self.path, f"row {row + 2}", problem, remedy="export the profile again")
            values[row] = value
        return values


def read_table(path: Path, options: ReadOptions) -> CsvTable:
    """The CSV file at `path`; a SourceError names the row that has more or fewer cells than the header."""
    text = SourceText(path, options)
    content = b"".join(text).decode("utf-8-sig")
    csv.field_size_limit(_LONGEST_CELL)  # call stacks outgrow the module's own limit
    try:
        rows = [row for row in csv.reader(io.StringIO(content, newline="")) if row]
    except csv.Error as error:
        raise SourceError(path, "", f"no CSV: {error}", remedy="export the profile again") from error
    if not rows:
        raise SourceError(path, "", "the file is empty", remedy="export the profile again")
    header, cells = rows[0], rows[1:]
    for number, row in enumerate(cells, start=2):
        if len(row) != len(header):
            problem = f"{len(row)} cells under a header of {len(header)}"
            raise SourceError(path, f"row {number}", problem, remedy="the file was cut or edited: export it again")
    return CsvTable(path, text.source(), header, cells)


def _ns(cell: str) -> int:
    # the usual cell is digits with three decimals; all else takes the exact, slower way
    if cell[-4:-3] == "." and cell[:-4].isdigit() and cell[-3:].isdigit():
        return int(cell[:-4] + cell[-3:])
    return us_to_ns(cell)


def _int(cell: str) -> int:
    try:
        return int(cell)
    except ValueError:
        number = float(cell)
        if not number.is_integer():
            raise
        return int(number)


def _float(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")
