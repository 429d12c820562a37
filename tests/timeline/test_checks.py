"""Hand-computable stories: records that were lost, times and durations that cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from tests.timeline.made_events import Made, by_op
from tracker.profile import INCOMPLETE_SETTING, Capture, LaunchLevel
from tracker.results.recording import incomplete_of
from tracker.schema.series import LOST_DEVICE, LOST_OWNERS
from tracker.timeline import build

US, MS = 1_000, 1_000_000


def training(steps: int = 3, lost: set[tuple[int, str]] = frozenset(), offset_ns: int = 0) -> Made:  # type: ignore[assignment]
    """Steps of 100 us, each of which launches aten::mm (20 us) and aten::add (10 us). `lost`: without their kernel."""
    made = Made()
    correlation = 0
    for step in range(steps):
        start = offset_ns + 100 * US * step
        made.step(step, start, start + 100 * US)
        for name, at, length in (("aten::mm", 10 * US, 20 * US), ("aten::add", 40 * US, 10 * US)):
            correlation += 1
            made.op(name, start + at, start + at + 5 * US)
            made.launch(start + at + 1 * US, correlation)
            if (step, name) not in lost:
                made.kernel(name[6:], start + at + 6 * US, start + at + 6 * US + length, correlation)
    return made


def forbidden(capture: Capture) -> tuple[str, ...]:
    """What may not be judged of a capture."""
    incomplete = incomplete_of(capture.settings)
    return () if incomplete is None else incomplete.forbids


def steps_of(capture: Capture) -> list[Any]:
    assert capture.rows is not None
    return [row.step for row in capture.rows.steps]


def test_whole_capture_has_no_line():
    capture = build(training().capture())
    assert (capture.quality, capture.quality_reason, INCOMPLETE_SETTING in capture.settings) == ("ok", "", False)


def test_launch_without_kernel_makes_the_capture_partial():
    capture = build(training(lost={(0, "aten::mm"), (1, "aten::mm")}).capture())
    assert capture.quality == "partial"
    assert capture.quality_reason == ("2 of 6 launches have no kernel: the profiler lost them (2 of aten::mm)")
    assert forbidden(capture) == (LOST_DEVICE,)
    assert steps_of(capture) == [0, 1, 2]


def test_lost_tail_leaves_out_its_step_alone():
    capture = build(training(lost={(2, "aten::add")}).capture())
    assert capture.quality_reason == (
        "step 2 is left out: 1 of 2 launches in it have no kernel, for the capture ended first"
    )
    assert forbidden(capture) == ()
    assert steps_of(capture) == [0, 1]


def test_only_step_with_lost_tail_stays_and_is_not_judged():
    capture = build(training(steps=1, lost={(0, "aten::add")}).capture())
    assert (steps_of(capture), forbidden(capture)) == ([0], (LOST_DEVICE,))


def test_window_without_steps_may_cut_off_one_launch_in_a_hundred():
    made = Made()
    for correlation in range(1, 101):
        made.launch(10 * correlation, correlation)
        if correlation < 100:
            made.kernel("k", 10 * correlation + 2, 10 * correlation + 8, correlation)
    assert build(made.capture()).quality == "ok"


@pytest.mark.parametrize("name", ["cudaGraphLaunch", "cudaMemcpyAsync", "cudaLaunchHostFunc", "cudaMalloc"])
def test_call_that_launches_no_kernel_needs_none(name):
    made = training()
    made.launch(5 * US, 99, name=name)
    assert build(made.capture()).quality == "ok"


@pytest.mark.parametrize("name", ["cudaLaunchKernelExC_v11060", "cuLaunchKernel", "hipExtModuleLaunchKernel"])
def test_every_spelling_of_a_launch_needs_its_kernel(name):
    made = training()
    made.launch(5 * US, 99, name=name)
    assert build(made.capture()).quality_reason.startswith("1 of 7 launches have no kernel")


def test_launches_of_a_stream_capture_run_nothing():
    made = training()
    made.launch(2 * US, 97, name="cudaStreamBeginCapture_v10000")
    made.launch(5 * US, 98)
    made.launch(7 * US, 99, name="cudaStreamEndCapture_v10000")
    assert build(made.capture()).quality == "ok"


def test_driver_call_inside_a_runtime_call_is_the_same_launch():
    made = training()
    made.launch(60 * US, 98, end=70 * US)
    made.launch(62 * US, 99, end=68 * US, level=LaunchLevel.DRIVER, name="cuLaunchKernel")
    made.kernel("k", 75 * US, 76 * US, 99)
    assert build(made.capture()).quality == "ok"


def test_kernels_without_correlation_are_those_of_as_many_launches():
    """ROCm writes correlation 0: nothing is lost, and nobody is said to have launched it."""
    made = training()
    made.launch(60 * US, 98, name="hipLaunchKernel")
    made.launch(1 * US, 0, name="hipMalloc")
    made.kernel("ncclDevKernel_AllReduce", 70 * US, 80 * US, 0)
    capture = build(made.capture())
    assert capture.quality == "ok"
    assert capture.rows is not None
    assert capture.rows.overall.unlinked_kernel_total_ns == 10 * US


def test_kernels_of_one_launch_beside_a_launch_without_are_marked():
    made = training()
    made.launch(60 * US, 98)
    made.kernel("add", 95 * US, 96 * US, 1)
    capture = build(made.capture())
    assert capture.quality_reason == (
        "1 kernels share the launch of another kernel, and 1 launches have none: which operator ran them is not known"
    )
    assert forbidden(capture) == (LOST_OWNERS,)


def test_device_events_at_zero_are_left_out_and_counted():
    made = training(offset_ns=1000 * MS)
    for correlation in (7, 8):
        made.launch(1000 * MS + 60 * US, correlation)
        made.kernel("mm", 0, 0, correlation)
    capture = build(made.capture())
    assert capture.quality_reason == (
        "2 of 8 device events have no time (0, or days away from all others) and are left out"
    )
    assert forbidden(capture) == (LOST_DEVICE,)
    assert capture.rows is not None
    assert (capture.rows.overall.duration_ns, capture.rows.overall.kernel_count) == (300 * US, 6)


def test_first_event_of_a_clock_that_begins_at_zero_stays():
    made = Made()
    made.kernel("k", 0, 0)
    made.kernel("k", 10, 30)
    capture = build(made.capture())
    assert capture.rows is not None
    assert (capture.quality, capture.rows.overall.kernel_count) == ("ok", 2)


def test_operators_years_away_make_no_span_of_years():
    made = training(offset_ns=1_600_000_000 * 1000 * MS)
    made.op("aten::mm", 5 * US, 6 * US)
    capture = build(made.capture())
    assert capture.quality_reason.startswith("1 of 16 events of the host have no time")
    assert capture.rows is not None
    assert capture.rows.overall.duration_ns == 300 * US


def test_kernel_that_outlasts_the_next_of_its_stream_is_cut():
    """It states 600 us, and the next one of its stream runs from 20 to 30 us behind its start."""
    made = Made()
    made.op("aten::add", 0, 10 * US)
    made.launch(1 * US, 1)
    made.launch(2 * US, 2)
    made.kernel("add", 20 * US, 620 * US, 1)
    made.kernel("mul", 40 * US, 50 * US, 2)
    capture = build(made.capture())
    assert capture.rows is not None
    assert sorted(capture.rows.tables["kernel"]["total_ns"]) == [10 * US, 20 * US]
    assert capture.quality_reason == (
        "1 of 2 device events (aten::add) end behind the next one of their stream, which cannot be: they are cut at "
        "its start"
    )
    incomplete = incomplete_of(capture.settings)
    assert incomplete is not None
    assert incomplete.names == ("aten::add", "add")


def test_two_impossible_kernels_in_a_row_are_both_cut():
    made = Made()
    made.kernel("add", 0, 900 * US)
    made.kernel("add", 20 * US, 910 * US)
    made.kernel("mul", 50 * US, 60 * US)
    capture = build(made.capture())
    assert capture.rows is not None
    assert capture.rows.overall.kernel_total_ns == (20 + 30 + 10) * US


@pytest.mark.parametrize("overrun_us", [13, 50])
def test_small_overlap_of_one_stream_is_real(overrun_us):
    """Of 5 ms of kernels."""
    made = Made()
    made.kernel("add", 0, (60 + overrun_us) * US)
    made.kernel("mul", 50 * US, 60 * US)
    made.kernel("mm", 1 * MS, 6 * MS)
    capture = build(made.capture())
    assert capture.rows is not None
    assert (capture.quality, capture.rows.overall.kernel_total_ns) == ("ok", (5070 + overrun_us) * US)


def test_kernels_of_one_graph_launch_may_overlap():
    made = Made()
    made.launch(0, 1, name="cudaGraphLaunch")
    made.kernel("add", 10 * US, 510 * US, 1)
    made.kernel("mul", 20 * US, 30 * US, 1)
    assert build(made.capture()).quality == "ok"


def npu(lost_steps: set[int]) -> Made:
    """Three steps of an NPU, which knows arrows from operators and no launch calls."""
    made = Made()
    for step in range(3):
        start = 100 * US * step
        made.step(step, start, start + 100 * US)
        made.op("aten::empty", start + 1 * US, start + 2 * US)
        made.op("aten::mm", start + 10 * US, start + 15 * US)
        if step not in lost_steps:
            made.launch(start + 11 * US, step + 1, level=LaunchLevel.FLOW, name="async_npu")
            made.kernel("MatMulV2", start + 20 * US, start + 40 * US, step + 1)
    return made


@pytest.mark.parametrize(("lost", "words", "kept"), [
    ({0, 1}, "steps 0-1 are left out: 2 of 2", [2]),
    ({1}, "step 1 is left out: 1 of 1", [0, 2]),
])  # fmt: skip
def test_steps_whose_device_records_are_lost_are_left_out(lost, words, kept):
    capture = build(npu(lost).capture())
    assert capture.quality_reason == (
        f"{words} operators that launch have no device work: the profiler lost its records"
    )
    assert (steps_of(capture), forbidden(capture)) == (kept, (LOST_DEVICE,))
    assert build(npu(set()).capture()).quality == "ok"


def test_table_of_kernels_that_was_cut_leaves_out_its_steps():
    made = Made()
    for step in (1, 2):
        made.step_times(step, compute=30 * US)
        made.kernel("MatMulV2", 100 * US * step, 100 * US * step + (30 * US if step == 1 else 10 * US), step=step)
        made.step(step, 100 * US * step, 100 * US * step + 50 * US)
    capture = build(made.capture())
    assert capture.quality_reason == (
        "step 2 is left out: the kernels take 10.00 us where the table of steps states 30.00 us: the table of kernels "
        "was cut"
    )
    assert (steps_of(capture), forbidden(capture)) == ([1], (LOST_DEVICE,))


def test_child_that_ends_one_us_behind_its_parent_is_a_child():
    """linear runs from 10 to 160 us, addmm in it from 11 to 161 us: 1 us of linear is its own."""
    made = Made()
    made.op("aten::linear", 10 * US, 160 * US)
    made.op("aten::addmm", 11 * US, 161 * US)
    made.op("aten::copy_", 20 * US, 161 * US)
    rows = made.built()
    assert by_op(rows, "host_self_ns") == {"aten::linear": 1 * US, "aten::addmm": 9 * US, "aten::copy_": 140 * US}


def test_op_behind_another_is_no_child_of_it():
    made = Made()
    made.op("aten::linear", 10 * US, 20 * US)
    made.op("aten::addmm", 19 * US, 21 * US)
    assert by_op(made.built(), "host_self_ns") == {"aten::linear": 10 * US, "aten::addmm": 2 * US}


def test_finer_clock_does_not_bend_what_crosses():
    made = Made()
    made.op("aten::linear", 10 * US + 1, 160 * US)
    made.op("aten::addmm", 11 * US, 161 * US)
    assert by_op(made.built(), "host_self_ns") == {"aten::linear": 150 * US - 1, "aten::addmm": 150 * US}


def named_by_ids(calls: list[tuple[int, int]]) -> dict[str, int]:
    """Device time of aten::matmul (id 2, 100 to 200 us) and aten::mm in it (id 4, 120 to 190 us). `calls`: when each
    kernel of 5 us is launched, 0 for no launch, and the id that it names.
    """
    made = Made()
    made.op("aten::matmul", 100 * US, 200 * US)
    made.op("aten::mm", 120 * US, 190 * US)
    for correlation, (call_us, _) in enumerate(calls, start=1):
        if call_us:
            made.launch(call_us * US, correlation)
        made.kernel("k", (200 + 10 * correlation) * US, (205 + 10 * correlation) * US, correlation)
    ids = np.array([named for _, named in calls], dtype=np.int64)
    rows = made.built(op_external=np.array([2, 4]), device_external=ids)
    return by_op(rows, "device_self_ns")


def test_external_id_decides_at_the_edge_of_an_operator():
    found = named_by_ids([(120, 4), (120, 2), (190, 4), (190, 2)])
    assert found == {"aten::matmul": 10 * US, "aten::mm": 10 * US}


def test_external_id_names_the_operator_of_a_kernel_without_launch():
    assert named_by_ids([(0, 4)]) == {"aten::mm": 5 * US, "aten::matmul": 0}


def test_launch_in_the_middle_of_an_operator_is_its_own_whatever_the_id():
    assert named_by_ids([(150, 2)]) == {"aten::mm": 5 * US, "aten::matmul": 0}


def test_second_device_of_a_process_lost_nothing_of_the_first():
    made = Made()
    made.launch(10, 1)
    made.launch(20, 2)
    made.kernel("k", 30, 40, 1)
    capture = made.capture()
    assert capture.events is not None
    extras = replace(capture.events.extras, served_elsewhere=np.array([2]))
    assert build(replace(capture, events=replace(capture.events, extras=extras))).quality == "ok"
