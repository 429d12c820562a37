"""A version is judged against its accepted runs before, no longer against the version before alone.

What was judged by the old rule is out of date by the number of the rule, and is judged anew with the next run.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

TEXT = sa.Text(collation="C").with_variant(sa.Text(), "sqlite")
RENAMED: Final = ("diff", "p", "q", "contribution", "verdict")


def upgrade() -> None:
    for name in RENAMED:
        op.alter_column("diff_history", f"previous_{name}", new_column_name=f"baseline_{name}")
    op.add_column("diff_history", sa.Column("detectable", sa.Double(), nullable=True))
    op.add_column("diff_history", sa.Column("reason", TEXT, nullable=True))
    for name in ("judged_runs", "baseline_runs"):
        op.add_column("judged", sa.Column(name, TEXT, nullable=True))


def downgrade() -> None:
    for name in ("baseline_runs", "judged_runs"):
        op.drop_column("judged", name)
    for name in ("reason", "detectable"):
        op.drop_column("diff_history", name)
    for name in RENAMED:
        op.alter_column("diff_history", f"baseline_{name}", new_column_name=f"previous_{name}")
