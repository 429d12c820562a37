"""Texts of ops, of details and frames of call stacks are stored once; the upgrade to that loses none, and goes back."""

from __future__ import annotations

from alembic import command
from sqlalchemy import text

from tests.factories import save
from tests.store.test_upgrades import MISSING, ROWS
from tracker.store import connect, open_store, queries, schema
from tracker.store.dimensions import digest_of

STACKS = {7: "a.py(1): f;b.py(2): g;c.py(3): h", 3: "b.py(2): g;c.py(3): h", 4: "c.py(3): h", 9: "z.py(1): f"}
OPS = {
    1: ("aten::mm", "[[2,2]]", "float", "net/linear", "forward"),
    2: ("aten::mm", "[[2,2]]", "float", "net/linear", "backward"),
    8: ("aten::add", "", "", "net/linear", "forward"),
}
ROWS_OF_OPS = [(1, 7), (2, 3), (8, None)]


def made_at_0016(url: str) -> None:
    """A run with three ops under schema 0016, by plain inserts: nothing here may follow the code."""
    if url.startswith("sqlite"):
        schema.use_write_ahead_log(connect.open_engine(url), 1000)
    with connect.open_engine(url).begin() as connection:
        schema.upgrade(connection, "0016")
        if connection.dialect.name == "postgresql":
            connection.execute(text("CREATE TABLE op_p1000 PARTITION OF op FOR VALUES FROM (1000) TO (2000)"))
        for table in ("workload", "configuration", "version", "device", "run", "capture"):
            columns, *rows = ROWS[table]
            for row in rows:
                insert(connection, table, **dict(zip(map(str.strip, columns.split(",")), row, strict=True)))
        for number, parts in OPS.items():
            names = ("name", "input_shapes", "input_types", "module", "phase")
            insert(connection, "op_key", id=number, digest=digest_of(parts), **dict(zip(names, parts, strict=True)))
        for number, stack in STACKS.items():
            insert(connection, "call_stack", id=number, digest=digest_of([stack]), text=stack)
        for op, stack in ROWS_OF_OPS:
            insert(connection, "op", run_id=1500, rank=0, step=7, op_key_id=op, calls=1, device_self_ns=10 * op,
                   call_stack_id=stack)  # fmt: skip


def insert(connection, table: str, **values: object) -> None:
    known = {name: value for name, value in values.items() if value is not MISSING}
    marks = ", ".join(f":{name}" for name in known)
    connection.execute(text(f"INSERT INTO {table} ({', '.join(known)}) VALUES ({marks})"), known)


def counted(store, table: str) -> int:
    with store.connect() as connection:
        return connection.execute(text(f"SELECT COUNT(*) FROM {table}")).scalar_one()


def told(store):
    found = queries.ops(store, [1500])
    columns = ["name", "input_shapes", "input_types", "module", "phase", "call_stack"]
    return set(found[columns].fillna("-").itertuples(index=False, name=None))


EXPECTED = {(*OPS[op], STACKS[stack] if stack else "-") for op, stack in ROWS_OF_OPS}


def test_texts_of_ops_are_the_same_before_and_after(empty_url):
    made_at_0016(empty_url)
    with open_store(empty_url) as store:
        assert told(store) == EXPECTED
        assert (counted(store, "op_key"), counted(store, "call_stack")) == (3, 4)  # h, g of h, f of g of h, f of z
        # mm, add, [[2,2]], float, "", net/linear, forward, backward; frames
        assert counted(store, "detail_text") == 8 + 4


def test_the_way_back_gives_the_texts_and_their_digests(empty_url):
    made_at_0016(empty_url)
    connect.upgrade(empty_url)
    with connect.open_engine(empty_url).begin() as connection:
        command.downgrade(schema.alembic_config(connection), "0016")
        rows = connection.execute(text("SELECT id, digest, name, input_shapes, input_types, module, phase FROM op_key"))
        assert {row[0]: tuple(row[2:]) for row in rows if bytes(row[1]) == digest_of(row[2:])} == OPS
        rows = connection.execute(
            text("SELECT o.op_key_id, s.text, s.digest FROM op AS o JOIN call_stack AS s ON o.call_stack_id = s.id")
        ).all()
        assert {(op, stack) for op, stack, _ in rows} == {(1, STACKS[7]), (2, STACKS[3])}
        assert all(bytes(digest) == digest_of([stack]) for _, stack, digest in rows)
    with open_store(empty_url) as store:
        assert told(store) == EXPECTED


def test_an_upgraded_database_takes_more_ops_and_stacks(empty_url):
    made_at_0016(empty_url)
    with open_store(empty_url) as store:
        if store.dialect == "postgresql":  # where ids were given by hand, nobody counted them
            with store.begin() as connection:
                connection.execute(text("DROP TABLE op_p1000"))  # it would be made with those of the other tables
                for table in ("workload", "configuration", "version", "device", "run"):
                    connection.execute(text(f"SELECT setval('{table}_id_seq', 1500)"))
        deeper = "new.py(9): n;a.py(1): f;b.py(2): g;c.py(3): h"
        ops = [("aten::mm", 5, {"call_stack": deeper}), ("aten::relu", 6, {"call_stack": STACKS[3]})]
        (run,) = save(store, "v2", ops=ops)
        assert dict(zip(*(queries.ops(store, [run])[name] for name in ("name", "call_stack")), strict=True)) == {
            "aten::mm": deeper,
            "aten::relu": STACKS[3],
        }
        assert counted(store, "call_stack") == 4 + 1  # the new frame alone


def test_a_text_that_recurs_in_thousands_of_rows_is_stored_once(store):
    """A module path in 2 ranks x 1,000 steps, which is the name of an op and a category as well."""
    path = "Model_0/Block_0/Attention_0"
    save(
        store, ranks=2, steps=1000, ops=[(path, 5)], kernels=[("gemm", 5, {"category": path})],
        counters=[(path, path, path, 1.0)], memory=[(path, 8, {"component": path})],
    )  # fmt: skip
    assert counted(store, "counter") == counted(store, "kernel") == counted(store, "memory") == 2 * 1000
    with store.connect() as connection:
        question = text("SELECT COUNT(*) FROM detail_text WHERE text = :path")
        assert connection.execute(question, {"path": path}).scalar_one() == 1
        columns = (
            ("kernel", "category_id"),
            ("counter", "source_id"),
            ("counter", "attribute_id"),
            ("op_key", "name_id"),
        )
        for table, column in columns:
            assert len(connection.execute(text(f"SELECT DISTINCT {column} FROM {table}")).all()) == 1
    assert queries.counters(store, [1])[["source", "name", "attribute"]].values.tolist() == [[path] * 3]
