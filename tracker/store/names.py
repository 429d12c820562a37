"""Names that begin with what somebody has written so far."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from tracker.schema.column_names import WORKLOAD

if TYPE_CHECKING:
    from tracker.store.connect import Store

_MOST_SERIES: Final = 1_000_000
"""Series that are looked at, which is all."""


def like_pattern(text: str) -> str:
    """Return the pattern of LIKE, in lower case, with ! before %, _ and ! of the text; `*` and `?` are any characters.

    >>> like_pattern("aten::*norm_?")
    'aten::%norm!__'
    """
    # LOWER of both databases changes ASCII alone
    lowered = "".join(letter.lower() if letter.isascii() else letter for letter in text)
    return re.sub("([!%_])", r"!\1", lowered).replace("*", "%").replace("?", "_")


def find_names(store: Store, kind: str, **asked: Any) -> list[dict[str, Any]]:
    """Return what has such a name, in order; `exact` and `within` may be left out. Keys and other parameters:
    sql/search.sql.
    """
    from tracker.store.sql import statement

    asked = {"kind": kind, "exact": "", "within": "", **asked}
    with store.connect() as connection:
        return [dict(row) for row in connection.execute(statement("search"), asked).mappings()]


def workloads_of_series(store: Store, name: str) -> set[str]:
    """Return the workloads that have a series of this name, or one that fits it where it has `*` or `?`."""
    pattern = like_pattern(name)
    found = find_names(store, "series", pattern=pattern, run=-1, finding=-1, incident=-1, most=_MOST_SERIES)
    return {str(row[WORKLOAD]) for row in found}


def names_beginning_with(store: Store, kind: str, start: str, workload: str | None = None) -> list[str]:
    """Return what a shell may offer behind `start`, at most 200 names in order; `kind`: see sql/names.sql.

    It stands apart from the other questions: a shell waits for it at every key, and NumPy takes longer to load.
    """
    from tracker.store.sql import statement

    with store.connect() as connection:
        rows = connection.execute(statement("names"), _parameters(kind, start, workload))
        return _offered(kind, start, [str(row.name) for row in rows])


def names_in_file(path: Path, kind: str, start: str, workload: str | None = None) -> list[str]:
    """Return the same from a SQLite file, without what takes longer to load than the names to find.

    Raises sqlite3.Error for what is no readable database of tracker. The file is opened for reading alone.
    """
    question = Path(__file__).with_name("sql") / "names.sql"
    address = f"file:{quote(str(path.resolve()))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        rows = connection.execute(question.read_text(encoding="utf-8"), _parameters(kind, start, workload))
        return _offered(kind, start, [str(name) for (name,) in rows])


def _parameters(kind: str, start: str, workload: str | None) -> dict[str, str | None]:
    """Return the parameters of sql/names.sql; a branch is a part of a name, so that all of them are looked at."""
    escaped = start.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return {"kind": kind, "pattern": "%" if kind == "branch" else f"{escaped}%", "workload": workload}


def _offered(kind: str, start: str, names: list[str]) -> list[str]:
    """Return the names that begin so; LIKE of SQLite takes upper and lower case for the same."""
    if kind == "branch":
        from tracker.profile.branches import branch_of

        names = sorted({branch_of(name) for name in names})
    return [name for name in names if name.startswith(start)]
