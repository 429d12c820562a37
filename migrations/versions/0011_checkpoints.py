"""Checkpoints: how far each line was followed, so that one more run costs one step."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

BYTES = ("checkpoint_key", "checkpoint")


def upgrade() -> None:
    op.add_column("followed", sa.Column("checkpoint_runs", sa.BigInteger(), nullable=True))
    for name in BYTES:
        op.add_column("followed", sa.Column(name, sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    for name in ("checkpoint_runs", *BYTES):
        op.drop_column("followed", name)
