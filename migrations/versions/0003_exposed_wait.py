"""How much of the time of collectives that compute does not hide is waiting for other ranks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("communication", sa.Column("exposed_wait_ns", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("communication", "exposed_wait_ns")
