"""A whole database into an empty one: from SQLite to Postgres, back, or to another file or server.

Rows keep their numbers, so that what users wrote down (run:41, finding 12) means the same afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Connection,
    Double,
    Integer,
    LargeBinary,
    Select,
    Table,
    Text,
    func,
    select,
    text,
)

from tracker.errors import StoreError
from tracker.store import bulk, captures
from tracker.store.connect import Store
from tracker.store.tables import metadata

_ROWS_AT_ONCE: Final = 20_000
_PACKED_AT_ONCE: Final = 100
_PACKED: Final = frozenset({"op_tree", "sample_array", "collective_call"})
"""Tables of which one row can hold a megabyte."""

# BigInteger is an Integer: the special one first
_KINDS: Final[Sequence[tuple[type[Any], bulk.Kind]]] = (
    (BigInteger, "int"), (Integer, "short"), (Double, "float"), (Boolean, "bool"), (Text, "text"),
    (LargeBinary, "binary"),
)  # fmt: skip

Report = Callable[[str, int, int], None]


def copy(source: Store, target: Store, *, on_progress: Report | None = None) -> dict[str, int]:
    """Copy every row of `source` into `target`, whose tables are there and empty; rows per table that has any.

    Reads one consistent state, writes one transaction. `on_progress`: told (table, rows done, rows in all).
    StoreError where `target` holds rows.
    """
    with _snapshot(source) as reading, target.begin() as writing:
        _require_empty(writing, target)
        counts = {table.name: int(reading.scalar(select(func.count()).select_from(table)) or 0) for table in _tables()}
        for run_id in reading.execute(text("SELECT id FROM run ORDER BY id")).scalars():
            captures.ensure_partitions(writing, run_id)
        done, total = 0, sum(counts.values())
        for table in _tables():
            for rows in _chunks(reading, table):
                bulk.load(writing, table.name, _columns(table, rows))
                done += len(rows)
                if on_progress:
                    on_progress(table.name, done, total)
            if "id" in table.columns:
                _keep_numbering(reading, writing, table)
        if target.dialect == "postgresql":
            # it plans by what it knows of the tables, and looks at them by itself only after a while
            writing.execute(text("ANALYZE"))
    return {name: count for name, count in counts.items() if count}


def _tables() -> list[Table]:
    """Every table, those that others refer to first."""
    return list(metadata.sorted_tables)


def _snapshot(source: Store) -> Connection:
    """Return a connection that sees one state until it ends."""
    return source.engine.connect().execution_options(stream_results=True)


def _require_empty(connection: Connection, target: Store) -> None:
    for table in _tables():
        if connection.execute(select(text("1")).select_from(table).limit(1)).first() is not None:
            raise StoreError(f"{target.url} holds rows in {table.name}", remedy="copy into a new, empty database")


def _chunks(reading: Connection, table: Table) -> Iterator[list[Sequence[Any]]]:
    question: Select[Any] = select(*table.columns).order_by(*table.primary_key.columns)
    at_once = _PACKED_AT_ONCE if table.name in _PACKED else _ROWS_AT_ONCE
    with reading.execution_options(yield_per=at_once).execute(question) as rows:
        for chunk in rows.partitions(at_once):
            yield [tuple(row) for row in chunk]


def _columns(table: Table, rows: Sequence[Sequence[Any]]) -> list[bulk.Column]:
    values = list(zip(*rows, strict=True))
    return [
        bulk.Column(column.name, _kind(column.type), own) for column, own in zip(table.columns, values, strict=True)
    ]


def _kind(type_: Any) -> bulk.Kind:
    return next(kind for base, kind in _KINDS if isinstance(type_, base))


def _keep_numbering(reading: Connection, writing: Connection, table: Table) -> None:
    """New rows go on after the highest number that was ever given: it must not come to mean another row."""
    highest = max(int(reading.scalar(select(func.max(table.c.id))) or 0), _last_given(reading, table))
    if not highest:
        return
    if writing.dialect.name == "postgresql":
        writing.execute(
            text("SELECT setval(pg_get_serial_sequence(:table, 'id'), :highest)"),
            {"table": table.name, "highest": highest},
        )
    elif table.dialect_options["sqlite"]["autoincrement"]:
        writing.execute(text("DELETE FROM sqlite_sequence WHERE name = :table"), {"table": table.name})
        writing.execute(
            text("INSERT INTO sqlite_sequence (name, seq) VALUES (:table, :highest)"),
            {"table": table.name, "highest": highest},
        )


def _last_given(reading: Connection, table: Table) -> int:
    """Return the last number that the database gave to a row of `table`, 0 where it does not say."""
    if reading.dialect.name == "postgresql":
        name = reading.scalar(text("SELECT pg_get_serial_sequence(:table, 'id')"), {"table": table.name})
        if name is None:
            return 0
        # the name is the database's own, quoted by it
        row = reading.exec_driver_sql(f"SELECT last_value, is_called FROM {name}").one()  # noqa: S608
        return int(row.last_value) if row.is_called else 0
    if not table.dialect_options["sqlite"]["autoincrement"]:
        return 0
    found = reading.scalar(text("SELECT seq FROM sqlite_sequence WHERE name = :table"), {"table": table.name})
    return int(found or 0)
