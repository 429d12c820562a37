"""Texts of ops and frames of call stacks stored once: op_key and call_stack keep numbers of op_text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

TEXT = sa.Text(collation="C").with_variant(sa.Text(), "sqlite")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
PARTS = ("name", "input_shapes", "input_types", "module", "phase")
AT_ONCE = 1000


def upgrade() -> None:
    put_aside("op_key")
    put_aside("call_stack")
    op.create_table("op_text", row_id(), digest(), text("text"), *keys_of("op_text", "digest"))
    numbers = [f"{name}_id" for name in PARTS]
    unique = sa.UniqueConstraint(*numbers, name="uq_op_key_texts")
    op.create_table("op_key", row_id(), *map(number, numbers), sa.PrimaryKeyConstraint("id", name="pk_op_key"), unique)
    op.create_table(
        "call_stack", row_id(), number("parent_id"), number("frame_id"), *keys_of("call_stack", "parent_id", "frame_id")
    )
    keys = {own: parts for own, *parts in rows(f"SELECT id, {', '.join(PARTS)} FROM op_key_before")}  # noqa: S608
    stacks = {own: stack.split(";")[::-1] for own, stack in rows("SELECT id, text FROM call_stack_before")}
    texts = {part for parts in (*keys.values(), *stacks.values()) for part in parts}
    insert(
        "op_text",
        ({"digest": digest_of(one, size=8), "text": one} for one in sorted(texts, key=lambda one: (len(one), one))),
    )
    known = {one: own for own, one in rows("SELECT id, text FROM op_text")}
    for own, parts in sorted(keys.items()):
        keys[own] = [known[part] for part in parts]
    insert("op_key", ({"id": own, **dict(zip(numbers, parts, strict=True))} for own, parts in sorted(keys.items())))
    number_on("op_key")
    share_stacks({own: [known[frame] for frame in frames] for own, frames in stacks.items()})
    op.drop_table("op_key_before")
    op.drop_table("call_stack_before")


def share_stacks(stacks: Mapping[int, Sequence[int]]) -> None:
    """`stacks`: number -> frames, the outermost first. Those of ops get the numbers of what they are now."""
    known: dict[tuple[int, int], int] = {}
    heads = {}
    for own, frames in sorted(stacks.items()):
        head = 0
        for frame in frames:
            head = known.setdefault((head, frame), len(known) + 1)
        heads[own] = head
    insert("call_stack", ({"id": own, "parent_id": p, "frame_id": f} for (p, f), own in known.items()))
    go_on("call_stack", len(known) + 1)
    # below zero until all are done: an old number may be a new one as well
    renumber((own, -head) for own, head in heads.items())
    op.execute("UPDATE op SET call_stack_id = -call_stack_id WHERE call_stack_id < 0")


def renumber(pairs: Iterable[tuple[int, int]]) -> None:
    change = sa.text("UPDATE op SET call_stack_id = :now WHERE call_stack_id = :before")
    op.create_index("ix_op_call_stack_id_for_now", "op", ["call_stack_id"])
    for before, now in pairs:
        op.get_bind().execute(change, {"before": before, "now": now})
    op.drop_index("ix_op_call_stack_id_for_now", "op")


def downgrade() -> None:
    put_aside("op_key")
    put_aside("call_stack")
    op.create_table("op_key", row_id(), digest(), *map(text, PARTS), *keys_of("op_key", "digest"))
    op.create_table("call_stack", row_id(), digest(), text("text"), *keys_of("call_stack", "digest"))
    known = dict(rows("SELECT id, text FROM op_text"))
    names = ", ".join(f"{name}_id" for name in PARTS)
    keys = {own: [known[part] for part in parts] for own, *parts in rows(f"SELECT id, {names} FROM op_key_before")}  # noqa: S608
    insert(
        "op_key",
        (
            {"id": own, "digest": digest_of(*parts), **dict(zip(PARTS, parts, strict=True))}
            for own, parts in sorted(keys.items())
        ),
    )
    number_on("op_key")
    stacks: dict[int, str] = {}
    for own, parent, frame in rows("SELECT id, parent_id, frame_id FROM call_stack_before ORDER BY id"):
        stacks[own] = f"{known[frame]};{stacks[parent]}" if parent else known[frame]
    used = {own for (own,) in rows("SELECT DISTINCT call_stack_id FROM op WHERE call_stack_id IS NOT NULL")}
    insert(
        "call_stack",
        ({"id": own, "digest": digest_of(stacks[own]), "text": stacks[own]} for own in sorted(used)),
    )
    number_on("call_stack")
    for table in ("op_key_before", "call_stack_before", "op_text"):
        op.drop_table(table)


def rows(question: str) -> list[Any]:
    return list(op.get_bind().exec_driver_sql(question).all())


def insert(table: str, values: Iterable[Mapping[str, Any]]) -> None:
    remaining = iter(values)
    while batch := list(islice(remaining, AT_ONCE)):
        columns = [sa.column(name) for name in batch[0]]
        op.get_bind().execute(sa.insert(sa.table(table, *columns)), batch)


def put_aside(table: str) -> None:
    """The table under another name, so that its own is free for a new one, with the names of all that belongs to it."""
    op.rename_table(table, f"{table}_before")
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"ALTER SEQUENCE {table}_id_seq RENAME TO {table}_before_id_seq")
        found = rows(f"SELECT conname FROM pg_constraint WHERE conrelid = CAST('{table}_before' AS regclass)")  # noqa: S608
        for (name,) in found:
            op.execute(f"ALTER TABLE {table}_before RENAME CONSTRAINT {name} TO {name}_before")


def number_on(table: str) -> None:
    """New rows go on after the highest number that was ever given."""
    if op.get_bind().dialect.name == "postgresql":
        given = f"(SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM {table}_before_id_seq)"  # noqa: S608
        highest = f"(SELECT COALESCE(MAX(id), 0) FROM {table})"  # noqa: S608
        op.execute(f"SELECT SETVAL(PG_GET_SERIAL_SEQUENCE('{table}', 'id'), GREATEST({given}, {highest}) + 1, FALSE)")


def go_on(table: str, following: int) -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"SELECT SETVAL(PG_GET_SERIAL_SEQUENCE('{table}', 'id'), {following}, FALSE)")


def digest_of(*parts: str, size: int = 16) -> bytes:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=size).digest()


def row_id() -> sa.Column[Any]:
    return sa.Column("id", ID, nullable=False)


def digest() -> sa.Column[Any]:
    return sa.Column("digest", sa.LargeBinary(), nullable=False)


def number(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False)


def text(name: str) -> sa.Column[Any]:
    return sa.Column(name, TEXT, nullable=False)


def keys_of(table: str, *unique: str) -> Iterator[sa.Constraint]:
    yield sa.PrimaryKeyConstraint("id", name=f"pk_{table}")
    yield sa.UniqueConstraint(*unique, name=f"uq_{table}_{'_'.join(unique)}")
