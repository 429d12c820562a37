"""One number: history, show, diff and log print the same for the step and the ten largest operators of a run."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tracker
from tests.real import data
from tracker.reports import render
from tracker.store import open_store, queries
from tracker.store.samples.statistics import over_runs

CAPTURES = {
    "NVIDIA": ["pytorch/v100_resnet50_2021/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz"],
    "Ascend": ["ascend/run_2025-01/text"],
    "three runs": [f"torch_cpu/nightly_gpt/v05_run{run}.pt.trace.json.gz" for run in (1, 2, 3)],
    "log": [
        "paddle/logs/Bert/logs/A100_LOG/PaddleNLP_bert_base_seqlen128_bs96_fp16_DP_N1C1_log/20230108_8707ba8bbf",
    ],
}


def judged(store, run_id):
    """The samples of the step and of the ten largest operators."""
    samples = queries.samples(store, [run_id]).frame
    step = samples[(samples["kind"] == "run") & (samples["name"] == "step")]
    ops = samples[samples["kind"] == "op"].nlargest(10, "per_step")
    rows = [*step.to_dict("records"), *ops.to_dict("records")]
    return {(row["name"], row["input_shapes"]): row["per_step"] for row in rows}


def shown(store, run_id):
    document = json.loads(render(tracker.show(f"run:{run_id}", store=store), "json"))
    ops = {(row["name"], row["input_shapes"]): row["per_step_ns"] for row in document["ops"]}
    return ops | {("step", ""): document["run"]["step_ns"]}


def compared(store, side):
    """The numbers of a diff of a side with itself."""
    document = json.loads(render(tracker.diff(side, side, store=store), "json"))
    ops = {(row["name"], row["input_shapes"]): row["baseline_ns"] for row in document["ops"]}
    overall = {(row["metric"].removesuffix("_ns"), ""): row["baseline_value"] for row in document["overall"]}
    return ops | overall


@pytest.mark.parametrize("captures", CAPTURES.values(), ids=CAPTURES)
def test_all_commands_print_the_number_that_is_judged(captures):
    store = open_store("sqlite://")
    for name in captures:
        tracker.ingest(data.path(name), version="v1", workload="w", store=store)
    of_runs = [judged(store, run_id) for run_id in queries.runs(store).frame["run_id"]]
    assert len(of_runs) >= len(captures)
    for run_id, expected in zip(queries.runs(store).frame["run_id"], of_runs, strict=True):
        for found in (shown(store, run_id), compared(store, f"run:{run_id}")):
            assert {key: found[key] for key in expected} == expected
    keys = set.intersection(*map(set, of_runs))
    version = {key: float(over_runs(np.array([[of_run[key] for of_run in of_runs[::-1]]]))[0]) for key in keys}
    found = compared(store, "v1")
    assert {key: found[key] for key in keys} == version
    if ("step", "") in keys:
        assert tracker.log(store=store, metric="step").cells["value"].tolist() == [version["step", ""]]
