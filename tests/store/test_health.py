"""What a database holds, and whether it is sound."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from tests.factories import save
from tracker.errors import StoreError
from tracker.store import health, queries, schema
from tracker.store.samples import arrays_of


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


def test_rows_whose_texts_are_gone_are_a_problem(store):
    save(store, steps=2, kernels=[("gemm", 9, {"category": "matmul"})], counters=[("l2", "Add", "hits", 1)])
    with store.begin() as connection:
        connection.execute(text("DELETE FROM detail_text WHERE text IN ('matmul', 'l2', 'hits')"))
    assert health.check(store) == [
        "2 rows of counter refer to texts that are gone",
        "2 rows of kernel refer to texts that are gone",
    ]
    with pytest.raises(StoreError) as raised:
        queries.kernels(store, [1])
    assert str(raised.value) == (
        f"{store.url}: keys or texts of ops and kernels are damaged; tracker db check tells which"
    )


def test_rows_whose_keys_are_gone_are_a_problem(store):
    """Two steps have a row each of an operator, of its kernel and of a collective."""
    save(store, steps=2, communication=[("all_reduce", 9)])
    with store.begin() as connection:
        for name in ("op_key", "kernel_key", "process_group"):
            connection.execute(text(f"DELETE FROM {name}"))
    assert health.check(store) == [
        "2 rows of communication refer to rows of process_group that are gone",
        "2 rows of kernel refer to rows of kernel_key that are gone",
        "2 rows of kernel refer to rows of op_key that are gone",
        "2 rows of op refer to rows of op_key that are gone",
    ]


def test_damaged_samples_and_contexts_are_found_and_the_samples_made_again(store):
    save(store, runs=2, ranks=2)
    with store.connect() as connection:
        before = arrays_of(connection, [1, 2])[2]
    with store.begin() as connection:
        connection.execute(text("UPDATE sample_array SET numbers = SUBSTR(numbers, 1, 20) WHERE run_id = 2"))
        connection.execute(text("UPDATE op_tree SET contexts = :none WHERE run_id = 1 AND rank = 1"), {"none": b"none"})
    again = "restore the database from a copy, or tracker runs delete 1 --purge --reason damaged, then ingest its files"
    tree = f"the calling contexts of run 1, rank 1 are damaged; {again} again"
    assert health.check(store) == [
        "the samples of run 2 are damaged; tracker db check --repair makes them again", tree,
    ]  # fmt: skip
    with pytest.raises(StoreError) as raised, store.connect() as connection:
        arrays_of(connection, [1, 2])
    assert str(raised.value) == (
        f"{store.url}: the samples of run 2 are damaged; tracker db check --repair makes them again"
    )
    assert (health.repair(store), health.check(store), health.repair(store)) == (
        ["run:2  its damaged samples are made again"], [tree], [],
    )  # fmt: skip
    with store.connect() as connection:
        assert arrays_of(connection, [2])[2].values.tolist() == before.values.tolist()


def test_a_run_that_is_kept_as_recorded_otherwise_is_found_and_read_again(store):
    save(store, runs=2, settings={"with_stack": "on"})
    save(store)
    with store.begin() as connection:
        connection.execute(text("UPDATE run SET recording_id = NULL WHERE id = 1"))
        connection.execute(text("UPDATE run SET recording_id = (SELECT MAX(id) FROM recording) WHERE id = 2"))
    assert health.check(store) == [
        "how runs 1,2 were recorded is kept otherwise than the captures say; tracker db check --repair makes them again"
    ]
    assert health.repair(store) == [
        f"run:{run_id}  how it was recorded is read again from its captures" for run_id in (1, 2)
    ]
    assert (health.check(store), health.repair(store)) == ([], [])


def test_damaged_samples_whose_rows_are_gone_stay_a_problem(store):
    save(store)
    with store.begin() as connection:
        connection.execute(text("UPDATE sample_array SET numbers = :none"), {"none": b"none"})
        connection.execute(text("DELETE FROM sample"))
    problem = "the samples of run 1 are damaged; the rows that they were made of are gone, too"
    assert (health.repair(store), health.check(store)) == ([], [problem])
