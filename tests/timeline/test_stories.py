"""Hand-computable stories: what each number means."""

from __future__ import annotations

import pytest

from tests.timeline.made_events import Made, by_op, records
from tracker.profile import MISSING, NO_STEP, Breakdown, LaunchLevel
from tracker.timeline import build


def parts(breakdown: Breakdown) -> dict[str, int | None]:
    names = ("compute", "communication", "overlap", "exposed_communication", "copy", "exposed_copy", "free", "e2e")
    return {name: getattr(breakdown, f"{name}_ns") for name in names}


def test_classes_of_device_time_share_the_span_between_first_start_and_last_end():
    made = Made()
    made.kernel("sgemm", 100, 140)
    made.kernel("relu", 120, 160, stream=8)
    made.kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 150, 190, stream=9)
    made.copy(185, 200, stream=10)
    made.memset(210, 220, stream=10)
    assert parts(made.built().overall) == {
        "compute": 60,
        "communication": 40,
        "overlap": 10,
        "exposed_communication": 30,
        "copy": 25,
        "exposed_copy": 20,
        "free": 10,
        "e2e": 120,
    }


def test_plain_sums_stand_beside_the_unions_and_copies_are_no_kernels():
    made = Made()
    made.launch(1, 1)
    made.kernel("a", 10, 20, 1)
    made.kernel("b", 15, 25)
    made.copy(30, 34)
    overall = made.built().overall
    assert (overall.kernel_count, overall.kernel_total_ns, overall.compute_total_ns) == (2, 20, 20)
    assert (overall.copy_total_ns, overall.communication_total_ns) == (4, 0)
    assert (overall.unlinked_kernel_count, overall.unlinked_kernel_total_ns) == (1, 10)


def test_a_copy_inside_a_collective_on_a_stream_of_collectives_belongs_to_the_collective():
    made = Made()
    gather = made.collective("all_gather", bytes=1000)
    made.annotation("nccl:all_gather", 0, 50, collective=gather)
    for correlation in range(3):
        made.launch(10 + correlation, correlation)
    made.kernel("ncclDevKernel_AllGather_RING_LL", 100, 110, 0, stream=20)
    made.copy(110, 115, 1, stream=20)
    made.copy(110, 117, 2, stream=7)
    rows = made.built()
    assert (rows.overall.communication_ns, rows.overall.copy_ns) == (15, 7)
    assert (rows.overall.kernel_count, rows.overall.kernel_total_ns) == (1, 10)
    columns = ("kind", "calls", "bytes", "total_ns", "size_class_bytes")
    assert records(rows.tables["communication"], *columns) == [("all_gather", 1, 1000, 15, 1024)]
    assert records(rows.tables["communication_task"], "communication", "name", "calls", "total_ns") == [
        (0, "Memcpy HtoD (Pinned -> Device)", 1, 5),
        (0, "ncclDevKernel_AllGather_RING_LL", 1, 10),
    ]


def test_a_device_event_belongs_to_the_step_whose_marker_contains_its_launch():
    made = Made()
    made.step(4, 100, 200)
    made.step(5, 200, 300)
    made.launch(199, 1)
    made.launch(200, 2)
    made.launch(320, 3)
    made.kernel("late", 350, 360, 1)
    made.kernel("later", 360, 380, 2)
    made.kernel("after", 380, 390, 3)
    rows = made.built()
    assert [(row.step, row.start_ns, row.breakdown.kernel_total_ns) for row in rows.steps] == [(4, 0, 10), (5, 100, 20)]
    assert sorted(records(rows.tables["kernel"], "step", "total_ns")) == [(NO_STEP, 10), (4, 10), (5, 20)]
    assert rows.overall.kernel_total_ns == 40


def test_without_a_launch_the_own_step_the_first_linked_event_or_the_own_start_decides():
    made = Made()
    made.step(1, 0, 100)
    made.step(2, 100, 200)
    made.launch(50, 9)
    made.kernel("queued before the capture", 10, 20)
    made.kernel("says its own step", 11, 21, step=2)
    made.kernel("first linked", 60, 70, 9)
    made.kernel("own start", 110, 120)
    made.kernel("other stream", 5, 6, stream=8)
    made.kernel("says a step without a marker", 5, 6, step=7, stream=8)
    kernels = made.built().tables
    names = kernels["kernel_key"]["name"]
    assert {names[key]: step for key, step in records(kernels["kernel"], "kernel_key", "step")} == {
        "queued before the capture": NO_STEP,
        "says its own step": 2,
        "first linked": 1,
        "own start": 2,
        "other stream": 1,
        "says a step without a marker": NO_STEP,
    }


def test_without_markers_the_capture_is_one_step():
    made = Made()
    made.op("aten::mm", 1000, 1100)
    made.kernel("sgemm", 1150, 1250)
    rows = made.built()
    (step,) = rows.steps
    assert (step.step, step.start_ns, step.breakdown) == (0, 0, rows.overall)
    assert rows.overall.duration_ns == 250


def test_host_ops_belong_to_the_step_that_contains_their_start_on_any_thread():
    made = Made()
    made.step(1, 0, 100)
    made.op("aten::mm", 90, 110, thread=1)
    made.op("aten::mm", 100, 110)
    assert records(made.built().tables["op"], "step", "calls", "host_total_ns")[:2] == [(NO_STEP, 1, 10), (1, 1, 20)]


def test_self_counts_every_instance_and_total_only_the_outermost_of_one_key():
    made = Made()
    made.op("f", 0, 100)
    made.op("g", 10, 60)
    made.op("f", 20, 50)
    assert by_op(made.built(), "calls", "host_total_ns", "host_self_ns", "min_ns", "max_ns", "sum_squares_ns2") == {
        "f": (2, 100, 80, 100, 100, 10_000.0),
        "g": (1, 50, 20, 50, 50, 2_500.0),
    }


def test_children_that_cross_each_other_count_their_common_time_once():
    made = Made()
    made.op("parent", 0, 20)
    made.op("a", 0, 10)
    made.op("b", 5, 15)
    assert by_op(made.built(), "host_self_ns") == {"parent": 5, "a": 10, "b": 10}


def test_device_self_is_launched_by_the_op_itself_and_total_anywhere_below():
    made = Made()
    made.op("aten::linear", 0, 100)
    made.op("aten::addmm", 10, 60)
    made.launch(20, 1)
    made.launch(70, 2)
    made.kernel("sgemm", 200, 230, 1)
    made.copy(230, 235, 2)
    assert by_op(made.built(), "device_self_ns", "device_total_ns", "kernel_count") == {
        "aten::linear": (5, 35, 1),
        "aten::addmm": (30, 30, 1),
    }


def test_user_annotations_are_ops_and_a_launch_may_lie_only_under_one():
    made = Made()
    made.annotation("nccl:all_reduce", 0, 10)
    made.launch(5, 1)
    made.kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 20, 30, 1)
    assert by_op(made.built(), "device_self_ns") == {"nccl:all_reduce": 10}


def test_no_launch_and_no_op_around_it_have_names_so_that_totals_agree():
    made = Made()
    made.launch(5, 1)
    made.kernel("a", 10, 20, 1)
    made.kernel("b", 20, 25, 99)
    made.kernel("c", 25, 28)
    columns = ("calls", "host_total_ns", "device_self_ns", "device_total_ns", "min_ns")
    assert by_op(made.built(), *columns) == {
        "(no op)": (0, MISSING, 10, 10, MISSING),
        "(unlinked)": (0, MISSING, 8, 8, MISSING),
    }


def test_driver_graph_and_flow_launches_link_and_the_process_must_agree():
    made = Made(processes=(0, 1))
    made.op("graph", 0, 10)
    made.op("driver", 20, 30)
    made.op("flow", 40, 50)
    made.op("stranger", 60, 70, thread=1)
    made.launch(5, 1, name="cudaGraphLaunch")
    made.launch(25, 2, level=LaunchLevel.DRIVER, name="cuLaunchKernelEx")
    made.launch(45, 3, level=LaunchLevel.FLOW, name="")
    made.launch(65, 4, thread=1)
    for start, correlation in ((100, 1), (110, 1), (120, 2), (130, 3), (140, 4)):
        made.kernel("k", start, start + 5, correlation, stream=0)
    rows = made.built()
    assert by_op(rows, "kernel_count") == {"graph": 2, "driver": 1, "flow": 1, "stranger": 0, "(unlinked)": 1}
    assert sorted(records(rows.tables["api"], "level", "name")) == [
        ("driver", "cuLaunchKernelEx"),
        ("runtime", "cudaGraphLaunch"),
        ("runtime", "cudaLaunchKernel"),
    ]


def test_a_correlation_that_occurs_again_means_the_latest_launch_before_the_event():
    made = Made()
    made.op("first", 0, 10)
    made.op("second", 100, 110)
    made.launch(5, 1)
    made.launch(105, 1)
    made.kernel("k", 50, 60, 1)
    made.kernel("k", 150, 170, 1)
    made.kernel("clock runs ahead", 3, 4, 1)
    assert by_op(made.built(), "device_self_ns") == {"first": 11, "second": 20}


def test_the_launching_thread_decides_which_op_is_around():
    made = Made()
    made.op("main", 0, 100, thread=0)
    made.op("backward", 20, 40, thread=1)
    made.launch(30, 1, thread=1)
    made.kernel("k", 50, 60, 1)
    assert by_op(made.built(), "device_self_ns") == {"main": 0, "backward": 10}


def test_an_op_that_crosses_its_neighbour_takes_the_launch_that_both_contain():
    made = Made()
    made.op("a", 0, 10)
    made.op("b", 5, 15)
    for start, correlation in ((3, 1), (7, 2), (12, 3), (15, 4)):
        made.launch(start, correlation)
        made.kernel("k", 100, 101, correlation)
    assert by_op(made.built(), "kernel_count") == {"a": 1, "b": 2, "(no op)": 1}


def test_host_timeline_stands_in_without_device_activity():
    made = Made()
    reduce = made.collective("all_reduce", bytes=4096, data_type="float32", group_size=2)
    made.step(1, 0, 100)
    made.annotation("Optimizer.step#SGD.step", 60, 95)
    made.op("aten::mm", 10, 40)
    made.op("c10d::allreduce_", 40, 45)
    made.annotation("gloo:all_reduce", 35, 55, thread=1, collective=reduce)
    made.op("aten::add_", 50, 52, thread=1)
    made.op("aten::mul", 90, 130)
    rows = made.built()
    (step,) = rows.steps
    assert (step.breakdown.timeline, step.breakdown.kernel_count) == ("host", 0)
    assert parts(step.breakdown) == {
        "compute": 40,
        "communication": 20,
        "overlap": 5,
        "exposed_communication": 15,
        "copy": 0,
        "exposed_copy": 0,
        "free": 45,
        "e2e": 100,
    }
    assert parts(rows.overall)["e2e"] == 130 and parts(rows.overall)["compute"] == 70
    columns = (
        "step",
        "kind",
        "group_size",
        "data_type",
        "size_class_bytes",
        "calls",
        "bytes",
        "total_ns",
        "exposed_ns",
    )
    assert records(rows.tables["communication"], *columns) == [(1, "all_reduce", 2, "float32", 4096, 1, 4096, 20, 15)]
    assert records(rows.tables["kernel"], "calls") == []


def test_backward_ops_carry_the_module_of_the_forward_op_with_their_sequence_number():
    made = Made()
    made.frame("GPT_0", 0, 100, is_module=1)
    made.frame("Linear_0", 10, 50, is_module=1)
    made.op("aten::reshape", 12, 14, sequence=3)
    made.op("aten::addmm", 20, 40, sequence=3)
    made.op("aten::add", 60, 70)
    made.op("autograd::engine::evaluate_function: AddmmBackward0", 200, 300, thread=1, sequence=3, is_backward=1)
    made.op("AddmmBackward0", 210, 290, thread=1, sequence=3, is_backward=1)
    made.op("aten::mm", 220, 230, thread=1)
    keys = made.built().tables["op_key"]
    assert {name: (module, phase) for name, module, phase in records(keys, "name", "module", "phase") if module} == {
        "aten::reshape": ("GPT_0/Linear_0", "forward"),
        "aten::addmm": ("GPT_0/Linear_0", "forward"),
        "aten::add": ("GPT_0", "forward"),
        "autograd::engine::evaluate_function: AddmmBackward0": ("GPT_0/Linear_0", "backward"),
        "AddmmBackward0": ("GPT_0/Linear_0", "backward"),
        "aten::mm": ("GPT_0/Linear_0", "backward"),
    }


def test_the_phase_of_an_op_comes_from_the_nearest_telling_op_around_it():
    made = Made()
    made.annotation("enumerate(DataLoader)#_Single.__next__", 0, 10)
    made.op("aten::stack", 2, 4)
    made.annotation("Optimizer.zero_grad#SGD.zero_grad", 20, 30)
    made.annotation("Optimizer.step#SGD.step", 40, 50)
    made.op("aten::add_", 42, 44)
    made.op("aten::item", 60, 61)
    phases = dict(records(made.built().tables["op_key"], "name", "phase"))
    assert [phases[name] for name in ("aten::stack", "aten::add_", "aten::item")] == ["dataloader", "optimizer", ""]
    assert phases["Optimizer.zero_grad#SGD.zero_grad"] == "clear_grad"
    assert made.built().overall.data_loading_ns == 10


def test_the_phase_that_the_source_itself_names_goes_down_to_the_ops_inside():
    made = Made()
    made.op("Dataloader", 0, 30, phase="dataloader")
    made.op("Forward", 30, 60, phase="forward")
    made.op("relu dygraph", 35, 45)
    made.op("adamw_", 60, 70)
    rows = made.built()
    phases = dict(records(rows.tables["op_key"], "name", "phase"))
    assert [phases[name] for name in ("Dataloader", "relu dygraph", "adamw_")] == ["dataloader", "forward", ""]
    assert rows.overall.data_loading_ns == 30


def test_data_loading_is_unknown_where_the_source_never_mentions_it():
    made = Made()
    made.op("aten::mm", 0, 1)
    assert made.built().overall.data_loading_ns is None


def test_a_thread_in_a_collective_does_not_compute_though_an_op_is_around_it():
    made = Made()
    gather = made.collective("all_gather")
    made.step(1, 0, 100)
    made.op("MyAllToAll", 10, 90)
    made.annotation("gloo:all_to_all", 20, 80, collective=gather)
    made.op("aten::mm", 30, 40, thread=1)
    (step,) = made.built().steps
    found = parts(step.breakdown)
    assert (found["compute"], found["communication"], found["overlap"], found["free"]) == (30, 60, 10, 20)


def test_without_addresses_nobody_knows_how_long_memory_was_held():
    made = Made()
    made.op("op", 0, 100)
    made.allocation(10, 512, MISSING)
    made.allocation(20, -512, MISSING)
    rows = made.built()
    assert records(rows.tables["memory"], "bytes", "held_ns", "unreleased_bytes") == [(512, MISSING, MISSING)]


def test_memory_goes_to_the_innermost_op_of_the_allocating_thread():
    made = Made()
    made.step(1, 0, 50)
    made.op("outer", 0, 100)
    made.op("inner", 10, 20)
    made.allocation(12, 512, 0xA, total_allocated_bytes=512, total_reserved_bytes=2048)
    made.allocation(30, 256, 0xB, total_allocated_bytes=768, total_reserved_bytes=2048)
    made.allocation(60, -512, 0xA, total_allocated_bytes=256, total_reserved_bytes=2048)
    made.allocation(70, 64, 0xC, thread=1)
    made.allocation(71, 8, 0xC, on_device=0, component="cpu", total_allocated_bytes=9_999)
    rows = made.built()
    columns = ("step", "component", "calls", "bytes", "held_ns", "unreleased_bytes")
    names = rows.tables["op_key"]["name"]
    found = [(names[key], *values) for key, *values in records(rows.tables["memory"], "op_key", *columns)]
    assert sorted(found) == [
        ("(no op)", NO_STEP, "device", 1, 64, MISSING, 64),
        ("inner", 1, "device", 1, 512, 48, 0),
        ("outer", NO_STEP, "cpu", 1, 8, MISSING, 8),
        ("outer", 1, "device", 1, 256, MISSING, 256),
    ]
    assert (rows.overall.peak_allocated_bytes, rows.overall.peak_reserved_bytes) == (768, 2048)
    assert rows.steps[0].breakdown.peak_allocated_bytes == 768
    curve = rows.tables["memory_curve"]
    assert records(curve, "component", "time_ns", "allocated_bytes") == [
        ("cpu", 71, 9_999),
        ("device", 12, 512),
        ("device", 30, 768),
        ("device", 60, 256),
    ]


def test_a_long_memory_curve_keeps_its_maximum_in_500_points():
    made = Made()
    for time in range(5000):
        made.allocation(time, 1, time, total_allocated_bytes=10**6 if time == 3333 else time, total_reserved_bytes=0)
    curve = made.built().tables["memory_curve"]
    assert len(curve["time_ns"]) <= 500
    assert max(curve["allocated_bytes"]) == 10**6


def test_api_self_time_leaves_out_nested_calls():
    made = Made()
    made.launch(0, 1, end=100, name="cudaLaunchKernel")
    made.launch(10, 2, end=40, name="cuLaunchKernel", level=LaunchLevel.DRIVER)
    columns = ("level", "name", "calls", "total_ns", "self_ns", "min_ns", "max_ns")
    assert sorted(records(made.built().tables["api"], *columns)) == [
        ("driver", "cuLaunchKernel", 1, 30, 30, 30, 30),
        ("runtime", "cudaLaunchKernel", 1, 100, 70, 100, 100),
    ]


def test_the_most_frequent_call_stack_of_an_op_key_comes_innermost_first():
    made = Made()
    made.frame("train.py(1): main", 0, 100)
    made.frame("Linear_0", 10, 60, is_module=1)
    made.frame("model.py(7): forward", 20, 50)
    made.op("aten::mm", 30, 31)
    made.op("aten::mm", 32, 33)
    made.op("aten::mm", 70, 71)
    made.op("aten::add", 80, 81, call_stack="said by the source")
    rows = made.built()
    stacks = {}
    names = rows.tables["op_key"]["name"]
    modules = rows.tables["op_key"]["module"]
    for key, stack in records(rows.tables["op"], "op_key", "call_stack"):
        stacks[names[key], modules[key]] = stack
    assert stacks == {
        ("aten::mm", "Linear_0"): "model.py(7): forward;train.py(1): main",
        ("aten::mm", ""): "train.py(1): main",
        ("aten::add", ""): "said by the source",
    }


def test_calling_contexts_keep_their_number_in_every_step_and_thread():
    made = Made()
    made.step(1, 0, 100)
    for offset, thread in ((0, 0), (200, 1)):
        made.op("outer", offset, offset + 50, thread)
        made.op("inner", offset + 10, offset + 20, thread)
        made.launch(offset + 15, offset, thread=thread)
        made.kernel("k", offset + 60, offset + 65, offset)
    made.op("inner", 300, 301)
    made.kernel("queued", 1, 3)
    rows = made.built()
    names = rows.tables["op_key"]["name"]
    columns = ("step", "node", "parent", "calls", "host_total_ns", "device_total_ns", "device_self_ns", "kernel_count")
    tree = [(names[key], *values) for key, *values in records(rows.tables["op_tree"], "op_key", *columns)]
    assert tree == [
        ("inner", -1, 0, -1, 1, 1, 0, 0, 0),
        ("outer", -1, 1, -1, 1, 50, 5, 0, 1),
        ("inner", -1, 2, 1, 1, 10, 5, 5, 1),
        ("(unlinked)", -1, 4, -1, 0, MISSING, 2, 2, 1),
        ("outer", 1, 1, -1, 1, 50, 5, 0, 1),
        ("inner", 1, 2, 1, 1, 10, 5, 5, 1),
    ]


def test_a_context_that_began_in_another_step_still_stands_above_its_children():
    made = Made()
    made.step(1, 0, 100)
    made.annotation("epoch", -10, 90)
    made.op("inner", 10, 20)
    names = (rows := made.built()).tables["op_key"]["name"]
    tree = [(names[key], *values) for key, *values in records(rows.tables["op_tree"], "op_key", "step", "calls")]
    assert tree == [("epoch", NO_STEP, 1), ("epoch", 1, 0), ("inner", 1, 1)]


def test_the_second_device_of_a_process_leaves_host_time_to_the_first():
    made = Made()
    made.host_is_primary = False
    made.op("idle", 0, 10)
    made.op("busy", 20, 30)
    made.launch(25, 1)
    made.kernel("k", 40, 45, 1)
    made.allocation(25, 10, 1, total_allocated_bytes=10)
    rows = made.built()
    assert by_op(rows, "calls", "host_total_ns", "host_self_ns", "device_self_ns") == {
        "busy": (MISSING, MISSING, MISSING, 5)
    }
    assert by_op(rows, "host_total_ns", "device_total_ns", table="op_tree") == {"busy": (MISSING, 5)}
    assert records(rows.tables["api"], "calls") == []
    assert rows.overall.peak_allocated_bytes == 10


def test_kernel_rows_tell_kernels_of_different_ops_apart_and_include_copies():
    made = Made()
    made.op("aten::mm", 0, 10)
    made.op("aten::add", 20, 30)
    made.launch(5, 1)
    made.launch(25, 2)
    made.launch(26, 3)
    made.kernel("void same<4>(int)", 40, 50, 1)
    made.kernel("void same<4>(int)", 50, 53, 2)
    made.copy(60, 64, 3, bytes=100)
    rows = made.built()
    names, keys = rows.tables["op_key"]["name"], rows.tables["kernel_key"]
    found = [
        (keys["canonical_name"][kernel], names[op], *values)
        for kernel, op, *values in records(
            rows.tables["kernel"], "kernel_key", "op_key", "category", "calls", "total_ns", "bytes", "wait_ns"
        )
    ]
    assert sorted(found) == [
        ("Memcpy HtoD (Pinned -> Device)", "aten::add", "copy", 1, 4, 100, MISSING),
        ("same<4>", "aten::add", "vector", 1, 3, MISSING, MISSING),
        ("same<4>", "aten::mm", "matmul", 1, 10, MISSING, MISSING),
    ]


def test_a_capture_with_rows_stays_as_it_is_and_one_without_anything_is_refused():
    capture = build(Made().capture())
    assert capture.events is None and capture.rows is not None
    assert build(capture) is capture
    with pytest.raises(ValueError, match="neither"):
        build(Made().capture().__class__(0, 1, "", capture.device, 0, None, None, ()))


def test_nothing_happened_is_a_capture_too():
    rows = Made().built()
    assert parts(rows.overall)["e2e"] == 0
    assert rows.overall.peak_allocated_bytes is None
    assert [row.step for row in rows.steps] == [0]


def test_an_npu_op_that_merely_launches_hands_its_kernels_to_the_op_at_work():
    made = Made()
    made.op("aten::mm", 0, 30, input_shapes="[[8,8]]")
    made.op("aclnnMm", 10, 20)
    made.launch(12, 1)
    made.kernel("MatMulV2", 40, 70, 1)
    made.op("custom", 100, 110)
    made.launch(102, 2)
    made.kernel("fused", 120, 130, 2)
    rows = by_op(made.built(), "device_self_ns", "device_total_ns", "host_self_ns")
    assert rows["aten::mm"] == (30, 30, 20)
    assert rows["aclnnMm"] == (0, 0, 10)
    assert rows["custom"] == (10, 10, 10)
