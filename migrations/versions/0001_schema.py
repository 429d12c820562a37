"""All tables, as they were first. A later migration changes them: databases made by this one exist."""

from __future__ import annotations

from alembic import op

from tracker.store import schema
from tracker.store.tables import metadata

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.run_statements(op.get_bind(), revision)


def downgrade() -> None:
    metadata.drop_all(op.get_bind())
