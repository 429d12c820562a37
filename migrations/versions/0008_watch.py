"""Who watches, what is watched, what was found there, and who is at what work right now."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

TEXT = sa.Text(collation="C").with_variant(sa.Text(), "sqlite")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def row_id() -> sa.Column[Any]:
    return sa.Column("id", ID, nullable=False)


def keys(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False) for name in names]


def values(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger(), nullable=True) for name in names]


def texts(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, TEXT, nullable=False) for name in names]


def binary(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.LargeBinary(), nullable=False)


def flag(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def create_who() -> None:
    op.create_table(
        "lease",
        *texts("name", "owner"),
        *keys("taken_ns", "heartbeat_ns", "expires_ns"),
        *values("done_ns"),
        sa.PrimaryKeyConstraint("name", name="pk_lease"),
    )
    op.create_table(
        "watcher",
        *texts("owner", "host"),
        *keys("pid"),
        *texts("program"),
        *values("every_ns"),
        *keys("started_ns", "heartbeat_ns"),
        *values("round_ns", "ended_ns"),
        *texts("outcome", "error"),
        *values("error_ns"),
        flag("told"),
        sa.PrimaryKeyConstraint("owner", name="pk_watcher"),
    )


def create_what() -> None:
    op.create_table(
        "watched_folder",
        row_id(),
        binary("digest"),
        *texts("host", "path", "layout"),
        *keys("first_seen_ns", "looked_ns"),
        *texts("error"),
        *values("error_ns"),
        sa.PrimaryKeyConstraint("id", name="pk_watched_folder"),
        sa.UniqueConstraint("digest", name="uq_watched_folder_digest"),
    )
    op.create_table(
        "expectation",
        row_id(),
        *keys("folder_id"),
        *texts("workload"),
        *keys("every_ns", "first_seen_ns"),
        *values("told_ns"),
        sa.PrimaryKeyConstraint("id", name="pk_expectation"),
        sa.UniqueConstraint("folder_id", "workload", name="uq_expectation_folder_id_workload"),
    )
    op.create_table(
        "inbox",
        row_id(),
        binary("digest"),
        *keys("folder_id"),
        *texts("path", "workload", "version", "state"),
        *keys("state_ns"),
        binary("content"),
        *keys("size_bytes", "written_ns", "changed_ns", "first_seen_ns"),
        *values("gone_ns"),
        sa.Column("attempts", sa.Integer(), nullable=False),
        *keys("next_try_ns"),
        *texts("reason", "run_ids"),
        *values("arrived_ns"),
        flag("told"),
        sa.PrimaryKeyConstraint("id", name="pk_inbox"),
        sa.UniqueConstraint("digest", name="uq_inbox_digest"),
    )


def upgrade() -> None:
    create_who()
    create_what()


def downgrade() -> None:
    for table in ("inbox", "expectation", "watched_folder", "watcher", "lease"):
        op.drop_table(table)
