"""All tables. Until the first release this migration is changed in place, together with 0001_schema.sql."""

from __future__ import annotations

from alembic import op

from tracker.store import schema
from tracker.store.tables import metadata

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.make_tables(op.get_bind())


def downgrade() -> None:
    metadata.drop_all(op.get_bind())
