"""Idle time of the device has a cause and a place, and kernels a lead before they start. Runs that were read before it
have no rows: their idle time is known, and not why.
"""

from __future__ import annotations

from alembic import op

from tracker.store import schema

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.run_migration(op.get_bind(), revision)


def downgrade() -> None:
    schema.undo_migration(op.get_bind(), revision)
