"""The module level: modules, phases, ops and kernels as trees whose rows add up."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import capture, record, save
from tracker.compare import diff, show
from tracker.errors import UsageError
from tracker.profile import CPU, MISSING, MODULE_CALLS, NO_OP
from tracker.results import TREE_COLUMNS, TREE_DIFF_COLUMNS, TREES, DiffOptions, ShowOptions
from tracker.store import Store, open_store, save_run

ATTENTION, MLP = "GPT_0/Block_0/Attention_0", "GPT_0/Block_0/MLP_0"
GPT: list[Any] = [
    ("aten::mm", 60, {"module": ATTENTION, "phase": "forward", "input_shapes": "[[2,3]]"}),
    ("aten::mm", 30, {"module": MLP, "phase": "forward", "input_shapes": "[[2,3]]"}),
    ("aten::add", 5, {"module": "GPT_0", "phase": "forward"}),
    ("aten::mm", 40, {"module": MLP, "phase": "backward", "input_shapes": "[[2,3]]", "calls": 2}),
    ("aten::add_", 10, {"phase": "optimizer"}),
    (NO_OP, 3, {"host_total_ns": MISSING, "host_self_ns": MISSING}),
]
CALLS: list[Any] = [
    (MODULE_CALLS, name, "host time (ns)", {"calls": calls, "mean": 9.0, "min": 9.0, "max": 9.0})
    for name, calls in (("GPT_0", 1), ("GPT_0/Block_0", 1), (ATTENTION, 2), (MLP, 1))
]


def tree(store: Store, *by: str, run: str = "v1", **options: Any) -> pd.DataFrame:
    found = show(store, run, options=ShowOptions(by=by, **options)).tree
    assert found is not None
    return found


def lines(frame: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """The indented name of each row and its `columns`; None for missing."""
    names = ["  " * level + name for level, name in zip(frame["level"], frame["name"], strict=True)]
    cells = [[None if pd.isna(value) else value for value in frame[column]] for column in columns]
    return list(zip(names, *cells, strict=True))


def test_a_module_is_the_sum_of_what_is_below_it(store: Store):
    save(store, steps=2, ops=GPT, kernels=[], counters=CALLS)
    found = tree(store, "module")
    assert lines(found, "calls", "device_total_ns", "device_self_ns", "op_calls") == [
        ("GPT_0", 2, 270, 10, 10),
        ("  Block_0", 2, 260, 0, 8),
        ("    MLP_0", 2, 140, 140, 6),
        ("      aten::mm", 6, 140, 140, 6),
        ("    Attention_0", 4, 120, 120, 2),
        ("      aten::mm", 2, 120, 120, 2),
        ("  aten::add", 2, 10, 10, 2),
        ("(no module)", None, 26, 26, 4),
        ("  aten::add_", 2, 20, 20, 2),
        ("  (no op)", 2, 6, 6, 2),
    ]
    assert found["path"].tolist()[:4] == ["GPT_0", "GPT_0/Block_0", MLP, f"{MLP} > aten::mm [[2,3]]"]
    assert list(zip(found["node"], found["parent"], strict=True))[:5] == [(0, -1), (1, 0), (2, 1), (3, 2), (4, 1)]
    assert found["host_total_ns"].tolist()[0] == 540
    assert found["share"].tolist()[0] == pytest.approx(270 / 296)
    assert found["step_share"].tolist()[0] == 270 / 2000
    assert list(found.columns) == list(TREE_COLUMNS)


def test_depth_cuts_levels_and_keeps_the_sums(store: Store):
    save(store, ops=GPT, kernels=[], counters=CALLS)
    whole, cut = tree(store, "module"), tree(store, "module", depth=2)
    assert [name for name, in lines(cut)] == [
        "GPT_0", "  Block_0", "  aten::add", "(no module)", "  aten::add_", "  (no op)",
    ]  # fmt: skip
    assert cut["device_total_ns"].tolist()[:2] == whole["device_total_ns"].tolist()[:2]


def test_phases_hold_their_ops_and_what_has_none_is_other(store: Store):
    save(store, ops=GPT, kernels=[])
    assert lines(tree(store, "phase", depth=1), "device_total_ns") == [
        ("forward", 95), ("backward", 40), ("optimizer", 10), ("other", 3),
    ]  # fmt: skip
    assert lines(tree(store, "phase"), "device_total_ns")[:2] == [("forward", 95), ("  aten::mm", 90)]


def test_sums_of_phases_stand_for_themselves_where_ops_do_not_say_their_phase(store: Store):
    """As Paddle's Model Summary: the ops of the Operator Summary are inside these sums, and not beside them."""
    sums = {"host_self_ns": MISSING, "device_self_ns": MISSING, "device_total_ns": 0}
    ops = [
        ("Forward", 0, {"phase": "forward", "calls": 2, "host_total_ns": 500, **sums}),
        ("Backward", 0, {"phase": "backward", "calls": 1, "host_total_ns": 300, **sums}),
        ("matmul", 0, {"host_total_ns": 600, "host_self_ns": 600}),
    ]
    save(store, ops=ops, kernels=[], device=CPU, step_ns=1000)
    assert lines(tree(store, "phase"), "calls", "host_total_ns") == [
        ("forward", 2, 500), ("backward", 1, 300), ("other", None, 200),
    ]  # fmt: skip
    assert [name for (name,) in lines(tree(store, "module"))] == ["(no module)", "  matmul"]


def test_a_range_that_is_the_module_counts_its_calls(store: Store):
    ops = [
        ("warmup", 5, {"module": "warmup", "calls": 3}),
        ("softmax", 7, {"module": "warmup/softmax", "calls": 6}),
    ]
    save(store, ops=ops, kernels=[])
    assert lines(tree(store, "module"), "kind", "calls", "device_total_ns") == [
        ("warmup", "module", 3, 12),
        ("  softmax", "module", 6, 7),
        ("    softmax", "op", 6, 7),
        ("  warmup", "op", 3, 5),
    ]


def nested() -> Any:
    """linear calls addmm twice as long as it works itself."""
    one = capture(ops=[("linear", 10, {"device_total_ns": 30, "host_total_ns": 60}), ("addmm", 20)], kernels=[])
    one.rows.tables["op_tree"]["parent"][1] = 0
    return one


def test_ops_stand_where_they_were_called(store: Store):
    save_run(store, record(), [nested()], formats=["torch_profiler"])
    found = tree(store, "op")
    columns = ("calls", "device_total_ns", "device_self_ns", "host_total_ns", "host_self_ns")
    assert lines(found, *columns) == [("linear", 1, 30, 10, 60, 20), ("  addmm", 1, 20, 20, 40, 40)]


def test_with_a_filter_ops_stand_alone_with_their_kernels_below(store: Store):
    one = nested()
    save_run(store, record(), [one], formats=["torch_profiler"])
    save(store, "v2", ops=[("addmm", 20)], kernels=[("gemm", 15, {"op": "addmm"}), ("add", 5, {"op": "addmm"})])
    assert lines(tree(store, "op", op="add*"), "device_total_ns") == [("addmm", 20)]
    assert lines(tree(store, "op", run="v2", op="add*"), "kind", "device_total_ns", "device_self_ns") == [
        ("addmm", "op", 20, 20), ("  gemm", "kernel", 15, None), ("  add", "kernel", 5, None),
    ]  # fmt: skip


def test_kernels_hold_the_ops_that_launch_them(store: Store):
    kernels = [("gemm", 20, {"op": "mm", "calls": 2}), ("gemm", 30, {"op": "addmm"}), ("copy", 8, {"op": ""})]
    save(store, ops=[("mm", 20), ("addmm", 30), ("", 8)], kernels=kernels)
    assert lines(tree(store, "kernel"), "calls", "device_total_ns") == [
        ("gemm", 3, 50), ("  addmm", 1, 30), ("  mm", 2, 20), ("copy", 1, 8),
    ]  # fmt: skip


def test_what_lies_outside_all_steps_stands_apart(store: Store):
    save(store, steps=[-1, 0, 1], ops=GPT, kernels=[])
    found = tree(store, "phase", depth=2)
    top = found[found["level"] == 0]
    assert lines(top, "device_total_ns", "step_share")[:2] == [
        ("forward", 190, 0.095),
        ("(outside all steps)", 148, None),
    ]
    assert float(top["share"].sum()) == pytest.approx(1)


def test_ranks_and_steps_can_be_kept_apart(store: Store):
    save(store, ranks=2, steps=2, ops=GPT, kernels=[])
    by_rank = tree(store, "phase", "rank", depth=1)
    assert by_rank[["rank", "name"]].values.tolist()[3:5] == [[0, "other"], [1, "forward"]]
    assert by_rank["device_total_ns"].tolist() == [190, 80, 20, 6] * 2
    assert by_rank["node"].tolist() == list(range(8))
    apart = tree(store, "op", "rank", "step", depth=1)
    assert apart[["rank", "step"]].drop_duplicates().values.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert apart.groupby(["rank", "step"])["device_total_ns"].sum().tolist() == [148] * 4


def test_one_tree_at_a_time(store: Store):
    with pytest.raises(UsageError, match="two trees at a time"):
        ShowOptions(by=("module", "op"))
    with pytest.raises(UsageError, match="a depth without a tree"):
        DiffOptions(depth=2)


SLOWER: list[Any] = [
    ("aten::mm", 90, {"module": ATTENTION, "phase": "forward", "input_shapes": "[[2,3]]"}),
    ("aten::relu", 7, {"module": "GPT_0/Head_0", "phase": "forward"}),
    *GPT[2:],
]


def compared(store: Store, by: str, **options: Any) -> pd.DataFrame:
    found = diff(store, "v1", "v2", options=DiffOptions(by=(by,), **options)).tree
    assert found is not None
    return found


def test_a_diff_shows_the_largest_change_first_and_what_came_and_went(store: Store):
    save(store, "v1", steps=2, ops=GPT, kernels=[], counters=CALLS)
    save(store, "v2", steps=2, ops=SLOWER, kernels=[], counters=CALLS)
    found = compared(store, "module")
    assert lines(found, "status", "baseline_ns", "candidate_ns", "delta_ns")[:7] == [
        ("GPT_0", "both", 135, 142, 7),
        ("  Head_0", "ADDED", None, 7, 7),
        ("    aten::relu", "ADDED", None, 7, 7),
        ("  Block_0", "both", 130, 130, 0),
        ("    Attention_0", "both", 60, 90, 30),
        ("      aten::mm", "both", 60, 90, 30),
        ("    MLP_0", "both", 70, 40, -30),
    ]
    attention = found[found["name"] == "Attention_0"].iloc[0]
    assert (attention["diff"], attention["baseline_calls"]) == (0.5, 2)
    assert attention["candidate_step_share"] == 0.09
    assert list(found.columns) == list(TREE_DIFF_COLUMNS)


def test_a_diff_of_a_run_with_itself_is_all_zero(store: Store):
    save(store, "v1", ops=GPT)
    for word in TREES:
        same = diff(store, "v1", "v1", options=DiffOptions(by=(word,))).tree
        assert (same["delta_ns"] == 0).all() and len(same), word


def test_ops_of_a_tree_match_by_name_or_by_map(store: Store):
    save(store, "v1", ops=[("aten::mm", 10, {"input_shapes": "[[1]]"})], kernels=[])
    save(store, "v2", ops=[("npu::mm", 15, {"input_shapes": "[[2]]"})], kernels=[])
    found = compared(store, "op", match="name", op_map={"aten::mm": "npu::mm"})
    assert lines(found, "status", "delta_ns") == [("npu::mm", "both", 5)]


def test_small_rows_of_both_sides_are_left_out(store: Store):
    save(store, "v1", ops=GPT, kernels=[])
    save(store, "v2", ops=SLOWER, kernels=[])
    assert [name for name, in lines(compared(store, "phase", minimum_ns=10, depth=1))] == [
        "forward", "backward", "optimizer",
    ]  # fmt: skip


modules = st.sampled_from(["", "A_0", "A_0/B_0", "A_0/B_0/C_0", "A_0/B_1", "D_0"])
phases = st.sampled_from(["", "forward", "backward"])
ops = st.lists(
    st.tuples(st.sampled_from(["mm", "add", "relu"]), st.integers(0, 1000), modules, phases), min_size=1, max_size=8,
    unique_by=lambda op: (op[0], op[2], op[3]),
)  # fmt: skip


@given(
    ops=ops, ranks=st.integers(1, 2), word=st.sampled_from(TREES),
    grains=st.sampled_from([(), ("rank",), ("rank", "step")]),
)  # fmt: skip
def test_the_rows_of_level_0_are_all_the_time_there_is(ops, ranks, word, grains):
    """Law: whatever the tree, what is in it and what is in none of its modules is the time of all ops, to the ns."""
    made = [(name, ns, {"module": module, "phase": phase}) for name, ns, module, phase in ops]
    launched = [("k", ns, {"op": {"name": name, "module": module, "phase": phase}}) for name, ns, module, phase in ops]
    with open_store("sqlite://") as store:
        save(store, ranks=ranks, steps=2, ops=made, kernels=launched)
        whole = 2 * ranks * sum(ns for _, ns, _, _ in ops)
        found = tree(store, word, *grains)
        assert found[found["level"] == 0]["device_total_ns"].sum() == whole
        above = found.set_index("node")["device_total_ns"]
        inner = found[found["level"] > 0].groupby("parent")["device_total_ns"].sum()
        assert (inner <= above.reindex(inner.index)).all()
        per_step = diff(store, "v1", "v1", options=DiffOptions(by=(word,))).tree
        assert per_step[per_step["level"] == 0]["baseline_ns"].sum() == pytest.approx(whole / 2 / ranks)


def test_a_tree_of_a_thousand_levels_is_shown_to_a_depth(store: Store):
    chain = [(f"op{depth}", 1, {"parent": f"op{depth - 1}"}) for depth in range(1, 1100)]
    save(store, ops=[("op0", 1), *chain], kernels=[])
    found = tree(store, "op")
    assert len(found) == 200
    assert found["path"].iloc[2] == "op0 > op1 > op2"
