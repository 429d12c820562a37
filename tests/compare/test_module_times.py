"""The totals of modules: nested ops are counted once, and the table agrees with `--by module`."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.factories import save
from tracker.compare import show
from tracker.results import ShowOptions

ATTENTION, MLP = "GPT_0/Attention_0", "GPT_0/MLP_0"
# linear contains addmm, which contains mm: 130 ns in all, of which mm has 120
NESTED = [
    ("aten::linear", 4, {"module": MLP, "phase": "forward", "host_total_ns": 130, "device_total_ns": 130}),
    ("aten::addmm", 6, {"module": MLP, "phase": "forward", "host_total_ns": 126, "device_total_ns": 126}),
    ("aten::mm", 120, {"module": MLP, "phase": "forward", "host_total_ns": 120, "device_total_ns": 120}),
    ("aten::softmax", 50, {"module": ATTENTION, "phase": "forward"}),
    ("aten::add", 20, {"module": "GPT_0", "phase": "forward"}),
    ("aten::mm", 7, {"module": MLP, "phase": "backward", "input_shapes": "[[2]]"}),
]


def modules(store, **options):
    return show(store, "v1", options=ShowOptions(**options)).modules


def test_nested_ops_of_a_module_are_counted_once(store):
    save(store, ops=NESTED, kernels=[])
    found = modules(store).set_index(["module", "phase"])
    assert found["device_total_ns"].to_dict() == {
        (MLP, "forward"): 130, (ATTENTION, "forward"): 50, ("GPT_0", "forward"): 200, (MLP, "backward"): 7,
        ("GPT_0", "backward"): 7,
    }  # fmt: skip
    assert found["device_self_ns"].sum() == 130 + 50 + 20 + 7


@pytest.mark.parametrize("grains", [(), ("step",)])
def test_totals_of_modules_are_those_of_the_tree(store, grains):
    save(store, steps=2, ops=NESTED, kernels=[])
    table, tree = (show(store, "v1", options=ShowOptions(by=by)) for by in (grains, (*grains, "module")))
    found = defaultdict(int)
    for row in table.modules.itertuples():
        found[getattr(row, "step", None), row.module] += row.device_total_ns
    rows = tree.tree[tree.tree["kind"] == "module"]
    assert found == {(getattr(row, "step", None), row.path): row.device_total_ns for row in rows.itertuples()}


def test_sums_of_phases_without_self_times_stay(store):
    sums = {"host_self_ns": None, "device_self_ns": None}
    missing = dict.fromkeys(sums, -(2**63))
    save(store, ops=[("Forward", 0, {"phase": "forward", "host_total_ns": 500, **missing})], kernels=[])
    assert modules(store)["host_total_ns"].tolist() == [500]
