"""A workload may be a branch of another one, and a version of a branch knows where it left the main line."""

from __future__ import annotations

from alembic import op

from tracker.store import schema

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.run_migration(op.get_bind(), revision)


def downgrade() -> None:
    schema.undo_migration(op.get_bind(), revision)
