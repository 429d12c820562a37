"""What recurs from run to run: texts and keys, stored once, unique by their columns or a digest of them."""

from __future__ import annotations

from sqlalchemy import UniqueConstraint

from tracker.store.tables.base import DETAIL_TEXT, Base, Binary, digest, key, row_id, text_key, text_number


class DetailText(Base, table=True):
    """A text that detail rows, op keys and call stacks are made of: thousands of them share some hundred."""

    __tablename__ = DETAIL_TEXT
    __table_args__ = (UniqueConstraint("digest"),)
    id: int | None = row_id()
    digest: Binary = digest()
    text: str = text_key()


class OpKey(Base, table=True):
    """What tells one op from another: its texts, in detail_text."""

    __tablename__ = "op_key"
    __table_args__ = (
        UniqueConstraint(
            "name_id", "input_shapes_id", "input_types_id", "module_id", "phase_id", name="uq_op_key_texts"
        ),
    )
    id: int | None = row_id()
    name_id: int = text_number()
    input_shapes_id: int = text_number()
    input_types_id: int = text_number()
    module_id: int = text_number()
    phase_id: int = text_number()


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
    """The innermost frame of a call stack, and the stack that it was called from; 0: from none."""

    __tablename__ = "call_stack"
    __table_args__ = (UniqueConstraint("parent_id", "frame_id"),)
    id: int | None = row_id()
    parent_id: int = key(primary=False)
    frame_id: int = text_number()
