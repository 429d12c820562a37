"""Kernels and tasks that two chips run on other cores and planes are the same ones."""

from __future__ import annotations

from tests.compare.test_overall import npu
from tests.factories import save
from tracker.compare import diff
from tracker.results import DiffOptions
from tracker.store import Store


def test_kernel_types_are_summed_over_names_and_shapes_without_collectives(store: Store):
    kernels = [
        ("a_Cast", 10, {"type": "Cast", "core_type": "AI_VECTOR_CORE", "category": "vector_trans"}),
        ("b_Cast", 30, {"type": "Cast", "core_type": "AI_VECTOR_CORE", "category": "matmul", "calls": 3}),
        ("hcom_allReduce", 99, {"type": "hcom_allReduce_", "core_type": "HCCL", "category": "communication"}),
        ("Memcpy", 5, {"category": "copy"}),
    ]
    save(store, "v1", kernels=kernels, steps=2)
    (row,) = diff(store, "v1", "v1").kernel_types.to_dict("records")
    assert (row["type"], row["core_type"], row["status"]) == ("Cast", "AI_VECTOR_CORE", "both")
    numbers = [row[f"baseline_{name}"] for name in ("calls", "ns", "average_ns", "max_ns", "min_ns")]
    assert numbers == [4, 40, 10, 10, 10]


def test_a_type_on_another_kind_of_core_is_the_same_type(store: Store):
    save(store, "v1", kernels=[npu("Cast", 10, "AI_CORE", "vector_trans")])
    save(store, "v2", kernels=[npu("Cast", 30, "AI_VECTOR_CORE", "vector_trans")])
    result = diff(store, "v1", "v2")
    for frame in (result.kernel_types, result.kernels):
        row = frame.iloc[0]
        assert (row["core_type"], row["status"], row["delta_ns"]) == ("AI_CORE -> AI_VECTOR_CORE", "both", 20)
    assert result.kernels["type"].tolist() == ["Cast"]


def test_a_type_on_several_kinds_of_cores_keeps_them_apart(store: Store):
    save(store, "v1", kernels=[npu("MatMulV3", 10, "AI_CORE", "matmul")])
    both = [npu("MatMulV3", 20, "AI_CORE", "matmul"), npu("MatMulV3", 5, "MIX_AIC", "matmul")]
    save(store, "v2", kernels=both)
    frame = diff(store, "v1", "v2").kernel_types.set_index("core_type")
    assert frame["status"].to_dict() == {"AI_CORE": "both", "MIX_AIC": "ADDED"}


def test_without_npus_there_are_no_types(store: Store):
    save(store, "v1")
    assert diff(store, "v1", "v1").kernel_types.empty


def test_types_are_filtered_like_kernels(store: Store):
    kernels = [npu("Cast", 10, "AI_CORE", "vector"), npu("Add", 30, "AI_CORE", "vector", op="aten::add")]
    save(store, "v1", ops=[("aten::mm", 10), ("aten::add", 30)], kernels=kernels)
    chosen = diff(store, "v1", "v1", options=DiffOptions(op="aten::add")).kernel_types
    assert chosen["type"].tolist() == ["Add"]
    large = diff(store, "v1", "v1", options=DiffOptions(minimum_ns=20)).kernel_types
    assert large["type"].tolist() == ["Add"]


def tasks(*planes: tuple[str, str, int]):
    return [("all_reduce", 100, {"tasks": [(name, ns, {"plane": plane}) for name, plane, ns in planes]})]


def test_tasks_are_matched_by_name_and_plane_in_whatever_order(store: Store):
    save(store, "v1", communication=tasks(("Notify_Wait", "0", 9), ("Memcpy", "0", 5), ("Memcpy", "1", 4)))
    save(store, "v2", communication=tasks(("Memcpy", "1", 8), ("Memcpy", "0", 5), ("Notify_Wait", "0", 2)))
    frame = diff(store, "v1", "v2").communication_details.set_index(["name", "plane"])
    assert frame["delta_ns"].to_dict() == {("Notify_Wait", "0"): -7, ("Memcpy", "1"): 4, ("Memcpy", "0"): 0}


def test_tasks_on_other_planes_are_one_row_of_all_planes(store: Store):
    save(store, "v1", communication=tasks(("Memcpy", "0", 9), ("Send", "x", 1)))
    save(store, "v2", communication=tasks(*[("Memcpy", str(plane), 4) for plane in (1, 2, 3)], ("Reduce", "1", 2)))
    frame = diff(store, "v1", "v2").communication_details
    columns = ["name", "plane", "baseline_calls", "candidate_calls", "delta_ns"]
    found = frame[columns].astype(object).where(frame[columns].notna(), None).values.tolist()
    assert found == [
        ["Memcpy", "0 -> 1-3", 1, 3, 3],
        ["Reduce", "1", None, 1, 2],
        ["Send", "x", 1, None, -1],
    ]
