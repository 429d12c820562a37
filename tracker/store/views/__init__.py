"""The views: what a database holds in names instead of numbers of rows, for questions from outside tracker.

They are made with the tables, from the levels in `tracker.schema`, and hold no rows of their own. docs/columns.md fixes
their names and columns. What is missing is NULL, never 0, and -1 of a table is NULL here. Runs that are excluded or
deleted are in v_run alone. Verdicts and findings are left out while their judgement is out of date.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, ProgrammingError

from tracker.errors import StoreError
from tracker.store.views.findings import FINDING_VIEW, VERDICT_VIEW
from tracker.store.views.levels import LEVEL_VIEWS
from tracker.store.views.parts import View
from tracker.store.views.runs import RUN_VIEW, VERSION_VIEW

_NOW_NS: Final = {
    "sqlite": "CAST(STRFTIME('%s', 'now') AS BIGINT) * 1000000000",
    "postgresql": "CAST(EXTRACT(EPOCH FROM NOW()) AS BIGINT) * 1000000000",
}


VIEWS: Final[tuple[View, ...]] = (VERSION_VIEW, RUN_VIEW, *LEVEL_VIEWS, VERDICT_VIEW, FINDING_VIEW)
"""In the order in which they are made: later ones may rest on v_version."""


@cache
def definitions(dialect: str) -> dict[str, str]:
    """Return the statement that makes each view, by name, in the order in which they are made."""
    found = {}
    for view in VIEWS:
        query = view.query.replace("{now}", _NOW_NS[dialect])
        found[view.name] = f"CREATE VIEW {view.name} AS\n{_MADE_BY_TRACKER}\n{query}"
    return found


_MADE_BY_TRACKER: Final = "-- made by tracker"
"""In the text of a view, and in Postgres, which does not keep that, at the head of its comment."""

_IN_SQLITE: Final = "SELECT name, sql FROM sqlite_master WHERE name LIKE 'v!_%' ESCAPE '!'"
_IN_POSTGRES: Final = text(
    "SELECT c.relname, OBJ_DESCRIPTION(c.oid, 'pg_class') FROM UNNEST(CAST(:names AS TEXT [])) AS n (name) "
    "INNER JOIN pg_class AS c ON TO_REGCLASS(n.name) = c.oid"
)


def _existing_views(connection: Connection) -> dict[str, str]:
    """Return what has the name of one of the views: on SQLite its text, on Postgres its comment."""
    if connection.dialect.name == "sqlite":
        rows = connection.exec_driver_sql(_IN_SQLITE).all()
    else:
        rows = connection.execute(_IN_POSTGRES, {"names": [view.name for view in VIEWS]}).all()
    names = {view.name for view in VIEWS}
    return {name: words or "" for name, words in rows if name in names}


def _mark(connection: Connection, definition: str) -> str:
    """Return what `_existing_views` gives of a view that is made by this definition."""
    if connection.dialect.name == "sqlite":
        return definition
    return f"{_MADE_BY_TRACKER}, {sha256(definition.encode()).hexdigest()[:16]}"


def list_differing_views(connection: Connection) -> list[str]:
    """Return the views that are missing, or other than this tracker makes them."""
    existing = _existing_views(connection)
    wrong = []
    for name, definition in definitions(connection.dialect.name).items():
        if existing.get(name) != _mark(connection, definition):
            wrong.append(name)
    return wrong


def make_views(connection: Connection) -> list[str]:
    """Make the views that are missing or differ from what they should be, and return their names.

    Within the open transaction of `connection`. StoreError where something else has the name of one, or where a view of
    somebody else rests on one that changes: both stay as they are.
    """
    wrong = list_differing_views(connection)
    if not wrong:
        return []
    for name, words in _existing_views(connection).items():
        if _MADE_BY_TRACKER not in words:
            raise StoreError(
                f"{name} is none of the views of tracker, and has the name of one",
                remedy=f"rename {name}, then tracker db upgrade",
            )
    if connection.dialect.name == "sqlite" or not _replace(connection):
        drop_views(connection)
        for definition in definitions(connection.dialect.name).values():
            connection.exec_driver_sql(definition)
    if connection.dialect.name == "postgresql":
        for name, definition in definitions("postgresql").items():
            connection.exec_driver_sql(f"COMMENT ON VIEW {name} IS '{_mark(connection, definition)}'")
    return wrong


def _replace(connection: Connection) -> bool:
    """Replace all views of Postgres where they are, which keeps who may read them; False where columns changed."""
    try:
        with connection.begin_nested():
            for definition in definitions("postgresql").values():
                connection.exec_driver_sql(definition.replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1))
    except ProgrammingError:
        return False
    return True


def drop_views(connection: Connection) -> None:
    """Drop the views, within the open transaction of `connection`; StoreError where other views rest on them."""
    names = [view.name for view in reversed(VIEWS)]
    existing = _existing_views(connection)
    try:
        for name in names:
            if _MADE_BY_TRACKER in existing.get(name, ""):
                connection.exec_driver_sql(f"DROP VIEW {name}")
    except DBAPIError as error:
        cause = " ".join(str(error.orig).split())
        raise StoreError(
            f"a view of tracker cannot be changed ({cause})",
            remedy="drop what rests on it, run tracker db upgrade, then make it again",
        ) from error
