"""Runs that wait for ranks: how many they should have, and when the last one came."""

from __future__ import annotations

from alembic import op

from tracker.store import schema

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.run_migration(op.get_bind(), revision)


def downgrade() -> None:
    schema.undo_migration(op.get_bind(), revision)
