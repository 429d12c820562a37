"""What all tables share: constraint names, column kinds, and how a table is made from a declaration.

Column kinds: `key` is NOT NULL (empty string or -1 for "none"), `value` is NULL where the source does not say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, TypeAlias

from sqlalchemy import BigInteger, Boolean, Double, Integer, LargeBinary, MetaData, Text, text
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from tracker.schema.declarations import Column

metadata: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Collation "C" sorts by code point, as SQLite does, so that both databases return rows in one order.
TEXT: Final = Text(collation="C").with_variant(Text(), "sqlite")
# Only INTEGER PRIMARY KEY numbers its rows in SQLite.
ID: Final = BigInteger().with_variant(Integer(), "sqlite")
DETAIL: Final[dict[str, Any]] = {"sqlite_with_rowid": False, "postgresql_partition_by": "RANGE (run_id)"}
"""Options of a detail table: clustered by its key in SQLite, partitioned by run in Postgres.

Detail tables have no foreign keys: a check per row would cost more than the load, and their rows come and go only
together with their run, in `save` and `runs.delete_all`.
"""

DETAIL_TEXT: Final = "detail_text"
"""The table of the texts that detail rows, ops and call stacks are made of."""

IS_OF_TEXT: Final = "is_of_text"
"""In the `info` of a column that holds numbers of texts: `health.check` looks them up."""


# The type under a name that no column has: a column called `bytes` hides it inside its class.
Binary: TypeAlias = bytes


class Base(SQLModel, registry=registry(metadata=metadata)):
    """Base of every table of tracker."""


def row_id() -> Any:
    """The number that the database gives to a new row."""
    return Field(default=None, primary_key=True, sa_type=ID, nullable=False)


def key(*, references: str | None = None, primary: bool = True) -> Any:
    """An integer that identifies: part of the primary key, or a reference that is always there."""
    extra = {"autoincrement": False} if primary else {}
    if references is None:
        return Field(sa_type=BigInteger, primary_key=primary, nullable=False, sa_column_kwargs=extra)
    return Field(
        sa_type=BigInteger, primary_key=primary, nullable=False, sa_column_kwargs=extra, foreign_key=references
    )


def text_key(*, primary: bool = False) -> Any:
    """Text that identifies or classifies; empty for "none"."""
    return Field(sa_type=TEXT, primary_key=primary, nullable=False)


def later_text() -> Any:
    """Text that classifies, of a column that came later: empty for "none", as in all rows of before."""
    return Field(default="", sa_type=TEXT, nullable=False, sa_column_kwargs={"server_default": text("''")})


def text_number(*, primary: bool = False) -> Any:
    """The number of a text in DETAIL_TEXT, which identifies or classifies."""
    extra: dict[str, Any] = {"info": {IS_OF_TEXT: True}, **({"autoincrement": False} if primary else {})}
    return Field(sa_type=BigInteger, primary_key=primary, nullable=False, sa_column_kwargs=extra)


def optional_text_number() -> Any:
    """The number of a text in DETAIL_TEXT that may be missing."""
    return Field(default=None, sa_type=BigInteger, nullable=True, sa_column_kwargs={"info": {IS_OF_TEXT: True}})


def digest() -> Any:
    """Bytes that stand for a row in its unique index; text keys can be too long for one."""
    return Field(sa_type=LargeBinary, nullable=False)


def known_digest() -> Any:
    """Bytes that stand for a thing where it is known, NULL where it is not."""
    return Field(default=None, sa_type=LargeBinary, nullable=True)


def packed() -> Any:
    """Numbers of many rows as bytes."""
    return Field(sa_type=LargeBinary, nullable=False)


def value() -> Any:
    """A whole number (ns, bytes or a count) that may be missing."""
    return Field(default=None, sa_type=BigInteger, nullable=True)


def flag(*, nullable: bool = True) -> Any:
    """Yes or no; with `nullable`, it may be missing."""
    return Field(default=None, sa_type=Boolean, nullable=nullable)


def count() -> Any:
    """A small whole number that is always there."""
    return Field(sa_type=Integer, nullable=False)


def real() -> Any:
    """A real number that may be missing."""
    return Field(default=None, sa_type=Double, nullable=True)


def text_value() -> Any:
    """Text that may be missing."""
    return Field(default=None, sa_type=TEXT, nullable=True)


def make_table(
    name: str, table: str, title: str, columns: Mapping[str, tuple[Any, Any]], parents: tuple[type, ...] = (Base,),
    arguments: Any = None,
) -> type[Base]:  # fmt: skip
    """Return the table of a declaration.

    `name`: of the class. `columns`: name -> how it is stored (`key`, `value`, ...) and its type; they stand behind
    those of the `parents`. `arguments`: what SQLAlchemy calls `__table_args__`.
    """
    content = {
        "__annotations__": {column: annotation for column, (_, annotation) in columns.items()},
        "__tablename__": table,
        "__table_args__": arguments or (),
        "__doc__": title,
        "__module__": __name__,
    }
    for column, (stored, _) in columns.items():
        content[column] = stored
    make_class: Any = type(Base)
    made: type[Base] = make_class(name, parents, content, table=True)
    return made


def make_columns(columns: Iterable[Column], keys: Collection[str] = ()) -> dict[str, tuple[Any, Any]]:
    """Return the columns of a declaration as `make_table` takes them; `keys`: those of the primary key."""
    return {column.stored_name: _make_column(column, is_key=column.stored_name in keys) for column in columns}


def _make_column(column: Column, *, is_key: bool) -> tuple[Any, Any]:
    if column.kind == "word" and column.is_later:
        return later_text(), str
    if column.kind == "word":
        return text_key(primary=is_key), str
    if column.kind == "text":
        return text_number(primary=is_key), int
    if column.kind == "optional_text":
        return optional_text_number(), int | None
    if column.kind == "float":
        return real(), float | None
    # no group and no size class have numbers of their own
    if column.is_required or column.kind in ("group", "size_class"):
        return key(primary=is_key), int
    return value(), int | None
