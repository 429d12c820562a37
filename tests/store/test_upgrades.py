"""A small database saved at each released schema upgrades and answers the same questions."""

from __future__ import annotations

from sqlalchemy import text

from tests.factories import same_table, save
from tracker.store import connect, health, open_store, queries, schema

MISSING = None
# one run of two ranks as schema 0001 held it, by plain inserts: nothing here may follow the code
ROWS = {
    "workload": ["id, name", (1, "gpt")],
    "configuration": ["id, workload_id, fingerprint, title", (1, 1, b"f" * 16, "batch=32")],
    "version": ["id, workload_id, label, ordinal, pinned", (1, 1, "v1", 1, False)],
    "device": ["id, vendor, model", (1, "NVIDIA", "H100")],
    "run": [
        "id, workload_id, configuration_id, version_id, device_id, state, state_reason, ranks_expected",
        (1500, 1, 1, 1, 1, "active", "", 2),
    ],
    "source": [
        "id, run_id, rank, format, path, bytes, digest",
        (1, 1500, 0, "torch_profiler", "/a.json", 10, b"a" * 16),
    ],
    "capture": [
        "run_id, rank, host, settings, quality, quality_reason, timeline, e2e_ns",
        (1500, 0, "node0", "{}", "ok", "", "device", 300),
        (1500, 1, "node1", "{}", "ok", "", "device", 400),
    ],
    "op_key": [
        "id, digest, name, input_shapes, input_types, module, phase",
        (1, b"o" * 16, "aten::mm", "[[2,2]]", "float", "", ""),
    ],
    "kernel_key": [
        "id, digest, name, canonical_name, type, core_type, input_shapes, input_types, input_formats",
        (1, b"k" * 16, "gemm", "gemm", "", "", "", "", ""),
    ],
    "process_group": ["id, digest, role, size", (1, b"g" * 16, "dp", 2)],
    "step": ["run_id, rank, step, start_ns, timeline, e2e_ns", (1500, 0, 7, 0, "device", 300)],
    "op": [
        "run_id, rank, step, op_key_id, calls, device_self_ns",
        (1500, 0, 7, 1, 2, 200),
        (1500, 1, 7, 1, 2, 220),
    ],
    "kernel": [
        "run_id, rank, step, kernel_key_id, op_key_id, category, calls, total_ns, min_ns, max_ns, wait_ns",
        (1500, 0, 7, 1, 1, "matmul", 2, 200, 90, 110, MISSING),
        (1500, 1, 7, 1, 1, "matmul", 2, 220, 100, 120, 5),
    ],
    "communication": [
        "run_id, rank, ordinal, step, kind, process_group_id, data_type, size_class_bytes, calls, total_ns",
        (1500, 0, 0, 7, "all_reduce", 1, "bf16", 1024, 1, 50),
    ],
    "communication_task": [
        "run_id, rank, ordinal, communication, name, plane, calls, total_ns",
        (1500, 0, 0, 0, "ncclKernel", "", 1, 50),
    ],
    "memory_curve": ["run_id, rank, ordinal, component, time_ns, allocated_bytes", (1500, 0, 0, "device", 3, 64)],
    "api": ["run_id, rank, ordinal, step, level, name, calls, total_ns", (1500, 0, 0, 7, "runtime", "launch", 2, 9)],
}


def made_at_0001(url: str) -> None:
    """A database with the tables of schema 0001 and one run, in a partition of its own on Postgres."""
    if url.startswith("sqlite"):
        schema.use_write_ahead_log(connect.open_engine(url), 1000)
    with connect.open_engine(url).begin() as connection:
        schema.upgrade(connection, "0001")
        if connection.dialect.name == "postgresql":
            for table in ("kernel", "op", "op_tree", "step", "memory", "memory_curve", "api", "communication"):
                made_partition(connection, table)
            made_partition(connection, "communication_task")
        for table, (columns, *rows) in ROWS.items():
            names = [name.strip() for name in columns.split(",")]
            marks = ", ".join(f":{name}" for name in names)
            for row in rows:
                values = dict(zip(names, row, strict=True))
                connection.execute(text(f"INSERT INTO {table} ({columns}) VALUES ({marks})"), values)


def made_partition(connection, table: str) -> None:
    connection.execute(text(f"CREATE TABLE {table}_p1000 PARTITION OF {table} FOR VALUES FROM (1000) TO (2000)"))


def test_a_database_of_schema_0001_upgrades_and_answers_the_same(empty_url):
    made_at_0001(empty_url)
    assert connect.upgrade(empty_url) == ("0001", schema.SCHEMA_HEAD)
    with open_store(empty_url, create=False) as store:
        assert health.check(store) == []
        same_table(
            queries.runs_by_id(store, [1500]),
            "run_id workload version device configuration ranks steps\n 1500 gpt v1 H100 batch=32 2 1",
        )
        same_table(queries.captures(store, [1500]), "rank host e2e_ns\n 0 node0 300\n 1 node1 400")
        same_table(queries.steps(store, [1500]), "rank step e2e_ns\n 0 7 300")
        same_table(queries.ops(store, [1500]), "name calls device_self_ns\n aten::mm 4 420")
        same_table(
            queries.kernels(store, [1500]),
            "name op category calls total_ns min_ns max_ns wait_ns block_num\n gemm aten::mm matmul 4 420 90 120 - -",
        )
        same_table(queries.communication(store, [1500]), "kind group_role total_ns\n all_reduce dp 50")
        same_table(queries.communication_tasks(store, [1500]), "name total_ns\n ncclKernel 50")
        same_table(queries.memory_curve(store, [1500]), "component time_ns allocated_bytes\n device 3 64")
        same_table(queries.api(store, [1500]), "level name total_ns\n runtime launch 9")
        for question in (queries.kernel_metrics, queries.communication_links, queries.counters):
            assert question(store, [1500]).empty


def test_an_upgraded_database_takes_what_is_new(empty_url):
    made_at_0001(empty_url)
    with open_store(empty_url) as store:
        if store.dialect == "postgresql":
            # the next run falls into the partition that was there before the upgrade
            with store.begin() as connection:
                connection.execute(text("SELECT setval('run_id_seq', 1500)"))
                for table in ("workload", "configuration", "version", "device", "op_key", "kernel_key"):
                    connection.execute(text(f"SELECT setval('{table}_id_seq', 10)"))
                for table in ("process_group", "source"):
                    connection.execute(text(f"SELECT setval('{table}_id_seq', 10)"))
        kernels = [("Add", 9, {"block_num": 8, "metrics": {"aiv_vec_ratio": 0.5}})]
        links = [("all_reduce", 5, {"links": [("SDMA", 64)]})]
        numbers = [("l2_cache", "Add", "Hit Rate", 0.5)]
        assert save(store, "v2", kernels=kernels, communication=links, counters=numbers) == [1501]
        assert queries.kernels(store, [1501])["block_num"].tolist() == [8]
        for question in (queries.kernel_metrics, queries.communication_links, queries.counters):
            assert len(question(store, [1501])) == 1


def test_the_new_tables_go_down_and_up_again_without_touching_the_old_rows(empty_url):
    from alembic import command

    made_at_0001(empty_url)
    with open_store(empty_url) as store:
        with store.begin() as connection:
            command.downgrade(schema.alembic_config(connection), "0001")
        with store.connect() as connection:
            assert schema.stamp(connection, "") == "0001"
        with store.begin() as connection:
            schema.upgrade(connection)
        assert queries.kernels(store, [1500])["total_ns"].tolist() == [420]
        with store.connect() as connection:
            assert schema.drift(connection) == ""
