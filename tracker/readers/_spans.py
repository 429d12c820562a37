"""Tables of spans in a database: from when to when something ran, and the rows that cannot be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracker.errors import SourceError
from tracker.profile import I64, MISSING
from tracker.readers._sqlite import EXPORT_AGAIN, Database, Table, picked
from tracker.readers._times import MAX_NS, MAX_OF_ONE


class Spans:
    """Reads tables of spans of `db`, whose times are called `names`, and counts the rows that cannot be.

    `skipped`: how many rows of each table were left out, since `skip_bad_rows` lets that pass.
    """

    def __init__(self, db: Database, *, skip_bad_rows: bool, names: tuple[str, str] = ("start", "end")) -> None:
        self.db = db
        self.skipped: dict[str, int] = {}
        self._skip = skip_bad_rows
        self._names = names

    def read(self, table: str, required: Sequence[str] = (), optional: Sequence[str] = ()) -> Table:
        """The times and the other columns of a table; see `Database.ints`.

        A row that ends before it starts, lies beyond all dates, or lasts longer than anything does is a SourceError, or
        left out with `skip_bad_rows`.
        """
        columns = self.db.ints(table, (*self._names, *required), optional)
        start, end = (columns[name] for name in self._names)
        bad = impossible(start, end)
        if not bad.any():
            return columns
        if not self._skip:
            row = int(np.argmax(bad))
            raise SourceError(
                self.db.path,
                f"table {table}, row {row + 1}",
                _problem(int(start[row]), int(end[row])),
                remedy=f"{EXPORT_AGAIN}, or leave such rows out with --skip-bad-rows",
            )
        self.skipped[table] = int(bad.sum())
        return picked(columns, ~bad)

    def warnings(self) -> list[str]:
        """What was left out, a line per table."""
        return [f"{count} rows of {table} with impossible times were left out" for table, count in self.skipped.items()]


def impossible(start_ns: I64, end_ns: I64) -> NDArray[np.bool_]:
    """Which spans have no start, no end, an end before their start, a time beyond all dates, or last for years.

    >>> impossible(np.array([0, 5, MISSING, 0]), np.array([5, 0, 5, MAX_NS + 1])).tolist()
    [False, True, True, True]
    """
    found: NDArray[np.bool_] = (end_ns < start_ns) | (start_ns < -MAX_NS) | (end_ns > MAX_NS)
    return found | (end_ns - start_ns > MAX_OF_ONE)


def _problem(start_ns: int, end_ns: int) -> str:
    start = "has no start" if start_ns == MISSING else f"starts at {start_ns}"
    return f"{start} and has no end" if end_ns == MISSING else f"{start} and ends at {end_ns}"


def check_range(
    db: Database, table: str, columns: Mapping[str, NDArray[Any]], *names: str, largest: int = MAX_OF_ONE
) -> None:
    """A SourceError where a number of these columns is beyond all sizes, so that sums of many would leave 64 bits."""
    for name in names:
        odd = (columns[name] != MISSING) & ((columns[name] > largest) | (columns[name] < -largest))
        if odd.any():
            row = int(np.argmax(odd))
            problem = f"{name} is {columns[name][row]}, beyond the range of times and sizes"
            raise SourceError(db.path, f"table {table}, row {row + 1}", problem, remedy=EXPORT_AGAIN)
