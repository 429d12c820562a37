"""What a watcher is at, and since when; how often reading a profile ended its watcher, apart from how often it was
put off.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

TEXT = sa.Text(collation="C").with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.add_column("watcher", sa.Column("job", TEXT, nullable=True))
    op.add_column("watcher", sa.Column("job_ns", sa.BigInteger(), nullable=True))
    op.add_column("inbox", sa.Column("deaths", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("inbox", "deaths")
    op.drop_column("watcher", "job_ns")
    op.drop_column("watcher", "job")
