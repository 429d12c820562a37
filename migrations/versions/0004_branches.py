"""A workload may be a branch of another one, and a version of a branch knows where it left the main line."""

from __future__ import annotations

from alembic import op

from tracker.store import schema

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema.run_statements(op.get_bind(), revision)


def downgrade() -> None:
    op.get_bind().exec_driver_sql("ALTER TABLE version DROP COLUMN main_commits")
    op.get_bind().exec_driver_sql("ALTER TABLE workload DROP COLUMN main_id")
