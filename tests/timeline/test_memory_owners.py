"""Whose memory it is: the op that a user would name, the helper beside it, what is held at the peak, large blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.timeline.made_events import Made, records
from tests.timeline.slow_memory import chain, held_at_peak, owner, peak_of
from tracker.profile import BEFORE_CAPTURE, MAX_BLOCKS, MISSING, OWNER_RULES, OWNER_SETTING
from tracker.timeline import build


def owned(rows, table="memory_allocator"):
    """(owner, allocator, bytes) of each row."""
    names = rows.tables["op_key"]["name"]
    return sorted((names[key], *more) for key, *more in records(rows.tables[table], "op_key", "allocator", "bytes"))


def under(*names, size=512, annotations=()):
    """The rows of one allocation inside ops of these names, the outermost first."""
    made = Made()
    for depth, name in enumerate(names):
        made.op(name, depth, 100 - depth, is_annotation=int(name in annotations))
    made.allocation(50, size, 0xA)
    return made.built()


@pytest.mark.parametrize(
    ("names", "who"),
    [
        (["aten::linear", "aten::addmm"], "aten::linear"),
        (["aten::to", "aten::_to_copy", "aten::empty_strided"], "aten::to"),
        (["autograd::engine::evaluate_function: MmBackward0", "MmBackward0", "aten::mm"], "aten::mm"),
        (["CudnnConvolutionBackward", "aten::cudnn_convolution_backward", "aten::empty"],
         "aten::cudnn_convolution_backward"),
        (["autograd::engine::evaluate_function: GeluBackward0", "GeluBackward0", "aten::empty"], "GeluBackward0"),
        (["FlashAttnFunc", "aten::empty_like", "aten::empty"], "FlashAttnFunc"),
        (["DistributedDataParallel.forward", "aten::conv2d", "Conv2D"], "aten::conv2d"),
        (["DistributedDataParallel.forward", "aten::empty"], "aten::empty"),
        (["aten::empty"], "aten::empty"),
    ],
)  # fmt: skip
def test_the_owner_is_the_op_that_a_user_would_name(names, who):
    assert owned(under(*names)) == [(who, names[-1], 512)]
    assert owner(names) == who


def test_ranges_of_the_user_own_nothing_that_an_op_allocates():
    rows = under(
        "Optimizer.step#SGD.step", "aten::_foreach_add", "empty_tensor", annotations=["Optimizer.step#SGD.step"]
    )
    assert owned(rows) == [("aten::_foreach_add", "empty_tensor", 512)]
    assert owned(under("my range", annotations=["my range"])) == [("my range", "my range", 512)]


def test_without_namespaces_the_outermost_op_owns():
    rows = under("Net", "conv2d dygraph", "conv2d kernel launch", annotations=["Net"])
    assert owned(rows) == [("conv2d dygraph", "conv2d kernel launch", 512)]


def test_the_op_that_the_source_names_owns_unless_it_is_a_helper():
    made = Made()
    for depth, name in enumerate(["aten::linear", "aten::addmm", "MatMul"]):
        made.op(name, depth, 100 - depth)
    for place, name in enumerate(["aten::addmm", "aten::empty", "cann::MatMul"]):
        made.allocation(50 + place, 100 + place, place, op=name)
    made.allocation(200, 103, 9, op="aten::sum")
    assert owned(made.built()) == [
        ("aten::addmm", "MatMul", 100 + 101 + 102), ("aten::sum", "", 103)
    ]  # fmt: skip


def test_memory_sums_up_its_allocators():
    made = Made()
    made.op("aten::mm", 0, 100)
    made.op("aten::empty", 10, 20)
    made.allocation(12, 512, 0xA)
    made.allocation(30, 64, 0xB)
    made.allocation(60, -512, 0xA)
    rows = made.built()
    assert records(rows.tables["memory"], "calls", "bytes", "held_ns", "unreleased_bytes") == [(2, 576, 48, 64)]
    assert owned(rows) == [("aten::mm", "aten::empty", 512), ("aten::mm", "aten::mm", 64)]


def test_a_built_capture_states_the_rule_of_its_owners():
    made = Made()
    made.op("aten::mm", 0, 100)
    assert OWNER_SETTING not in build(made.capture()).settings
    made.allocation(12, 512, 0xA)
    assert build(made.capture()).settings[OWNER_SETTING] == OWNER_RULES


def test_the_rows_of_a_peak_sum_to_what_the_source_states():
    made = Made()
    made.step(3, 0, 40)
    made.op("aten::mm", 0, 100)
    made.allocation(10, 100, 1, total_allocated_bytes=1100)
    made.allocation(20, 50, 2, total_allocated_bytes=1150)
    made.allocation(30, -100, 1, total_allocated_bytes=1050)
    made.allocation(50, 300, 3, total_allocated_bytes=1350)
    made.allocation(60, -50, 2, total_allocated_bytes=1300)
    rows = made.built()
    names, table = rows.tables["op_key"]["name"], rows.tables["memory_peak"]
    columns = ("op_key", "calls", "bytes", "largest_bytes", "first_ns", "first_step", "peak_ns", "peak_step")
    assert [(names[key], *more) for key, *more in records(table, *columns)] == [
        ("aten::mm", 2, 350, 300, 20, 3, 50, -1),
        (BEFORE_CAPTURE, MISSING, 1000, MISSING, MISSING, -1, 50, -1),
    ]
    assert sum(table["bytes"].tolist()) == rows.overall.peak_allocated_bytes == 1350


def test_without_counters_the_rest_of_a_peak_is_not_known():
    made = Made()
    made.op("aten::mm", 0, 100)
    made.allocation(10, 100, 1)
    made.allocation(20, -100, 1)
    made.allocation(30, 70, 2)
    rows = made.built()
    assert [size for (size,) in records(rows.tables["memory_peak"], "bytes")] == [100, MISSING]
    assert rows.overall.peak_allocated_bytes is None


def test_events_of_the_instant_of_a_peak_follow_their_counters():
    made = Made()
    made.op("aten::mm", 0, 100)
    made.allocation(10, 100, 1, total_allocated_bytes=100)
    # in one instant: 1 is released, 2 and 3 are allocated (the peak), 2 is released
    made.allocation(20, -100, 1, total_allocated_bytes=0)
    made.allocation(20, 90, 2, total_allocated_bytes=90)
    made.allocation(20, 30, 3, total_allocated_bytes=120)
    made.allocation(20, -90, 2, total_allocated_bytes=30)
    assert [size for (size,) in records(made.built().tables["memory_peak"], "bytes")] == [120]


def test_the_largest_blocks_are_kept_and_no_more():
    made = Made()
    made.op("aten::mm", 0, 10_000)
    for place in range(MAX_BLOCKS + 50):
        made.allocation(place, 1000 + place, place)
    made.allocation(9_000, -(1000 + MAX_BLOCKS + 49), MAX_BLOCKS + 49)
    table = made.built().tables["memory_block"]
    assert table["bytes"].tolist() == [1000 + place for place in range(MAX_BLOCKS + 49, 49, -1)]
    assert records(table, "time_ns", "held_ns", "is_released")[:2] == [
        (MAX_BLOCKS + 49, 9_000 - MAX_BLOCKS - 49, 1), (MAX_BLOCKS + 48, MISSING, 0)
    ]  # fmt: skip


NAMES = ["aten::linear", "aten::mm", "aten::empty", "MmBackward0", "autograd::engine::evaluate_function: MmBackward0",
         "FlashAttnFunc", "DistributedDataParallel.forward"]  # fmt: skip


@given(st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5), min_size=1, max_size=4), st.data())
def test_owners_and_peaks_agree_with_the_slow_way(chains, data):
    made, total, held = Made(), 0, {}
    for place, names in enumerate(chains):
        start = place * 100
        for depth, name in enumerate(names):
            made.op(name, start + depth, start + 90 - depth)
        for at in range(start + 10, start + 80, 10):
            if held and data.draw(st.booleans()):
                address, size = held.popitem()
                total -= size
                made.allocation(at, -size, address, total_allocated_bytes=total)
            else:
                size = data.draw(st.integers(1, 100))
                held[at], total = size, total + size
                made.allocation(at, size, at, total_allocated_bytes=total)
    events = made.events()
    rows = made.built()
    assert peak_of(rows) == held_at_peak(events)
    allocations = events.allocations
    flat = not any("::" in name for names in chains for name in names)
    slow = {}
    for row in np.flatnonzero(allocations.bytes > 0).tolist():
        names = chain(events, allocations.thread[row], allocations.time_ns[row])
        pair = (owner(names, flat), names[-1])
        slow[pair] = slow.get(pair, 0) + int(allocations.bytes[row])
    found = {}
    for who, helper, size in owned(rows):
        found[who, helper] = found.get((who, helper), 0) + size
    assert found == slow
