"""What several tests of the command line say."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

WORKLOAD = "small_gpt"


@dataclass(frozen=True)
class Done:
    """How a call of the program ended."""

    code: int
    out: str
    err: str


def content(database: Path) -> list[str]:
    """All that a SQLite database says, to see whether anything changed."""
    connection = sqlite3.connect(database)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()
