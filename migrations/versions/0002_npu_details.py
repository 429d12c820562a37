"""What NPU profilers know: kernel metrics, blocks of kernels, communication links, counters of any other table."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TEXT = sa.Text(collation="C").with_variant(sa.Text(), "sqlite")
DETAIL_TABLES = ("communication_link", "counter", "kernel_metric")
PARTITION_RUNS = 1000
# the ranges of runs that have partitions are those of any table of revision 0001
PARTITIONS = (
    "SELECT CAST(SUBSTRING(c.relname FROM '_p([0-9]+)$') AS BIGINT) FROM pg_inherits AS i "
    "INNER JOIN pg_class AS c ON i.inhrelid = c.oid WHERE i.inhparent = CAST('kernel' AS regclass) ORDER BY 1"
)


def key(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False)


def text_key(name: str) -> sa.Column[Any]:
    return sa.Column(name, TEXT, nullable=False)


def values(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger(), nullable=True) for name in names]


def reals(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Double(), nullable=True) for name in names]


def create_detail(table: str, primary: tuple[str, ...], *columns: sa.Column[Any]) -> None:
    op.create_table(
        table,
        key("run_id"),
        key("rank"),
        *columns,
        sa.PrimaryKeyConstraint("run_id", "rank", *primary, name=f"pk_{table}"),
        sqlite_with_rowid=False,
        postgresql_partition_by="RANGE (run_id)",
    )


def upgrade() -> None:
    op.add_column("kernel", sa.Column("block_num", sa.BigInteger(), nullable=True))
    create_detail(
        "kernel_metric",
        ("kernel_key_id", "metric"),
        key("kernel_key_id"),
        text_key("metric"),
        *values("calls"),
        *reals("mean", "min", "max"),
    )
    create_detail(
        "communication_link",
        ("ordinal",),
        key("ordinal"),
        key("communication"),
        text_key("transport"),
        key("source"),
        key("target"),
        key("packet_bytes"),
        *values("calls", "packets", "bytes", "transit_ns"),
        *reals("large_packet_ratio"),
    )
    create_detail(
        "counter",
        ("ordinal",),
        key("ordinal"),
        key("step"),
        text_key("source"),
        text_key("name"),
        text_key("attribute"),
        *values("calls"),
        *reals("mean", "min", "max"),
    )
    if op.get_bind().dialect.name == "postgresql":
        create_partitions()


def create_partitions() -> None:
    for (first,) in op.get_bind().exec_driver_sql(PARTITIONS).all():
        last = first + PARTITION_RUNS
        for table in DETAIL_TABLES:
            op.execute(f"CREATE TABLE {table}_p{first} PARTITION OF {table} FOR VALUES FROM ({first}) TO ({last})")


def downgrade() -> None:
    for table in DETAIL_TABLES:
        op.drop_table(table)
    op.drop_column("kernel", "block_num")
