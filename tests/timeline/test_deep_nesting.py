"""Ops, frames and allocations that nest a thousand deep take memory and time in proportion to their number."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from tests.timeline.made_events import Made
from tracker.timeline import rows_of


def equal_ops(made: Made, count: int) -> None:
    for _ in range(count):
        made.op("aten::mm", 0, 10)


def nested_ops(made: Made, count: int) -> None:
    for depth in range(count):
        made.op(f"aten::op{depth}", depth, 3 * count - depth)


def ops_of_a_later_step(made: Made, count: int) -> None:
    made.step(1, 0, count)
    made.step(2, count, 4 * count)
    nested_ops(made, count)
    for place in range(count):
        made.op("aten::leaf", count + 2 * place, count + 2 * place + 1)


def launches_inside(made: Made, count: int) -> None:
    nested_ops(made, count)
    for number in range(count):
        made.launch(count, number)
        made.kernel("gemm", 4 * count + number, 4 * count + number + 1, number)


def nested_modules(made: Made, count: int) -> None:
    for depth in range(count):
        made.frame(f"Sequential_{depth}", depth, 3 * count - depth, is_module=1)
    made.op("aten::mm", count, count + 1)


def allocations_inside(made: Made, count: int) -> None:
    nested_ops(made, count)
    for number in range(count):
        made.allocation(number, 64, 4096 + 64 * number, total_allocated_bytes=64 * (number + 1))


def peak_bytes(nest: Callable[[Made, int], None], count: int) -> int:
    made = Made()
    nest(made, count)
    events = made.events()
    tracemalloc.start()
    try:
        rows_of(events)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "nest", [equal_ops, nested_ops, ops_of_a_later_step, launches_inside, nested_modules, allocations_inside]
)
def test_memory_of_deep_nesting_is_linear(nest):
    peak_bytes(nest, 1)  # loads what loads on first use
    assert peak_bytes(nest, 400) < 3 * peak_bytes(nest, 200)
