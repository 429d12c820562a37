"""Profiles with one thing wrong: a cell of a database, a cell of a CSV, a value of a JSON, a number of another text.

`places(file)` are all that can be wrong in a file, `put(file, place, value)` makes one of them so. Used by
fuzz_readers.py, which picks at random, and by the tests, which try them all.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sqlite3
from collections.abc import Hashable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

SQLITE = b"SQLite format 3\0"
# what stands in a table where a number should be, or a text, or nothing
VALUES: tuple[Any, ...] = (None, "", "N/A", "text", -1, 1e18, 2**63 - 1, math.inf, math.nan, b"\xff")
# what JSON has beyond that
JSON_VALUES: tuple[Any, ...] = (*VALUES[:-1], True, 2**70, 1e300, [], [1], {}, {"a": 1})
NUMBER = re.compile(r"-?\d[\d.,]*")

Place = tuple[Any, ...]


def places(file: Path, *, distinct: bool = False) -> list[Place]:
    """All places of a file, in its order; none where it holds none that we know.

    `distinct`: of places that a reader treats alike one stands for all: of the rows of a database, of the events of one
    category.
    """
    form = _form(file)
    if form == "database":
        return list(_cells(file, distinct))
    if form == "csv":
        return [(row, column) for row, cells in enumerate(_rows(file)) for column in range(len(cells))]
    if form == "json":
        found = list(_keys(json.loads(file.read_bytes())))
        return list({_kind(place): place for place in reversed(found)}.values()) if distinct else found
    return [match.span() for match in NUMBER.finditer(_text(file))] if form == "text" else []


def values(file: Path) -> tuple[Any, ...]:
    """What can be put into the places of a file."""
    return JSON_VALUES if _form(file) == "json" else VALUES


def put(file: Path, place: Place, value: Any) -> bool:
    """Put `value` where `place` is; False where the file cannot hold it there."""
    form = _form(file)
    if form == "database":
        return _put_cell(file, place, value)
    if form == "csv":
        rows = _rows(file)
        rows[place[0]][place[1]] = _spelled(value)
        made = io.StringIO(newline="")
        csv.writer(made).writerows(rows)
        text = made.getvalue()
    elif form == "json":
        content = holder = json.loads(file.read_bytes())
        for key in place[:-1]:
            holder = holder[_index(key)]
        holder[_index(place[-1])] = value
        text = json.dumps(content)
    else:
        text = _text(file)
        text = text[: place[0]] + _spelled(value) + text[place[1] :]
    file.write_bytes(text.encode())
    return True


def _form(file: Path) -> str:
    """`database`, `csv`, `json` or `text`; '' for what is none of them."""
    content = file.read_bytes()
    if content.startswith(SQLITE):
        return "database"
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return ""
    if file.suffix == ".csv":
        return "csv"
    try:
        return "json" if isinstance(json.loads(text), dict | list) else "text"
    except (ValueError, RecursionError):
        return "text"


def _text(file: Path) -> str:
    return file.read_bytes().decode()


def _rows(file: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(_text(file), newline="")))


def _cells(file: Path, distinct: bool) -> Iterator[Place]:
    with closing(sqlite3.connect(file)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
            rows = db.execute(f'SELECT rowid FROM "{table}" ORDER BY rowid LIMIT ?', (1 if distinct else -1,))  # noqa: S608
            for (row,) in rows.fetchall():
                for column in columns:
                    yield row, table, column


def _put_cell(file: Path, place: Place, value: Any) -> bool:
    row, table, column = place
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA journal_mode = OFF")
        db.execute("PRAGMA synchronous = OFF")
        try:
            db.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (value, row))  # noqa: S608
            db.commit()
        except sqlite3.Error:  # NOT NULL, or an id that can only be a number
            return False
    return True


def _keys(value: Any, around: Place = ()) -> Iterator[Place]:
    entries: Iterator[tuple[Any, Any]]
    if isinstance(value, dict):
        entries = iter(value.items())
    elif isinstance(value, list):
        entries = ((_Entry(number, inner), inner) for number, inner in enumerate(value))
    else:
        return
    for key, inner in entries:
        yield (*around, key)
        yield from _keys(inner, (*around, key))


class _Entry:
    """The place of an entry in a list, and what it is an example of."""

    def __init__(self, number: int, value: Any) -> None:
        self.number = number
        said = value if isinstance(value, dict) else {}
        self.category = tuple(str(said.get(name)) for name in ("ph", "cat", "name"))

    def __repr__(self) -> str:
        return str(self.number)


def _index(key: Any) -> Any:
    return key.number if isinstance(key, _Entry) else key


def _kind(place: Place) -> Hashable:
    """The same for places in JSON that are alike; names that a profile makes up have numbers in them."""
    return tuple(key.category if isinstance(key, _Entry) else re.sub(r"\d+", "#", key) for key in place)


def _spelled(value: Any) -> str:
    return "" if value is None else value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
