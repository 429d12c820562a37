"""SQLite databases that profilers write: opened for reading only, asked for columns, their schema looked at first."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracker.errors import SourceError
from tracker.limits.files import beside
from tracker.profile import F64, I32, I64, MISSING, Strings
from tracker.readers._source import SQLITE_MAGIC, open_source

EXPORT_AGAIN: Final = "copy the file again, or export the profile again"
_HEADER_BYTES: Final = 100
_JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")
_BLOCK_ROWS: Final = 1 << 12

_BYTES_PER_ROW: Final = 5
"""A row takes a pointer of two bytes in its page, and at least a byte each for its length, its number and its header.
"""
_FREE_ROWS: Final = 1 << 14
_FREE_TEXT_BYTES: Final = 1 << 20
_FREE_STEPS: Final = 20_000_000
_STEPS_PER_BYTE: Final = 40
"""Steps of SQLite's machine per byte of the file: a row of some columns takes 20 to 60, and 30 bytes or more."""

_STEPS_BETWEEN_LOOKS: Final = 100_000
_MAX_SCHEMA_CHARACTERS: Final = 1 << 16
"""Of the statement that makes a table; those of profilers have 5,000, comments among them."""

_MAX_TEXT_BYTES: Final = 64 << 20

Table = dict[str, I64]


class _TooLongError(Exception):
    """The texts of a table are longer together than the file is."""


class Database:
    """The tables of one SQLite file that a profiler wrote; tables of other programs do no harm.

    The file is never written, locked or given a journal. Every problem is a SourceError that names file and table.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._size = path.stat().st_size
        self._steps_left = 0
        self._text_bytes = 0
        connection.text_factory = self._decode
        connection.set_progress_handler(self._is_over_budget, _STEPS_BETWEEN_LOOKS)
        for name, length in self._ask("sqlite_master", "SELECT name, LENGTH(sql) FROM sqlite_master"):
            if length is not None and length > _MAX_SCHEMA_CHARACTERS:
                # a default value in it fills a column of each row without taking any room there
                raise self._too_much(str(name), f"is declared in {length:,} characters")
        columns: dict[str, set[str]] = {}
        # a virtual table has no page of its own; what it gives can be without end
        for name, column in self._ask(
            "sqlite_master",
            "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c "
            "WHERE m.type = 'table' AND m.rootpage > 0",
        ):
            columns.setdefault(name, set()).add(column)
        self._columns = {name: frozenset(names) for name, names in columns.items()}

    @property
    def tables(self) -> frozenset[str]:
        """The names of all tables."""
        return frozenset(self._columns)

    def has(self, table: str) -> bool:
        """True where the table is there, with rows or without."""
        return table in self._columns

    def has_column(self, table: str, column: str) -> bool:
        """True where the table is there and has the column."""
        return column in self._columns.get(table, ())

    def require(self, *tables: str) -> None:
        """A SourceError for the first of `tables` that is not there."""
        for table in tables:
            if not self.has(table):
                raise SourceError(self.path, f"table {table}", "is missing", remedy="export the profile again")

    def ints(self, table: str, required: Sequence[str], optional: Sequence[str] = ()) -> Table:
        """Whole-number columns by name; NULL and an optional column that is not there are MISSING.

        `a|b` stands for a column that is called `a` or `b`; it comes back as `a`. Whole numbers kept as text
        (`startNs` of PYTORCH_API) are read exactly. A missing table gives columns without rows.
        """
        return self._read(table, required, optional, lambda values, c: self._whole(values, table, c), MISSING)

    def floats(self, table: str, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, F64]:
        """As `ints`, for measurements; what is missing is NaN."""
        return self._read(table, required, optional, lambda values, c: self._real(values, table, c), np.nan)

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """The named columns of a small table, row by row as they stand; none where the table is missing."""
        if not self.has(table):
            return []
        names = [self._spelled(table, column) for column in columns]
        return [row for block in self._blocks(table, names) for row in block]

    def named(self, table: str, names: Sequence[str]) -> Mapping[str, str]:
        """The texts of a table of (name, value), of these names only; nothing else of it is read.

        Such a table can hold the environment of the user's shell, access tokens among it.
        """
        if not (self.has_column(table, "name") and self.has_column(table, "value")):
            return {}
        # the table is a name of the schema itself; the names are parameters
        question = f'SELECT name, value FROM "{table}" WHERE name IN ({", ".join("?" * len(names))}) ORDER BY rowid'  # noqa: S608
        return {str(name): _text(value) for name, value in self._ask(table, question, names) if value is not None}

    def codes(self, table: str, column: str, strings: Strings) -> I32:
        """The codes of a text column, row by row; 0 for NULL, in every row where there is no such column."""
        if not self.has_column(table, column):
            # row by row: SQLite counts without a look at the clock, also the rows of a table whose pages go in a circle
            blocks = self._ask_blocks(table, f'SELECT rowid FROM "{table}"') if self.has(table) else ()  # noqa: S608
            return np.zeros(sum(map(len, blocks)), dtype=np.int32)
        parts = [[strings.code(_text(value)) for (value,) in block] for block in self._blocks(table, [column])]
        return np.array([code for part in parts for code in part], dtype=np.int32)

    def words(self, table: str) -> Mapping[int, str]:
        """The words of an ENUM_* or STRING_IDS table by their id, a number; none where the table is missing."""
        text = "value" if self.has_column(table, "value") else "name"
        rows = self.rows(table, "id", text)
        return {number: _text(word) for number, word in rows if word is not None and isinstance(number, int)}

    def _read(
        self,
        table: str,
        required: Sequence[str],
        optional: Sequence[str],
        convert: Callable[[Sequence[Any], str], NDArray[Any]],
        missing: float,
    ) -> dict[str, NDArray[Any]]:
        dtype = np.int64 if missing == MISSING else np.float64
        keys = [column.partition("|")[0] for column in (*required, *optional)]
        if not self.has(table):
            return {key: np.zeros(0, dtype=dtype) for key in keys}
        found = {column.partition("|")[0]: self._spelled(table, column) for column in required}
        found |= {column.partition("|")[0]: name for column in optional if (name := self._find(table, column))}
        blocks: dict[str, list[NDArray[Any]]] = {key: [] for key in found}
        count = 0
        for rows in self._blocks(table, list(found.values())):
            count += len(rows)
            for key, values in zip(found, zip(*rows, strict=True), strict=True):
                blocks[key].append(convert(values, found[key]))
        empty = np.zeros(0, dtype=dtype)
        columns = {key: np.concatenate([empty, *parts]) for key, parts in blocks.items()}
        return {key: columns[key] if key in columns else np.full(count, missing, dtype=dtype) for key in keys}

    def _find(self, table: str, column: str) -> str | None:
        return next((name for name in column.split("|") if self.has_column(table, name)), None)

    def _spelled(self, table: str, column: str) -> str:
        name = self._find(table, column)
        if name is None:
            problem = f"has no column {column.replace('|', ' or ')}; it has {', '.join(sorted(self._columns[table]))}"
            raise SourceError(self.path, f"table {table}", problem, remedy="export the profile again")
        return name

    def _blocks(self, table: str, names: Sequence[str]) -> Iterator[list[tuple[Any, ...]]]:
        wanted = ", ".join(f'"{name}"' for name in names)
        # table and columns are names of the schema itself, which cannot be parameters
        yield from self._ask_blocks(table, f'SELECT {wanted} FROM "{table}" ORDER BY rowid')  # noqa: S608

    def _ask(self, place: str, question: str, values: Sequence[str] = ()) -> Iterator[tuple[Any, ...]]:
        for block in self._ask_blocks(place, question, values):
            yield from block

    def _ask_blocks(self, place: str, question: str, values: Sequence[str] = ()) -> Iterator[list[tuple[Any, ...]]]:
        rows = 0
        self._text_bytes = 0
        self._steps_left = _FREE_STEPS + _STEPS_PER_BYTE * self._size
        try:
            with closing(self._connection.execute(question, values)) as cursor:
                while block := cursor.fetchmany(_BLOCK_ROWS):
                    rows += len(block)
                    self._check_budget(place, rows)
                    yield block
        except _TooLongError as error:
            raise self._too_much(place, f"has longer texts than {self._size:,} bytes can hold") from error
        except (sqlite3.Error, UnicodeError) as error:  # a damaged schema can have names that are no text
            if self._steps_left < 0:
                raise self._too_much(place, "takes longer to read than a file of its size can") from error
            raise SourceError(self.path, f"table {place}", f"{error}", remedy=EXPORT_AGAIN) from error

    def _is_over_budget(self) -> bool:
        """Whether SQLite shall break off, asked every so many of its steps."""
        self._steps_left -= _STEPS_BETWEEN_LOOKS
        return self._steps_left < 0

    def _decode(self, text: bytes) -> str:
        """A text of a cell; what is no UTF-8 in it becomes a replacement character. Each one counts."""
        self._text_bytes += len(text)
        if self._text_bytes > _FREE_TEXT_BYTES + self._size:
            raise _TooLongError
        return text.decode("utf-8", "replace")

    def _check_budget(self, place: str, rows: int) -> None:
        """SourceError where a table gives more than the bytes of the file can hold: its pages lie in a circle, or a
        column is filled by a default or computed.
        """
        # of one row the schema is asked for each of its columns
        if rows > _FREE_ROWS + self._size // _BYTES_PER_ROW:
            raise self._too_much(place, f"has more rows than {self._size:,} bytes can hold")

    def _too_much(self, place: str, problem: str) -> SourceError:
        return SourceError(
            self.path, f"table {place}", f"{problem}: it is damaged, or was made so", remedy=EXPORT_AGAIN
        )

    def _whole(self, values: Sequence[Any], table: str, column: str) -> I64:
        try:
            return np.array(values, dtype=np.int64)
        except (TypeError, ValueError, OverflowError):
            pass  # NULL is among them, or text that is no number
        return np.array([self._one(value, int, table, column, MISSING) for value in values], dtype=np.int64)

    def _real(self, values: Sequence[Any], table: str, column: str) -> F64:
        return np.array([self._one(value, float, table, column, np.nan) for value in values], dtype=np.float64)

    def _one(self, value: Any, kind: type[int] | type[float], table: str, column: str, missing: float) -> float:
        if value is None or value in ("", "N/A"):
            return missing
        try:
            number = None if isinstance(value, bytes) else kind(value)
        except (TypeError, ValueError, OverflowError):
            number = None
        if number is None or math.isinf(number) or (kind is int and not -(2**63) < number < 2**63):
            problem = f"{column} is {value!r:.40}, expected a number"
            raise SourceError(self.path, f"table {table}", problem, remedy="export the profile again")
        return number


def _text(value: Any) -> str:
    """A cell of a column of texts; '' for NULL. SQLite keeps there what it is given: a number, or bytes."""
    if value is None:
        return ""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def journal_beside(path: Path) -> str:
    """What to say of changes of another program that lie beside the database and are not read; '' without any."""
    journal = beside(path, "-wal")
    if journal is None or not journal.stat().st_size:
        return ""
    return f"{journal.name} holds changes of another program, which were not read"


def half_written(path: Path) -> str:
    """Return the name of the journal of the database where it is hot: its writer was ended in the middle of a change,
    or is at work, and the pages of the database may be half of the change; "" else.
    """
    database = path.resolve()
    try:
        with open_source(database.with_name(f"{database.name}-journal")) as journal:
            # a journal that is done with has no such head: it is empty, gone or overwritten with zeros
            is_hot = journal.read(len(_JOURNAL_MAGIC)) == _JOURNAL_MAGIC
    except (OSError, SourceError):
        return ""
    return f"{database.name}-journal" if is_hot else ""


def check_journal(path: Path) -> None:
    """Raise SourceError where the database may hold half of a change of another program."""
    journal = half_written(path)
    if journal:
        problem = f"{journal} beside it is half of a change: the file is being written, or its writer was ended"
        raise SourceError(path, "", problem, remedy=f"wait until it is written; {EXPORT_AGAIN}")


def unfinished(path: Path) -> str:
    """Return why the database at `path` is still being written; "" where it is not, as far as can be seen."""
    journal = half_written(path)
    return f"{journal} beside it is half of a change" if journal else ""


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    """The database at `path`; a SourceError where it is no SQLite database, or was cut.

    What is no UTF-8 in a text becomes a replacement character: one odd name must not hide all other rows.
    """
    _check(path)
    # immutable: no lock, no journal, no -shm file beside it, whatever state the last writer left
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    except sqlite3.Error as error:
        raise SourceError(path, "", f"cannot be opened: {error}", remedy=EXPORT_AGAIN) from error
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_TEXT_BYTES)
    connection.execute("PRAGMA trusted_schema = OFF")
    with closing(connection):
        yield Database(path, connection)


def _check(path: Path) -> None:
    with open_source(path) as file:
        header = file.read(_HEADER_BYTES)
        size = file.seek(0, 2)
    if not header.startswith(SQLITE_MAGIC):
        problem = "the file is empty" if not size else "is no SQLite database"
        raise SourceError(path, "", problem, remedy=EXPORT_AGAIN)
    # SQLite file format 1.3: page size at 16 (1 means 65536), pages at 28, valid where 24 and 92 agree
    page = int.from_bytes(header[16:18]) or 1
    page = 1 << 16 if page == 1 else page
    expected = int.from_bytes(header[28:32]) * page
    if header[24:28] == header[92:96] and size < expected:
        problem = f"the database ends early: {size} bytes of {expected}"
        raise SourceError(path, f"byte {size}", problem, remedy=EXPORT_AGAIN)


def first_rows(ids: I64, wanted: I64) -> I64:
    """For each of `wanted` the first row of `ids` that holds it, or -1.

    >>> first_rows(np.array([5, 7, 7]), np.array([7, 1, 5])).tolist()
    [1, -1, 0]
    """
    distinct, rows = np.unique(ids, return_index=True)
    if not len(distinct):
        return np.full(len(wanted), -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(distinct, wanted), len(distinct) - 1)
    return np.where(distinct[place] == wanted, rows[place], -1).astype(np.int64)


def picked(table: Mapping[str, NDArray[Any]], rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The table with these rows only."""
    return {name: column[rows] for name, column in table.items()}


def code_column(words: Iterable[str], strings: Strings) -> I32:
    """The codes of `words`, one by one."""
    return np.array([strings.code(word) for word in words], dtype=np.int32)
