"""Steps are windows of the device: a step keeps how long the marker of the host lasts, and how long the device waits
for the host. NULL: read before there were windows, or of no device. A capture keeps its identity, by which another
file of it is found.
"""

from __future__ import annotations

from alembic import op

from tracker.store import schema

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.run_migration(op.get_bind(), revision)


def downgrade() -> None:
    schema.undo_migration(op.get_bind(), revision)
