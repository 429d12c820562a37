"""The samples of a run as one row beside their own: who judges asks for all numbers of many runs."""

from __future__ import annotations

import zlib
from array import array
from itertools import chain, pairwise
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAN = float("nan")


def upgrade() -> None:
    op.create_table(
        "sample_array",
        sa.Column("run_id", ID, autoincrement=False, nullable=False),
        sa.Column("numbers", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_sample_array"),
    )
    fill(op.get_bind())


def fill(connection: sa.Connection) -> None:
    """The arrays of all runs that have samples, one run at a time."""
    samples = sa.text("SELECT series_id, value, calls FROM sample WHERE run_id = :run_id ORDER BY series_id")
    insert = sa.text("INSERT INTO sample_array (run_id, numbers) VALUES (:run_id, :numbers)")
    for run_id in connection.execute(sa.text("SELECT id FROM run ORDER BY id")).scalars().all():
        rows = connection.execute(samples, {"run_id": run_id}).all()
        if rows:
            connection.execute(insert, {"run_id": run_id, "numbers": packed(rows)})


def packed(rows: Any) -> bytes:
    """See `sample_array.numbers` in the list of columns; this is how it was when the table came."""
    series_ids, values, calls = zip(*rows, strict=True)
    steps = array("q", (after - before for before, after in pairwise(chain([0], series_ids))))
    numbers = array("d", chain(values, (NAN if count is None else count for count in calls)))
    if array("h", [1]).tobytes() != b"\x01\x00":
        steps.byteswap()
        numbers.byteswap()
    return zlib.compress(steps.tobytes() + numbers.tobytes())


def downgrade() -> None:
    op.drop_table("sample_array")
