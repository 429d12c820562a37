"""Steps are windows of the device: a step keeps how long the marker of the host lasts. NULL: read before there were
windows, or of no device.
"""

from __future__ import annotations

from alembic import op

from tracker.store import schema

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.run_statements(op.get_bind(), revision)


def downgrade() -> None:
    op.get_bind().exec_driver_sql("ALTER TABLE step DROP COLUMN marker_ns")
