"""Many rows at once, as columns: multi-row VALUES on SQLite, binary COPY on Postgres; no object per row.

Names of tables and columns come from this package only; values travel as parameters.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from sqlalchemy import Connection, CursorResult
from sqlalchemy.exc import DBAPIError

from tracker.profile import MISSING

Kind = Literal["int", "float", "bool", "short", "text", "binary"]

LARGEST: Final = 2**63 - 1
"""The largest whole number that a column holds, and so the largest id that there can be."""

_PORTION: Final = 20_000
"""Rows of an answer that are held as tuples."""

_ROWS_PER_STATEMENT: Final = 100
"""More rows per statement load no faster, and the statement must stay below the limit of variables."""

_MAX_VARIABLES: Final = 30_000
LISTED: Final = 10_000
"""Values of a list in one statement: Postgres takes at most 65,535 parameters, many builds of SQLite 32,766."""

_POSTGRES_TYPES: Final[dict[Kind, str]] = {
    "int": "int8",
    "short": "int4",
    "float": "float8",
    "bool": "bool",
    "text": "text",
    "binary": "bytea",
}


def portions(numbers: Iterable[int]) -> list[list[int]]:
    """Return `numbers` in order, each once, in lists that a statement takes; a single empty one of none.

    >>> portions([7, 3, 7])
    [[3, 7]]
    """
    wanted = sorted(set(numbers))
    return [wanted[start : start + LISTED] for start in range(0, max(len(wanted), 1), LISTED)]


class Column(Struct, frozen=True):
    """A column to load: Python values, None where missing."""

    name: str
    kind: Kind
    values: Sequence[Any]


def integers(name: str, values: NDArray[Any]) -> Column:
    """Return a column of whole numbers; MISSING becomes None.

    >>> integers("calls", np.array([3, MISSING])).values
    [3, None]
    """
    return Column(name, "int", _without(values, values == MISSING))


def floats(name: str, values: NDArray[Any]) -> Column:
    """Return a column of real numbers; NaN becomes None."""
    return Column(name, "float", _without(values, np.isnan(values)))


def _without(values: NDArray[Any], missing: NDArray[np.bool_]) -> list[Any]:
    """Return `values` as Python's own, None where they are missing."""
    if missing.all():
        return [None] * len(values)
    if missing.any():
        values = values.astype(object)
        values[missing] = None
    found: list[Any] = values.tolist()
    return found


def cleaned(texts: Iterable[str]) -> list[str]:
    """Return each text as by `clean`; of many that are equal it looks at one, and at none where all are plain."""
    texts = list(texts)
    together = "".join(texts)
    if together.isascii() and "\0" not in together:
        return texts
    known = {text: clean(text) for text in set(texts)}
    return [known[text] for text in texts]


def clean(text: str) -> str:
    r"""`text` as both databases can hold it: a NUL or half a surrogate pair is written out.

    >>> clean("relu"), clean("a\0b"), clean("\ud800")
    ('relu', 'a\\x00b', '\\ud800')
    """
    if "\0" in text:
        text = text.replace("\0", "\\x00")
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def load(connection: Connection, table: str, columns: Sequence[Column]) -> None:
    """Append the rows of `columns` to `table`, inside the open transaction.

    A column that is missing in every row is left out: the database fills it with NULL, which costs less than to bind
    a None per row. No column that may be NULL has another default.
    """
    if not columns or not len(columns[0].values):
        return
    if any(len(column.values) != len(columns[0].values) for column in columns):
        raise ValueError("columns of different length")
    columns = [column for column in columns if not _is_missing_throughout(column.values)]
    names = [column.name for column in columns]
    if connection.dialect.name == "sqlite":
        for _ in _insert(connection, table, names, _interleaved([column.values for column in columns])):
            pass
        return
    cursor: Any = _cursor(connection)
    with cursor.copy(f"COPY {table} ({', '.join(names)}) FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types([_POSTGRES_TYPES[column.kind] for column in columns])
        for row in zip(*(column.values for column in columns), strict=True):
            copy.write_row(row)


def _is_missing_throughout(values: Sequence[Any]) -> bool:
    """Return whether all values are None. The first one answers for most columns; `count` does not run in Python."""
    return values[0] is None and values.count(None) == len(values)


def insert(
    connection: Connection, table: str, names: Sequence[str], rows: Iterable[Sequence[Any]], *, or_keep: str = ""
) -> int:
    """INSERT `rows` into `table` and count them. `or_keep`: a unique column; a row that is there already stays."""
    keep = f" ON CONFLICT ({or_keep}) DO NOTHING" if or_keep else ""
    batches = _batches(rows, len(names))
    return sum(cursor.rowcount for cursor in _insert(connection, table, names, batches, keep))


def insert_new(
    connection: Connection, table: str, names: Sequence[str], rows: Iterable[Sequence[Any]], *, unique: Sequence[str]
) -> list[tuple[Any, ...]]:
    """INSERT the `rows` whose `unique` columns are not in `table` yet.

    Returns of each row that came in its id and its `unique` columns, in no order. A row that another writer brought
    meanwhile is not among them.
    """
    keys = ", ".join(unique)
    tail = f" ON CONFLICT ({keys}) DO NOTHING RETURNING id, {keys}"
    inserted: list[tuple[Any, ...]] = []
    for cursor in _insert(connection, table, names, _batches(rows, len(names)), tail):
        inserted += cursor.fetchall()
    return inserted


def _batches(rows: Iterable[Sequence[Any]], width: int) -> Iterator[list[Any]]:
    """Yield the values of as many rows as a statement takes, one row behind the other."""
    remaining = iter(rows)
    size = _rows_per_statement(width)
    return iter(lambda: list(chain.from_iterable(islice(remaining, size))), [])


def _interleaved(columns: Sequence[Sequence[Any]]) -> Iterator[list[Any]]:
    """Yield the rows of `columns`, the values of one behind those of the other, as many as a statement takes at a time.

    >>> list(_interleaved([[1, 2], ["a", "b"]]))
    [[1, 'a', 2, 'b']]
    """
    width, length = len(columns), len(columns[0])
    size = _rows_per_statement(width)
    for start in range(0, length, size):
        values: list[Any] = [None] * (min(size, length - start) * width)
        for place, column in enumerate(columns):
            values[place::width] = column[start : start + size]
        yield values


def _rows_per_statement(width: int) -> int:
    return max(1, min(_ROWS_PER_STATEMENT, _MAX_VARIABLES // width))


def _insert(
    connection: Connection, table: str, names: Sequence[str], batches: Iterable[list[Any]], tail: str = ""
) -> Iterator[Any]:
    """INSERT the rows of each batch, whose values stand one behind the other, by one statement that ends with `tail`.

    Yields the cursor of the driver after each statement.
    """
    cursor: Any = _cursor(connection)
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    place = f"({', '.join([mark] * len(names))})"
    size, statement = 0, ""
    for values in batches:
        if len(values) != size:  # all batches but the last are of one size
            size = len(values)
            # Only names of this package and placeholders are put together here.
            places = ", ".join([place] * (size // len(names)))
            statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES {places}{tail}"  # noqa: S608
        cursor.execute(statement, values)
        yield cursor


def as_keys(numbers: Iterable[int]) -> str:
    """Return `numbers` as one parameter, which both databases read: thousands of parameters cost more than most
    answers.

    >>> as_keys([7, 9])
    '{"7": 0, "9": 0}'
    """
    entries = [f'"{number}": 0' for number in dict.fromkeys(numbers)]
    return f"{{{', '.join(entries)}}}"


def fetch(result: CursorResult[Any]) -> list[tuple[Any, ...]]:
    """Return all rows of an answer as the plain tuples of the driver: an object per row of a large one costs more than
    SQL.
    """
    cursor: Any = result.cursor
    if cursor is None:
        return []
    try:
        return list(cursor.fetchall())
    except sqlite3.Error as error:  # it makes row after row, and says only now what is wrong with a later one
        raise DBAPIError(str(result.context.statement), None, error) from error


def fetch_portions(result: CursorResult[Any]) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of an answer as `fetch` does, some thousand at once: as Python's numbers they take ten times the
    room of columns.
    """
    cursor: Any = result.cursor
    if cursor is None:
        return
    while True:
        try:
            rows = cursor.fetchmany(_PORTION)
        except sqlite3.Error as error:
            raise DBAPIError(str(result.context.statement), None, error) from error
        if not rows:
            return
        yield rows


def _cursor(connection: Connection) -> Any:
    """Return a cursor of the driver, in the transaction of `connection`."""
    if not connection.in_transaction():
        connection.begin()
    return connection.connection.cursor()
