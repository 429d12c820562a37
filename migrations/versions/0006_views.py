"""Views for other programs, and what judgements rest on in words that these compare. Old ones are judged again."""

from __future__ import annotations

from alembic import op

from tracker.store import schema

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.run_migration(op.get_bind(), revision)


def downgrade() -> None:
    schema.undo_migration(op.get_bind(), revision)
