"""Every real number in double precision: Postgres kept the statistics of samples to seven digits, SQLite to sixteen.

What was rounded stays so until its runs are ingested again. A REAL of SQLite has double precision already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

COLUMNS: Mapping[str, Sequence[str]] = {
    "sample": ("sd", "min", "p10", "p90", "max", "calls", "share", "rank_spread"),
    "diff_history": ("calls", "previous_contribution", "pinned_contribution"),
}


def upgrade() -> None:
    change("DOUBLE PRECISION")


def downgrade() -> None:
    change("REAL")


def change(kind: str) -> None:
    """One statement for each table: each writes it anew."""
    if op.get_bind().dialect.name != "postgresql":
        return
    for table, names in COLUMNS.items():
        op.execute(sa.text(f"ALTER TABLE {table} {', '.join(f'ALTER COLUMN {name} TYPE {kind}' for name in names)}"))
