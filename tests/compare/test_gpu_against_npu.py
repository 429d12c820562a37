"""One model on a GPU and on an NPU, whose profilers break ops down in their own ways; numbers are ns."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.factories import H100, record
from tests.timeline.made_events import Made
from tracker import timeline
from tracker.compare import diff
from tracker.profile import Device, Source
from tracker.results import DiffOptions
from tracker.store import Store, save_run

ASCEND = Device("Huawei", "Ascend910B")
BY_RULES = "Cube and vector work of v1 is what the names of its operators and kernels say."
OP_MAP = {
    "aten::addmm": "aten::addmm",
    "Optimizer.step#SGD.step": "Optimizer.step#NpuFusedSGD.step",
}


@pytest.fixture
def sides(store: Store) -> Store:
    """v1 on the GPU: addmm 40, relu 10, two kernels of the optimizer 20. v2 on the NPU: 20, 30 and one of 5."""
    gpu = Made()
    gpu.op("aten::addmm", 0, 20, input_shapes="[[8,8],[8,8]]")
    gpu.op("aten::relu", 20, 40, input_shapes="[[8,8]]")
    gpu.annotation("Optimizer.step#SGD.step", 40, 80)
    gpu.op("aten::add_", 42, 60)
    for number, (launched, name, start, end) in enumerate(
        [
            (5, "volta_sgemm_128x64_nn", 100, 140),
            (25, "relu_kernel", 140, 150),
            (45, "add", 150, 160),
            (50, "add", 160, 170),
        ]
    ):
        gpu.launch(launched, number + 1)
        gpu.kernel(name, start, end, number + 1)
    npu = Made()
    npu.op("aten::addmm", 0, 20, input_shapes="[[8,8],[8,8]]")
    npu.op("aclnnAddmm", 2, 18)
    npu.op("aten::relu", 20, 40, input_shapes="[[8,8]]")
    npu.annotation("Optimizer.step#NpuFusedSGD.step", 40, 80)
    npu.op("npu::npu_apply_sgd", 42, 60)
    for number, (launched, kind, core, start, end) in enumerate(
        [
            (5, "MatMulV2", "AI_CORE", 100, 120),
            (25, "Relu", "AI_VECTOR_CORE", 120, 150),
            (45, "ApplySgd", "AI_VECTOR_CORE", 150, 155),
        ]
    ):
        npu.launch(launched, number + 1)
        npu.kernel(f"aclnn{kind}_{kind}", start, end, number + 1, type=kind, core_type=core)
    for version, made, device in (("v1", gpu, H100), ("v2", npu, ASCEND)):
        source = Source(version, 1, version.encode().ljust(16, b"."))
        capture = replace(timeline.build(made.capture()), device=device, sources=(source,))
        save_run(store, replace(record(version), device=device), [capture], formats=["torch_profiler"])
    return store


def test_an_op_map_lays_the_equivalents_side_by_side(sides: Store):
    rows = diff(sides, "v1", "v2", options=DiffOptions(op_map=OP_MAP)).ops.set_index("name")
    assert set(rows["status"]) == {"both"}
    assert rows["baseline_ns"].to_dict() == {
        "aten::addmm": 40, "aten::relu": 10, "Optimizer.step#NpuFusedSGD.step": 20,
    }  # fmt: skip
    assert rows["candidate_ns"].to_dict() == {
        "aten::addmm": 20, "aten::relu": 30, "Optimizer.step#NpuFusedSGD.step": 5,
    }  # fmt: skip
    assert rows.loc["Optimizer.step#NpuFusedSGD.step", "baseline_name"] == "Optimizer.step#SGD.step"


def test_a_map_whose_ops_have_other_shapes_on_the_other_side_says_how_to_pair_them(sides: Store):
    """addmm has shapes on both sides, the optimizer of the NPU has none, as that of the GPU."""
    optimizer = OP_MAP["Optimizer.step#SGD.step"]
    options = DiffOptions(op_map={"aten::addmm": optimizer})
    note = f"The input shapes of aten::addmm -> {optimizer} (op map) never agree: --match name pairs them."
    assert note in diff(sides, "v1", "v2", options=options).notes
    by_name = diff(sides, "v1", "v2", options=replace(options, match="name"))
    assert note not in by_name.notes
    assert by_name.ops.set_index("name").loc[optimizer, ["baseline_ns", "candidate_ns"]].tolist() == [40, 5]
    assert diff(sides, "v1", "v2", options=DiffOptions(op_map=OP_MAP)).notes == (BY_RULES,)


def test_without_a_map_what_only_one_profiler_names_is_added_and_removed(sides: Store):
    rows = diff(sides, "v1", "v2").ops.set_index("name")
    status = rows["status"].to_dict()
    assert {name for name, word in status.items() if word == "REMOVED"} == {"Optimizer.step#SGD.step", "aten::add_"}
    added = {"Optimizer.step#NpuFusedSGD.step", "aclnnAddmm", "npu::npu_apply_sgd"}
    assert {name for name, word in status.items() if word == "ADDED"} == added
    assert rows["delta_ns"].sum() == 55 - 70


def test_categories_and_totals_are_compared_across_vendors_and_cores_where_there_are_any(sides: Store):
    result = diff(sides, "v1", "v2", options=DiffOptions(op_map=OP_MAP))
    overall = result.overall.set_index("metric")
    for metric, baseline, candidate in (
        ("compute_ns", 70, 55), ("matmul", 40, 20), ("vector", 30, 35), ("e2e_ns", 70, 55),
    ):  # fmt: skip
        assert tuple(overall.loc[metric, ["baseline_value", "candidate_value"]]) == (baseline, candidate), metric
    assert overall["candidate_value"][["operator_cube_ns", "operator_vector_ns"]].tolist() == [20, 35]
    assert overall["baseline_value"][["operator_cube_ns", "operator_vector_ns"]].tolist() == [40, 30]
    assert BY_RULES in result.notes
    device = result.environment.set_index("key").loc["device"]
    assert (device["baseline"], device["candidate"]) == ("NVIDIA H100", "Huawei Ascend910B")
    assert result.ops["delta_ns"].sum() == 55 - 70
