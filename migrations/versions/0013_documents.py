"""Documents of one execution, such as the timer log and the summary beside a trace, are no runs of their own."""

from __future__ import annotations

from alembic import op

from tracker.store import documents, schema

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_FORGET_MAINS = (
    "UPDATE run SET sample_rules = NULL WHERE id IN "
    "(SELECT d.document_of FROM run AS d WHERE d.document_of <> d.id AND d.state = 'excluded')"
)
_FREE_DOCUMENTS = "UPDATE run SET state = 'active', state_reason = '' WHERE document_of <> id AND state = 'excluded'"


def upgrade() -> None:
    connection = op.get_bind()
    schema.run_migration(connection, revision)
    documents.join_beside(connection)


def downgrade() -> None:
    connection = op.get_bind()
    connection.exec_driver_sql(_FORGET_MAINS)
    connection.exec_driver_sql(_FREE_DOCUMENTS)
    schema.undo_migration(connection, revision)
