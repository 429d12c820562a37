"""Who owns memory: the helpers that allocated it, what was held at its peak, and the largest single allocations.

Rows of `memory` counted an allocation to the innermost op, a helper such as aten::empty; from now on to the op around
it. The series of the old rows become those of another metric, so that no run is judged against one of the other kind.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

DETAIL_TABLES: Final = ("memory_allocator", "memory_peak", "memory_block")
PARTITION_RUNS: Final = 1000
PARTITIONS: Final = (
    "SELECT CAST(SUBSTRING(c.relname FROM '_p([0-9]+)$') AS BIGINT) FROM pg_inherits AS i "
    "INNER JOIN pg_class AS c ON i.inhrelid = c.oid WHERE i.inhparent = CAST('memory' AS regclass) ORDER BY 1"
)
BY_OWNER: Final = "bytes"
BY_ALLOCATOR: Final = "allocator_bytes"
SET_ASIDE: Final = "owner_bytes"


def upgrade() -> None:
    create_detail(
        "memory_allocator",
        ("step", "op_key_id", "component_id", "allocator_id"),
        *keys("step", "op_key_id", "component_id", "allocator_id"),
        *values("calls", "bytes", "held_ns", "unreleased_bytes"),
    )
    create_detail(
        "memory_peak",
        ("ordinal",),
        *keys("ordinal", "component_id", "op_key_id", "allocator_id"),
        *values("call_stack_id", "calls", "bytes", "largest_bytes", "first_ns", "first_step", "peak_ns", "peak_step"),
    )
    create_detail(
        "memory_block",
        ("ordinal",),
        *keys("ordinal", "step", "op_key_id", "component_id", "allocator_id"),
        *values("call_stack_id", "bytes"),
        *keys("time_ns"),
        *values("held_ns", "is_released"),
    )
    if op.get_bind().dialect.name == "postgresql":
        create_partitions()
    rename_series(BY_OWNER, BY_ALLOCATOR)
    rename_series(SET_ASIDE, BY_OWNER)


def downgrade() -> None:
    rename_series(BY_OWNER, SET_ASIDE)
    rename_series(BY_ALLOCATOR, BY_OWNER)
    for table in DETAIL_TABLES:
        op.drop_table(table)


def keys(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False) for name in names]


def values(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger(), nullable=True) for name in names]


def create_detail(table: str, primary: tuple[str, ...], *columns: sa.Column[Any]) -> None:
    op.create_table(
        table,
        *keys("run_id", "rank"),
        *columns,
        sa.PrimaryKeyConstraint("run_id", "rank", *primary, name=f"pk_{table}"),
        sqlite_with_rowid=False,
        postgresql_partition_by="RANGE (run_id)",
    )


def create_partitions() -> None:
    for (first,) in op.get_bind().exec_driver_sql(PARTITIONS).all():
        last = first + PARTITION_RUNS
        for table in DETAIL_TABLES:
            op.execute(f"CREATE TABLE {table}_p{first} PARTITION OF {table} FOR VALUES FROM ({first}) TO ({last})")


def rename_series(old: str, new: str) -> None:
    """The series of memory under another metric, with the digests that stand for them."""
    question = sa.text(
        "SELECT id, workload_id, configuration_id, device_id, kind, name, input_shapes, part FROM series "
        "WHERE kind = 'memory' AND metric = :old"
    )
    change = sa.text("UPDATE series SET metric = :new, digest = :digest WHERE id = :id")
    changes = [
        {"id": row.id, "new": new, "digest": digest_of(*row[1:5], new, *row[5:])}
        for row in op.get_bind().execute(question, {"old": old}).all()
    ]
    if changes:
        op.get_bind().execute(change, changes)


def digest_of(*parts: object) -> bytes:
    return hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()
