"""Schema 0020 packs the calling contexts: a database of 0019 says the same afterwards, and again when taken back."""

from __future__ import annotations

from alembic import command
from sqlalchemy import text

from tests.factories import same_table, save
from tests.store.test_op_texts import insert
from tests.store.test_upgrades import MISSING, ROWS, made_partition
from tracker.store import connect, health, open_store, queries, schema

NAMES = {1: "aten::linear", 2: "aten::mm"}
DETAIL_TABLES = (
    "api", "communication", "communication_link", "communication_task", "counter", "kernel", "kernel_metric", "memory",
    "memory_curve", "op", "op_tree", "step",
)  # fmt: skip
COLUMNS = (
    "run_id", "rank", "step", "node", "parent", "op_key_id", "calls", "host_total_ns", "device_total_ns",
    "device_self_ns", "kernel_count",
)  # fmt: skip
# linear calls mm; rank 1 saw no device; the second run lies in another partition
TREES = [
    (1500, 0, -1, 0, -1, 1, 1, 9, MISSING, MISSING, MISSING),
    (1500, 0, 7, 0, -1, 1, 2, 60, 30, 10, 3),
    (1500, 0, 7, 1, 0, 2, 2, 40, 20, 20, 2),
    (1500, 0, 8, 0, -1, 1, 2, 50, 30, 11, 3),
    (1500, 1, 7, 0, -1, 1, 2, 70, MISSING, MISSING, 0),
    (2600, 0, 0, 1, -1, 2, MISSING, 2**62, 5, 5, 1),
]  # fmt: skip


def made_at_0019(url: str) -> None:
    """Three trees under schema 0019, by plain inserts: nothing here may follow the code."""
    if url.startswith("sqlite"):
        schema.use_write_ahead_log(connect.open_engine(url), 1000)
    with connect.open_engine(url).begin() as connection:
        schema.upgrade(connection, "0019")
        if connection.dialect.name == "postgresql":
            for table in DETAIL_TABLES:
                made_partition(connection, table)
            connection.execute(text("CREATE TABLE op_tree_p2000 PARTITION OF op_tree FOR VALUES FROM (2000) TO (3000)"))
        for table in ("workload", "configuration", "version", "device", "run", "capture"):
            names, *rows = ROWS[table]
            for row in rows:
                insert(connection, table, **dict(zip(map(str.strip, names.split(",")), row, strict=True)))
        for table, number in (("run", "id"), ("capture", "run_id")):
            names, row, *_ = ROWS[table]
            own = dict(zip(map(str.strip, names.split(",")), row, strict=True))
            insert(connection, table, **(own | {number: 2600}))
        for number, name in enumerate(["", *NAMES.values()]):
            insert(connection, "op_text", id=number + 1, digest=bytes([number]) * 8, text=name)
        for number in NAMES:
            texts = dict.fromkeys(("input_shapes_id", "input_types_id", "module_id", "phase_id"), 1)
            insert(connection, "op_key", id=number, name_id=number + 1, **texts)
        for row in TREES:
            insert(connection, "op_tree", **dict(zip(COLUMNS, row, strict=True)))


def trees(url: str) -> list[tuple[object, ...]]:
    with connect.open_engine(url).connect() as connection:
        found = connection.execute(text(f"SELECT {', '.join(COLUMNS)} FROM op_tree ORDER BY run_id, rank, step, node"))
        return [tuple(row) for row in found]


def test_every_tree_is_what_it_was(empty_url):
    made_at_0019(empty_url)
    assert connect.upgrade(empty_url) == ("0019", schema.SCHEMA_HEAD)
    with open_store(empty_url, create=False) as store:
        assert health.check(store) == []
        same_table(
            queries.op_tree(store, [1500, 2600]),
            """
            run_id rank node parent name calls host_total_ns device_total_ns device_self_ns kernel_count
            1500 0 0 -1 aten::linear 5 119 60 21 6
            1500 0 1 0 aten::mm 2 40 20 20 2
            1500 1 0 -1 aten::linear 2 70 - - 0
            2600 0 1 -1 aten::mm - 4611686018427387904 5 5 1
            """,
        )
        same_table(queries.op_tree(store, [1500], steps=[-1]), "node calls device_self_ns\n 0 1 -")


def test_taken_back_every_row_is_what_it_was(empty_url):
    made_at_0019(empty_url)
    connect.upgrade(empty_url)
    with connect.open_engine(empty_url).begin() as connection:
        command.downgrade(schema.alembic_config(connection), "0019")
    assert trees(empty_url) == TREES
    connect.upgrade(empty_url)
    with open_store(empty_url, create=False) as store:
        assert queries.op_tree(store, [2600])["host_total_ns"].tolist() == [2**62]


def test_an_upgraded_database_packs_as_a_new_one_does(empty_url):
    """The run that comes next falls into a partition that was there before."""
    made_at_0019(empty_url)
    with open_store(empty_url) as store:
        if store.dialect == "postgresql":
            with store.begin() as connection:
                for table in ("workload", "configuration", "version", "device", "run"):
                    connection.execute(text(f"SELECT setval('{table}_id_seq', 1500)"))
                for table in ("detail_text", "op_key"):
                    connection.execute(text(f"SELECT setval('{table}_id_seq', 10)"))
        (run_id,) = save(store, "v2", steps=2, ops=[("aten::mm", 9)])
        same_table(queries.op_tree(store, [run_id]), "name calls device_self_ns\n aten::mm 2 18")
        same_table(queries.op_tree(store, [1500], ranks=[1]), "name host_total_ns\n aten::linear 70")
