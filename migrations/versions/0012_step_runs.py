"""The runs that the step of an incident is measured against, and numbers of findings that outlive them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("finding", sa.Column("step_runs", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("finding", "step_runs")
