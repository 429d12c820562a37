"""The tables: equal to the contract, to the migrations, and on both databases."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import create_engine, text

from tracker.profile import ROW_COLUMNS, Breakdown
from tracker.store import captures, connect, open_store, packing, schema
from tracker.store.tables import metadata

OTHER_NAMES = {"op_key": "op_key_id", "kernel_key": "kernel_key_id"}
KEYS = {"id", "digest", "run_id", "rank", "ordinal"}


OF_ALL_RANKS = ("ranks_transit_ns", "ranks_wait_ns", "ranks_exposed_wait_ns", "paired_calls")
"""Columns that the store fills when ranks come."""


def test_columns_are_those_of_the_contract_under_its_names():
    for name, columns in ROW_COLUMNS.items():
        expected = {OTHER_NAMES.get(column, column) for column in columns}
        if name != "kernel_key":  # texts lie in detail_text
            texts = {column for column, kind in columns.items() if kind == "text"}
            expected = (expected - texts) | {f"{column}_id" for column in texts}
        if name == "communication":
            expected = (expected - {"group_role_id", "group_size"}) | {"process_group_id", *OF_ALL_RANKS}
        packed = packing.CONTEXT_COLUMNS if name == "op_tree" else ()
        assert (set(metadata.tables[name].columns.keys()) | set(packed)) - KEYS - {"contexts"} == expected, name
    for name in ("capture", "step"):
        assert set(Breakdown.__struct_fields__) <= set(metadata.tables[name].columns.keys())


def test_detail_tables_are_keyed_by_run_and_partitioned():
    for name in captures.DETAIL_TABLES:
        table = metadata.tables[name]
        assert [column.name for column in table.primary_key][:2] == ["run_id", "rank"]
        assert table.dialect_options["postgresql"]["partition_by"] == "RANGE (run_id)"
    assert set(captures.DETAIL_TABLES) | {"capture"} == {
        name for name, table in metadata.tables.items() if [c.name for c in table.primary_key][:2] == ["run_id", "rank"]
    }


def test_the_head_is_the_newest_migration():
    files = sorted(path.name for path in (schema.migrations_folder() / "versions").glob("*.py"))
    assert [name[:4] for name in files] == [f"{number:04}" for number in range(1, len(files) + 1)]
    assert files[-1].startswith(schema.SCHEMA_HEAD)


def test_migration_goes_up_and_down_and_up_again(empty_url):
    with open_store(empty_url) as store:
        assert names_of_tables(store) == {*metadata.tables, "alembic_version"}
        with store.begin() as connection:
            command.downgrade(schema.alembic_config(connection), "base")
        assert names_of_tables(store) == {"alembic_version"}
        with store.begin() as connection:
            schema.upgrade(connection)
        assert names_of_tables(store) == {*metadata.tables, "alembic_version"}
        with store.connect() as connection:
            assert schema.drift(connection) == ""
    assert connect.upgrade(empty_url) == (schema.SCHEMA_HEAD, schema.SCHEMA_HEAD)


def test_processes_that_make_the_tables_at_once_make_them_once(empty_url):
    """Each sees no tables at first; whoever comes second finds them."""
    with ThreadPoolExecutor(4) as threads:
        stores = list(threads.map(open_store, [empty_url] * 4))
    for store in stores:
        with store.connect() as connection:
            assert schema.stamp(connection, "") == schema.SCHEMA_HEAD
        store.close()


def test_drift_is_noticed(store):
    with store.begin() as connection:
        connection.execute(text("ALTER TABLE run ADD COLUMN surprise BIGINT"))
    with store.connect() as connection:
        assert "surprise" in schema.drift(connection)


def test_migration_and_code_agree_in_every_detail_of_sqlite(tmp_path):
    coded, new = tmp_path / "coded.db", tmp_path / "new.db"
    metadata.create_all(create_engine(f"sqlite:///{coded}"))
    open_store(str(new)).close()
    assert sqlite_schema(new) == sqlite_schema(coded)


def test_migration_and_code_agree_in_every_detail_of_postgres(postgres_server):
    coded, new = postgres_server.empty_database(), postgres_server.migrated_database()
    metadata.create_all(connect.open_engine(coded, migrates=True))
    assert postgres_schema(new) == postgres_schema(coded)
    for url in (coded, new):
        postgres_server.drop(url)


def test_a_store_in_memory_has_the_tables_of_the_code(memory_store):
    with memory_store.connect() as connection:
        assert schema.drift(connection) == ""
        assert schema.stamp(connection, "") == schema.SCHEMA_HEAD


def test_partitions_are_made_for_the_runs_that_come(postgres_server):
    from tests.factories import save
    from tracker.store import queries

    url = postgres_server.migrated_database()
    with open_store(url) as store:
        with store.begin() as connection:
            connection.execute(text("SELECT setval('run_id_seq', 998)"))
        assert save(store, runs=3) == [999, 1000, 1001]
        with store.connect() as connection:
            count = text("SELECT COUNT(*), MIN(run_id) FROM op_p1000")
            assert tuple(connection.execute(count).one()) == (2, 1000)
            assert schema.drift(connection) == ""
        assert queries.ops(store, [999, 1000, 1001]).frame["run_id"].tolist() == [999, 1000, 1001]
    postgres_server.drop(url)


@pytest.mark.parametrize("place", ["package", "checkout"])
def test_migrations_are_found_in_a_checkout_and_when_installed(place, tmp_path, monkeypatch):
    package = tmp_path / "tracker"
    (package / "store").mkdir(parents=True)
    folder = (package if place == "package" else tmp_path) / "migrations"
    folder.mkdir()
    monkeypatch.setattr(schema, "__file__", str(package / "store" / "schema.py"))
    assert schema.migrations_folder() == folder


def names_of_tables(store) -> set[str]:
    from sqlalchemy import inspect

    names = inspect(store.engine).get_table_names()
    return {name for name in names if not re.search(r"_p\d+$", name)}


def sqlite_schema(path: Path) -> set[tuple[object, ...]]:
    with create_engine(f"sqlite:///{path}").connect() as connection:
        rows = connection.execute(
            text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND type <> 'view'")
        ).all()
    # columns in the order of the code, constraints in any; a column that came later stands behind the constraints
    found = set()
    for name, sql in rows:
        head, body, tail = re.fullmatch(r"(.*?)\((.*)\)([^)]*)", sql, re.DOTALL).groups()
        parts = [" ".join(part.split()) for part in re.split(r",(?![^(]*\))", body)]
        columns = [part for part in parts if not part.startswith("CONSTRAINT")]
        found.add((name, head.strip(), tuple(columns), tuple(sorted(set(parts) - set(columns))), tail.strip()))
    return {entry for entry in found if entry[0] != "alembic_version"}


def postgres_schema(url: str) -> list[tuple[object, ...]]:
    questions = (
        "SELECT table_name, ordinal_position, column_name, data_type, is_nullable, collation_name, column_default "
        "FROM information_schema.columns WHERE table_schema = 'public' AND table_name NOT LIKE 'v!_%' ESCAPE '!'",
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE connamespace = 'public'::regnamespace",
        "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
        "SELECT partrelid::regclass::text, pg_get_partkeydef(partrelid) FROM pg_partitioned_table",
    )
    with connect.open_engine(url).connect() as connection:
        found = [tuple(row) for question in questions for row in connection.execute(text(question))]
    return sorted((row for row in found if not re.search(r"_p\d+$|alembic", str(row[0]))), key=str)
