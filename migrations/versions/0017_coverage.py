"""Versions say how many of their series were judged."""

from __future__ import annotations

from alembic import op

from tracker.store import schema

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.run_migration(op.get_bind(), revision)


def downgrade() -> None:
    schema.undo_migration(op.get_bind(), revision)
