"""Ops and kernels, whose keys are read apart from their numbers, against one question and a loop over its rows."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from sqlalchemy import text

from tests.factories import EPOCH_NS, capture, record, same_table, save, table
from tracker.profile import MISSING
from tracker.store import queries, save_run
from tracker.store.queries import ops_and_kernels

OP = ("name", "input_shapes", "input_types", "module", "phase")
KERNEL = ("name", "canonical_name", "type", "core_type", "input_shapes", "category", "op", "op_input_shapes")
SUMS = ("calls", "total_ns", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns", "kernel_count")
SUMS += (
    "sum_squares_ns2",
    "wait_ns",
    "bytes",
    "self_by_quartile_ns",
    "self_by_median_ns",
    "beside_ns",
    "sequence_saved_ns",
)
KEYS = """
(SELECT k.id, n.text AS name, i.text AS input_shapes, y.text AS input_types, m.text AS module, h.text AS phase
FROM op_key AS k INNER JOIN detail_text AS n ON k.name_id = n.id INNER JOIN detail_text AS i ON k.input_shapes_id = i.id
INNER JOIN detail_text AS y ON k.input_types_id = y.id INNER JOIN detail_text AS m ON k.module_id = m.id
INNER JOIN detail_text AS h ON k.phase_id = h.id)
"""
ROWS_OF_OPS = f"""
SELECT d.*, c.stage, t.text AS call_stack, w.text AS raw_name, k.name, k.input_shapes, k.input_types, k.module, k.phase
FROM op AS d INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank INNER JOIN {KEYS} AS k
ON d.op_key_id = k.id LEFT JOIN call_stack AS s ON d.call_stack_id = s.id
LEFT JOIN detail_text AS t ON s.frame_id = t.id LEFT JOIN detail_text AS w ON d.raw_name_id = w.id
ORDER BY d.call_stack_id
"""
ROWS_OF_KERNELS = f"""
SELECT d.*, c.stage, k.name, k.canonical_name, k.type, k.core_type, k.input_shapes, t.text AS category, o.name AS op,
o.input_shapes AS op_input_shapes FROM kernel AS d INNER JOIN capture AS c ON d.run_id = c.run_id AND d.rank = c.rank
INNER JOIN kernel_key AS k ON d.kernel_key_id = k.id INNER JOIN {KEYS} AS o ON d.op_key_id = o.id
INNER JOIN detail_text AS t ON d.category_id = t.id
"""

times = st.one_of(st.just(MISSING), st.integers(0, 5))
op_keys = st.tuples(*(st.sampled_from(["", text]) for text in ("mm", "[2]", "Ü", "A", "backward")))
op_rows = st.dictionaries(
    st.tuples(st.integers(-1, 2), op_keys),
    st.tuples(times, times, times, st.sampled_from(["", "a", "b"]), st.sampled_from(["", "mm_1", "mm_2"])),
    max_size=12,
)
kernel_keys = st.tuples(st.sampled_from(["gemm", "relu"]), st.sampled_from(["f16", "f32"]))
kernel_rows = st.dictionaries(
    st.tuples(st.integers(-1, 2), kernel_keys, op_keys, st.sampled_from(["matmul", "copy"])),
    st.tuples(times, times, times),
    max_size=12,
)
grains = st.sampled_from([(), ("rank",), ("step",), ("stage",), ("stage", "rank", "step")])


def with_tables(rank, **tables):
    """One of two ranks, which are two stages, with these tables and no others."""
    base = capture(rank, world_size=2, stage=rank, started_at_ns=EPOCH_NS)
    return replace(base, rows=replace(base.rows, tables=tables))


def keys_of_ops(found):
    return table("op_key", [dict(zip(OP, key, strict=True)) for key in found])


def with_ops(rank, rows):
    """A rank of ops: (step, op) -> calls, device self time, smallest time, call stack, name as written."""
    found = list(dict.fromkeys(key for _, key in rows))
    own = [
        {"step": step, "op_key": found.index(key), "calls": calls, "device_self_ns": ns, "host_self_ns": least}
        | {"min_ns": least, "max_ns": ns, "host_min_ns": ns, "host_max_ns": least, "call_stack": stack}
        | {"raw_name": raw_name}
        | {"self_by_quartile_ns": least, "self_by_median_ns": ns}
        for (step, key), (calls, ns, least, stack, raw_name) in rows.items()
    ]
    return with_tables(rank, op_key=keys_of_ops(found), op=table("op", own))


def with_kernels(rank, rows):
    """A rank of kernels: (step, kernel, launching op, category) -> calls, total, wait."""
    ops, kernels = (list(dict.fromkeys(key[at] for key in rows)) for at in (2, 1))
    own = [
        {"step": step, "kernel_key": kernels.index(kernel), "op_key": ops.index(op), "category": category}
        | {"calls": calls, "total_ns": ns, "wait_ns": wait, "min_ns": ns, "max_ns": wait, "block_num": calls}
        for (step, kernel, op, category), (calls, ns, wait) in rows.items()
    ]
    names = table(
        "kernel_key", [{"name": name, "canonical_name": "k", "input_types": types} for name, types in kernels]
    )
    return with_tables(rank, op_key=keys_of_ops(ops), kernel_key=names, kernel=table("kernel", own))


def whole(values):
    """Their sum, None where one is not there."""
    return None if None in values else sum(values)


def known(values, how):
    """`how` of those that are there, None without any."""
    there = [value for value in values if value is not None]
    return how(there) if there else None


def slow(store, run_id, question, key, by, in_steps):
    """The groups of the rows of a run, in any order: their key -> their numbers."""
    with store.connect() as connection:
        rows = [dict(row) for row in connection.execute(text(question)).mappings() if row["run_id"] == run_id]
    groups = {}
    for row in rows:
        if not in_steps or row["step"] >= 0:
            groups.setdefault(tuple(row[name] for name in (*by, *key)), []).append(row)
    return {group: numbers(own) for group, own in groups.items()}


def numbers(rows):
    """What one row of the answer says of these rows."""
    found = {name: whole([row[name] for row in rows]) for name in SUMS if name in rows[0]}
    for name, how in (("min_ns", min), ("max_ns", max), ("host_min_ns", min), ("host_max_ns", max), ("block_num", max)):
        if name in rows[0]:
            found[name] = known([row[name] for row in rows], how)
    if "raw_name" in rows[0]:
        # one of several: the one that the database numbered first
        name_of_id = {row["raw_name_id"]: row["raw_name"] for row in rows}
        found["raw_name"] = name_of_id[known(list(name_of_id), min)]
    if "call_stack" in rows[0]:
        calls = {}  # in the order in which the database numbered them
        for row in rows:
            if row["call_stack"] is not None:
                calls.setdefault(row["call_stack"], []).append(row["calls"])
        often = {stack: whole(own) for stack, own in calls.items()}
        found["call_stack"] = max(often, key=lambda stack: -1 if often[stack] is None else often[stack], default=None)
    return found


def as_groups(frame, key, by):
    """The same of an answer."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    head = (*by, *key)
    return {
        tuple(row[name] for name in head): {name: row[name] for name in row if name not in (*head, "run_id")}
        for row in rows
    }


def assert_in_order(frame, largest, key, by):
    """The largest first, a missing number as -1; then by key and grain, no stage before the first."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    order = [
        (
            *(-(-1 if row[name] is None else row[name]) for name in largest),
            *(row[name] for name in key),
            *(-1 if row[name] is None else row[name] for name in by),
        )
        for row in rows
    ]
    assert order == sorted(order)


@given(ranks=st.tuples(op_rows, op_rows), by=grains, in_steps=st.booleans())
def test_ops_are_the_groups_of_their_rows(store, ranks, by, in_steps):
    captures = [with_ops(rank, rows) for rank, rows in enumerate(ranks)]
    run_id = save_run(store, record(started_at_ns=None), captures, formats=["torch_profiler"]).run_id
    frame = queries.ops(store, [run_id], by=by, in_steps=in_steps).frame
    assert as_groups(frame, OP, by) == slow(store, run_id, ROWS_OF_OPS, OP, by, in_steps)
    assert_in_order(frame, ["device_self_ns", "host_self_ns"], OP, by)


@given(ranks=st.tuples(kernel_rows, kernel_rows), by=grains, in_steps=st.booleans())
def test_kernels_are_the_groups_of_their_rows(store, ranks, by, in_steps):
    captures = [with_kernels(rank, rows) for rank, rows in enumerate(ranks)]
    run_id = save_run(store, record(started_at_ns=None), captures, formats=["torch_profiler"]).run_id
    frame = queries.kernels(store, [run_id], by=by, in_steps=in_steps).frame
    assert as_groups(frame, KERNEL, by) == slow(store, run_id, ROWS_OF_KERNELS, KERNEL, by, in_steps)
    assert_in_order(frame, ["total_ns"], KERNEL, by)


def test_keys_that_were_read_are_not_asked_for_again_and_new_ones_are(store):
    save(store, runs=2, ops=[("mm", 5)], kernels=[("gemm", 5)])
    save(store, "v2", ops=[("mm", 5), ("relu", 3)], kernels=[("gemm", 5)])
    queries.ops(store, [1])
    (number,) = (at for at, texts in store.keys["op_key"].items() if texts[0] == "mm")
    store.keys["op_key"][number] = ("read before", "", "", "", "")
    assert queries.ops(store, [2]).frame["name"].tolist() == ["read before"]
    same_table(queries.ops(store, [3]).frame, "name device_self_ns\n read_before 5\n relu 3")


def test_no_more_keys_are_kept_than_fit(store, monkeypatch):
    monkeypatch.setattr(ops_and_kernels, "_MOST_KEPT", 1)
    for run in range(1, 4):
        save(store, f"v{run}", ops=[(f"a{run}", 2), (f"b{run}", 1)])
        assert queries.ops(store, [run]).frame["name"].tolist() == [f"a{run}", f"b{run}"]
        assert len(store.keys["op_key"]) == 2


@pytest.mark.parametrize("question", [queries.ops, queries.kernels])
def test_of_no_run_there_is_nothing_and_its_columns(store, question):
    save(store)
    nothing = question(store, [99], by=("stage", "rank")).frame
    something = question(store, [1], by=("stage", "rank")).frame
    assert nothing.empty
    pd.testing.assert_series_equal(nothing.dtypes, something.dtypes)
