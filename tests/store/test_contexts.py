"""Calling contexts: packed and back, and the sums of them against a loop over their rows."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from tests.factories import capture, record, same_table, save, table
from tests.store.test_ops_and_kernels import keys_of_ops, with_tables
from tracker.errors import StoreError
from tracker.profile import MISSING
from tracker.store import queries, save_run
from tracker.store.packing import CONTEXT_COLUMNS, CONTEXT_NUMBERS, pack_contexts, unpack_contexts

OPS = (("mm", "[2]", "f", "", ""), ("mm", "[2]", "f", "net", ""), ("mm", "[3]", "f", "", ""), ("Ü", "", "", "", ""))
ANSWER = ("run_id", "rank", "stage", "step", "node", "parent", "name", "input_shapes", "input_types", *CONTEXT_NUMBERS)

whole = st.one_of(st.just(MISSING), st.integers(-3, 300), st.integers(-(2**63), 2**63 - 1))
few = st.one_of(st.just(MISSING), st.integers(0, 5))
# the second and third context are called from elsewhere, or are another op, in some steps: no profile has that
of_a_step = st.tuples(st.integers(-1, 1), st.integers(0, len(OPS) - 1), few, few, few, few, few)
trees = st.dictionaries(st.tuples(st.integers(-1, 3), st.integers(0, 2)), of_a_step, max_size=10)


def columns(rows):
    """Rows with the values of COLUMNS as `packed` takes them."""
    return dict(zip(CONTEXT_COLUMNS, np.array(rows, dtype=np.int64).reshape(-1, len(CONTEXT_COLUMNS)).T, strict=True))


def rows_of(contexts):
    """The rows that `unpacked` gave."""
    lines = (contexts.node, contexts.parent, contexts.op_key_id)
    return list(zip(*(line[contexts.place].tolist() for line in lines), contexts.step.tolist(),
                    *contexts.numbers.tolist(), strict=True))  # fmt: skip


@given(st.lists(st.tuples(*[st.one_of(st.integers(-1, 2), whole)] * 4, *[whole] * len(CONTEXT_NUMBERS))))
def test_rows_are_packed_to_bytes_and_back(rows):
    assert sorted(rows_of(unpack_contexts(pack_contexts(columns(rows))))) == sorted(rows)


def test_contexts_and_their_steps_come_back_in_order():
    """Of the root in two steps, and of what it calls in one."""
    found = unpack_contexts(
        pack_contexts(columns([(1, 0, 9, 4, 5, 5, 5, 5, 5), (0, -1, 7, 4, *[2] * 5), (0, -1, 7, 3, *[1] * 5)]))
    )
    assert (found.node.tolist(), found.parent.tolist(), found.op_key_id.tolist()) == ([0, 1], [-1, 0], [7, 9])
    assert (found.place.tolist(), found.step.tolist()) == ([0, 0, 1], [3, 4, 4])
    assert found.numbers.tolist() == [[1, 2, 5]] * 5


def test_the_format_of_the_bytes_is_the_one_that_databases_hold():
    """One context (node 2, parent -1, op 300, a single row) and its row: step 7, calls 1, the times 300, 0 and missing,
    2 device events. Twice each number, less one below zero; the lowest bytes of a line first.
    """
    plain = zlib.decompress(pack_contexts(columns([(2, -1, 300, 7, 1, 300, 0, MISSING, 2)])))
    assert plain == struct.pack("<q4Q6Q", 1, 4, 1, 600, 2, 14, 2, 600, 0, 2**64 - 1, 4)
    two_steps = zlib.decompress(pack_contexts(columns([(0, 0, 0, 1, *[0] * 5), (0, 0, 0, 200, *[0] * 5)])))
    assert two_steps[8 + 4 * 8 :] == b"\2\x8e" + b"\0\1" + bytes(12) + bytes(5 * 16)


def test_a_hundred_contexts_that_steps_share_take_little_more_than_their_times():
    rows = [(node, node - 1, node + 50, step, 1, 1000 + 7 * node % 64 + step, 0, 0, 3)
            for step in range(50) for node in range(100)]  # fmt: skip
    assert len(pack_contexts(columns(rows))) < 5000, "a byte for each of 5000 rows"


@pytest.mark.parametrize("content", [b"", b"none", zlib.compress(b"1"), zlib.compress(struct.pack("<4q", 1, 2, 3, 4))])
def test_bytes_that_are_no_contexts_are_told(content):
    with pytest.raises(ValueError, match=r".") as caught:
        unpack_contexts(content)
    assert type(caught.value) is ValueError


def test_bytes_that_were_cut_or_changed_are_told():
    whole = pack_contexts(columns([(node, -1, 3, 0, *[node] * 5) for node in range(99)]))
    for damaged in (whole[:-9], whole[:40] + b"x" + whole[41:]):
        with pytest.raises(ValueError, match="no calling contexts"):
            unpack_contexts(damaged)


def with_tree(rank, tree):
    """A rank with these contexts: (step, node) -> parent, op, numbers."""
    rows = [
        {"step": step, "node": node, "parent": parent, "op_key": op, **dict(zip(CONTEXT_NUMBERS, numbers, strict=True))}
        for (step, node), (parent, op, *numbers) in tree.items()
    ]
    return with_tables(rank, op_key=keys_of_ops(OPS), op_tree=table("op_tree", rows))


def slow(run_id, captures, ranks, steps, in_steps, by_step):
    """The answer, by a loop over the rows."""
    groups = {}
    for rank, tree in enumerate(captures):
        for (step, node), (parent, op, *numbers) in tree.items():
            if (ranks is None or rank in ranks) and (steps is None or step in steps) and (step >= 0 or not in_steps):
                group = (
                    run_id,
                    rank,
                    rank,
                    step if by_step else -1,
                    node,
                    parent,
                    *OPS[op][:3],
                )  # each rank is a stage
                groups.setdefault(group, []).append(numbers)
    return [(*group, *map(known_sum, zip(*groups[group], strict=True))) for group in sorted(groups)]


def known_sum(values):
    """Of those that are there, None without any."""
    there = [value for value in values if value != MISSING]
    return sum(there) if there else None


def tuples(frame):
    return list(frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None))


@given(
    captures=st.tuples(trees, trees),
    ranks=st.sampled_from([None, [], [0], [1, 7]]),
    steps=st.sampled_from([None, [], [-1, 1], [2, 3], [9, 2**70]]),
    in_steps=st.booleans(),
    by_step=st.booleans(),
)
def test_the_tree_is_the_sum_of_its_rows(store, captures, ranks, steps, in_steps, by_step):
    placed = [with_tree(rank, tree) for rank, tree in enumerate(captures)]
    run_id = save_run(store, record(started_at_ns=None), placed, formats=["torch_profiler"]).run_id
    found = queries.op_tree(store, [run_id], ranks=ranks, steps=steps, in_steps=in_steps, by_step=by_step).frame
    assert tuple(found.columns) == ANSWER
    assert tuples(found) == slow(run_id, captures, ranks, steps, in_steps, by_step)


def test_of_several_runs_each_has_its_own_tree(store):
    tree = {(0, 0): (-1, 0, 1, 10, 4, 4, 1), (1, 0): (-1, 0, 1, 12, 6, 6, 1), (1, 1): (0, 3, 1, 5, MISSING, 1, 0)}
    for rank_of_two in (0, 1):
        save_run(store, record(f"v{rank_of_two}"), [with_tree(rank_of_two, tree)], formats=["torch_profiler"])
    same_table(
        queries.op_tree(store, [2, 1]).frame,
        """
        run_id rank stage node parent name input_shapes calls host_total_ns device_total_ns device_self_ns kernel_count
        1 0 0 0 -1 mm [2] 2 22 10 10 2
        1 0 0 1 0 Ü '' 1 5 - 1 0
        2 1 1 0 -1 mm [2] 2 22 10 10 2
        2 1 1 1 0 Ü '' 1 5 - 1 0
        """,
    )


@pytest.mark.parametrize("asked", [{"run_ids": []}, {"run_ids": [99]}, {"run_ids": [1], "ranks": []}])
def test_of_nothing_there_is_no_tree_but_its_columns(store, asked):
    save(store)
    nothing, something = queries.op_tree(store, **asked).frame, queries.op_tree(store, [1]).frame
    assert nothing.empty
    pd.testing.assert_series_equal(nothing.dtypes, something.dtypes)
    assert set(something.dtypes.astype(str)) == {"Int64", "string"}


def stored(store):
    """(run, rank) of the rows of op_tree."""
    with store.connect() as connection:
        return [tuple(row) for row in connection.execute(text("SELECT run_id, rank FROM op_tree ORDER BY 1, 2"))]


def test_each_rank_has_one_row_and_none_without_contexts(store):
    save(store, ranks=2, steps=3)
    save(store, "v2", ops=[])
    assert stored(store) == [(1, 0), (1, 1)]


def test_a_damaged_tree_is_told_by_its_run_and_rank(store):
    save(store, ranks=2)
    with store.begin() as connection:
        connection.execute(text("UPDATE op_tree SET contexts = :none WHERE rank = 1"), {"none": b"none"})
    assert len(queries.op_tree(store, [1], ranks=[0]).frame) == 1
    with pytest.raises(StoreError, match="calling contexts of run 1, rank 1 are damaged"):
        queries.op_tree(store, [1])


def test_a_sum_that_no_number_holds_is_told_and_the_largest_is_exact(store):
    one = capture(steps=2)
    one.rows.tables["op_tree"]["host_total_ns"][:] = 2**62, 2**62 - 1
    one.rows.tables["op"]["host_total_ns"][:] = 2**62
    save_run(store, record(), [one], formats=["torch_profiler"])
    assert queries.op_tree(store, [1]).frame["host_total_ns"].tolist() == [2**63 - 1]
    one.rows.tables["op_tree"]["host_total_ns"][:] = 2**62
    save_run(store, record("v2"), [with_tables(0, **one.rows.tables)], formats=["torch_profiler"])
    with pytest.raises(StoreError, match="a sum is too large"):
        queries.op_tree(store, [2])
