"""The calling contexts of a rank as one packed row of op_tree, which takes a tenth of the room of thousands of rows.

The room that this frees in a SQLite file is used by the next runs; `tracker prune --compact` gives it back.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import sqlalchemy as sa
from alembic import op
from numpy.typing import NDArray

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

PARTITION_RUNS = 1000
PARTITIONS = (
    "SELECT CAST(SUBSTRING(c.relname FROM '_p([0-9]+)$') AS BIGINT) FROM pg_inherits AS i "
    "INNER JOIN pg_class AS c ON i.inhrelid = c.oid WHERE i.inhparent = CAST('op_tree' AS regclass) ORDER BY 1"
)
CONTEXT = ("node", "parent", "op_key_id")
NUMBERS = ("calls", "host_total_ns", "device_total_ns", "device_self_ns", "kernel_count")
COLUMNS = (*CONTEXT, "step", *NUMBERS)
MISSING = -(2**63)
AT_ONCE = 10_000
ROWS = sa.text(
    f"SELECT {', '.join(COLUMNS)} FROM op_tree WHERE run_id = :run_id AND rank = :rank ORDER BY "  # noqa: S608
    "node, parent, op_key_id, step"
)


def upgrade() -> None:
    """The packed rows wait in a table of their own, which is small, until theirs has made room."""
    op.create_table("op_tree_packed", key("run_id"), key("rank"), contexts())
    connection = op.get_bind()
    insert = sa.text("INSERT INTO op_tree_packed (run_id, rank, contexts) VALUES (:run_id, :rank, :contexts)")
    for run_id, rank in connection.execute(sa.text("SELECT run_id, rank FROM capture ORDER BY run_id, rank")).all():
        place = {"run_id": run_id, "rank": rank}
        rows = [tuple(row) for row in connection.execute(ROWS, place)]
        if rows:
            connection.execute(insert, {**place, "contexts": packed(rows)})
    make_again(contexts(), primary=())
    op.execute("INSERT INTO op_tree SELECT run_id, rank, contexts FROM op_tree_packed ORDER BY run_id, rank")
    op.drop_table("op_tree_packed")


def downgrade() -> None:
    op.execute("CREATE TABLE op_tree_packed AS SELECT run_id, rank, contexts FROM op_tree")
    values = (sa.Column(name, sa.BigInteger(), nullable=True) for name in NUMBERS)
    make_again(*map(key, ("step", *CONTEXT)), *values, primary=("step", "node"))
    table = sa.table("op_tree", *map(sa.column, ("run_id", "rank", *COLUMNS)))
    connection = op.get_bind()
    places = connection.execute(sa.text("SELECT run_id, rank FROM op_tree_packed ORDER BY run_id, rank")).all()
    question = sa.text("SELECT contexts FROM op_tree_packed WHERE run_id = :run_id AND rank = :rank")
    for run_id, rank in places:
        content = connection.execute(question, {"run_id": run_id, "rank": rank}).scalar_one()
        for rows in unpacked(bytes(content)):
            connection.execute(sa.insert(table), [{"run_id": run_id, "rank": rank, **row} for row in rows])
    op.drop_table("op_tree_packed")


def packed(rows: list[tuple[Any, ...]]) -> bytes:
    """See `op_tree.contexts` in the list of columns; this is how it was when the table became what it is."""
    lines = np.array([[MISSING if value is None else value for value in row] for row in rows], dtype=np.int64).T
    starts = np.flatnonzero(np.diff(lines[:3], prepend=lines[:3, :1] - 1).any(axis=0))
    contexts = np.vstack([lines[:3, starts], np.diff(starts, append=len(rows))])
    return zlib.compress(struct.pack("<q", len(starts)) + as_bytes(contexts) + as_bytes(lines[3:]))


def as_bytes(lines: NDArray[np.int64]) -> bytes:
    differences = np.diff(lines, prepend=0)
    codes = ((differences << 1) ^ (differences >> 63)).astype("<i8", order="C")
    return codes.view(np.uint8).reshape(*lines.shape, 8).transpose(0, 2, 1).tobytes()


def unpacked(content: bytes) -> Iterator[list[dict[str, int | None]]]:
    """The rows, some at a time."""
    plain = zlib.decompress(content)
    (count,) = struct.unpack_from("<q", plain)
    *contexts, often = as_lines(plain[8 : 8 + 8 * 4 * count], 4)
    lines = [*(np.repeat(line, often) for line in contexts), *as_lines(plain[8 + 8 * 4 * count :], 6)]
    for start in range(0, len(lines[0]), AT_ONCE):
        rows = zip(*(line[start : start + AT_ONCE].tolist() for line in lines), strict=True)
        yield [
            {name: None if value == MISSING else value for name, value in zip(COLUMNS, row, strict=True)}
            for row in rows
        ]


def as_lines(content: bytes, lines: int) -> NDArray[np.int64]:
    by_byte = np.frombuffer(content, dtype=np.uint8).reshape(lines, 8, -1)
    codes = np.ascontiguousarray(by_byte.transpose(0, 2, 1)).view("<u8")[..., 0]
    differences = (codes >> np.uint64(1)).astype(np.int64) ^ -(codes & np.uint64(1)).astype(np.int64)
    return np.cumsum(differences, axis=1)


def make_again(*columns: sa.Column[Any], primary: tuple[str, ...]) -> None:
    """op_tree without rows, with these columns, and partitions for the same runs."""
    is_parted = op.get_bind().dialect.name == "postgresql"
    partitions = op.get_bind().exec_driver_sql(PARTITIONS).scalars().all() if is_parted else ()
    op.drop_table("op_tree")
    op.create_table(
        "op_tree",
        key("run_id"),
        key("rank"),
        *columns,
        sa.PrimaryKeyConstraint("run_id", "rank", *primary, name="pk_op_tree"),
        sqlite_with_rowid=False,
        postgresql_partition_by="RANGE (run_id)",
    )
    for first in partitions:
        last = first + PARTITION_RUNS
        op.execute(f"CREATE TABLE op_tree_p{first} PARTITION OF op_tree FOR VALUES FROM ({first}) TO ({last})")


def key(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False)


def contexts() -> sa.Column[Any]:
    return sa.Column("contexts", sa.LargeBinary(), nullable=False)
