"""Hand-computable stories: sequences of elementwise kernels that could be one kernel."""

from __future__ import annotations

from tests.timeline.made_events import Made
from tracker.profile import MISSING

SHAPE = "[[4096,1024]]"


def sequences(made: Made) -> dict[str, tuple[int, str | None]]:
    """Type of a kernel -> what one kernel in place of its sequences would save, and the sequence."""
    tables = made.built().tables
    types, rows = tables["kernel_key"]["type"], tables["kernel"]
    found = zip(rows["kernel_key"], rows["sequence_saved_ns"], rows["sequence"], strict=True)
    return {types[int(key)]: (int(ns), sequence) for key, ns, sequence in found}


def elementwise(made: Made, *kinds: str, at: int = 0, shape: str = SHAPE, **more: int) -> int:
    """Kernels of these types one behind another: the first takes 10, each further one 10 more. Returns their end."""
    for place, kind in enumerate(kinds):
        end = at + 10 * (place + 1)
        made.kernel(f"{kind}_kernel", at, end, type=kind, input_shapes=shape, **more)
        at = end
    return at


def test_sequence_saves_all_but_its_longest_kernel():
    made = Made()
    elementwise(made, "Mul", "Cast", "Add")
    names = "mul, cast, add"
    assert sequences(made) == {"Mul": (10, names), "Cast": (20, names), "Add": (0, names)}


def test_two_kernels_are_no_sequence():
    made = Made()
    elementwise(made, "Mul", "Cast")
    assert sequences(made) == {"Mul": (0, ""), "Cast": (0, "")}


def test_kernel_between_them_ends_a_sequence():
    """Two kernels before the matmul and two behind it are four, and no sequence of three."""
    made = Made()
    end = elementwise(made, "Mul", "Cast")
    made.kernel("gemm", end, end + 5, type="MatMulV2", input_shapes=SHAPE)
    elementwise(made, "Add", "Tanh", at=end + 5)
    assert {saved for saved, _ in sequences(made).values()} == {0}


def test_tensor_of_another_size_ends_a_sequence():
    made = Made()
    end = elementwise(made, "Mul", "Cast")
    elementwise(made, "Add", "Tanh", at=end, shape="[[4096,2048]]")
    assert {saved for saved, _ in sequences(made).values()} == {0}


def test_kernel_on_another_stream_does_not_end_a_sequence():
    made = Made()
    elementwise(made, "Mul", "Cast", "Add")
    made.kernel("gemm", 5, 40, type="MatMulV2", input_shapes=SHAPE, stream=9)
    found = sequences(made)
    assert (found["Mul"], found["Cast"]) == ((10, "mul, cast, add"), (20, "mul, cast, add"))


def test_repeats_add_up_and_the_most_frequent_sequence_is_named():
    """Mul, Cast, Add twice, then Mul, Tanh, Add once: the Mul saves 10 each time."""
    made = Made()
    at = 0
    for kinds in (("Mul", "Cast", "Add"), ("Mul", "Cast", "Add"), ("Mul", "Tanh", "Add")):
        at = elementwise(made, *kinds, at=at)
        made.kernel("gemm", at, at + 5, type="MatMulV2", input_shapes=SHAPE)
        at += 5
    found = sequences(made)
    assert found["Mul"] == (30, "mul, cast, add")
    assert found["Cast"] == (40, "mul, cast, add")
    assert found["Tanh"] == (20, "mul, tanh, add")


def test_long_sequence_is_named_by_its_first_eight():
    made = Made()
    elementwise(made, *["Mul"] * 9)
    (found,) = sequences(made).values()
    # 10 + 20 + ... + 90 is 450, of which the longest stays
    assert found == (360, "mul, mul, mul, mul, mul, mul, mul, mul and 1 more")


def test_without_shapes_no_sequence_is_known():
    made = Made()
    elementwise(made, "Mul", "Cast", "Add", shape="")
    assert {saved for saved, _ in sequences(made).values()} == {MISSING}
