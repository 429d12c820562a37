"""Waiting in collectives has the rank that it is for. Runs that were read before it have no rows."""

from __future__ import annotations

from alembic import op

from tracker.store import schema

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.run_migration(op.get_bind(), revision)


def downgrade() -> None:
    schema.undo_migration(op.get_bind(), revision)
