"""The overall table and the kernel types of Ascend captures against plain sums of the profiler's own files."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from decimal import Decimal

import pandas as pd
import pytest

from tests.real import data
from tracker.compare import diff
from tracker.intake import ingest
from tracker.store import open_store

pytestmark = pytest.mark.slow

RUNS = {"910A": "ascend/run_2024-10/text/level1", "910B": "ascend/run_2025-01/text/level1"}
TRANSFORMER = "ascend/transformer_4ranks_pp2_dp2"


def output_of(name, rank):
    return data.path(f"{name}/rank{rank}_ascend_pt") / "ASCEND_PROFILER_OUTPUT"


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))


def ns(text):
    return int((Decimal(str(text).strip()) * 1000).to_integral_value())


def against_itself(path):
    return diff(None, str(path), str(path))


def of_baseline(result):
    frame = result.overall.set_index("metric")["baseline_value"]
    return {name: float(value) for name, value in frame.items() if pd.notna(value)}


def exposed_ns(start, end, compute):
    """What of a span no span of compute covers, piece by piece."""
    covered = 0
    for first, last in compute:
        covered += max(0, min(last, end) - max(first, start))
    return end - start - covered


def merged(spans):
    union = []
    for start, end in sorted(spans):
        if union and start <= union[-1][1]:
            union[-1][1] = max(union[-1][1], end)
        else:
            union.append([start, end])
    return union


NO_PEER = 2**32 - 1
"""Instead of a rank, where a task waits for the chip itself."""


def plain_exposure(name, rank):
    """Exposed ns of the collectives, and of their tasks that wait for another rank on whichever plane, per rank."""
    spans = [
        (row["Accelerator Core"], ns(row["Start Time(us)"]), ns(row["Start Time(us)"]) + ns(row["Duration(us)"]))
        for row in rows_of(output_of(name, rank) / "kernel_details.csv")
    ]
    compute = merged((start, end) for core, start, end in spans if core != "HCCL")
    calls = merged((start, end) for core, start, end in spans if core == "HCCL")
    events = json.loads((output_of(name, rank) / "trace_view.json").read_text(), parse_float=Decimal)
    waits = []
    for event in events:
        if event["name"] == "Notify_Wait" and event["args"]["dst rank"] != NO_PEER:
            start = ns(event["ts"])
            waits.append((start, start + ns(event["dur"])))
    return [sum(exposed_ns(start, end, compute) for start, end in found) for found in (calls, merged(waits))]


@pytest.mark.parametrize("chip", RUNS)
def test_exposed_communication_and_waiting_are_those_of_a_plain_computation(chip):
    """A 910B waits for each rank on a plane of its own: 95.4 ms exposed, of which the first plane alone has 2.4 (which
    counted until tasks were read by the rank that they wait for).
    """
    found = of_baseline(against_itself(data.path(RUNS[chip])))
    ranks = [plain_exposure(RUNS[chip], rank) for rank in (0, 1)]
    exposed, wait = (sum(values) / 2 for values in zip(*ranks, strict=True))
    assert found["exposed_communication_ns"] == pytest.approx(exposed, abs=1)
    group = "group not named"
    assert found[f"exposed_communication_ns:{group}"] == pytest.approx(exposed, abs=1)
    # the trace has durations to the ns, as doubles
    assert found[f"exposed_wait_ns:{group}"] == pytest.approx(wait, abs=100)
    parts = [found[f"exposed_{part}_ns:{group}"] for part in ("wait", "transmit")]
    assert sum(parts) == pytest.approx(exposed, abs=1)


def test_groups_sum_to_the_exposed_communication_and_wait_as_long_as_all_ranks_tell():
    result = against_itself(data.path(TRANSFORMER))
    found = of_baseline(result)
    groups = {name: value for name, value in found.items() if name.startswith("exposed_communication_ns:")}
    assert {name.partition(":")[2] for name in groups} >= {"pp x2", "dp_cp x2", "embd x2", "default x4"}
    assert sum(groups.values()) + found.get("groups_at_once_ns", 0) == pytest.approx(found["exposed_communication_ns"])
    # all four ranks state the exposed time of their steps, and two of them that of their collectives: the rest
    assert found["groups_at_once_ns"] == pytest.approx(-3_519_585)
    # no kernel runs beside these collectives
    assert found["overlap_ns"] == 0
    waits = sum(value for name, value in found.items() if name.startswith("exposed_wait_ns:"))
    # the waits of test_call_splits; the 9.682 ms in dp x2 are of the second stage alone, and count there as they are
    assert waits == pytest.approx((318_340_000 + 175_782_000 + 9_682_000) / 2, rel=1e-5)


@pytest.mark.parametrize("chip", RUNS)
def test_kernel_types_are_those_of_kernel_details_and_op_statistic(chip):
    frame = against_itself(data.path(RUNS[chip])).kernel_types.set_index(["type", "core_type"])
    total, calls, stated = defaultdict(int), defaultdict(int), defaultdict(int)
    for rank in (0, 1):
        for row in rows_of(output_of(RUNS[chip], rank) / "kernel_details.csv"):
            if row["Accelerator Core"] != "HCCL":
                total[row["Type"], row["Accelerator Core"]] += ns(row["Duration(us)"])
                calls[row["Type"], row["Accelerator Core"]] += 1
        if chip == "910B":  # the older capture has no such file
            for row in rows_of(output_of(RUNS[chip], rank) / "op_statistic.csv"):
                stated[row["OP Type"], row["Core Type"]] += int(row["Count"])
    assert {key: value * 2 for key, value in frame["baseline_ns"].items()} == pytest.approx(total)
    assert {key: value * 2 for key, value in frame["baseline_calls"].items()} == dict(calls)
    assert dict(stated) in ({}, dict(calls))


def test_the_chip_with_one_kind_of_core_splits_its_time_by_the_work_of_the_cube():
    result = diff(None, *(str(data.path(name)) for name in RUNS.values()))
    frame = result.overall.set_index("metric")
    split = frame.loc[[name for name in frame.index if name.endswith((":cube", ":vector"))]]
    assert len(split) == 6 and split["baseline_value"].notna().all() and split["candidate_value"].notna().all()
    plain = defaultdict(int)
    for rank in (0, 1):
        for row in rows_of(output_of(RUNS["910A"], rank) / "kernel_details.csv"):
            if row["Accelerator Core"] == "AI_CORE":
                plain["cube" if Decimal(row["mac_time(us)"]) > 0 else "vector"] += ns(row["Duration(us)"])
    for core, total in plain.items():
        assert frame.loc[f"operator_{core}_ns", "baseline_value"] * 2 == total
    for name in ("matmul", "convolution_forward", "convolution_backward"):
        parts = frame.loc[[f"{name}:cube", f"{name}:vector"], "candidate_value"].sum()
        assert parts == pytest.approx(frame.loc[name, "candidate_value"])
        assert frame.loc[name, "delta"] == pytest.approx(
            frame.loc[name, "candidate_value"] - frame.loc[name, "baseline_value"]
        )
    both = result.kernel_types[result.kernel_types["core_type"].str.contains("->")]
    assert {"Cast", "Mul", "TransData"} <= set(both["type"]) and set(both["status"]) == {"both"}


@pytest.fixture(scope="module")
def transformer():
    """A database with the transformer: ranks 0 and 1 are its first stage, 2 and 3 its second."""
    with open_store("sqlite://") as store:
        ingest(store, [data.path(TRANSFORMER)], version="v1", workload="transformer")
        yield store


@pytest.mark.parametrize("candidate", ["run:1:rank0", "run:1:rank2"])
def test_kernels_operators_and_collectives_of_a_rank_add_up_to_its_step(transformer, candidate):
    result = diff(transformer, "run:1:rank0", candidate)
    overall = result.overall.set_index("metric")
    for side in ("baseline", "candidate"):
        value = overall[f"{side}_value"]
        sheet = result.kernels[f"{side}_ns"]
        is_compute = ~result.kernels["category"].isin(["communication", "copy", "memset"])
        assert sheet[is_compute].sum() == pytest.approx(value["compute_ns"]) == pytest.approx(value["operator_ns"])
        assert sheet.sum() == pytest.approx(value["kernel_total_ns"])
        assert result.ops[f"{side}_ns"].sum() == pytest.approx(value["kernel_total_ns"])
        exposed = result.communication[f"{side}_exposed_ns"]
        assert exposed.sum() == pytest.approx(value["exposed_communication_ns"])
        assert "exposed_copy_ns" not in value  # no rank has a timeline, which alone tells of copies
        parts = ("compute_ns", "exposed_communication_ns", "idle_ns")
        assert sum(value[part] for part in parts) == pytest.approx(value["e2e_ns"], abs=1)
    # nothing overlaps here, so what operators leave over of the change is the free time
    free = overall.loc["idle_ns", "delta"]
    assert result.explanation.rest_ns == pytest.approx(free, abs=1)


def test_kernels_of_two_stages_are_means_of_the_stages_that_have_them(transformer):
    """Of each stage one rank was read with its kernels. What both have counts as the mean, what one alone has as it is:
    the rows add up to 411 ms, the step computes for 316. Until rows had the statistic of history they were halved.
    """
    result = diff(transformer, "run:1", "run:1")
    stages = [defaultdict(int), defaultdict(int)]
    for stage, rank in zip(stages, (0, 2), strict=True):
        folder = data.path(f"{TRANSFORMER}/rank_{rank}_ascend_pt/ASCEND_PROFILER_OUTPUT")
        for row in rows_of(folder / "kernel_details.csv"):
            if row["Accelerator Core"] not in ("HCCL", "COMMUNICATION"):
                stage[row["Type"], row["Accelerator Core"]] += ns(row["Duration(us)"])
    of_both = {}
    for name in {*stages[0], *stages[1]}:
        having = [stage[name] for stage in stages if name in stage]
        of_both[name] = sum(having) / len(having)
    types = result.kernel_types.set_index(["type", "core_type"])["baseline_ns"]
    assert dict(types) == pytest.approx(of_both)
    operators_ns = result.overall.set_index("metric").loc["operator_ns", "baseline_value"]
    assert operators_ns == pytest.approx(sum(sum(stage.values()) for stage in stages) / 2)
    # no kernel hides the 313.88 and 72.66 ms in which ranks 0 and 2 send and receive; the other two do not state it
    exchange = result.communication.set_index("kind").loc["send_recv"]
    assert exchange["baseline_exposed_ns"] == (313_877_800 + 72_663_660) / 2
