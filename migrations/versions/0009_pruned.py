"""The details of a rank may be dropped; its totals and samples stay."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("capture", sa.Column("pruned_at_ns", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("capture", "pruned_at_ns")
