"""Texts of ops, of details and frames of call stacks are stored once."""

from __future__ import annotations

from sqlalchemy import text

from tests.factories import save
from tracker.store import queries


def counted(store, table: str) -> int:
    with store.connect() as connection:
        return connection.execute(text(f"SELECT COUNT(*) FROM {table}")).scalar_one()


def test_stacks_that_share_frames_store_each_frame_once(store):
    inner, deeper = "b.py(2): g;c.py(3): h", "a.py(1): f;b.py(2): g;c.py(3): h"
    stacks = {"aten::mm": deeper, "aten::relu": inner}
    save(store, ops=[(name, 5, {"call_stack": stack}) for name, stack in stacks.items()])
    found = queries.ops(store, [1]).frame
    assert dict(zip(found["name"], found["call_stack"], strict=True)) == stacks
    assert counted(store, "call_stack") == 3  # h, g of h, f of g of h
    save(store, "v2", ops=[("aten::mm", 5, {"call_stack": f"new.py(9): n;{deeper}"})])
    assert counted(store, "call_stack") == 4, "the new frame alone"


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
    assert queries.counters(store, [1]).frame[["source", "name", "attribute"]].values.tolist() == [[path] * 3]
