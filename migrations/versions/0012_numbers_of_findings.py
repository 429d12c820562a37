"""The runs that the step of an incident is measured against, and numbers of findings that outlive them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

TEXT = sa.Text(collation="C").with_variant(sa.Text(), "sqlite")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
LINE = ("workload_id", "configuration_id", "device_id")

NUMBERS_KNOWN = """
INSERT INTO finding_number
    (id, workload_id, configuration_id, device_id, series_id, direction, change, version_id, first_run_id)
SELECT
    f.id, f.workload_id, f.configuration_id, f.device_id, f.series_id, f.direction, f.change, r.version_id,
    f.first_run_id
FROM finding AS f
INNER JOIN run AS r ON f.first_run_id = r.id
"""
NEXT_NUMBER = """
SELECT SETVAL(PG_GET_SERIAL_SEQUENCE('finding_number', 'id'), (SELECT COALESCE(MAX(id), 0) + 1 FROM finding), FALSE)
"""


def upgrade() -> None:
    op.add_column("finding", sa.Column("step_runs", TEXT, nullable=True))
    op.create_table(
        "finding_number",
        sa.Column("id", ID, nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in (*LINE, "series_id")),
        *(sa.Column(name, TEXT, nullable=False) for name in ("direction", "change")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("version_id", "first_run_id")),
        sa.PrimaryKeyConstraint("id", name="pk_finding_number"),
    )
    op.create_index(f"ix_finding_number_{'_'.join(LINE)}", "finding_number", list(LINE))
    op.execute(NUMBERS_KNOWN)
    if op.get_bind().dialect.name == "postgresql":
        op.execute(NEXT_NUMBER)


def downgrade() -> None:
    op.drop_table("finding_number")
    op.drop_column("finding", "step_runs")
