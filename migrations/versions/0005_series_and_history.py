"""Series, one sample per run and series, and how each version differs from the ones before."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TEXT = sa.Text(collation="C").with_variant(sa.Text(), "sqlite")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def key(name: str, *, primary: bool = True) -> sa.Column[Any]:
    extra = {"autoincrement": False} if primary else {}
    return sa.Column(name, sa.BigInteger(), nullable=False, **extra)


def texts(*names: str, nullable: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, TEXT, nullable=nullable) for name in names]


def column(name: str, kind: Any, *, nullable: bool = True) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=nullable)


def create_series() -> None:
    labels = ("workload", "configuration", "device")
    op.create_table(
        "series",
        sa.Column("id", ID, nullable=False),
        column("digest", sa.LargeBinary(), nullable=False),
        *(key(f"{label}_id", primary=False) for label in labels),
        *texts("kind", "metric", "name", "input_shapes", "part"),
        *(
            sa.ForeignKeyConstraint([f"{label}_id"], [f"{label}.id"], name=f"fk_series_{label}_id_{label}")
            for label in labels
        ),
        sa.PrimaryKeyConstraint("id", name="pk_series"),
        sa.UniqueConstraint("digest", name="uq_series_digest"),
    )
    op.create_index(
        "ix_series_workload_id_configuration_id_device_id_kind",
        "series",
        ["workload_id", "configuration_id", "device_id", "kind"],
    )


def create_sample() -> None:
    op.create_table(
        "sample",
        key("run_id"),
        key("series_id"),
        column("value", sa.Double(), nullable=False),
        column("mean", sa.Double(), nullable=False),
        *(column(name, sa.REAL()) for name in ("sd", "min", "p10", "p90", "max", "calls", "share", "rank_spread")),
        column("steps", sa.Integer(), nullable=False),
        column("intermittent", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "series_id", name="pk_sample"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_sample_series_id_run_id", "sample", ["series_id", "run_id"])


def create_judged() -> None:
    labels = ("workload_id", "configuration_id", "device_id", "version_id")
    op.create_table(
        "judged",
        *(key(label) for label in labels),
        column("fingerprint", sa.LargeBinary(), nullable=False),
        key("rule_version", primary=False),
        column("previous_version_id", sa.BigInteger()),
        column("pinned_version_id", sa.BigInteger()),
        column("centre", sa.Double()),
        sa.PrimaryKeyConstraint(*labels, name="pk_judged"),
        sqlite_with_rowid=False,
    )


def create_diff_history() -> None:
    op.create_table(
        "diff_history",
        key("version_id"),
        key("series_id"),
        column("value", sa.Double()),
        column("calls", sa.REAL()),
        column("runs", sa.Integer(), nullable=False),
        column("rule_version", sa.Integer(), nullable=False),
        *(column(f"previous_{name}", sa.Double()) for name in ("diff", "p", "q")),
        column("previous_contribution", sa.REAL()),
        *texts("previous_verdict", "calls_verdict", nullable=True),
        *(column(f"pinned_{name}", sa.Double()) for name in ("diff", "p", "q")),
        column("pinned_contribution", sa.REAL()),
        *texts("pinned_verdict", nullable=True),
        column("best_version_id", sa.BigInteger()),
        *(column(f"best_{name}", sa.Double()) for name in ("diff", "p", "q")),
        *texts("best_verdict", nullable=True),
        sa.PrimaryKeyConstraint("version_id", "series_id", name="pk_diff_history"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_diff_history_series_id_version_id", "diff_history", ["series_id", "version_id"])


def upgrade() -> None:
    op.add_column("run", sa.Column("sample_rules", sa.BigInteger(), nullable=True))
    create_series()
    create_sample()
    create_judged()
    create_diff_history()


def downgrade() -> None:
    for table in ("diff_history", "judged", "sample", "series"):
        op.drop_table(table)
    op.drop_column("run", "sample_rules")
