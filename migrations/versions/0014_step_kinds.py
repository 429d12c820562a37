"""What each step does, where the steps of a capture do not all do the same; series of such steps."""

from __future__ import annotations

from alembic import op

from tracker.store import schema

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.run_migration(op.get_bind(), revision)


def downgrade() -> None:
    schema.undo_migration(op.get_bind(), revision)
