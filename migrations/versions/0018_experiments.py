"""Experiments: two builds that one machine runs by turns; their runs are of no history."""

from __future__ import annotations

from alembic import op

from tracker.store import schema

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_FORGET_RUNS = (
    "UPDATE run SET state = 'deleted', state_reason = 'it is of an experiment' WHERE experiment_id IS NOT NULL"
)


def upgrade() -> None:
    schema.run_migration(op.get_bind(), revision)


def downgrade() -> None:
    connection = op.get_bind()
    # an older tracker may restore what is excluded, and would judge it
    connection.exec_driver_sql(_FORGET_RUNS)
    schema.undo_migration(connection, revision)
