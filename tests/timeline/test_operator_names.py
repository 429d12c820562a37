"""Keys of operators: what a compiler or an engine numbers anew in each build or step is no part of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.factories import rows
from tests.timeline.made_events import Made, by_op, records
from tracker.profile.operator_names import find_data_numbers, is_numbered_kernel, number_by_order, stable_name
from tracker.timeline.operator_names import name_operators_of_rows

HASH = "fal4xpiah2v6blbfmwwonu52dvevbsmlh743q5tkclrt4gcqpzea"
OTHER_HASH = "fbl4xpiah2v6blbfmwwonu52dvevbsmlh743q5tkclrt4gcqpzea"


def names_of(made: Made) -> set[str]:
    return {name for name in by_op(made.built(), "calls") if not name.startswith("(")}


def compiled(norm: str, add: str, *, graph: str = HASH, region: str = "0/0") -> Made:
    """One compiled region of one graph, with two Triton kernels of 30 and 20 ns."""
    made = Made()
    made.op(f"Torch-Compiled Region: {region}", 0, 100)
    made.op(f"## Call CompiledFxGraph {graph} ##", 10, 90)
    made.op(norm, 20, 50)
    made.op(add, 60, 80)
    return made


def test_running_numbers_hashes_and_regions_are_no_part_of_keys():
    before = compiled("triton_red_fused_norm_4", "triton_poi_fused_add_1")
    after = compiled("triton_red_fused_norm_7", "triton_poi_fused_add_4", graph=OTHER_HASH, region="2/1")
    times = {
        "Torch-Compiled Region": 20,
        "## Call CompiledFxGraph ##": 30,
        "triton_red_fused_norm": 30,
        "triton_poi_fused_add": 20,
    }
    assert by_op(before.built(), "host_self_ns") == by_op(after.built(), "host_self_ns") == times


def test_two_kernels_of_one_base_in_a_graph_stay_apart_by_order():
    made = compiled("triton_poi_fused_add_5", "triton_poi_fused_add_1")
    of_op = by_op(made.built(), "host_self_ns")
    assert (of_op["triton_poi_fused_add"], of_op["triton_poi_fused_add #2"]) == (20, 30)


def test_order_is_that_of_numbers_and_not_of_letters():
    assert number_by_order(["triton_poi_fused_add_10", "triton_poi_fused_add_9"]) == {
        "triton_poi_fused_add_10": "triton_poi_fused_add #2",
        "triton_poi_fused_add_9": "triton_poi_fused_add",
    }


def test_kernels_are_numbered_within_their_own_graph():
    """The backward graph counts from 0 again: its kernel 3 is the first of its base, not the second."""
    made = Made()
    made.op("CompiledFunction", 0, 100)
    made.op("triton_poi_fused_add_2", 10, 30)
    made.op("CompiledFunctionBackward", 200, 300)
    made.op("triton_poi_fused_add_3", 210, 250)
    assert by_op(made.built(), "calls")["triton_poi_fused_add"] == 2


def test_name_as_it_was_written_stands_in_the_row():
    made = compiled("triton_red_fused_norm_4", "triton_poi_fused_add_1")
    made.op("aten::mm", 200, 210)
    rows = made.built()
    keys = rows.tables["op_key"]["name"]
    assert {keys[key]: raw for key, raw in records(rows.tables["op"], "op_key", "raw_name")} == {
        "Torch-Compiled Region": "Torch-Compiled Region: 0/0",
        "## Call CompiledFxGraph ##": f"## Call CompiledFxGraph {HASH} ##",
        "triton_red_fused_norm": "triton_red_fused_norm_4",
        "triton_poi_fused_add": "triton_poi_fused_add_1",
        "aten::mm": "",
    }


def test_first_of_several_written_names_stands_in_the_row():
    made = Made()
    made.op("Torch-Compiled Region: 1/0", 50, 60)
    made.op("Torch-Compiled Region: 0/0", 10, 20)
    assert by_op(made.built(), "calls", "raw_name") == {"Torch-Compiled Region": (2, "Torch-Compiled Region: 0/0")}


def test_names_without_such_numbers_stay():
    made = Made()
    made.op("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 0, 10)
    made.op("aten::conv2d", 20, 30)
    made.op("Optimizer.step#AdamW.step", 40, 50)
    made.op("triton_user_kernel_3", 60, 70)
    assert names_of(made) == {
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
        "aten::conv2d",
        "Optimizer.step#AdamW.step",
        "triton_user_kernel_3",
    }


def in_steps(*names: tuple[str, ...]) -> Made:
    """Steps of 100 ns, each with these annotations of 10 ns one after the other."""
    made = Made()
    for number, of_step in enumerate(names):
        made.step(number, number * 100, number * 100 + 100)
        for place, name in enumerate(of_step):
            made.annotation(name, number * 100 + place * 20, number * 100 + place * 20 + 10)
    return made


def test_numbers_that_differ_from_step_to_step_are_no_part_of_a_range():
    made = in_steps(("generate_32(sk55086)",), ("generate_32(sk55118)",))
    rows = made.built()
    assert names_of_steps(rows) == {(0, "generate_#(sk#)"), (1, "generate_#(sk#)")}
    assert rows.tables["op"]["raw_name"] == ["generate_32(sk55086)", "generate_32(sk55118)"]


def names_of_steps(rows: Any) -> set[tuple[int, str]]:
    names = rows.tables["op_key"]["name"]
    return {(step, names[key]) for step, key in records(rows.tables["op"], "step", "op_key")}


def test_ranges_with_the_same_numbers_in_each_step_stay_apart():
    made = in_steps(("layer_1", "layer_2", "stage 1"), ("layer_1", "layer_2", "stage 1"))
    assert names_of_steps(made.built()) == {
        (step, name) for step in (0, 1) for name in ("layer_1", "layer_2", "stage 1")
    }


def test_ranges_that_differ_in_numbers_within_one_step_stay_apart():
    """Layers that only some steps run are layers: two of them in one step say so."""
    made = in_steps(("layer_1",), ("layer_2", "layer_3"))
    assert names_of_steps(made.built()) == {(0, "layer_1"), (1, "layer_2"), (1, "layer_3")}


def test_numbers_of_operators_stay_where_steps_differ_in_them():
    made = Made()
    for number in (0, 1):
        made.step(number, number * 100, number * 100 + 100)
        made.op(f"aten::upsample_nearest{number + 1}d", number * 100, number * 100 + 10)
    assert names_of_steps(made.built()) == {(0, "aten::upsample_nearest1d"), (1, "aten::upsample_nearest2d")}


BASES = st.sampled_from(("triton_poi_fused_add", "triton_red_fused_norm", "triton_per_fused__softmax"))
KERNELS = st.lists(st.tuples(BASES, st.integers(0, 40)), unique=True, min_size=1, max_size=8)


@given(KERNELS, st.lists(st.integers(1, 5), min_size=41, max_size=41))
def test_renaming_running_numbers_in_order_changes_no_key(kernels, steps):
    """The new numbers rise as the old ones do, as when other kernels are put in between."""
    later = [sum(steps[: number + 1]) for number in range(41)]
    before = number_by_order(f"{base}_{number}" for base, number in kernels)
    after = number_by_order(f"{base}_{later[number]}" for base, number in kernels)
    for base, number in kernels:
        assert before[f"{base}_{number}"] == after[f"{base}_{later[number]}"]
    assert len(set(before.values())) == len(kernels)


@given(KERNELS)
def test_keys_of_kernels_are_their_own_keys(kernels):
    keys = number_by_order(f"{base}_{number}" for base, number in kernels).values()
    assert all(stable_name(key) == key and not is_numbered_kernel(key) for key in keys)


NUMBERS = st.lists(st.integers(0, 10**6), min_size=2, max_size=6, unique=True)


@given(NUMBERS, NUMBERS)
def test_key_of_a_range_with_data_does_not_depend_on_the_data(numbers, others):
    """One such range and two layers in each step, whatever is in the name of the range."""
    keys = set()
    for of_steps in (numbers, others):
        steps = [{f"generate_{number}(sk{number + 7})", "layer_1", "layer_2"} for number in of_steps]
        keys.add(frozenset(find_data_numbers(steps).values()))
    assert keys == {frozenset({"generate_#(sk#)"})}


PARTS = st.sampled_from(
    ("Torch-Compiled Region: ", "CompiledFunction", "Backward", "Call CompiledFxGraph ", "triton_poi_fused_", HASH,
     "0d1d2d3de", "_12", "2/1", " ##", "_1a2b3c4d", "x", " ", "0"),
)  # fmt: skip


@given(st.lists(PARTS, max_size=6).map("".join))
def test_applying_a_key_twice_changes_nothing(name):
    assert stable_name(stable_name(name)) == stable_name(name)


def test_annotation_does_not_own_the_kernels_of_a_graph():
    """What it launches itself stays its own."""
    made = Made()
    made.annotation("decode", 0, 100)
    made.launch(10, 1, name="cudaGraphLaunch")
    made.launch(20, 2)
    made.kernel("attention", 200, 230, 1)
    made.kernel("norm", 230, 240, 1)
    made.kernel("sample", 240, 260, 2)
    assert by_op(made.built(), "device_self_ns", "kernel_count") == {"decode": (20, 1), "(no op)": (40, 2)}


def test_kernels_of_a_graph_belong_to_the_operator_around_the_annotation():
    made = Made()
    made.op("CompiledFunction", 0, 100)
    made.annotation("replay", 10, 50)
    made.launch(20, 1, name="hipGraphLaunch")
    made.kernel("attention", 200, 230, 1)
    assert by_op(made.built(), "device_self_ns") == {"CompiledFunction": 30, "replay": 0}


def test_operators_of_sums_that_become_one_are_added_up():
    made = rows(ops=(("Torch-Compiled Region: 0/0", 30), ("aten::mm", 7), ("Torch-Compiled Region: 1/0", 12)))
    named = name_operators_of_rows(made)
    assert by_op(named, "calls", "device_self_ns", "max_ns", "raw_name") == {
        "Torch-Compiled Region": (2, 42, 30, "Torch-Compiled Region: 0/0"),
        "aten::mm": (1, 7, 7, ""),
    }


def test_rows_of_sums_without_such_names_are_the_same_rows():
    made = rows()
    assert name_operators_of_rows(made) is made
