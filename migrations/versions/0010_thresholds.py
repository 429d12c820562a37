"""Thresholds: the limits that users set for a workload, or for a part of it, in place of those of the rule."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

TEXT = sa.Text(collation="C").with_variant(sa.Text(), "sqlite")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
PLACE = ("workload_id", "configuration_id", "device_id")
WHICH = ("kind", "pattern", "name")


def upgrade() -> None:
    op.create_table(
        "threshold",
        sa.Column("id", ID, nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in PLACE),
        *(sa.Column(name, TEXT, nullable=False) for name in WHICH),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("who", TEXT, nullable=False),
        sa.Column("when_ns", sa.BigInteger(), nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_threshold"),
        sa.UniqueConstraint(*PLACE, *WHICH, name="uq_threshold_place"),
    )


def downgrade() -> None:
    op.drop_table("threshold")
