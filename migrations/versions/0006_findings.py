"""Findings with their life, what users did to them, and the incidents that they form."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

TEXT = sa.Text(collation="C").with_variant(sa.Text(), "sqlite")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
LINE = ("workload_id", "configuration_id", "device_id")
KEY = ("series_id", "direction", "change", "first_run_id")


def row_id() -> sa.Column[Any]:
    return sa.Column("id", ID, nullable=False)


def key(name: str, *, primary: bool = False) -> sa.Column[Any]:
    extra = {"autoincrement": False} if primary else {}
    return sa.Column(name, sa.BigInteger(), nullable=False, **extra)


def numbers(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger(), nullable=True) for name in names]


def reals(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Double(), nullable=True) for name in names]


def flags(*names: str, nullable: bool = True) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Boolean(), nullable=nullable) for name in names]


def texts(*names: str, nullable: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, TEXT, nullable=nullable) for name in names]


def counts(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Integer(), nullable=False) for name in names]


def create_finding() -> None:
    op.create_table(
        "finding",
        row_id(),
        *(key(name) for name in LINE),
        key("series_id"),
        *texts("direction", "change"),
        key("first_run_id"),
        key("first_version_id"),
        *numbers("good_version_id", "incident_id"),
        *texts("state"),
        *counts("number", "reopened", "rule_version"),
        *reals("effect"),
        key("last_run_id"),
        *reals("ratio", "low", "high", "p", "q", "contribution", "detectable"),
        *flags("effect_passes", "q_passes", "contribution_passes"),
        *texts("verdict", "reason", nullable=True),
        *reals("baseline_value", "candidate_value", "baseline_calls", "candidate_calls"),
        *texts("baseline_runs", "candidate_runs"),
        *numbers("until_ns"),
        *texts("until_version", nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_finding"),
        sa.UniqueConstraint(*KEY, name=f"uq_finding_{'_'.join(KEY)}"),
    )
    op.create_index(f"ix_finding_{'_'.join(LINE)}_state", "finding", [*LINE, "state"])


def create_events() -> None:
    op.create_table(
        "finding_event",
        key("finding_id", primary=True),
        key("position", primary=True),
        *texts("source", "target", "kind", "who"),
        key("when_ns"),
        *numbers("run_id"),
        *counts("rule_version"),
        *texts("reason"),
        *flags("notifies", nullable=False),
        sa.PrimaryKeyConstraint("finding_id", "position", name="pk_finding_event"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "finding_action",
        row_id(),
        *(key(name) for name in LINE),
        key("series_id"),
        *texts("direction", "change"),
        key("first_run_id"),
        *numbers("after_run_id"),
        *texts("action", "who", "reason"),
        key("when_ns"),
        *numbers("until_ns"),
        *texts("until_version", nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_finding_action"),
    )
    op.create_index(f"ix_finding_action_{'_'.join(LINE)}", "finding_action", list(LINE))


def create_incident() -> None:
    unique = (*LINE, "version_id", "direction")
    op.create_table(
        "incident",
        row_id(),
        *(key(name) for name in (*LINE, "version_id")),
        *texts("direction"),
        sa.PrimaryKeyConstraint("id", name="pk_incident"),
        sa.UniqueConstraint(*unique, name="uq_incident_line_direction"),
    )
    op.create_table(
        "followed",
        *(key(name, primary=True) for name in LINE),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint(*LINE, name="pk_followed"),
        sqlite_with_rowid=False,
    )


def upgrade() -> None:
    create_finding()
    create_events()
    create_incident()


def downgrade() -> None:
    for table in ("followed", "incident", "finding_action", "finding_event", "finding"):
        op.drop_table(table)
