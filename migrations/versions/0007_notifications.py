"""Messages on their way to people (the outbox), and what users do not want to hear for a while."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TEXT = sa.Text(collation="C").with_variant(sa.Text(), "sqlite")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def texts(*names: str, nullable: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, TEXT, nullable=nullable) for name in names]


def whole(*names: str, nullable: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger(), nullable=nullable) for name in names]


def counts(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Integer(), nullable=False) for name in names]


def create_notification() -> None:
    op.create_table(
        "notification",
        sa.Column("id", ID, nullable=False),
        *texts("key", "channel", "event"),
        *counts("counter"),
        *texts("state", "severity", "workload", "title", "incidents", "covers"),
        *texts("content", nullable=True),
        *whole("created_ns"),
        *whole("next_try_ns", nullable=True),
        *counts("attempts"),
        *texts("claimed_by", nullable=True),
        *whole("claimed_until_ns", nullable=True),
        *texts("last_error", nullable=True),
        *whole("settled_ns", "told_by", nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_notification"),
        sa.UniqueConstraint("key", "channel", name="uq_notification_key_channel"),
    )
    op.create_index("ix_notification_state_next_try_ns", "notification", ["state", "next_try_ns"])


def create_silence() -> None:
    op.create_table(
        "silence",
        sa.Column("id", ID, nullable=False),
        *texts("op", "workload", "device", "who", "reason"),
        *whole("created_ns", "until_ns"),
        *whole("ended_ns", nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_silence"),
    )


def upgrade() -> None:
    create_notification()
    create_silence()


def downgrade() -> None:
    for table in ("silence", "notification"):
        op.drop_table(table)
