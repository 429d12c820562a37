"""Every text of a detail row stored once: the tables keep numbers of detail_text, which op_text becomes.

And 8 bytes for the digests of series, of which a capture has thousands. The room that this frees in a SQLite file is
used by the next runs; `tracker prune --compact` gives it back. Taken back, op_text keeps the texts of details as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

TEXT = sa.Text(collation="C").with_variant(sa.Text(), "sqlite")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXTS: Final[Mapping[str, Sequence[str]]] = {
    "kernel": ("category",),
    "kernel_metric": ("metric",),
    "communication": ("kind", "data_type"),
    "communication_task": ("name", "plane"),
    "communication_link": ("transport",),
    "memory": ("component",),
    "memory_curve": ("component",),
    "counter": ("source", "name", "attribute"),
    "api": ("level", "name"),
}
SERIES: Final = (
    "workload_id", "configuration_id", "device_id", "kind", "metric", "name", "input_shapes", "part",
)  # fmt: skip
PARTITION_RUNS = 1000
PARTITIONS = (
    "SELECT CAST(SUBSTRING(c.relname FROM '_p([0-9]+)$') AS BIGINT) FROM pg_inherits AS i "
    "INNER JOIN pg_class AS c ON i.inhrelid = c.oid WHERE i.inhparent = CAST('{table}' AS regclass) ORDER BY 1"
)
FOR_NOW = "ix_detail_text_for_now"
AT_ONCE = 1000


def upgrade() -> None:
    take_over("op_text", "detail_text")
    add_texts()
    if is_sqlite():
        op.create_index(FOR_NOW, "detail_text", ["text"])
    for table, names in TEXTS.items():
        make_again(table, {name: f"{name}_id" for name in names}, sa.BigInteger(), found="id", by="text")
    if is_sqlite():
        op.drop_index(FOR_NOW, "detail_text")
    write_digests(8)
    count_again("detail_text")


def downgrade() -> None:
    for table, names in TEXTS.items():
        make_again(table, {f"{name}_id": name for name in names}, TEXT, found="text", by="id")
    take_over("detail_text", "op_text")
    write_digests(16)
    count_again("op_text")


def count_again(texts: str) -> None:
    """Postgres plans by what it knows of tables, and looks at new ones by itself only after a while."""
    if not is_sqlite():
        op.execute(f"ANALYZE {', '.join((texts, *TEXTS))}")


def is_sqlite() -> bool:
    return bool(op.get_bind().dialect.name == "sqlite")


def rows(question: str) -> list[Any]:
    return list(op.get_bind().exec_driver_sql(question).all())


def take_over(old: str, new: str) -> None:
    """All texts with their numbers in a table of another name: SQLite cannot give a constraint one."""
    op.create_table(
        new,
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("text", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=f"pk_{new}"),
        sa.UniqueConstraint("digest", name=f"uq_{new}_digest"),
    )
    op.execute(f"INSERT INTO {new} (id, digest, text) SELECT id, digest, text FROM {old} ORDER BY id")  # noqa: S608
    if not is_sqlite():
        given = f"SELECT last_value, is_called FROM {old}_id_seq"  # noqa: S608
        op.execute(f"SELECT SETVAL('{new}_id_seq', g.last_value, g.is_called) FROM ({given}) AS g")  # noqa: S608
    op.drop_table(old)


def add_texts() -> None:
    """The texts of details that are no texts of ops, the short ones first."""
    every = " UNION ".join(f"SELECT {name} FROM {table}" for table, names in TEXTS.items() for name in names)  # noqa: S608
    new = [text for (text,) in rows(f"{every} EXCEPT SELECT text FROM detail_text")]  # noqa: S608
    table = sa.table("detail_text", sa.column("digest", sa.LargeBinary()), sa.column("text", TEXT))
    new.sort(key=lambda text: (len(text), text))
    for start in range(0, len(new), AT_ONCE):
        values = [{"digest": digest_of(8, text), "text": text} for text in new[start : start + AT_ONCE]]
        op.get_bind().execute(sa.insert(table), values)


def make_again(table: str, names: Mapping[str, str], kind: Any, *, found: str, by: str) -> None:
    """The table with other columns of `kind` (old name -> new) in place of some, and with all its rows, in order.

    What stood in such a column is looked up in detail_text: what is `found` there `by` it. Where nothing is, the
    database refuses the row, and nothing is changed. The rows wait in a table of their own until theirs is there.
    """
    described = sa.inspect(op.get_bind())
    columns = described.get_columns(table)
    primary = [names.get(name, name) for name in described.get_pk_constraint(table)["constrained_columns"]]
    partitions = [] if is_sqlite() else [first for (first,) in rows(PARTITIONS.format(table=table))]
    tables = {name: f"t{place}" for place, name in enumerate(names)}
    values = [
        f"{tables[name]}.{found} AS {names[name]}" if name in names else f"d.{name}"
        for name in (column["name"] for column in columns)
    ]
    joins = " ".join(f"LEFT JOIN detail_text AS {own} ON {own}.{by} = d.{name}" for name, own in tables.items())
    op.execute(f"CREATE TABLE {table}_coded AS SELECT {', '.join(values)} FROM {table} AS d {joins}")  # noqa: S608
    op.drop_table(table)
    op.create_table(
        table,
        *(changed(column, names, kind) for column in columns),
        sa.PrimaryKeyConstraint(*primary, name=f"pk_{table}"),
        sqlite_with_rowid=False,
        postgresql_partition_by="RANGE (run_id)",
    )
    for first in partitions:
        last = first + PARTITION_RUNS
        op.execute(f"CREATE TABLE {table}_p{first} PARTITION OF {table} FOR VALUES FROM ({first}) TO ({last})")
    op.execute(f"INSERT INTO {table} SELECT * FROM {table}_coded ORDER BY {', '.join(primary)}")  # noqa: S608
    op.drop_table(f"{table}_coded")


def changed(column: Any, names: Mapping[str, str], kind: Any) -> sa.Column[Any]:
    """A column as it is described, or as one of `kind` by its new name."""
    name = column["name"]
    return sa.Column(
        names.get(name, name),
        kind if name in names else column["type"],
        nullable=column["nullable"],
        autoincrement=False,
    )


def write_digests(size: int) -> None:
    """The digests of all series, `size` bytes each."""
    change = sa.text("UPDATE series SET digest = :digest WHERE id = :id")
    for batch in batches():
        op.get_bind().execute(
            change, [{"id": number, "digest": digest_of(size, *map(str, parts))} for number, *parts in batch]
        )


def batches() -> Iterator[list[Any]]:
    """The series, some at a time."""
    question = sa.text(
        f"SELECT id, {', '.join(SERIES)} FROM series WHERE id > :last ORDER BY id LIMIT {AT_ONCE}"  # noqa: S608
    )
    last = -1
    while batch := op.get_bind().execute(question, {"last": last}).all():
        yield list(batch)
        last = batch[-1][0]


def digest_of(size: int, *parts: str) -> bytes:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=size).digest()
