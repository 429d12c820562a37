"""Documents of one execution, such as the timer log and the summary beside a trace, are no runs of their own."""

from __future__ import annotations

from alembic import op

from tracker.store import documents, schema

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.run_migration(op.get_bind(), revision)
    documents.join_beside(op.get_bind())


def downgrade() -> None:
    schema.undo_migration(op.get_bind(), revision)
