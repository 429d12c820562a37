"""Operators have keys without running numbers and hashes, and keep their names as they were written beside them."""

from __future__ import annotations

from alembic import op

from tracker.store import operator_names, schema

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    schema.run_migration(connection, revision)
    operator_names.rename_stored(connection)


def downgrade() -> None:
    schema.undo_migration(op.get_bind(), revision)
