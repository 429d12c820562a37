"""Postgres keeps the detail tables in partitions of PARTITION_RUNS runs each; SQLite has none."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, text

from tracker.store.labels import lock

DETAIL_TABLES: Final = (
    "step",
    "op",
    "op_tree",
    "kernel",
    "kernel_metric",
    "communication",
    "communication_task",
    "communication_link",
    "memory",
    "memory_curve",
    "counter",
    "api",
    "memory_allocator",
    "memory_peak",
    "memory_block",
    "collective_call",
    "idle",
    "queue",
    "communication_wait",
)
"""In the order in which an ingest writes them."""

PARTITION_RUNS: Final = 1_000

_EXISTS = text("SELECT to_regclass(:name) IS NOT NULL")


def ensure(connection: Connection, run_id: int) -> None:
    """Make the partitions for `run_id` where they are missing, in the open transaction."""
    if connection.dialect.name != "postgresql":
        return
    first = run_id // PARTITION_RUNS * PARTITION_RUNS
    last = f"{DETAIL_TABLES[-1]}_p{first}"
    if connection.execute(_EXISTS, {"name": last}).scalar_one():
        return
    lock(connection, "partitions", first)
    if connection.execute(_EXISTS, {"name": last}).scalar_one():
        return
    for table in DETAIL_TABLES:
        name = f"{table}_p{first}"
        if connection.execute(_EXISTS, {"name": name}).scalar_one():
            continue
        # Attached rather than created as a partition: that waits for no reader and no writer of the table.
        connection.exec_driver_sql(f"CREATE TABLE {name} (LIKE {table} INCLUDING ALL)")
        connection.exec_driver_sql(
            f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({first}) TO ({first + PARTITION_RUNS})"
        )
