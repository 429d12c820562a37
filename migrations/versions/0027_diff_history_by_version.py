"""`diff_history` is read by the versions of a line alone: an index by series took a page of each series per version."""

from __future__ import annotations

from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

INDEX = "ix_diff_history_series_id_version_id"


def upgrade() -> None:
    op.drop_index(INDEX, "diff_history")


def downgrade() -> None:
    op.create_index(INDEX, "diff_history", ["series_id", "version_id"])
