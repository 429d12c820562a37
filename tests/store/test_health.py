"""What a database holds, and whether it is sound."""

from __future__ import annotations

from sqlalchemy import text

from tests.factories import save
from tracker.store import health, schema


def test_a_database_tells_what_it_is_and_holds(store):
    save(store, runs=2)
    found = health.info(store)
    assert (found.name, found.schema, found.newest_schema) == (store.url, schema.SCHEMA_HEAD, schema.SCHEMA_HEAD)
    assert found.server.startswith({"sqlite": "SQLite 3.", "postgresql": "PostgreSQL "}[store.dialect])
    assert (found.rows["run"], found.rows["op"], found.rows["api"]) == (2, 2, 0)
    assert found.bytes > 0


def test_a_sound_database_has_no_problems(store):
    save(store)
    assert health.check(store) == []


def test_rows_without_a_run_are_a_problem(store):
    save(store)
    with store.begin() as connection:
        connection.execute(text("UPDATE op SET run_id = 9"))
    assert health.check(store) == ["1 rows of op belong to no run"]
