"""What holds for every input: what goes in comes out, and nothing depends on the order of rows."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.factories import EPOCH_NS, capture, record, table
from tracker.profile import MISSING
from tracker.store import queries, save_run

names = st.sampled_from(["aten::mm", "aten::add", "(no op)", "Ünï", ""])
times = st.one_of(st.just(MISSING), st.integers(0, 10**15))
keys = st.tuples(names, st.sampled_from(["", "[2]"]), st.sampled_from(["", "A_0"]))
kernel_rows = st.dictionaries(
    st.tuples(st.integers(-1, 3), keys, st.sampled_from(["gemm", "relu"])), st.tuples(times, times), max_size=12
)


def sums(rows, by, place):
    """How often each sum of a kernel under an op comes, in the grain `by`; None: where one of its parts is missing."""
    parts = defaultdict(list)
    for rank, own in enumerate(rows):
        for (step, (op, shapes, _module), kernel), times in own.items():
            grain = (rank if "rank" in by else 0, step if "step" in by else 0)
            parts[grain, op, shapes, kernel].append(times[place])
    return Counter(None if MISSING in values else sum(values) for values in parts.values())


def made(rank, rows, order=1):
    """A capture of these kernel rows: (step, op key, kernel) -> (total_ns, wait_ns)."""
    ops = list(dict.fromkeys(key for _, key, _ in rows))[::order]
    kernels = ["relu", "gemm"][::order]
    listed = list(rows.items())[::order]
    own = [
        {"step": step, "kernel_key": kernels.index(kernel), "op_key": ops.index(op), "category": "other", "calls": 1}
        | {"total_ns": times[0], "wait_ns": times[1], "min_ns": times[0], "max_ns": times[0]}
        for (step, op, kernel), times in listed
    ]
    tables = {
        "op_key": table("op_key", [{"name": n, "input_shapes": s, "module": m} for n, s, m in ops]),
        "kernel_key": table("kernel_key", [{"name": name} for name in kernels]),
        "kernel": table("kernel", own),
    }
    base = capture(rank, world_size=2, started_at_ns=EPOCH_NS)
    return replace(base, rows=replace(base.rows, tables=tables))


@given(rows=st.tuples(kernel_rows, kernel_rows))
def test_totals_are_kept_from_capture_to_query_at_every_grain(store, rows):
    saved = save_run(
        store,
        record(started_at_ns=None),
        [made(rank, own) for rank, own in enumerate(rows)],
        formats=["torch_profiler"],
    )
    times = [time for own in rows for time in own.values()]
    for by in ((), ("rank",), ("step",), ("stage", "rank", "step")):
        frame = queries.kernels(store, [saved.run_id], by=by).frame
        assert frame["calls"].sum() == len(times)
        for place, column in enumerate(("total_ns", "wait_ns")):
            found = Counter(None if pd.isna(number) else int(number) for number in frame[column])
            assert found == sums(rows, by, place)
    inside = queries.kernels(store, [saved.run_id], in_steps=True).frame
    assert inside["calls"].sum() == sum(1 for own in rows for step, _, _ in own if step >= 0)


@given(rows=kernel_rows)
def test_the_order_of_rows_does_not_matter(store, rows):
    frames = []
    for order in (1, -1):
        saved = save_run(store, record(), [replace(made(0, rows, order), world_size=1)], formats=["torch_profiler"])
        frames.append(queries.kernels(store, [saved.run_id], by=("rank", "step")).frame.drop(columns="run_id"))
    assert frames[0].equals(frames[1])


@given(values=st.lists(st.integers(-(2**63) + 1, 2**63 - 1), min_size=1, max_size=5))
def test_every_int64_but_missing_comes_back_exactly(store, values):
    base = capture()
    curve = [{"component": "cpu", "time_ns": at, "allocated_bytes": value} for at, value in enumerate(values)]
    tables = {**base.rows.tables, "memory_curve": table("memory_curve", curve)}
    saved = save_run(
        store, record(), [replace(base, rows=replace(base.rows, tables=tables))], formats=["torch_profiler"]
    )
    frame = queries.memory_curve(store, [saved.run_id]).frame
    assert frame["allocated_bytes"].tolist() == values
    assert frame["allocated_bytes"].to_numpy(dtype=np.int64).tolist() == values


@given(name=st.text(max_size=30))
def test_every_text_can_be_stored_and_is_told_apart(store, name):
    other = f"{name}."
    base = capture(ops=[(name, 2), (other, 1)])
    saved = save_run(store, record(), [base], formats=["torch_profiler"])
    found = queries.ops(store, [saved.run_id]).frame["name"].tolist()
    assert found[0] == name.replace("\0", "\\x00")
    assert found[1] == found[0] + "."
