"""Hand-computable stories: which op an event belongs to, and what is told of the op."""

from __future__ import annotations

from tests.timeline.made_events import Made, by_op, records
from tracker.profile import MISSING, NO_STEP, LaunchLevel


def test_self_counts_every_instance_and_total_only_the_outermost_of_one_key():
    made = Made()
    made.op("f", 0, 100)
    made.op("g", 10, 60)
    made.op("f", 20, 50)
    assert by_op(made.built(), "calls", "host_total_ns", "host_self_ns", "min_ns", "max_ns", "sum_squares_ns2") == {
        "f": (2, 100, 80, 100, 100, 10_000.0),
        "g": (1, 50, 20, 50, 50, 2_500.0),
    }


def test_usual_time_is_that_of_the_lower_quartile_or_the_median_of_the_calls():
    made = Made()
    for start, ns in ((0, 10), (100, 12), (200, 14), (300, 20), (400, 80), (500, 30)):
        made.op("f" if ns != 30 else "g", start, start + ns)
    # f: 5 x 12 and 5 x 14, though the calls took 136 together
    assert by_op(made.built(), "host_self_ns", "self_by_quartile_ns", "self_by_median_ns") == {
        "f": (136, 60, 70),
        "g": (30, 30, 30),
    }


def test_usual_time_is_of_one_step_and_of_one_key():
    made = Made()
    made.op("f", 0, 10)
    made.op("f", 20, 40)
    made.step(1, 100, 200)
    made.op("f", 110, 150)
    made.op("f", 155, 157, input_shapes="[2]")
    rows = made.built().tables["op"]
    assert sorted(records(rows, "step", "calls", "self_by_median_ns")) == [
        (NO_STEP, 2, 30), (1, 1, 2), (1, 1, 40)
    ]  # fmt: skip


def test_usual_time_is_not_known_beside_a_device():
    made = Made()
    made.op("aten::mm", 0, 100)
    made.launch(20, 1)
    made.kernel("sgemm", 200, 230, 1)
    found = by_op(made.built(), "self_by_quartile_ns", "self_by_median_ns")
    assert found == {"aten::mm": (MISSING, MISSING)}


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


def test_what_activation_checkpointing_runs_again_is_told_from_the_backward_pass():
    """By its Python frame, and where autograd runs it by the node: what is backward within it is backward."""
    made = Made()
    made.frame("Linear_0", 0, 20, is_module=1)
    made.op("aten::linear", 5, 15)
    node = "autograd::engine::evaluate_function: "
    made.op(node + "ReluBackward0", 100, 200, thread=1, is_backward=1)
    made.frame("/venv/torch/utils/checkpoint.py(1500): recompute_fn", 110, 150, thread=1)
    made.op("aten::relu", 120, 130, thread=1)
    made.op("aten::threshold_backward", 160, 170, thread=1)
    made.op("CheckpointFunctionBackward", 300, 400, thread=1, is_backward=1)
    made.op("aten::gelu", 310, 320, thread=1)
    made.op(node + "GeluBackward0", 330, 390, thread=1, is_backward=1)
    made.op("aten::gelu_backward", 340, 350, thread=1)
    phases = dict(records(made.built().tables["op_key"], "name", "phase"))
    assert {name: phase for name, phase in phases.items() if name.startswith("aten")} == {
        "aten::linear": "forward",
        "aten::relu": "recompute",
        "aten::threshold_backward": "backward",
        "aten::gelu": "recompute",
        "aten::gelu_backward": "backward",
    }


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
        made.launch(offset + 15, offset + 1, thread=thread)
        made.kernel("k", offset + 60, offset + 65, offset + 1)
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
