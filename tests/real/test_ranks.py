"""Ranks of real jobs, against numbers that other programs gave: msprof-analyze, HTA, and a published simulation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.real import data
from tracker.detect.peers import judge
from tracker.detect.stages import Stage
from tracker.ranks import cluster
from tracker.ranks.own_time import pipeline_rows
from tracker.results import ClusterOptions

MS = 1e6
TRANSFORMER = "ascend/transformer_4ranks_pp2_dp2"


def column(found, section, key, value, factor=MS, digits=2):
    return {row[key]: None if row[value] is None else round(row[value] / factor, digits)
            for row in found.tables[section].records()}  # fmt: skip


@pytest.fixture(scope="module")
def transformer():
    return cluster(None, str(data.path(TRANSFORMER)), options=ClusterOptions(microbatches=2))


def test_own_time_bubble_and_pipeline_of_four_npus(transformer):
    assert column(transformer, "ranks", "rank", "own_ns", digits=1) == {0: 389.8, 1: 367.7, 2: 532.2, 3: 548.7}
    assert column(transformer, "ranks", "rank", "bubble_ns") == {0: 312.20, 1: 321.31, 2: 70.99, 3: 73.32}
    assert column(transformer, "ranks", "rank", "wait_ns") == {0: 318.34, 1: 339.94, 2: 175.78, 3: 159.70}
    assert {row["verdict"] for row in transformer.tables["ranks"].records()} == {None}  # one step convicts nobody
    (pipeline,) = transformer.tables["pipeline"].records()
    assert [round(pipeline[name] / MS, 1) for name in ("even_ns", "flat_ns")] == [729.8, 689.4]


def test_waiting_and_transit_of_the_groups_of_four_npus(transformer):
    rows = {(row["role"], row["ranks"], row["kind"]): row for row in transformer.tables["groups"].records()}
    found = {key: (round(row["transit_ns"] / MS, 3), round(row["wait_ns"] / MS, 3)) for key, row in rows.items()
             if row["role"] in ("pp", "embd", "dp", "dp_cp")}  # fmt: skip
    assert found == {
        ("pp", "0,2", "send_recv"): (1.675, 383.191), ("pp", "1,3", "send_recv"): (1.671, 394.625),
        ("embd", "0,2", "all_reduce"): (34.624, 86.365), ("embd", "1,3", "all_reduce"): (34.563, 86.379),
        ("dp_cp", "0,1", "reduce_scatter"): (44.898, 9.443), ("dp_cp", "2,3", "reduce_scatter"): (44.886, 4.819),
        ("dp_cp", "0,1", "all_gather"): (20.514, 1.925), ("dp_cp", "2,3", "all_gather"): (20.512, 1.746),
        ("dp", "2,3", "all_reduce"): (0.033, 9.682),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        (TRANSFORMER, {(0, 1): 18.944, (0, 2): 19.102, (1, 0): 18.941, (1, 3): 19.129, (2, 0): 19.096, (3, 2): 18.930}),
        ("ascend/run_2025-01/text/level1", {(1, 7): 15.144, (0, 7): 15.997}),
    ],
)
def test_bandwidth_of_links_and_none_is_slow(name, ends):
    rows = cluster(None, str(data.path(name))).tables["links"].records()
    found = {(row["source_rank"], row["target_rank"]): round(row["bandwidth_gb_per_s"], 3) for row in rows}
    assert {pair: found[pair] for pair in ends} == ends
    assert not [row for row in rows if row["verdict"]]


def test_operators_over_two_npus_are_those_of_msprof_analyze():
    rows = cluster(None, str(data.path("ascend/run_2025-01/db/level1"))).tables["operators"].records()
    sums: dict[str, list[float]] = {}
    for row in rows:
        own = sums.setdefault(row["name"], [0, 0])
        own[:] = own[0] + row["calls"], own[1] + row["total_ns"]
    wanted = {"ForeachAddList": [6, 3_899_856], "TransData": [114, 2_816_071], "MatMulV2": [16, 1_934_539]}
    assert {name: sums[name] for name in wanted} == wanted


def test_a_rank_with_larger_tables_has_no_slow_device():
    """By the names of kernels alone rank 1 would score 0.634."""
    found = cluster(None, str(data.path("pytorch/two_ranks_nccl")))
    assert column(found, "ranks", "rank", "device_score", 1, 3) == {0: 0.982, 1: 0.967}
    assert found.verdict == ""
    assert any("2 of 128 ranks are captured" in one for one in found.missing)


@pytest.mark.parametrize("run", ["baseline_run1", "baseline_run2", "grad_clip_run1", "grad_clip_run2"])
def test_nobody_is_accused_where_nothing_was_injected(run):
    found = cluster(None, str(data.path(f"torch_cpu/ddp_gloo_2ranks/{run}")))
    assert found.verdict in ("", "UNEVEN")


@pytest.mark.parametrize(
    ("name", "microbatches", "slowdown", "verdicts"),
    [("AR", 32, 1.973, ["SLOW"]), ("SE", 8, 1.537, []), ("ST", 4, 1.179, [])],
)
def test_the_closed_form_is_within_6_per_cent_of_the_published_simulation(name, microbatches, slowdown, verdicts):
    pytest.importorskip("pyarrow")
    frame = pd.read_parquet(data.path(f"straggler_whatif/{name}.parquet"))
    frame = frame[frame["optype"].isin(["forward-compute", "backward-compute"])]
    own = frame.groupby(["stage", "rank", "step"], observed=True)["duration"].sum() * 1e9
    stages = []
    for number in sorted(frame["stage"].unique()):
        table = own[number].unstack("step").dropna(axis=1)
        times = table.to_numpy(dtype=np.float64)
        stages.append(Stage(int(number), [*table.index], [*table.columns], times, {}, judge(times)))
    (row,) = pipeline_rows(stages, microbatches, "")
    assert row.slowdown == pytest.approx(slowdown, rel=0.06)
    assert [word for stage in stages for word in stage.judged.verdict if word] == verdicts
    assert any(stage.is_uneven for stage in stages) == (name == "SE")
