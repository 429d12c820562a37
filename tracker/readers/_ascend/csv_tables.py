"""CSV files of Ascend profilers: cells with a trailing TAB (against spreadsheets that round), quotes, `N/A` and blanks.

Their times are decimal microseconds that no double can hold; they are read as text.
"""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Final

import numpy as np

from tracker.errors import SourceError
from tracker.profile import F64, I64, MISSING, Source, Strings
from tracker.readers._ascend.spellings import SIZES, SPELLINGS, TIMES, WHOLE_NUMBERS, column_of, unit_of
from tracker.readers._source import SAVE_AS_UTF_8, ReadOptions, SourceText
from tracker.units import us_to_ns

NOTHING: Final = frozenset(("", "N/A", "NA", "NULL", "None", "nan", "inf"))
ALLOW_PARTIAL: Final = "export it again, or read what is there with --allow-partial"
SKIP_OR_EXPORT: Final = "export it again, or leave such rows out with --skip-bad-rows"
_BYTES_PER: Final = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_LONGEST_CELL: Final = 1 << 24
_LIMIT_IS_OURS: Final = threading.Lock()
"""The limit of the csv module is one for the whole process."""

_MAX_NS: Final = 1 << 62
_DATE_DIGITS: Final = 18
"""A date has 19 digits in ns, 18 before 2001; in us it would be in the 33rd millennium."""


class CsvTable:
    """One CSV file in memory, column by column; cells are text without blanks and TABs around it.

    `numbers`: the row of the file that each row is, from 2. `skipped`: how many were left out; `partial`: why the table
    is only a part, '' where it is whole.
    """

    def __init__(self, path: Path, source: Source, header: Sequence[str], rows: Mapping[int, Sequence[str]]) -> None:
        self.path = path
        self.source = source
        self.header = tuple(title.strip() for title in header)
        self.columns: list[list[str]] = [[row[i].strip() for row in rows.values()] for i in range(len(self.header))]
        self.numbers = list(rows)
        self.skipped = 0
        self.partial = ""

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def leave_out(self, rows: Set[int]) -> None:
        """Drops the rows at these places and counts them."""
        if rows:
            kept = [place for place in range(len(self)) if place not in rows]
            self.columns = [[column[place] for place in kept] for column in self.columns]
            self.numbers = [self.numbers[place] for place in kept]
            self.skipped += len(rows)

    def bad_rows(self) -> set[int]:
        """Places of the rows with a cell that is no number under a title that asks for one."""
        kinds: tuple[tuple[Sequence[str], Callable[[str], int]], ...] = (
            (TIMES, _ns), (WHOLE_NUMBERS, _int), (SIZES, lambda cell: round(float(cell)))
        )  # fmt: skip
        return {
            place
            for words, read in kinds
            for word in words
            for place, cell in enumerate(self.texts(word) or ())
            if cell not in NOTHING and _read(cell, read) is None
        }

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

    def only(self, rows: Sequence[int]) -> CsvTable:
        """The table with these rows only, in this order."""
        table = CsvTable(self.path, self.source, self.header, {})
        table.columns = [[cells[row] for row in rows] for cells in self.columns]
        table.numbers = [self.numbers[row] for row in rows]
        table.partial = self.partial
        return table

    def ns(self, word: str) -> I64:
        """Times or durations -> ns, exact; in us unless the title says ns, or they can only be ns.

        MISSING for empty cells and for a column that is not there.
        """
        position = column_of(self.header, word)
        if position is not None and _is_ns(self.header[position], self.columns[position]):
            return self._numbers(word, _int, "a number of nanoseconds")
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
            value = MISSING if cell in NOTHING else _read(cell, read)
            if value is None:
                title = self.header[column_of(self.header, word) or 0]
                problem = f"column '{title}' is {cell[:40]!r}, expected {expected}"
                raise SourceError(self.path, f"row {self.numbers[row]}", problem, remedy=SKIP_OR_EXPORT)
            values[row] = value
        return values


def read_table(path: Path, options: ReadOptions) -> CsvTable:
    """The CSV file at `path`; a SourceError names the row that has more or fewer cells than the header.

    Rows with cells that are no numbers are left out where `options.skip_bad_rows` asks for it. A last row that was cut
    is no bad row but the end of a truncated file: only `options.allow_partial` lets that pass.
    """
    text = SourceText(path, options)
    # only a character that was cut at the end can be left, and then the row is cut too
    content = b"".join(text).decode("utf-8-sig", "ignore")
    rows = rows_of(path, content)
    if not rows:
        raise SourceError(path, "", "the file is empty", remedy="export the profile again")
    if len(rows[0]) == 1 and any(other in rows[0][0] for other in ";\t"):
        problem = "its columns are not separated by commas, as a spreadsheet saves them"
        raise SourceError(path, "row 1", problem, remedy="give the file as the profiler wrote it")
    numbered = dict(enumerate(rows[1:], start=2))
    partial = "the gzip stream ends early" if text.ended_early else ""
    if options.allow_partial and numbered and len(rows[-1]) < len(rows[0]):
        partial = partial or "its last row was cut"
        del numbered[len(rows)]
    torn = {number for number, row in numbered.items() if len(row) != len(rows[0])}
    # whole rows end with a line end: what ends without one was cut, and is never a bad row
    is_cut = len(rows) in torn and len(rows[-1]) < len(rows[0]) and not content.endswith(("\n", "\r"))
    if torn and (is_cut or not options.skip_bad_rows):
        number = len(rows) if options.skip_bad_rows else min(torn)
        problem = f"{len(numbered[number])} cells under a header of {len(rows[0])}"
        remedy = ALLOW_PARTIAL if number == len(rows) else SKIP_OR_EXPORT
        raise SourceError(path, f"row {number}", f"{problem}: the file was cut or edited", remedy=remedy)
    table = CsvTable(path, text.source(), rows[0], {n: row for n, row in numbered.items() if n not in torn})
    table.skipped, table.partial = len(torn), partial
    if options.skip_bad_rows:
        table.leave_out(table.bad_rows())
    return table


def rows_of(path: Path, content: str) -> list[list[str]]:
    """The rows of a CSV text that are not empty, cells as they stand; a SourceError where it is none."""
    if "\0" in content:
        raise SourceError(path, "", "the text is UTF-16, or no text", remedy=SAVE_AS_UTF_8)
    with _LIMIT_IS_OURS:
        before = csv.field_size_limit(_LONGEST_CELL)  # call stacks outgrow the module's own limit
        try:
            return [row for row in csv.reader(io.StringIO(content, newline="")) if row]
        except csv.Error as error:
            raise SourceError(path, "", f"no CSV: {error}", remedy="export the profile again") from error
        finally:
            csv.field_size_limit(before)


def _read(cell: str, read: Callable[[str], int]) -> int | None:
    """The number in `cell`, None where there is none or it is too large."""
    try:
        value = read(cell)
    except (ValueError, OverflowError):
        return None
    return value if abs(value) < _MAX_NS else None


def _is_ns(title: str, cells: Sequence[str]) -> bool:
    """True where a title says so, or where one without unit stands over whole numbers of the size of a date in ns."""
    unit = unit_of(title)
    if unit:
        return unit == "ns"
    said = next((cell for cell in cells if cell not in NOTHING), "")
    return len(said) >= _DATE_DIGITS and said.isdigit()


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
