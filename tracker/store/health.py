"""The state of a database: what it holds, and whether it is sound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct
from sqlalchemy import Connection, func, select, text

from tracker.store import failures, labels, packing, recordings, schema, views
from tracker.store.connect import Store
from tracker.store.samples import rows as sample_rows
from tracker.store.tables import metadata
from tracker.store.tables.base import DETAIL_TEXT
from tracker.units import format_numbers

_RUN: Final = metadata.tables["run"]
_TEXT: Final = metadata.tables[DETAIL_TEXT]
_TREE: Final = metadata.tables["op_tree"]
_CALLS: Final = metadata.tables["collective_call"]
_PACKED_AT_ONCE: Final = 10
"""One can hold a megabyte."""


class Health(Struct, frozen=True):
    """What a database is and holds. `rows`: per table; `bytes`: on disk, None where it cannot be told."""

    name: str
    server: str
    schema: str
    newest_schema: str
    bytes: int | None
    rows: Mapping[str, int]


def info(store: Store) -> Health:
    """Return what `store` is and holds. Counts every row, so it takes a while on a large database."""
    with store.connect() as connection:
        tables = metadata.sorted_tables
        rows = {table.name: connection.scalar(select(func.count()).select_from(table)) or 0 for table in tables}
        return Health(
            name=store.url,
            server=_server(connection),
            schema=schema.stamp(connection, store.url) or "",
            newest_schema=schema.SCHEMA_HEAD,
            bytes=_bytes(connection),
            rows=rows,
        )


def check(store: Store) -> list[str]:
    """Return what is wrong with `store`, a sentence each; empty when it is sound.

    Looks at the file (SQLite), at the tables against the code, at the kinds of all values, for rows whose run or whose
    texts are gone, and into all that is packed. A look that fails is a problem.
    """
    looked_at = (
        *failures.DAMAGE_CHECKS,
        _table_problems,
        _view_problems,
        _otherwise_recorded,
        _damaged_samples,
        _damaged_contexts,
        _damaged_calls,
    )
    with store.connect() as connection:
        return [problem for find in looked_at for problem in failures.look_for_damage(find, connection)]


def repair(store: Store) -> list[str]:
    """Make again what is damaged and can be made from other rows, the packed samples of runs and how these were
    recorded, and the views: what was made again, a sentence each.
    """

    def work(connection: Connection) -> list[str]:
        made = [f"{name}  made again" for name in views.make_views(connection)]
        for run_id in sample_rows.damaged_arrays(connection):
            labels.hold_run(connection, run_id)
            if sample_rows.repair_array(connection, run_id):
                made.append(f"run:{run_id}  its damaged samples are made again")
        for run_id in recordings.list_differing_runs(connection):
            labels.hold_run(connection, run_id)
            recordings.refresh_recordings(connection, [run_id])
            made.append(f"run:{run_id}  how it was recorded is read again from its captures")
        return made

    return store.transact(work)


def _server(connection: Connection) -> str:
    names = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
    version = connection.dialect.server_version_info or ()
    return f"{names[connection.dialect.name]} {'.'.join(str(number) for number in version)}"


def _bytes(connection: Connection) -> int | None:
    if connection.dialect.name == "postgresql":
        return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())
    pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    return int(pages) * int(connection.exec_driver_sql("PRAGMA page_size").scalar_one())


def _table_problems(connection: Connection) -> Iterator[str]:
    if found := schema.drift(connection):
        yield f"the tables differ from what this tracker expects: {found}"


def _view_problems(connection: Connection) -> Iterator[str]:
    """Yield what other programs would miss; no command reads a view."""
    if found := views.list_differing_views(connection):
        are, them = ("is", "it") if len(found) == 1 else ("are", "them")
        yield f"{', '.join(found)} {are} missing or not as this tracker makes {them}; {sample_rows.HOW_TO_REPAIR}"


def _otherwise_recorded(connection: Connection) -> Iterator[str]:
    """Yield runs of which something else is kept than their captures say: they would be compared with the wrong
    ones.
    """
    if differing := recordings.list_differing_runs(connection):
        runs = f"run{'' if len(differing) == 1 else 's'} {format_numbers(differing)}"
        yield f"how {runs} were recorded is kept otherwise than the captures say; {sample_rows.HOW_TO_REPAIR}"


def _damaged_samples(connection: Connection) -> Iterator[str]:
    for run_id in sample_rows.damaged_arrays(connection):
        can_be_made = len(sample_rows.array_of_rows(connection, run_id).series_ids) > 0
        remedy = sample_rows.HOW_TO_REPAIR if can_be_made else "the rows that they were made of are gone, too"
        yield f"the samples of run {run_id} are damaged; {remedy}"


def _damaged_contexts(connection: Connection) -> Iterator[str]:
    question = select(_TREE.c.run_id, _TREE.c.rank, _TREE.c.contexts).order_by(_TREE.c.run_id, _TREE.c.rank)
    for row in connection.execute(question, execution_options={"yield_per": _PACKED_AT_ONCE}):
        try:
            packing.unpack_contexts(bytes(row.contexts))
        except ValueError:
            damaged = packing.damaged_contexts(row.run_id, row.rank)
            yield f"{damaged.what} are damaged; {damaged.remedy}"


def _damaged_calls(connection: Connection) -> Iterator[str]:
    question = select(_CALLS.c.run_id, _CALLS.c.rank, _CALLS.c.calls).order_by(_CALLS.c.run_id, _CALLS.c.rank)
    for row in connection.execute(question, execution_options={"yield_per": _PACKED_AT_ONCE}):
        try:
            packing.unpack_calls(bytes(row.calls))
        except ValueError:
            damaged = packing.damaged_calls(row.run_id, row.rank)
            yield f"{damaged.what} are damaged; {damaged.remedy}"
