"""What a run without a clock did to a finding has no time: NULL, where 0 stood for it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

TEXT = sa.Text(collation="C").with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        make_again(nullable=True, when="NULLIF(when_ns, 0)")
    else:
        op.alter_column("finding_event", "when_ns", nullable=True)
        op.execute(sa.text("UPDATE finding_event SET when_ns = NULL WHERE when_ns = 0"))


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        make_again(nullable=False, when="COALESCE(when_ns, 0)")
    else:
        op.execute(sa.text("UPDATE finding_event SET when_ns = 0 WHERE when_ns IS NULL"))
        op.alter_column("finding_event", "when_ns", nullable=False)


def make_again(*, nullable: bool, when: str) -> None:
    """SQLite cannot change a column. `when`: what its values become."""
    op.rename_table("finding_event", "finding_event_before")
    table = op.create_table(
        "finding_event",
        *(sa.Column(name, sa.BigInteger(), nullable=False, autoincrement=False) for name in ("finding_id", "position")),
        *(sa.Column(name, TEXT, nullable=False) for name in ("source", "target", "kind", "who")),
        sa.Column("when_ns", sa.BigInteger(), nullable=nullable),
        sa.Column("run_id", sa.BigInteger(), nullable=True),
        sa.Column("rule_version", sa.Integer(), nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("notifies", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("finding_id", "position", name="pk_finding_event"),
        sqlite_with_rowid=False,
    )
    names = [column.name for column in table.columns]
    values = ", ".join(when if name == "when_ns" else name for name in names)
    # the names are those above
    op.execute(sa.text(f"INSERT INTO finding_event ({', '.join(names)}) SELECT {values} FROM finding_event_before"))  # noqa: S608
    op.drop_table("finding_event_before")
