"""Own times of operators by the quartile and the median of their calls, which vary less from run to run."""

from __future__ import annotations

from alembic import op

from tracker.store import schema

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.run_migration(op.get_bind(), revision)


def downgrade() -> None:
    schema.undo_migration(op.get_bind(), revision)
