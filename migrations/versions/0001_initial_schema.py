"""Initial schema: labels, runs, captures, dimensions and the detail tables."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TEXT = sa.Text(collation="C").with_variant(sa.Text(), "sqlite")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
DETAIL_TABLES = (
    "api",
    "communication",
    "communication_task",
    "kernel",
    "memory",
    "memory_curve",
    "op",
    "op_tree",
    "step",
)
FIRST_PARTITION_RUNS = 1000


def row_id() -> sa.Column[Any]:
    return sa.Column("id", ID, primary_key=True)


def key(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False)


def text_key(name: str) -> sa.Column[Any]:
    return sa.Column(name, TEXT, nullable=False)


def digest(name: str = "digest") -> sa.Column[Any]:
    return sa.Column(name, sa.LargeBinary(), nullable=False)


def values(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger(), nullable=True) for name in names]


def real(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Double(), nullable=True)


def text_value(name: str) -> sa.Column[Any]:
    return sa.Column(name, TEXT, nullable=True)


def primary_key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=f"pk_{table}")


def unique(table: str, *columns: str) -> sa.UniqueConstraint:
    return sa.UniqueConstraint(*columns, name=f"uq_{table}_{'_'.join(columns)}")


def reference(table: str, column: str, to: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{to}.id"], name=f"fk_{table}_{column}_{to}")


def breakdown() -> list[sa.Column[Any]]:
    return [
        text_key("timeline"),
        *values(
            "duration_ns",
            "e2e_ns",
            "compute_ns",
            "communication_ns",
            "overlap_ns",
            "exposed_communication_ns",
            "copy_ns",
            "exposed_copy_ns",
            "free_ns",
            "kernel_count",
            "kernel_total_ns",
            "compute_total_ns",
            "communication_total_ns",
            "copy_total_ns",
            "unlinked_kernel_count",
            "unlinked_kernel_total_ns",
            "peak_allocated_bytes",
            "peak_reserved_bytes",
            "data_loading_ns",
            "bubble_ns",
            "preparing_ns",
        ),
        real("samples_per_second"),
    ]


def upgrade() -> None:
    create_labels()
    create_runs()
    create_dimensions()
    create_operator_details()
    create_other_details()
    if op.get_bind().dialect.name == "postgresql":
        for table in DETAIL_TABLES:
            op.execute(f"CREATE TABLE {table}_p0 PARTITION OF {table} FOR VALUES FROM (0) TO ({FIRST_PARTITION_RUNS})")


def downgrade() -> None:
    for table in DETAIL_TABLES:
        op.drop_table(table)
    for table in ("call_stack", "process_group", "kernel_key", "op_key"):
        op.drop_table(table)
    for table in ("capture", "source", "run_fact", "run", "device", "version"):
        op.drop_table(table)
    for table in ("configuration_value", "configuration", "workload"):
        op.drop_table(table)


def create_labels() -> None:
    op.create_table(
        "workload",
        row_id(),
        text_key("name"),
        primary_key("workload", "id"),
        unique("workload", "name"),
    )
    op.create_table(
        "configuration",
        row_id(),
        key("workload_id"),
        digest("fingerprint"),
        text_key("title"),
        primary_key("configuration", "id"),
        unique("configuration", "workload_id", "fingerprint"),
        reference("configuration", "workload_id", "workload"),
    )
    op.create_table(
        "configuration_value",
        key("configuration_id"),
        text_key("key"),
        text_key("value"),
        primary_key("configuration_value", "configuration_id", "key"),
        reference("configuration_value", "configuration_id", "configuration"),
    )
    op.create_table(
        "version",
        row_id(),
        key("workload_id"),
        text_key("label"),
        key("ordinal"),
        text_value("commit_id"),
        text_value("parent"),
        text_value("note"),
        sa.Column("pinned", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        primary_key("version", "id"),
        unique("version", "workload_id", "label"),
        reference("version", "workload_id", "workload"),
    )
    op.create_table(
        "device",
        row_id(),
        text_key("vendor"),
        text_key("model"),
        primary_key("device", "id"),
        unique("device", "vendor", "model"),
    )


def create_runs() -> None:
    op.create_table(
        "run",
        row_id(),
        key("workload_id"),
        key("configuration_id"),
        key("version_id"),
        key("device_id"),
        text_key("state"),
        text_key("state_reason"),
        *values("ranks_expected", "world_size", "started_at_ns", "ended_at_ns", "rules_version"),
        text_value("note"),
        primary_key("run", "id"),
        sa.CheckConstraint("state IN ('active', 'excluded', 'deleted')", name=op.f("ck_run_state")),
        reference("run", "workload_id", "workload"),
        reference("run", "configuration_id", "configuration"),
        reference("run", "version_id", "version"),
        reference("run", "device_id", "device"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_run_version_id", "run", ["version_id"])
    op.create_index("ix_run_workload_id_state", "run", ["workload_id", "state"])
    op.create_table(
        "run_fact",
        key("run_id"),
        text_key("kind"),
        text_key("key"),
        text_key("value"),
        primary_key("run_fact", "run_id", "kind", "key"),
        reference("run_fact", "run_id", "run"),
    )
    op.create_index("ix_run_fact_kind_key", "run_fact", ["kind", "key"])
    op.create_table(
        "source",
        row_id(),
        key("run_id"),
        key("rank"),
        text_key("format"),
        text_key("path"),
        *values("bytes"),
        digest(),
        primary_key("source", "id"),
        unique("source", "digest"),
        reference("source", "run_id", "run"),
    )
    op.create_index("ix_source_run_id_rank", "source", ["run_id", "rank"])
    op.create_table(
        "capture",
        key("run_id"),
        key("rank"),
        text_key("host"),
        *values("device_ordinal", "stage", "dp_index", "tp_index", "pp_index", "ep_index", "cp_index"),
        text_key("settings"),
        text_key("quality"),
        text_key("quality_reason"),
        *values("started_at_ns", "ended_at_ns"),
        *breakdown(),
        primary_key("capture", "run_id", "rank"),
        reference("capture", "run_id", "run"),
    )


def create_dimensions() -> None:
    dimensions: dict[str, list[sa.Column[Any]]] = {
        "op_key": [text_key(name) for name in ("name", "input_shapes", "input_types", "module", "phase")],
        "kernel_key": [
            text_key(name)
            for name in (
                "name",
                "canonical_name",
                "type",
                "core_type",
                "input_shapes",
                "input_types",
                "input_formats",
            )
        ],
        "process_group": [text_key("role"), key("size")],
        "call_stack": [text_key("text")],
    }
    for table, columns in dimensions.items():
        op.create_table(table, row_id(), digest(), *columns, primary_key(table, "id"), unique(table, "digest"))


def create_detail(table: str, primary: tuple[str, ...], *columns: sa.Column[Any]) -> None:
    op.create_table(
        table,
        key("run_id"),
        key("rank"),
        *columns,
        primary_key(table, "run_id", "rank", *primary),
        sqlite_with_rowid=False,
        postgresql_partition_by="RANGE (run_id)",
    )


def create_operator_details() -> None:
    create_detail("step", ("step",), key("step"), key("start_ns"), *breakdown())
    create_detail(
        "op",
        ("step", "op_key_id"),
        key("step"),
        key("op_key_id"),
        *values("calls", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns", "min_ns", "max_ns"),
        real("sum_squares_ns2"),
        *values("kernel_count", "call_stack_id"),
    )
    create_detail(
        "op_tree",
        ("step", "node"),
        key("step"),
        key("node"),
        key("parent"),
        key("op_key_id"),
        *values("calls", "host_total_ns", "device_total_ns", "device_self_ns", "kernel_count"),
    )
    create_detail(
        "kernel",
        ("step", "kernel_key_id", "op_key_id", "category"),
        key("step"),
        key("kernel_key_id"),
        key("op_key_id"),
        text_key("category"),
        *values("calls", "total_ns", "min_ns", "max_ns"),
        real("sum_squares_ns2"),
        *values("wait_ns", "bytes"),
    )


def create_other_details() -> None:
    create_detail(
        "communication",
        ("ordinal",),
        key("ordinal"),
        key("step"),
        text_key("kind"),
        key("process_group_id"),
        text_key("data_type"),
        key("size_class_bytes"),
        *values("calls", "bytes", "total_ns", "min_ns", "max_ns"),
        real("sum_squares_ns2"),
        *values("transit_ns", "wait_ns", "synchronization_ns", "idle_ns", "exposed_ns"),
    )
    create_detail(
        "communication_task",
        ("ordinal",),
        key("ordinal"),
        key("communication"),
        text_key("name"),
        text_key("plane"),
        *values("calls", "total_ns", "min_ns", "max_ns"),
    )
    create_detail(
        "memory",
        ("step", "op_key_id", "component"),
        key("step"),
        key("op_key_id"),
        text_key("component"),
        *values("calls", "bytes", "held_ns", "unreleased_bytes"),
    )
    create_detail(
        "memory_curve",
        ("ordinal",),
        key("ordinal"),
        text_key("component"),
        key("time_ns"),
        *values("allocated_bytes", "reserved_bytes"),
    )
    create_detail(
        "api",
        ("ordinal",),
        key("ordinal"),
        key("step"),
        text_key("level"),
        text_key("name"),
        *values("calls", "total_ns", "self_ns", "min_ns", "max_ns"),
    )
