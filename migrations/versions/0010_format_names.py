"""Captures of msprof were stored with the name of one of their files as their format: they are of the reader cann."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

from tracker.store import recordings, schema

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    schema.run_migration(connection, revision)
    # runs of one format share a recording, by which the judge knows what it may compare; whose recording is another
    # one now is judged again
    run_ids = connection.scalars(text("SELECT DISTINCT run_id FROM source WHERE format = 'cann'")).all()
    recordings.refresh_recordings(connection, run_ids)


def downgrade() -> None:
    schema.undo_migration(op.get_bind(), revision)
