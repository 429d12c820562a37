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
    # so that an ingest by a role that owns no table can write the first runs
    partitions.ensure(op.get_bind(), 0)


def downgrade() -> None:
    op.get_bind().exec_driver_sql("DROP TABLE communication_wait")
