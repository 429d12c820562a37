"""What a digest told is settled with it; and an index by which a digest finds what it told."""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

SETTLE = (
    "UPDATE notification SET settled_ns = "
    "(SELECT d.settled_ns FROM notification AS d WHERE d.id = notification.told_by) "
    "WHERE state = 'joined' AND settled_ns IS NULL",
    # a digest that was forgotten was settled before that
    "UPDATE notification SET settled_ns = created_ns WHERE state = 'joined' AND settled_ns IS NULL "
    "AND NOT EXISTS (SELECT 1 FROM notification AS d WHERE d.id = notification.told_by)",
)


def upgrade() -> None:
    op.create_index("ix_notification_told_by", "notification", ["told_by"])
    for statement in SETTLE:
        op.execute(statement)


def downgrade() -> None:
    op.drop_index("ix_notification_told_by", "notification")
