"""Diffs of real captures: the laws, and the same numbers as the slow and obvious way."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.compare import slow
from tests.conftest import slow as at_night
from tests.real import data
from tracker import readers, timeline
from tracker.compare import diff, show
from tracker.intake import ingest
from tracker.results import DiffOptions

PAIRS = {
    "data loader": (
        "pytorch/v100_resnet50_2021/resnet50_num_workers_0",
        "pytorch/v100_resnet50_2021/resnet50_num_workers_4",
    ),
    "two vendors": (
        "pytorch/h100_vs_mi300/h100/Qwen_Qwen1.5-0.5B-Chat.pt.trace.json.gz",
        "pytorch/h100_vs_mi300/mi300/Qwen_Qwen1.5-0.5B-Chat.pt.trace.json.gz",
    ),
    "nccl": ("pytorch/a100_vs_v100_nccl/control.pt.trace.json.gz", "pytorch/a100_vs_v100_nccl/test.pt.trace.json.gz"),
    "gloo": ("torch_cpu/ddp_gloo_2ranks/baseline_run1", "torch_cpu/ddp_gloo_2ranks/grad_clip_run1"),
}
NUMBERS = {
    "ops": "ns", "kernels": "ns", "communication": "ns", "memory": "bytes", "modules": "ns", "api": "ns",
    "op_details": "ns", "communication_details": "ns", "memory_details": "bytes",
}  # fmt: skip


def compared(baseline: Path, candidate: Path, **options: object):
    return diff(None, str(baseline), str(candidate), options=DiffOptions(**options))


@pytest.mark.parametrize("pair", ["gloo", *map(at_night, [name for name in PAIRS if name != "gloo"])])
def test_a_capture_against_itself_is_all_zero(pair):
    side = data.path(PAIRS[pair][0])
    result = compared(side, side)
    for table, unit in NUMBERS.items():
        frame = getattr(result, table)
        assert (frame[f"delta_{unit}"].fillna(0) == 0).all(), table
        assert (frame["diff"].fillna(0) == 0).all(), table
        if "status" in frame:
            assert set(frame["status"]) <= {"both"}, table
    assert result.environment.empty
    assert (result.overall["delta"].fillna(0) == 0).all()
    assert result.explanation.delta_ns == 0
    assert result.explanation.causes == ()


@pytest.mark.parametrize("pair", ["gloo", *map(at_night, [name for name in PAIRS if name != "gloo"])])
def test_swapping_the_sides_mirrors_the_diff(pair):
    one, other = (data.path(name) for name in PAIRS[pair])
    there, back = compared(one, other), compared(other, one)
    for table, unit in NUMBERS.items():
        forward, backward = getattr(there, table), getattr(back, table)
        assert len(forward) == len(backward), table
        sums = [float(frame[f"delta_{unit}"].sum()) for frame in (forward, backward)]
        assert sums[0] == pytest.approx(-sums[1]), table
        assert sorted(forward[f"delta_{unit}"].dropna()) == pytest.approx(sorted(-backward[f"delta_{unit}"].dropna()))
    assert there.explanation.delta_ns == -back.explanation.delta_ns


@pytest.mark.parametrize("pair", ["gloo", *map(at_night, [name for name in PAIRS if name != "gloo"])])
def test_the_explanation_adds_up(pair):
    result = compared(*(data.path(name) for name in PAIRS[pair]))
    explanation = result.explanation
    assert sum(part.delta_ns for part in explanation.parts) == pytest.approx(explanation.delta_ns, abs=1)
    assert result.ops["delta_ns"].sum() + explanation.rest_ns == pytest.approx(explanation.delta_ns, abs=1)
    both = result.ops[result.ops["status"] == "both"].dropna(subset=["calls_delta_ns"])
    split = both["calls_delta_ns"] + both["per_call_delta_ns"]
    assert split.tolist() == pytest.approx(both["delta_ns"].tolist())


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["gloo", *map(at_night, [name for name in PAIRS if name != "gloo"])])
def test_sql_and_the_slow_way_agree(pair):
    names = [data.path(name) for name in PAIRS[pair]]
    result = compared(*names)
    for side, name in zip(("baseline", "candidate"), names, strict=True):
        runs = slow_runs(name)
        expected_ops = {key: ns for key, ns in slow.op_times(runs).items() if ns}
        assert by_key(result.ops, ["name", "input_shapes"], f"{side}_ns") == pytest.approx(expected_ops)
        expected_kernels = {key: ns for key, ns in slow.kernel_times(runs).items() if ns}
        found = by_key(result.kernels, ["name", "input_shapes", "category"], f"{side}_ns")
        assert found == pytest.approx(expected_kernels)
        step = result.overall.set_index("metric").loc["step_ns", f"{side}_value"]
        assert step == pytest.approx(slow.step_time(runs))


def slow_runs(path: Path) -> list[list]:
    """The runs that the files under `path` form.

    The two ranks of gloo are one run. Two files of the data loader are cycles of one process (25738, and 5555), so they
    are one run, of which the later one counts. They were two repeats, until cycles of a process were recognised.
    """
    captures = [timeline.build(capture) for found in readers.find(path) for capture in readers.read(found).captures]
    if "gloo" in str(path):
        return [captures]
    if "resnet50_num_workers" in str(path):
        return [[max(captures, key=lambda capture: capture.started_at_ns)]]
    return [[capture] for capture in captures]


def by_key(frame: pd.DataFrame, key: list[str], value: str) -> dict:
    known = frame[frame[value].fillna(0) != 0]
    return dict(zip(zip(*[known[column] for column in key], strict=True), known[value], strict=True))


def test_gelu_written_out_is_told_as_added_and_removed_ops_with_mul_in_front(store):
    folder = data.path("torch_cpu/nightly_gpt")
    for version in ("v01", "v08"):
        ingest(store, sorted(folder.glob(f"{version}_*.gz")), version=version, workload="gpt")
    result = diff(store, "v01", "v08")
    assert (result.baseline.runs, result.candidate.runs) == (3, 3)
    status = result.ops.groupby("name")["status"].agg(set)
    assert status["aten::gelu"] == {"REMOVED"}
    assert status["aten::tanh"] == {"ADDED"}
    assert result.explanation.rollup[0].name == "aten::mul"
    assert result.explanation.rollup[0].delta_ns == pytest.approx(14e6, rel=0.2)
    assert "slower" in result.explanation.headline
    replaced = result.explanation.contributions[0]
    assert replaced.kind == "replacement" and {"aten::gelu", "aten::mul"} <= set(
        replaced.name.replace(" -> ", ", ").split(", ")
    )


def test_late_batches_are_no_operators_fault(store):
    folder = data.path("torch_cpu/nightly_gpt")
    for version in ("v09", "v11"):
        ingest(store, sorted(folder.glob(f"{version}_*.gz")), version=version, workload="gpt")
    explanation = diff(store, "v09", "v11").explanation
    assert explanation.delta_ns > 25e6
    largest = max(explanation.parts, key=lambda part: part.delta_ns)
    assert largest.name == "idle_ns"
    carried = max(explanation.contributions, key=lambda row: row.delta_ns)
    assert (carried.kind, carried.metric) == ("part", "idle_ns")


@pytest.mark.parametrize("place", [0, 1])
def test_step_behind_a_prefilled_queue_begins_when_the_queue_is_done(place):
    """By hand: the union of kernels and copies is 31.9 of 35.2 ms (H100) and 29.7 of 33.8 ms (MI300)."""
    found = show(None, str(data.path(PAIRS["two vendors"][place])))
    assert found.run["step_ns"] == pytest.approx((35.18e6, 33.76e6)[place], abs=1e4)
    assert found.bottleneck.device_utilisation == pytest.approx((0.907, 0.881)[place], abs=0.001)


H100 = "pytorch/h100_vs_mi300/h100/{}.pt.trace.json.gz"
MI300 = "pytorch/h100_vs_mi300/mi300/{}.pt.trace.json.gz"
QWEN, OWL, BERT = "Qwen_Qwen1.5-0.5B-Chat", "google_owlv2-large-patch14-ensemble", "gaunernst_bert-small-uncased"


@pytest.mark.slow
@pytest.mark.parametrize("folder", [H100, MI300])
@pytest.mark.parametrize("models", [(QWEN, OWL), (OWL, QWEN), (BERT, OWL), (QWEN, BERT)])
def test_two_models_on_one_device_are_not_comparable(folder, models):
    one, other = (data.path(folder.format(model)) for model in models)
    assert "not comparable: only" in compared(one, other).explanation.headline


@pytest.mark.slow
@pytest.mark.parametrize(
    "pair", [*PAIRS.values(), *((H100.format(model), MI300.format(model)) for model in (QWEN, OWL, BERT))]
)
def test_captures_of_one_model_are_comparable(pair):
    one, other = map(data.path, pair)
    assert "not comparable" not in compared(one, other).explanation.headline
