"""Elementwise kernels one directly behind another, which could be one kernel."""

from __future__ import annotations

from typing import Any

from tests.advice.made import MI300X, NPU, advise, gain_ms, kernel, only, op, rules

BUSY = {"compute": 60, "idle": 0}
SHAPE = (64, 512)


def in_sequence(name: str, ms: float, saved_ms: float, sequence: str = "mul, cast, add", module: str = "") -> Any:
    """A kernel of an NPU that stands in a sequence, and what of its time one kernel would save."""
    row = op(name, SHAPE, module=module)
    return kernel(row, ms, name=name, sequence=sequence, sequence_saved_ns=int(saved_ms * 1_000_000))


def test_sequence_saves_what_its_kernels_take_but_for_the_longest(memory_store):
    parts = [in_sequence("aten::mul", 2, 2), in_sequence("aten::cast", 3, 3), in_sequence("aten::add", 4, 0)]
    found = advise(memory_store, times=BUSY, kernels=parts, device=NPU)
    item = only(found, "K10")
    assert gain_ms(found, "K10") == 5
    assert "one directly behind another: mul, cast, add 5.00 ms" in [number.words for number in item.numbers]
    assert item.bound == "sequence"
    assert item.remedies[0].startswith("the fused API of torch_npu")


def test_sequence_through_several_modules_is_claimed_once(memory_store):
    """It is placed in the module of its longest kernel."""
    parts = [
        in_sequence("aten::mul", 2, 2, module="Net_0/Linear_0"), in_sequence("aten::cast", 3, 3),
        in_sequence("aten::add", 4, 0, module="Net_0/Gate_1"),
    ]  # fmt: skip
    found = advise(memory_store, times=BUSY, kernels=parts, device=MI300X)
    assert only(found, "K10").title == "elementwise operators of Gate one by one"
    assert gain_ms(found, "K10") == 5


def test_sequence_that_another_rule_explains_in_part_is_no_advice(memory_store):
    """The tanh and its mul are an activation: of three kernels one is left."""
    names = "tanh, mul, add"
    parts = [in_sequence(f"aten::{name}", 3, 3, names, "Net_0/Gelu_0") for name in ("tanh", "mul")]
    parts.append(in_sequence("aten::neg", 1, 1, "mul, neg, neg", "Net_0/Gelu_0"))
    assert rules(advise(memory_store, times=BUSY, kernels=parts)) == ["K6"]


def test_kernels_of_one_module_with_others_between_them_are_no_sequence(memory_store):
    """Where the order is known it holds, whatever the module."""
    apart = [in_sequence(f"aten::{name}", 3, 0, "", "Net_0/Gate_0") for name in ("mul", "add", "neg")]
    assert "K10" not in rules(advise(memory_store, times=BUSY, kernels=apart))
    unknown = [(name, ns, {key: value for key, value in row.items() if "sequence" not in key})
               for name, ns, row in apart]  # fmt: skip
    assert gain_ms(advise(memory_store, times=BUSY, kernels=unknown), "K10") == 6
