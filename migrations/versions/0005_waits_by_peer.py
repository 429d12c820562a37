"""Waiting in collectives has the rank that it is for. Runs that were read before it have no rows."""

from __future__ import annotations

from alembic import op

from tracker.store import partitions, schema

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.run_statements(op.get_bind(), revision)
    # so that an ingest by a role that owns no table can write the next runs
    newest = op.get_bind().exec_driver_sql("SELECT COALESCE(MAX(id), 0) FROM run").scalar_one()
    for first in range(0, int(newest) + 1, partitions.PARTITION_RUNS):
        partitions.ensure(op.get_bind(), first)


def downgrade() -> None:
    op.get_bind().exec_driver_sql("DROP TABLE communication_wait")
