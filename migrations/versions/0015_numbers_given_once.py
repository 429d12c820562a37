"""SQLite gives no number of a finding or an incident twice, though the rows of a configuration go with its last run.

Postgres never did.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

TEXT = sa.Text(collation="C").with_variant(sa.Text(), "sqlite")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
LINE = ("workload_id", "configuration_id", "device_id")
FOUND = (*LINE, "series_id", "direction", "change", "version_id", "first_run_id")
INCIDENT = (*LINE, "version_id", "direction")
TEXTS = frozenset({"direction", "change"})


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        make_again(once=True)


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        make_again(once=False)


def make_again(*, once: bool) -> None:
    """Both tables anew, with their rows: how SQLite numbers a table cannot be changed."""
    unique = sa.UniqueConstraint(*INCIDENT, name="uq_incident_line_direction")
    index = f"ix_finding_number_{'_'.join(LINE)}"
    op.drop_index(index, "finding_number")
    for table, names, constraints in (("finding_number", FOUND, []), ("incident", INCIDENT, [unique])):
        op.rename_table(table, f"{table}_before")
        op.create_table(
            table,
            sa.Column("id", ID, nullable=False),
            *(sa.Column(name, TEXT if name in TEXTS else sa.BigInteger(), nullable=False) for name in names),
            sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
            *constraints,
            **kept_once(once),
        )
        columns = ", ".join(("id", *names))
        op.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {table}_before")  # noqa: S608 names of above
        op.drop_table(f"{table}_before")
    op.create_index(index, "finding_number", list(LINE))


def kept_once(once: bool) -> dict[str, Any]:
    return {"sqlite_autoincrement": True} if once else {}
