"""What several tests of the command line say."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

WORKLOAD = "small_gpt"
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
    """All rows of a SQLite database by table, to see whether anything changed."""
    with closing(sqlite3.connect(database)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for (name,) in tables}
