"""What the ranks of a run tell together: its process groups, every collective call, and how long each one waited.

Until now an ingest wrote what all ranks told over what their profilers say; from now on it has columns of its own. Of
runs whose profilers never say it, such numbers move there. Steps get the part of data loading in
which the device idles.
"""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

SPLIT: Final = ("ranks_transit_ns", "ranks_wait_ns", "ranks_exposed_wait_ns", "paired_calls")
IDLE_LOADING: Final = "data_loading_idle_ns"
PARTITION_RUNS: Final = 1000
PARTITIONS: Final = (
    "SELECT CAST(SUBSTRING(c.relname FROM '_p([0-9]+)$') AS BIGINT) FROM pg_inherits AS i "
    "INNER JOIN pg_class AS c ON i.inhrelid = c.oid WHERE i.inhparent = CAST('communication' AS regclass) ORDER BY 1"
)
MOVE: Final = (
    "UPDATE communication SET ranks_transit_ns = transit_ns, ranks_wait_ns = wait_ns, "
    "ranks_exposed_wait_ns = CASE WHEN exposed_wait_ns = wait_ns THEN exposed_wait_ns END, paired_calls = calls, "
    "exposed_wait_ns = CASE WHEN exposed_ns = 0 THEN 0 END, transit_ns = NULL, wait_ns = NULL "
    "WHERE wait_ns IS NOT NULL AND transit_ns IS NOT NULL AND run_id IN (SELECT run_id FROM source GROUP BY run_id "
    "HAVING MIN(CASE WHEN format IN ('torch_profiler', 'nsys_sqlite', 'paddle_trace') THEN 1 ELSE 0 END) = 1)"
)
"""Of runs whose profilers say nothing of waiting."""


def upgrade() -> None:
    op.create_table(
        "run_group",
        *keys("run_id", "number", "process_group_id"),
        sa.Column("ranks", sa.Text(collation="C").with_variant(sa.Text(), "sqlite"), nullable=False),
        *values("members", "captured", "clock_offset_ns"),
        sa.PrimaryKeyConstraint("run_id", "number", name="pk_run_group"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_run_group_run_id_run"),
    )
    op.create_table(
        "collective_call",
        *keys("run_id", "rank"),
        sa.Column("calls", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "rank", name="pk_collective_call"),
        sqlite_with_rowid=False,
        postgresql_partition_by="RANGE (run_id)",
    )
    if op.get_bind().dialect.name == "postgresql":
        create_partitions()
    for column in values(*SPLIT):
        op.add_column("communication", column)
    for table in ("step", "capture"):
        op.add_column(table, sa.Column(IDLE_LOADING, sa.BigInteger(), nullable=True))
    op.execute(MOVE)


def downgrade() -> None:
    op.execute(
        "UPDATE communication SET transit_ns = ranks_transit_ns, wait_ns = ranks_wait_ns, "
        "exposed_wait_ns = COALESCE(ranks_exposed_wait_ns, exposed_wait_ns) "
        "WHERE transit_ns IS NULL AND wait_ns IS NULL AND ranks_wait_ns IS NOT NULL"
    )
    for table in ("step", "capture"):
        op.drop_column(table, IDLE_LOADING)
    for name in SPLIT:
        op.drop_column("communication", name)
    op.drop_table("collective_call")
    op.drop_table("run_group")


def keys(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False) for name in names]


def values(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger(), nullable=True) for name in names]


def create_partitions() -> None:
    for (first,) in op.get_bind().exec_driver_sql(PARTITIONS).all():
        last = first + PARTITION_RUNS
        op.execute(
            f"CREATE TABLE collective_call_p{first} PARTITION OF collective_call FOR VALUES FROM ({first}) TO ({last})"
        )
