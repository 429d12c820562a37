"""What the operators of an incident had changed by before."""

from __future__ import annotations

from alembic import op

from tracker.store import schema

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.run_migration(op.get_bind(), revision)


def downgrade() -> None:
    schema.undo_migration(op.get_bind(), revision)
