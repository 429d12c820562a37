"""${message}"""

from __future__ import annotations

from alembic import op

from tracker.store import schema

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    schema.run_migration(op.get_bind(), revision)


def downgrade() -> None:
    schema.undo_migration(op.get_bind(), revision)
