"""What several tests of the command line say."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

WORKLOAD = "small_gpt"
ARRIVAL = "last_rank_at_ns"
"""The column of a run that says when its last rank came in: another moment in each database."""
_NAMED = re.compile(r"(tracker(?: [a-z]+){1,2}) --db (?:'[^']*'|\S+)")


@dataclass(frozen=True)
class Done:
    """How a call of the program ended."""

    code: int
    out: str
    err: str

    @property
    def plain(self) -> Done:
        """The same with proposed commands as they are where no --db was given."""
        return Done(self.code, *(_NAMED.sub(r"\1", text) for text in (self.out, self.err)))


def content(database: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows of a SQLite database by table, but for when ranks came in, to see whether anything changed."""
    found = {}
    with closing(sqlite3.connect(database)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        for (name,) in tables:
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')]
            chosen = ", ".join(f'"{column}"' for column in columns if column != ARRIVAL)
            found[name] = connection.execute(f'SELECT {chosen} FROM "{name}"').fetchall()
    return found
