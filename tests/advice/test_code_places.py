"""Where in the program the work of a piece of advice comes from, by the call stacks of its operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.advice.made import MS, advise, kernel, only, op
from tracker.advice.judging import RunAdvice

SHAPE = (67, 50, 1000)
NORM = "GPT_0/Block_0/RMSNorm_0"
LIBRARY = "torch/nn/modules/module.py(1739): _wrapped_call_impl"
CALLED = {
    "aten::pow": f"norm.py(9): mean_square;norm.py(4): forward;{LIBRARY};train.py(20): main",
    "aten::mean": f"norm.py(9): mean_square;norm.py(4): forward;{LIBRARY};train.py(20): main",
    "aten::rsqrt": f"norm.py(4): forward;{LIBRARY};train.py(20): main",
    "aten::mul": f"norm.py(4): forward;{LIBRARY};train.py(20): main",
}


def advise_norm(store: Any, called: Mapping[str, str], others: Sequence[Any] = ()) -> RunAdvice:
    """What the rules say of a norm written out in four kernels of 2 ms. `called`: operator -> its call stack."""
    keys = [op(name, SHAPE, module=NORM) for name in CALLED]
    parts = [kernel(key, 2, name=key["name"]) for key in keys]
    ops = [(key["name"], MS, called_from(key, called.get(key["name"]))) for key in keys]
    return advise(store, times={"compute": 60, "idle": 0}, kernels=parts, ops=[*others, *ops])


def called_from(key: Mapping[str, str], stack: str | None) -> dict[str, Any]:
    """The rest of a row of an operator with this key."""
    rest = {name: text for name, text in key.items() if name != "name"}
    return {**rest, "call_stack": stack} if stack else rest


def test_one_computation_is_placed_in_the_frame_that_all_of_it_has(memory_store):
    """Two operators are called by mean_square, two by forward, which calls mean_square."""
    assert only(advise_norm(memory_store, CALLED), "K5").code == ("norm.py(4): forward",)


def test_frames_in_the_common_one_follow_where_it_calls_nothing_itself(memory_store):
    called = {name: f"{name}.py(1): call;{stack}" for name, stack in CALLED.items()}
    assert only(advise_norm(memory_store, called), "K5").code == (
        "norm.py(4): forward", "aten::mean.py(1): call", "aten::mul.py(1): call",
    )  # fmt: skip


def test_same_operator_of_another_module_says_nothing_of_the_place(memory_store):
    elsewhere = called_from(op("aten::mul", SHAPE, module="GPT_0/Head_0"), "head.py(7): scale;train.py(20): main")
    found = advise_norm(memory_store, CALLED, [("aten::mul", 50 * MS, elsewhere)])
    assert only(found, "K5").code == ("norm.py(4): forward",)


def test_without_call_stacks_the_advice_says_so(memory_store):
    found = advise_norm(memory_store, {})
    item = only(found, "K5")
    assert (item.code, item.numbers[-1].words) == ((), "code: not known, no call stacks were recorded")
    (how,) = [sentence for sentence in found.missing if "lines of code" in sentence]
    assert how.startswith("The lines of code of K5: the run has no call stacks; profile with with_stack=True")


def test_stacks_of_other_operators_alone_are_no_place(memory_store):
    elsewhere = called_from(op("aten::mm", (64, 64), (64, 64)), "head.py(7): scale")
    found = advise_norm(memory_store, {}, [("aten::mm", MS, elsewhere)])
    item = only(found, "K5")
    assert (item.code, item.numbers[-1].words) == ((), "code: not known, no call stack leads to it")
    assert not any("lines of code" in sentence for sentence in found.missing)


def test_gradients_are_placed_where_their_forward_pass_is(memory_store):
    """A gradient is called by backward() in the loop, which is the place of all of them."""
    shape = (8, 4096)
    names = ("aten::tanh", "aten::mul", "aten::tanh_backward")
    keys = [op(name, shape, phase="backward" if "backward" in name else "") for name in names]
    stacks = [f"gelu.py(3): gelu;{LIBRARY};train.py(20): main"] * 2 + ["train.py(20): main"]
    found = advise(
        memory_store,
        times={"compute": 60, "idle": 0},
        kernels=[kernel(key, 5, name=key["name"]) for key in keys],
        ops=[(key["name"], MS, called_from(key, stack)) for key, stack in zip(keys, stacks, strict=True)],
    )
    assert only(found, "K6").code == ("gelu.py(3): gelu",)
