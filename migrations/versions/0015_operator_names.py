"""Operators have keys without running numbers and hashes, and keep their names as they were written beside them."""

from __future__ import annotations

from alembic import op

from tracker.store import schema

revision = "0015"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.run_migration(op.get_bind(), revision)


def downgrade() -> None:
    schema.undo_migration(op.get_bind(), revision)
