"""GPU against NPU with an op map, and NPU against NPU across chips and versions of CANN, on real captures.

A number of a diff is the median over the steps, as history has it; it was the mean over them.
"""

from __future__ import annotations

from functools import cache
from statistics import median

import pandas as pd
import pytest

from tests.compare import slow
from tests.real import data
from tracker import readers, timeline
from tracker.compare import diff
from tracker.results import DiffOptions

pytestmark = pytest.mark.slow

GPU = "pytorch/v100_resnet50_2021/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz"
NPU = "ascend/run_2025-01/text/level1/rank0_ascend_pt"
OLD_NPU = "ascend/run_2024-10/{export}/level1/rank0_ascend_pt"
NEW_NPU = "ascend/run_2025-01/{export}/level1/rank0_ascend_pt"
OP_MAP = {"AddmmBackward": "AddmmBackward0", "aten::cudnn_convolution": "Conv2D", "NllLossBackward": "NllLossBackward0"}
SIDES = ("baseline", "candidate")
# rows that report what is left over or never launched, not what the model does
PSEUDO = ("(unlinked)", "(no op)")


@cache
def gpu_against_npu(match="shape", *, mapped=False, force=True):
    """A ResNet50 against a network like AlexNet, so that there are tables with `force` alone."""
    options = DiffOptions(match=match, op_map=OP_MAP if mapped else {}, force=force)
    return diff(None, str(data.path(GPU)), str(data.path(NPU)), options=options)


@cache
def npu_against_npu(export):
    return diff(None, str(data.path(OLD_NPU.format(export=export))), str(data.path(NEW_NPU.format(export=export))))


@cache
def built(name):
    """The one capture of a file or folder, with its rows."""
    (found,) = readers.find(data.path(name))
    (capture,) = readers.read(found).captures
    return timeline.build(capture)


def median_of_steps(source, name, column):
    """The median over the steps of what a column of the ops of this name adds up to in each."""
    rows = built(source).rows
    sums = dict.fromkeys((step.step for step in rows.steps), 0)
    keys, ops = rows.tables["op_key"], rows.tables["op"]
    for key, step, value in zip(ops["op_key"], ops["step"], ops[column], strict=True):
        if keys["name"][key] == name and step in sums:
            sums[step] += int(value)
    return median(sums.values())


def total(frame, column):
    return float(frame[column].sum())


def aten_calls(frame, side):
    """(name, shapes) -> calls per step, of the aten ops that have inputs with dimensions."""
    told = frame[frame["name"].str.startswith("aten::") & frame["input_shapes"].str.contains(r"\[\d")]
    told = told.dropna(subset=[f"{side}_calls"])
    return dict(zip(zip(told["name"], told["input_shapes"], strict=True), told[f"{side}_calls"], strict=True))


# -- GPU against NPU


def test_two_networks_that_share_a_third_of_their_operators_have_no_tables():
    """Their tables were shown until sides with few operators in common were refused; --force shows them still."""
    result = gpu_against_npu(force=False)
    assert "not comparable: only 35 % of the operators are on both sides" in result.explanation.headline
    assert result.overall.empty and result.ops.empty


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("match", ["shape", "name"])
def test_totals_of_gpu_and_npu_add_up_whatever_is_mapped(match, mapped):
    """A row is the median over the steps, so that rows add up to the sum of medians, not to the mean step: 100.61 ms of
    kernels with shapes, 100.66 by name, beside 100.59 in the mean of the six steps. The parts of a step
    add up to its window on the device, and what their medians leave over is the rest.
    """
    result = gpu_against_npu(match, mapped=mapped)
    for side, name in zip(SIDES, (GPU, NPU), strict=True):
        by_name = match == "name"
        kernels_ns = sum(slow.kernel_times([[built(name)]], by_name=by_name).values())
        assert total(result.kernels, f"{side}_ns") == pytest.approx(kernels_ns)
        assert total(result.ops, f"{side}_ns") == pytest.approx(kernels_ns, rel=0.001)
        overall = result.overall.set_index("metric")[f"{side}_value"]
        parts = ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns", "rest_ns")
        assert sum(overall[part] for part in parts) == pytest.approx(overall["step_ns"], abs=1)
    explained = result.explanation
    assert sum(part.delta_ns for part in explained.parts) == pytest.approx(explained.delta_ns, abs=1)
    assert total(result.ops, "delta_ns") + explained.rest_ns == pytest.approx(explained.delta_ns, abs=1)


def test_a_mapped_op_of_the_gpu_stands_beside_its_equivalent_with_all_it_launches():
    rows = gpu_against_npu("name", mapped=True).ops
    mapped = rows.dropna(subset=["baseline_name"]).set_index("baseline_name")
    assert dict(mapped["name"]) == OP_MAP
    assert set(mapped["status"]) == {"both"}
    for gpu, npu in OP_MAP.items():
        for side, name, source in (("baseline", gpu, GPU), ("candidate", npu, NPU)):
            assert mapped.loc[gpu, f"{side}_calls"] == median_of_steps(source, name, "calls")
            assert mapped.loc[gpu, f"{side}_ns"] == median_of_steps(source, name, "device_total_ns")
    unmapped = gpu_against_npu("name").ops.set_index("name")["status"]
    assert unmapped["AddmmBackward"] == "REMOVED"
    assert unmapped["AddmmBackward0"] == "ADDED"


def test_ops_of_gpu_and_npu_match_where_the_models_agree():
    """Both train on 32 images of 3 x 224 x 224 in 1000 classes: copies of the batch, loss and its gradient."""
    rows = gpu_against_npu().ops
    both = rows[rows["status"] == "both"]
    found = set(zip(both["name"], both["input_shapes"], strict=True))
    assert {
        ("aten::copy_", "[[32,3,224,224],[32,3,224,224],[]]"),
        ("aten::_log_softmax", "[[32,1000],[],[]]"),
        ("aten::nll_loss_forward", "[[32,1000],[32],[],[],[]]"),
        ("aten::nll_loss_backward", "[[],[32,1000],[32],[],[],[],[]]"),
        ("aten::sum", "[[32,1000],[],[],[]]"),
    } <= found


def test_gpu_against_npu_says_that_the_device_is_another():
    result = gpu_against_npu()
    device = result.environment.set_index("key").loc["device"]
    assert device["baseline"] == "NVIDIA Tesla V100-DGXS-32GB"
    assert device["candidate"].startswith("Huawei")


# -- NPU against NPU


@pytest.mark.parametrize("export", ["text", "db"])
def test_one_script_on_two_chips_has_the_same_aten_ops_and_shapes(export):
    """Versions of torch_npu break an op down differently; what the script itself calls is the same, call by call."""
    result = npu_against_npu(export)
    before, after = (aten_calls(result.ops, side) for side in SIDES)
    shared = set(before) & set(after)
    equal = {key for key in shared if before[key] == after[key]}
    for name in ("aten::conv2d", "aten::linear", "aten::max_pool2d", "aten::convolution_backward", "aten::addmm"):
        keys = {key for key in (*before, *after) if key[0] == name}
        assert keys, name
        assert keys <= equal, sorted(keys - equal)
    assert len(equal) > 0.9 * len(shared)


@pytest.mark.parametrize("export", ["text", "db"])
def test_two_chips_share_their_collectives_and_the_identity_holds(export):
    result = npu_against_npu(export)
    assert set(result.communication["status"]) == {"both"}
    assert (result.communication["baseline_bytes"] == result.communication["candidate_bytes"]).all()
    overall = result.overall.set_index("metric")
    for side, kernels in zip(SIDES, (345, 187), strict=True):
        assert overall.loc["kernel_count", f"{side}_value"] == kernels + 4
        assert total(result.ops, f"{side}_ns") == pytest.approx(total(result.kernels, f"{side}_ns"))


def test_the_environment_says_which_chip_a_database_comes_from():
    told = npu_against_npu("db").environment.set_index("key").loc["device"]
    assert (told["baseline"], told["candidate"]) == ("Huawei Ascend910A", "Huawei Ascend910B")


def test_cores_of_the_two_chips_differ_in_kinds():
    overall = npu_against_npu("text").overall.set_index("metric")
    # one kind of core on the 910A: the work of its cube tells, where it was measured
    assert overall["baseline_value"].get("operator_vector_ns") > 0
    unmeasured = npu_against_npu("db")
    assert pd.isna(unmeasured.overall.set_index("metric")["baseline_value"].get("operator_vector_ns"))
    assert any("is not split into cube and vector work" in note for note in unmeasured.notes)
    parts = overall.loc[["operator_cube_ns", "operator_vector_ns"], "candidate_value"].sum()
    random_numbers = 5_520  # two kernels on the engine for random numbers
    assert parts + random_numbers == overall.loc["operator_ns", "candidate_value"]


def test_ranks_wait_longer_for_a_rank_that_nobody_captured():
    """Of two ranks the median waits 45.30, then 95.40 ms, of 58.66 and 99.16 that no compute hides."""
    sides = [str(data.path(f"ascend/{run}/text/level1")) for run in ("run_2024-10", "run_2025-01")]
    rows = {row.metric: row for row in diff(None, *sides).explanation.contributions}
    wait, transfers = rows["exposed_wait_ns"], rows["exposed_transmit_ns"]
    assert (round(wait.delta_ns / 1e6, 2), round(transfers.delta_ns / 1e6, 2)) == (50.10, -9.60)
    assert wait.why == "mostly for rank 5 of the group, not captured"
