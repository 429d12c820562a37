"""Schema 0021 stores every text of a detail row once: a database of 0020 says the same afterwards, and taken back."""

from __future__ import annotations

from hashlib import blake2b

import pytest
from alembic import command
from sqlalchemy import text

from tests.factories import same_table, save
from tests.store.test_op_texts import insert
from tests.store.test_upgrades import MISSING, ROWS, made_partition
from tracker.store import connect, health, open_store, queries, schema

DETAIL_TABLES = (
    "api", "communication", "communication_link", "communication_task", "counter", "kernel", "kernel_metric", "memory",
    "memory_curve", "op", "op_tree", "step",
)  # fmt: skip
# "device" is the name of an op as well; the second run lies in another partition; rows by primary key
DETAILS = {
    "kernel": [
        "run_id, rank, step, kernel_key_id, op_key_id, category, calls, total_ns, wait_ns, sum_squares_ns2",
        (1500, 0, 7, 1, 1, "copy", 1, 5, MISSING, 25.0),
        (1500, 0, 7, 1, 1, "matmul", 2, 200, 3, 2e4),
        (2600, 1, 0, 1, 1, "matmul", 1, 2**62, MISSING, MISSING),
    ],
    "kernel_metric": [
        "run_id, rank, kernel_key_id, metric, calls, mean, min, max",
        (1500, 0, 1, "cube", 2, 0.5, 0.25, 0.75),
        (1500, 0, 1, "vec", 2, 0.125, 0.0, 0.25),
    ],
    "communication": [
        "run_id, rank, ordinal, step, kind, process_group_id, data_type, size_class_bytes, calls, total_ns",
        (1500, 0, 0, 7, "send", 1, "", -1, 1, 50),
        (1500, 0, 1, 7, "all_reduce", 1, "bf16", 1024, 2, 60),
    ],
    "communication_task": [
        "run_id, rank, ordinal, communication, name, plane, calls, total_ns",
        (1500, 0, 0, 1, "Reduce_Inline", "3", 1, 30),
        (1500, 0, 1, 1, "Memcpy", "", 1, 20),
    ],
    "communication_link": [
        "run_id, rank, ordinal, communication, transport, source, target, packet_bytes, calls, bytes",
        (1500, 0, 0, 1, "SDMA", 0, 1, -1, 1, 64),
    ],
    "memory": [
        "run_id, rank, step, op_key_id, component, calls, bytes",
        (1500, 0, 7, 1, "cpu", 1, 8),
        (1500, 0, 7, 1, "device", 2, 512),
    ],
    "memory_curve": [
        "run_id, rank, ordinal, component, time_ns, allocated_bytes",
        (1500, 0, 0, "device", 1, 64),
        (1500, 0, 1, "cpu", 1, 8),
        (2600, 1, 0, "device", 3, 128),
    ],
    "counter": [
        "run_id, rank, ordinal, step, source, name, attribute, calls, mean",
        (1500, 0, 0, 7, "dataset", "Überholung/batch", "time (us)", 4, 1.5),
        (2600, 1, 0, 0, "l2", "matmul", "hits", 1, MISSING),
    ],
    "api": [
        "run_id, rank, ordinal, step, level, name, calls, total_ns",
        (1500, 0, 0, 7, "runtime", "cudaLaunchKernel", 2, 9),
        (1500, 0, 1, 7, "driver", "cuLaunchKernel", 2, 4),
    ],
}
LINE = {"workload_id": 1, "configuration_id": 1, "device_id": 1}
SERIES = {5: ("kernel", "total_ns", "gemm", "", ""), 9: ("op", "device_self_ns", "device", "[2]", "")}
BATCH_32 = blake2b(b"batch\x0032", digest_size=16).digest()
TEXTS_OF_OPS = {1: "", 4: "device"}


def digest_of(number: int, size: int) -> bytes:
    parts = (*LINE.values(), *SERIES[number])
    return blake2b("\0".join(map(str, parts)).encode(), digest_size=size).digest()


def rows_of(table: str, entries: list[object]) -> list[dict[str, object]]:
    names, *rows = entries
    return [dict(zip(map(str.strip, names.split(",")), row, strict=True)) for row in rows]


def made_at_0020(url: str) -> None:
    """Rows in every table with texts under schema 0020, by plain inserts: nothing here may follow the code."""
    if url.startswith("sqlite"):
        schema.use_write_ahead_log(connect.open_engine(url), 1000)
    with connect.open_engine(url).begin() as connection:
        schema.upgrade(connection, "0020")
        if connection.dialect.name == "postgresql":
            for table in DETAIL_TABLES:
                made_partition(connection, table)
                second = f"{table}_p2000 PARTITION OF {table} FOR VALUES FROM (2000) TO (3000)"
                connection.execute(text(f"CREATE TABLE {second}"))
        for table in (
            "workload",
            "configuration",
            "version",
            "device",
            "run",
            "capture",
            "kernel_key",
            "process_group",
        ):
            for row in rows_of(table, ROWS[table]):
                own = {"fingerprint": BATCH_32} if table == "configuration" else {}
                insert(connection, table, **(row | own))
        insert(connection, "run", **(rows_of("run", ROWS["run"])[0] | {"id": 2600}))
        insert(connection, "capture", **(rows_of("capture", ROWS["capture"])[1] | {"run_id": 2600}))
        for number, own in TEXTS_OF_OPS.items():
            digest = blake2b(own.encode(), digest_size=8).digest()
            insert(connection, "op_text", id=number, digest=digest, text=own)
        insert(connection, "op_key", id=1, name_id=4, input_shapes_id=1, input_types_id=1, module_id=1, phase_id=1)
        for table, entries in DETAILS.items():
            for row in rows_of(table, entries):
                insert(connection, table, **row)
        for number, (kind, metric, name, shapes, part) in SERIES.items():
            own = {"kind": kind, "metric": metric, "name": name, "input_shapes": shapes, "part": part}
            insert(connection, "series", id=number, digest=digest_of(number, 16), **LINE, **own)
        if connection.dialect.name == "postgresql":  # where ids were given by hand, nobody counted them
            for table in (
                "workload",
                "configuration",
                "version",
                "device",
                "op_text",
                "op_key",
                "kernel_key",
                "series",
            ):
                connection.execute(text(f"SELECT setval('{table}_id_seq', 100)"))
            connection.execute(text("SELECT setval('run_id_seq', 2600)"))


def downgraded(url: str) -> None:
    with connect.open_engine(url).begin() as connection:
        command.downgrade(schema.alembic_config(connection), "0020")


def asked(url: str, question: str) -> list[tuple[object, ...]]:
    with connect.open_engine(url).connect() as connection:
        return [tuple(row) for row in connection.execute(text(question))]


def digests(url: str) -> dict[int, bytes]:
    return {number: bytes(digest) for number, digest in asked(url, "SELECT id, digest FROM series")}


EXPECTED = {
    queries.kernels: """
        run_id name op category calls total_ns wait_ns sum_squares_ns2
        2600 gemm device matmul 1 4611686018427387904 - -
        1500 gemm device matmul 2 200 3 20000
        1500 gemm device copy 1 5 - 25
    """,
    queries.kernel_metrics: "run_id name metric calls mean\n 1500 gemm cube 2 0.5\n 1500 gemm vec 2 0.125",
    queries.communication: """
        kind group_role data_type size_class_bytes calls total_ns
        all_reduce dp bf16 1024 2 60
        send dp '' - 1 50
    """,
    queries.communication_tasks: "kind name plane total_ns\n all_reduce Reduce_Inline 3 30\n all_reduce Memcpy '' 20",
    queries.communication_links: "kind transport source_rank target_rank bytes\n all_reduce SDMA 0 1 64",
    queries.memory: "op component calls bytes\n device device 2 512\n device cpu 1 8",
    queries.memory_curve: """
        run_id rank component time_ns allocated_bytes
        1500 0 cpu 1 8
        1500 0 device 1 64
        2600 1 device 3 128
    """,
    queries.memory_peaks: """
        run_id rank component allocated_bytes
        1500 0 cpu 8
        1500 0 device 64
        2600 1 device 128
    """,
    queries.counters: """
        run_id source name attribute calls mean
        1500 dataset Überholung/batch time_(us) 4 1.5
        2600 l2 matmul hits 1 -
    """,
    queries.api: "level name total_ns\n runtime cudaLaunchKernel 9\n driver cuLaunchKernel 4",
}


@pytest.mark.parametrize("often", [1, 2], ids=["up", "up, down and up"])
def test_every_question_has_the_answer_that_it_had(empty_url, often):
    made_at_0020(empty_url)
    for turn in range(often):
        if turn:
            downgraded(empty_url)
        assert connect.upgrade(empty_url) == ("0020", schema.SCHEMA_HEAD)
    with open_store(empty_url, create=False) as store:
        assert health.check(store) == []
        for question, expected in EXPECTED.items():
            same_table(question(store, [1500, 2600]), expected)


def test_each_text_is_there_once_and_texts_of_ops_keep_their_numbers(empty_url):
    made_at_0020(empty_url)
    connect.upgrade(empty_url)
    known = asked(empty_url, "SELECT id, text, digest FROM detail_text")
    details = {
        value
        for table, entries in DETAILS.items()
        for row in rows_of(table, entries)
        for value in row.values()
        if isinstance(value, str)
    }
    assert sorted(own for _, own, _ in known) == sorted({*details, *TEXTS_OF_OPS.values()})
    assert TEXTS_OF_OPS.items() <= {(number, own) for number, own, _ in known}
    assert all(bytes(digest) == blake2b(own.encode(), digest_size=8).digest() for _, own, digest in known)


def test_taken_back_every_row_is_what_it_was(empty_url):
    made_at_0020(empty_url)
    connect.upgrade(empty_url)
    assert digests(empty_url) == {number: digest_of(number, 8) for number in SERIES}
    downgraded(empty_url)
    assert digests(empty_url) == {number: digest_of(number, 16) for number in SERIES}
    for table, (names, *rows) in DETAILS.items():
        columns = asked(empty_url, f"SELECT {names} FROM {table}")
        assert sorted(columns, key=str) == sorted(rows, key=str), table


def test_an_upgraded_database_takes_more_runs_and_finds_its_series_and_texts(empty_url):
    """A run of the same line, whose number falls into a partition that was there before."""
    made_at_0020(empty_url)
    with open_store(empty_url) as store:
        ((before,),) = asked(empty_url, "SELECT COUNT(*) FROM detail_text")
        (run,) = save(
            store, "v2", of_run={"configuration": {"batch": "32"}}, ops=[("device", 9, {"input_shapes": "[2]"})],
            kernels=[("gemm", 9, {"category": "matmul"})], memory=[("device", 7, {"input_shapes": "[2]"})],
        )  # fmt: skip
        assert run == 2601
        same_table(queries.kernels(store, [run]), "name op category total_ns\n gemm device matmul 9")
        same_table(queries.memory(store, [run]), "op component bytes\n device device 7")
        ((after,),) = asked(empty_url, "SELECT COUNT(*) FROM detail_text")
        assert after == before + 2, "its shape, [2], and the op that allocated, aten::empty"
        told = asked(empty_url, "SELECT DISTINCT series_id FROM sample")
        assert {(5,), (9,)} <= set(told)
        assert len(asked(empty_url, "SELECT id FROM series WHERE kind IN ('kernel', 'op')")) == 2
