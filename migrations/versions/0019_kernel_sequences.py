"""Kernels say in which sequence of elementwise kernels they stand, and what one kernel in its place would save."""

from __future__ import annotations

from alembic import op

from tracker.store import schema

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.run_migration(op.get_bind(), revision)


def downgrade() -> None:
    schema.undo_migration(op.get_bind(), revision)
