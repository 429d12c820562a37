"""Postgres keeps the detail tables in partitions of PARTITION_RUNS runs each; SQLite has none."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, text

from tracker.schema.levels import LEVELS
from tracker.store.labels import lock

DETAIL_TABLES: Final = ("step", *(level.name for level in LEVELS), "collective_call")
"""In the order in which an ingest writes them."""

PARTITION_RUNS: Final = 1_000

_EXISTS: Final = text("SELECT to_regclass(:name) IS NOT NULL")
_LACKS_ANY: Final = text(
    "SELECT bool_or(to_regclass(t.name || :suffix) IS NULL) FROM unnest(CAST(:tables AS TEXT [])) AS t (name)"
)


def ensure(connection: Connection, run_id: int) -> None:
    """Make the partitions for `run_id` where they are missing, in the open transaction."""
    if connection.dialect.name != "postgresql":
        return
    first = run_id // PARTITION_RUNS * PARTITION_RUNS
    # a newer program may have made those of the tables that are new in it, and of these alone
    every = {"tables": list(DETAIL_TABLES), "suffix": f"_p{first}"}
    if not connection.execute(_LACKS_ANY, every).scalar_one():
        return
    lock(connection, "partitions", first)
    for table in DETAIL_TABLES:
        name = f"{table}_p{first}"
        if connection.execute(_EXISTS, {"name": name}).scalar_one():
            continue
        # Attached rather than created as a partition: that waits for no reader and no writer of the table.
        connection.exec_driver_sql(f"CREATE TABLE {name} (LIKE {table} INCLUDING ALL)")
        connection.exec_driver_sql(
            f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({first}) TO ({first + PARTITION_RUNS})"
        )
