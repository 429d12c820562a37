"""One incident per version of a line, with what got worse and what got better in it.

Of two incidents of a version, that of what got worse keeps its number; the number of the other one is never given
again.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

TEXT = sa.Text(collation="C").with_variant(sa.Text(), "sqlite")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
LINE: Final = ("workload_id", "configuration_id", "device_id", "version_id")
SAME: Final = " AND ".join(f"{{0}}.{name} = {{1}}.{name}" for name in LINE)
BEFORE: Final = ("uq_incident_line_direction", (*LINE, "direction"))
AFTER: Final = ("uq_incident_line_version", LINE)


def upgrade() -> None:
    of_worse = f"SELECT o.id FROM incident AS o WHERE o.direction = 'regression' AND {SAME.format('o', 'i')}"  # noqa: S608
    op.execute(
        f"UPDATE finding SET incident_id = COALESCE((SELECT ({of_worse}) FROM incident AS i "  # noqa: S608 names of above
        "WHERE i.id = finding.incident_id), incident_id) WHERE incident_id IS NOT NULL"
    )
    op.execute(
        "DELETE FROM incident WHERE direction = 'improvement' AND EXISTS (SELECT 1 FROM incident AS o "  # noqa: S608
        f"WHERE o.direction = 'regression' AND {SAME.format('o', 'incident')})"
    )
    if op.get_bind().dialect.name == "sqlite":
        make_again(AFTER, "")
        return
    op.drop_constraint(BEFORE[0], "incident", type_="unique")
    op.drop_column("incident", "direction")
    op.create_unique_constraint(AFTER[0], "incident", list(AFTER[1]))


def downgrade() -> None:
    worse = "EXISTS (SELECT 1 FROM finding AS f WHERE f.incident_id = incident.id AND f.direction = 'regression')"
    better = "EXISTS (SELECT 1 FROM finding AS f WHERE f.incident_id = incident.id AND f.direction = 'improvement')"
    direction = f"CASE WHEN {better} AND NOT {worse} THEN 'improvement' ELSE 'regression' END"
    if op.get_bind().dialect.name == "sqlite":
        make_again(BEFORE, direction)
    else:
        op.add_column("incident", sa.Column("direction", TEXT, nullable=True))
        op.execute(f"UPDATE incident SET direction = {direction}")  # noqa: S608 an expression of above
        op.alter_column("incident", "direction", nullable=False)
        op.drop_constraint(AFTER[0], "incident", type_="unique")
        op.create_unique_constraint(BEFORE[0], "incident", list(BEFORE[1]))
    names = ", ".join(LINE)
    op.execute(
        f"INSERT INTO incident ({names}, direction) SELECT {names}, 'improvement' FROM incident "  # noqa: S608
        f"WHERE direction = 'regression' AND {better}"
    )
    op.execute(
        "UPDATE finding SET incident_id = (SELECT o.id FROM incident AS i INNER JOIN incident AS o "  # noqa: S608
        f"ON {SAME.format('o', 'i')} AND o.direction = 'improvement' WHERE i.id = finding.incident_id) "
        "WHERE direction = 'improvement' AND incident_id IS NOT NULL"
    )


def make_again(unique: tuple[str, tuple[str, ...]], direction: str) -> None:
    """The table anew, with its rows and the number that it gives next: SQLite drops no column of a constraint.
    `direction`: what becomes of the column; empty: there is none any more.
    """
    last = op.get_bind().execute(sa.text("SELECT seq FROM sqlite_sequence WHERE name = 'incident'")).scalar()
    op.rename_table("incident", "incident_before")
    op.create_table(
        "incident",
        sa.Column("id", ID, nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in LINE),
        *([sa.Column("direction", TEXT, nullable=False)] if direction else []),
        sa.PrimaryKeyConstraint("id", name="pk_incident"),
        sa.UniqueConstraint(*unique[1], name=unique[0]),
        sqlite_autoincrement=True,
    )
    names = ", ".join(("id", *LINE))
    added, value = (", direction", f", {direction}") if direction else ("", "")
    op.execute(
        f"INSERT INTO incident ({names}{added}) SELECT {names}{value} FROM incident_before AS incident"  # noqa: S608
    )
    op.drop_table("incident_before")
    if last:
        op.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = 'incident'"))
        op.execute(sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES ('incident', :last)").bindparams(last=last))
