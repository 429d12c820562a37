"""NVTX ranges of an Nsight Systems export: which are operators, modules, steps, phases and collectives."""

from __future__ import annotations

import pytest

from tests.readers.helpers import frame, only, texts
from tests.readers.nsys_captures import kernels, read
from tests.readers.nsys_databases import DOMAIN, START_END, T, one_step, span, tid
from tracker.timeline import rows_of


def with_ranges(*ranges):
    return {**one_step(), "NVTX_EVENTS": list(ranges)}


def test_ranges_of_pytorch_are_operators_with_shapes_and_no_modules(tmp_path):
    emitted = span("aten::mm, seq = 5, op_id = 41, sizes = [[8, 96], [96, 4]]", 145, 170)
    events = only(read(tmp_path, with_ranges(span("encoder", 100, 200), emitted))).events
    assert texts(events, events.ops.name) == ["encoder", "aten::mm"]
    assert texts(events, events.ops.input_shapes) == ["", "[[8,96],[96,4]]"]
    assert events.ops.sequence.tolist() == [-1, 5]
    assert events.ops.is_annotation.tolist() == [1, 0]
    rows = rows_of(events).tables
    assert {(row["name"], row["module"]) for row in frame(rows["op_key"])} >= {
        ("encoder", "encoder"),
        ("aten::mm", "encoder"),
    }


def test_backward_operator_takes_the_module_of_its_forward_operator(tmp_path):
    forward = span("aten::mm, seq = 5, op_id = 41", 145, 170)
    backward = span("autograd::engine::evaluate_function: MmBackward0, seq = 5, op_id = 60", 315, 335)
    capture = only(read(tmp_path, with_ranges(span("encoder", 100, 200), forward, backward)))
    assert kernels(capture)["void relu<(int)4>(float *)"][1:3] == ("encoder", "backward")


def test_running_numbers_make_no_new_ops_but_layers_stay_apart(tmp_path):
    names = ("Warm-up Step 1", "Warm-up Step 2", "layer_0", "layer_1", "layer_0")
    ranges = [span(name, 100 * row, 100 * row + 50) for row, name in enumerate(names)]
    events = only(read(tmp_path, with_ranges(*ranges))).events
    assert texts(events, events.ops.name) == ["Warm-up Step", "Warm-up Step", "layer_0", "layer_1", "layer_0"]
    assert len(events.markers) == 0


@pytest.mark.parametrize(
    "name", ["step 3", "iter_3", "Iteration: 3", "train_step=3", "ProfilerStep#3", "3", "step 3/9"]
)
def test_words_for_a_step(tmp_path, name):
    events = only(read(tmp_path, with_ranges(span(name, 100, 200)))).events
    assert events.markers.step.tolist() == [3]


def test_bare_numbers_that_come_again_are_no_steps(tmp_path):
    layers = [span(str(layer), 100 * row, 100 * row + 9) for row, layer in enumerate((0, 1, 0, 1))]
    events = only(read(tmp_path, with_ranges(*layers))).events
    assert len(events.markers) == 0
    assert len(events.ops) == 4


def test_of_two_counters_the_one_with_more_numbers_is_the_step(tmp_path):
    ranges = [span("step 1", 0, 1000), *(span(f"iteration {i}", 100 * i, 100 * i + 90) for i in (1, 2, 3))]
    events = only(read(tmp_path, with_ranges(*ranges))).events
    assert events.markers.step.tolist() == [1, 2, 3]


def test_step_number_that_comes_again_is_said(tmp_path):
    profile = read(tmp_path, with_ranges(span("step 1", 100, 200), span("step 1", 300, 450)))
    markers = only(profile).events.markers
    assert (markers.start_ns.tolist(), markers.end_ns.tolist()) == ([300], [450])
    assert "process 7: 1 step markers whose number comes again were left out, the longest kept" in profile.warnings


def test_range_that_was_never_closed_ends_with_the_capture(tmp_path):
    events = only(read(tmp_path, with_ranges(span("training", 100, None)))).events
    assert events.ops.end_ns.tolist() == [432]


def test_range_that_ends_on_another_thread_is_left_out_and_said(tmp_path):
    request = span("request", 100, 300, eventType=START_END, endGlobalTid=tid(7, 9))
    profile = read(tmp_path, with_ranges(request, span("stage", 120, 200, eventType=START_END, endGlobalTid=0)))
    assert texts(only(profile).events, only(profile).events.ops.name) == ["stage"]
    assert any("1 NVTX ranges that end on another thread" in text for text in profile.warnings)


def test_calls_of_libraries_are_ops_and_no_modules(tmp_path):
    tables = with_ranges(
        span("encoder", 100, 200),
        span("GemmPlan", 141, 165, domainId=4),
        span("CUBLAS", 0, None, eventType=DOMAIN, domainId=4),
    )
    tables["CUBLAS_EVENTS"] = [{"start": 145, "end": 164, "globalTid": tid(7), "nameId": T("cublasGemmEx")}]
    capture = only(read(tmp_path, tables))
    assert kernels(capture)["ampere_sgemm_128x64_tn"][:2] == ("cublasGemmEx", "encoder")
    assert {row["module"] for row in frame(rows_of(capture.events).tables["op_key"])} == {"", "encoder"}


def test_nccl_range_says_which_collective_its_kernel_is(tmp_path):
    tables = with_ranges(span("ncclAllReduce", 145, 170, domainId=3))
    tables["CUPTI_ACTIVITY_KIND_KERNEL"][0] |= {"demangledName": T("ncclDevKernel_Generic(ncclDevKernelArgs)")}
    (row,) = frame(rows_of(only(read(tmp_path, tables)).events).tables["communication"])
    assert (row["kind"], row["calls"], row["total_ns"]) == ("all_reduce", 1, 60)


def test_ranges_of_phases_name_the_phase_and_no_module(tmp_path):
    names = ("load_data", "Forward", "loss.backward()", "optimizer.step", "zero_grad", "benchmark")
    ranges = [span(name, 1000 * row, 1000 * row + 900) for row, name in enumerate(names)]
    tables = rows_of(only(read(tmp_path, with_ranges(*ranges))).events).tables
    assert {row["name"]: (row["phase"], row["module"]) for row in frame(tables["op_key"]) if row["name"][0] != "("} == {
        "load_data": ("dataloader", ""),
        "Forward": ("forward", ""),
        "loss.backward()": ("backward", ""),
        "optimizer.step": ("optimizer", ""),
        "zero_grad": ("clear_grad", ""),
        "benchmark": ("", "benchmark"),
    }
