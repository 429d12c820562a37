"""Names that begin with what somebody has written so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracker.profile.branches import branch_of
from tracker.store.sql import statement

if TYPE_CHECKING:
    from tracker.store.connect import Store


def find_names(store: Store, kind: str, **asked: Any) -> list[dict[str, Any]]:
    """Return what has such a name, in order. Keys and other parameters: sql/search.sql."""
    asked = {"kind": kind, **asked}
    with store.connect() as connection:
        return [dict(row) for row in connection.execute(statement("search"), asked).mappings()]


def names_beginning_with(store: Store, kind: str, start: str, workload: str | None = None) -> list[str]:
    """Return what a shell may offer behind `start`, at most 200 names in order; `kind`: see sql/names.sql.

    It stands apart from the other questions: a shell waits for it at every key, and NumPy takes longer to load.
    """
    is_branch = kind == "branch"
    escaped = start.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    asked = {"kind": kind, "pattern": "%" if is_branch else f"{escaped}%", "workload": workload}
    with store.connect() as connection:
        found = [str(row.name) for row in connection.execute(statement("names"), asked)]
    if is_branch:
        found = sorted({branch_of(name) for name in found})
    # LIKE of SQLite takes upper and lower case for the same
    return [name for name in found if name.startswith(start)]
