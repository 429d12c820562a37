"""Hand-computable stories: how long kernels run beside those of other operators."""

from __future__ import annotations

from tests.timeline.made_events import Made
from tracker.profile import MISSING


def beside(made: Made) -> dict[str, int]:
    """Kernel -> how long those of other operators run beside it."""
    tables = made.built().tables
    names = tables["kernel_key"]["name"]
    rows = zip(tables["kernel"]["kernel_key"], tables["kernel"]["beside_ns"], strict=True)
    return {names[int(key)]: int(ns) for key, ns in rows}


def test_kernels_on_two_streams_run_beside_each_other():
    """The expert runs from 20 to 60, the matmul from 30 to 100: 30 of each."""
    made = Made()
    made.kernel("expert", 20, 60, stream=20)
    made.kernel("gemm", 30, 100)
    assert beside(made) == {"expert": 30, "gemm": 30}


def test_kernels_one_after_the_other_run_beside_nothing():
    made = Made()
    made.kernel("expert", 20, 60, stream=20)
    made.kernel("gemm", 60, 100)
    assert beside(made) == {"expert": 0, "gemm": 0}


def test_kernels_of_one_operator_are_not_beside_each_other():
    """Two streams of one operator; then a third kernel beside both, from 50 to 60."""
    made = Made()
    for start, correlation, name, stream in ((10, 1, "half", 7), (20, 2, "other half", 8)):
        made.op("aten::mm", start, start + 5)
        made.launch(start + 1, correlation)
        made.kernel(name, start + 30, start + 50, correlation, stream=stream)
    made.kernel("relu", 50, 60, stream=9)
    assert beside(made) == {"half": 10, "other half": 10, "relu": 10}


def test_copies_and_collectives_are_no_kernels_beside():
    made = Made()
    made.kernel("gemm", 0, 100)
    made.copy(20, 60)
    found = beside(made)
    assert found.pop("gemm") == 0
    assert [*found.values()] == [MISSING]
