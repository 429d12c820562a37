"""How much of the idle time of the device is in gaps that a wait of the host opened."""

from __future__ import annotations

from alembic import op

from tracker.store import schema

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.run_migration(op.get_bind(), revision)


def downgrade() -> None:
    schema.undo_migration(op.get_bind(), revision)
