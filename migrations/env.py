"""How Alembic runs the migrations of tracker.

Two ways in: `tracker.store` hands over a connection inside its own transaction (`config.attributes["connection"]`),
and a developer calls `alembic` in the repository, which migrates the database of the settings.

A migration is one transaction on both databases. On Postgres it waits at most LOCK_TIMEOUT for a lock, so that it
fails instead of blocking everyone behind it, and an advisory lock keeps two migrations from running at once.
"""

from __future__ import annotations

import re
from typing import Any

import sqlalchemy as sa
from alembic import context

from tracker.store.schema import ADVISORY_LOCK
from tracker.store.tables import metadata

LOCK_TIMEOUT = "10s"
STATEMENT_TIMEOUT = "15min"
_PARTITION = re.compile(r"_p\d+$")


def include_name(name: str | None, kind: str, parents: Any) -> bool:
    """Whether the schema comparison looks at `name`: partitions follow their table."""
    return not (kind == "table" and name is not None and _PARTITION.search(name))


def run_migrations(connection: sa.Connection) -> None:
    """Run the migrations that were asked for on `connection`, inside the transaction that is open there."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = '{STATEMENT_TIMEOUT}'")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")
    context.configure(
        connection=connection,
        target_metadata=metadata,
        render_as_batch=connection.dialect.name == "sqlite",
        compare_type=True,
        compare_server_default=True,
        include_name=include_name,
    )
    with context.begin_transaction():
        context.run_migrations()


def run_from_the_command_line() -> None:
    """Migrate the database that the settings of tracker name."""
    from tracker import config
    from tracker.store import open_engine

    with open_engine(config.load().database, migrates=True).begin() as connection:
        run_migrations(connection)


if context.is_offline_mode():
    raise SystemExit("migrations need a database: leave out --sql")
given = context.config.attributes.get("connection")
if given is None:
    run_from_the_command_line()
else:
    run_migrations(given)
