"""FLOPs and bytes of operators, and how near they come to the device."""

from __future__ import annotations

import pytest

from tests.advice.made import MS, NPU, advise, kernel, op
from tracker.profile import OP_FLOPS

BUSY = {"compute": 60, "idle": 0}


def rows(found):
    return {row.name: row for row in found.efficiency}


def launched(of, ms, **more):
    """An operator with the one kernel that it launches, for what is counted by operators."""
    key = {name: value for name, value in of.items() if name != "name"}
    return {"ops": [(of["name"], int(ms * MS), key)], "kernels": [kernel(of, ms, **more)]}


def test_flops_that_the_trace_states_stand_for_those_of_a_convolution(memory_store):
    conv = op("aten::cudnn_convolution", (10, 64, 56, 56), (64, 64, 3, 3))
    stated = [(OP_FLOPS, "aten::cudnn_convolution", conv["input_shapes"], 2_312_110_080.0)]
    made = launched(conv, 1, category="convolution_forward")
    (row,) = advise(memory_store, times=BUSY, counters=stated, **made).efficiency
    assert (row.flops, round(row.tflops_per_s, 3)) == (2_312_110_080, 2.312)
    # image and result of 2,007,040 elements each, weight of 36,864, of 2 bytes
    assert row.bytes == 2 * (2 * 2_007_040 + 36_864)
    assert advise(memory_store, times=BUSY, **made).efficiency == ()  # shapes do not say the stride


@pytest.mark.parametrize(("name", "passes"), [
    ("native_layer_norm", 2), ("_softmax", 2), ("_softmax_backward_data", 3), ("sum", 1), ("add", 3), ("gelu", 2),
])  # fmt: skip
def test_what_only_moves_bytes_has_a_rate_of_bytes(memory_store, name, passes):
    """A tensor of 33.5 MB of 16 bits: each pass over it takes 10 us at 3,350 GB/s."""
    shapes = [(16_750, 1000)] * (2 if name in ("_softmax_backward_data", "add") else 1)
    found = advise(memory_store, times=BUSY, kernels=[kernel(op(f"aten::{name}", *shapes), 0.1)])
    row = rows(found)[name]
    assert (row.bytes, row.bound, row.flops) == (passes * 33_500_000, "memory", None)
    assert row.efficiency == pytest.approx(passes / 10)
    assert row.gb_per_s == pytest.approx(passes * 335)
    assert found.use["flops"] is None


def test_bytes_are_those_of_each_type(memory_store):
    """A cast reads 4 bytes and writes 2 of each of 10 million elements."""
    cast = {**op("aten::copy_", (10_000, 1000), (10_000, 1000)), "input_types": "c10::BFloat16,float"}
    assert rows(advise(memory_store, times=BUSY, kernels=[kernel(cast, 1)]))["copy"].bytes == 60_000_000


def test_blocks_of_an_npu_are_sides_of_a_matmul(memory_store):
    """[64, 256, 16, 16] is a matrix of 4096 x 1024, [128, 64, 16, 16] one of 1024 x 2048."""
    made = kernel("(no op)", 1, name="MatMulV2", category="matmul", input_shapes="[[64,256,16,16],[128,64,16,16]]",
                  input_types="float16,float16", input_formats="FRACTAL_NZ;FRACTAL_NZ")  # fmt: skip
    found = advise(memory_store, times=BUSY, device=NPU, kernels=[made])
    assert [row.flops for row in found.efficiency] == [2.0 * 4096 * 1024 * 2048]
