"""Two versions with calling contexts: which ops are compared as a whole, and what was renamed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from msgspec.structs import replace

from tests.factories import Keys, capture, record, table
from tracker.compare import diff
from tracker.profile import Capture
from tracker.results import DiffOptions
from tracker.store import Store, save_run


def with_tree(made: Capture, nodes: Sequence[tuple[str, int, int, int]]) -> Capture:
    """`made` with calling contexts: (name, parent, device_self_ns, kernels launched by itself), parents first."""
    keys = Keys("op_key")
    own = [
        {"op_key": keys.at(name=name), "parent": parent, "own": ns, "kernels": count}
        for name, parent, ns, count in nodes
    ]
    total = [node["own"] for node in own]
    count = [node["kernels"] for node in own]
    for at in range(len(own) - 1, -1, -1):
        if own[at]["parent"] >= 0:
            total[own[at]["parent"]] += total[at]
            count[own[at]["parent"]] += count[at]
    tree = [
        {"step": 0, "node": at, "parent": node["parent"], "op_key": node["op_key"], "calls": 1, "host_total_ns": 0}
        | {"device_total_ns": total[at], "device_self_ns": node["own"], "kernel_count": count[at]}
        for at, node in enumerate(own)
    ]
    ops = [
        {"step": 0, "op_key": node["op_key"], "calls": 1, "device_total_ns": total[at], "device_self_ns": node["own"]}
        for at, node in enumerate(own)
    ]
    tables = dict(made.rows.tables) | {
        "op_key": keys.table(),
        "op_tree": table("op_tree", tree),
        "op": table("op", ops),
        "kernel": table("kernel", []),
    }
    return replace(made, rows=replace(made.rows, tables=tables))


def save_tree(store: Store, version: str, nodes: Sequence[tuple[str, int, int, int]], **values: Any) -> None:
    made = with_tree(capture(**values), nodes)
    save_run(store, record(version), [made], formats=["torch_profiler"])


BLOCK = [("step", -1, 0, 0), ("linear", 0, 0, 0), ("addmm", 1, 50, 1), ("bias", 1, 10, 1), ("norm", 0, 20, 4)]


def test_without_max_kernels_every_op_counts_its_own_kernels(store: Store):
    save_tree(store, "v1", BLOCK)
    times = diff(store, "v1", "v1").ops.set_index("name")["baseline_ns"]
    assert times.to_dict() == {"addmm": 50, "norm": 20, "bias": 10, "linear": 0, "step": 0}


def test_an_op_with_more_kernels_than_allowed_is_replaced_by_its_children(store: Store):
    save_tree(store, "v1", BLOCK)
    options = DiffOptions(max_kernels=2)
    result = diff(store, "v1", "v1", options=options)
    # step launches 6 kernels and norm 4: opened; linear launches 2: stays whole, with what it consists of below it
    times = result.ops.set_index("name")["baseline_ns"]
    assert times.to_dict() == {"linear": 60, "norm": 20, "step": 0}
    parts = result.op_details.set_index("kernel")["baseline_ns"]
    assert parts.to_dict() == {"addmm": 50, "bias": 10}
    assert times.sum() == 80


def test_with_a_large_limit_only_the_top_level_is_compared(store: Store):
    save_tree(store, "v1", BLOCK)
    result = diff(store, "v1", "v1", options=DiffOptions(max_kernels=100))
    assert result.ops.set_index("name")["baseline_ns"].to_dict() == {"step": 80}


def test_a_mapped_op_is_compared_with_its_equivalent_as_a_whole(store: Store):
    save_tree(store, "v1", [("Optimizer.step#SGD.step", -1, 0, 0), ("add_", 0, 30, 2), ("mm", -1, 5, 1)])
    save_tree(store, "v2", [("Optimizer.step#NpuFusedSGD.step", -1, 12, 1), ("mm", -1, 5, 1)])
    options = DiffOptions(op_map={"Optimizer.step#SGD.step": "Optimizer.step#NpuFusedSGD.step"})
    rows = diff(store, "v1", "v2", options=options).ops.set_index("name")
    assert set(rows["status"]) == {"both"}
    mapped = rows.loc["Optimizer.step#NpuFusedSGD.step"]
    assert (mapped["baseline_name"], mapped["baseline_ns"], mapped["candidate_ns"]) == (
        "Optimizer.step#SGD.step",
        30,
        12,
    )
    assert pd.isna(rows.loc["mm", "baseline_name"])


def test_a_renamed_op_under_the_same_parent_is_told_as_a_rename(store: Store):
    save_tree(store, "v1", [("block", -1, 0, 0), ("aten::gelu", 0, 100, 1)])
    save_tree(store, "v2", [("block", -1, 0, 0), ("fused::gelu", 0, 98, 1)])
    (rename,) = diff(store, "v1", "v2").explanation.renames
    assert (rename.removed, rename.added, rename.parent) == ("aten::gelu", "fused::gelu", "block")
    assert (rename.removed_ns, rename.added_ns) == (100, 98)


def test_an_op_that_came_under_another_parent_is_no_rename(store: Store):
    save_tree(store, "v1", [("a", -1, 0, 0), ("b", -1, 0, 0), ("aten::gelu", 0, 100, 1)])
    save_tree(store, "v2", [("a", -1, 0, 0), ("b", -1, 0, 0), ("fused::gelu", 1, 98, 1)])
    assert diff(store, "v1", "v2").explanation.renames == ()


def test_an_op_that_was_replaced_by_a_slower_one_is_told_with_the_net(store: Store):
    save_tree(store, "v1", [("block", -1, 0, 0), ("aten::gelu", 0, 100, 1)])
    save_tree(store, "v2", [("block", -1, 0, 0), ("aten::mul", 0, 150, 1), ("aten::tanh", 0, 50, 1)])
    (rename,) = diff(store, "v1", "v2").explanation.renames
    assert (rename.removed, rename.added, rename.is_worse) == ("aten::gelu", "aten::mul + aten::tanh", True)
    assert (rename.removed_ns, rename.added_ns) == (100, 200)


def test_ops_of_other_times_at_the_top_level_without_shapes_are_no_replacement(store: Store):
    save_tree(store, "v1", [("aten::gelu", -1, 100, 1)])
    save_tree(store, "v2", [("aten::mul", -1, 200, 1)])
    assert diff(store, "v1", "v2").explanation.renames == ()
