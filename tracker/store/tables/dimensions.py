"""What recurs from run to run: texts and keys, stored once, unique by a digest of their columns."""

from __future__ import annotations

from sqlalchemy import UniqueConstraint

from tracker.store.tables.base import Base, Binary, digest, key, row_id, text_key


class OpKey(Base, table=True):
    """What tells one op from another."""

    __tablename__ = "op_key"
    __table_args__ = (UniqueConstraint("digest"),)
    id: int | None = row_id()
    digest: Binary = digest()
    name: str = text_key()
    input_shapes: str = text_key()
    input_types: str = text_key()
    module: str = text_key()
    phase: str = text_key()


class KernelKey(Base, table=True):
    """What tells one kernel from another."""

    __tablename__ = "kernel_key"
    __table_args__ = (UniqueConstraint("digest"),)
    id: int | None = row_id()
    digest: Binary = digest()
    name: str = text_key()
    canonical_name: str = text_key()
    type: str = text_key()
    core_type: str = text_key()
    input_shapes: str = text_key()
    input_types: str = text_key()
    input_formats: str = text_key()


class ProcessGroup(Base, table=True):
    """A communication group by its role (dp, tp, ...) and size; size -1: the source does not say."""

    __tablename__ = "process_group"
    __table_args__ = (UniqueConstraint("digest"),)
    id: int | None = row_id()
    digest: Binary = digest()
    role: str = text_key()
    size: int = key(primary=False)


class CallStack(Base, table=True):
    """The text of a call stack."""

    __tablename__ = "call_stack"
    __table_args__ = (UniqueConstraint("digest"),)
    id: int | None = row_id()
    digest: Binary = digest()
    text: str = text_key()
