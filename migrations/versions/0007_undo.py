"""Which mark an undo takes back, and the newest version when a mark was given."""

from __future__ import annotations

from alembic import op

from tracker.store import schema

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.run_migration(op.get_bind(), revision)


def downgrade() -> None:
    schema.undo_migration(op.get_bind(), revision)
