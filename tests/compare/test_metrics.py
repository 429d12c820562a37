"""Kernel metrics of two sides: which of them moved with the time of a kernel, and what can be said of it."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.factories import capture, record, same_table, save
from tracker.compare import diff, show
from tracker.results import DiffOptions, ShowOptions
from tracker.store import Store, save_run

US = 1000


def kernel(total_us: float, calls: int = 1, name: str = "matmul", **metrics: float):
    """A kernel and its metrics, named without their unit, in us; calls of equal length."""
    measured = {f"{metric}(us)" if metric.endswith("_time") else metric: value for metric, value in metrics.items()}
    return (name, int(total_us * US), {"calls": calls, "metrics": measured, "op": "aclnnMm"})


def compared(store: Store, before, after, **options):
    for version, kernels in (("v1", before), ("v2", after)):
        total = sum(entry[1] for entry in kernels)
        calls = sum(entry[2]["calls"] for entry in kernels)
        save(store, version, ops=[("aclnnMm", total, {"calls": calls})], kernels=kernels)
    return diff(store, "v1", "v2", options=DiffOptions(**options))


def why(result) -> dict[str, str]:
    return dict(zip(result.kernels["name"], result.kernels["why"], strict=True))


def test_a_pipe_that_covers_the_change_moved_with_the_kernel(store: Store):
    before = kernel(20, aicore_time=18.0, aic_mte2_time=12.0, aic_mac_time=10.0, aic_mac_ratio=0.5)
    after = kernel(26, aicore_time=24.0, aic_mte2_time=18.0, aic_mac_time=10.0, aic_mac_ratio=0.25)
    result = compared(store, [before], [after])
    same_table(
        result.kernel_metrics,
        """
        metric             kind       baseline_average_ns  baseline_mean  candidate_mean  delta  share  moved
        aic_mte2_time(us)  pipe_time  20000                12             18              6      1      True
        aicore_time(us)    core_time  20000                18             24              6      1      True
        aic_mac_time(us)   pipe_time  20000                10             10              0      0      False
        aic_mac_ratio      ratio      20000                0.5            0.25            -0.25  -      -
        """,
    )
    moved = "aic_mte2_time (from memory) 12.00 us -> 18.00 us (100 % of the change)"
    text = f"{moved}; aic_mac_time (cube) stayed at 10.00 us"
    assert why(result) == {"matmul": text}
    (cause,) = result.explanation.causes
    assert (cause.name, cause.why) == ("aclnnMm", f"matmul: {text}")


def test_a_kernel_that_runs_on_another_kind_of_core_is_the_same_kernel(store: Store):
    before, after = (kernel(total, aicore_time=total - 2.0, mte2_time=total - 8.0) for total in (20, 26))
    before[2]["core_type"], after[2]["core_type"] = "AI_CORE", "AI_VECTOR_CORE"
    result = compared(store, [before], [after])
    (row,) = result.kernels.to_dict("records")
    assert row["core_type"] == "AI_CORE -> AI_VECTOR_CORE"
    assert row["why"] == "mte2_time (from memory) 12.00 us -> 18.00 us (100 % of the change)"
    assert set(result.kernel_metrics["core_type"]) == {row["core_type"]}
    assert result.explanation.causes[0].why == f"matmul: {row['why']}"


def test_a_kernel_that_runs_more_often_has_no_reason_in_its_metrics(store: Store):
    result = compared(
        store, [kernel(20, aicore_time=18.0, aic_mte2_time=12.0)], [kernel(40, 2, aicore_time=18.0, aic_mte2_time=12.0)]
    )
    assert result.kernel_metrics["moved"].isna().all()
    assert why(result) == {"matmul": ""}
    assert [cause.why for cause in result.explanation.causes] == [""]


def test_a_kernel_that_waits_outside_its_cores_is_told_so(store: Store):
    result = compared(
        store, [kernel(20, aicore_time=18.0, aic_mte2_time=12.0)], [kernel(30, aicore_time=18.0, aic_mte2_time=12.0)]
    )
    assert why(result) == {"matmul": "not in the cores: aicore_time 18.00 us"}


def test_a_core_without_a_pipe_that_explains_it(store: Store):
    result = compared(
        store, [kernel(20, aicore_time=18.0, aic_mac_time=1.0)], [kernel(30, aicore_time=28.0, aic_mac_time=0.5)]
    )
    text = "aicore_time 18.00 us -> 28.00 us (100 % of the change); no pipe that was measured moved with it"
    assert why(result) == {"matmul": text}


def test_a_faster_kernel_is_explained_alike(store: Store):
    result = compared(store, [kernel(30, aiv_vec_time=20.0)], [kernel(20, aiv_vec_time=11.0)])
    assert why(result) == {"matmul": "aiv_vec_time (vector) 20.00 us -> 11.00 us (90 % of the change)"}


def test_a_change_below_two_per_cent_is_no_change_to_explain(store: Store):
    result = compared(store, [kernel(100, aic_mte2_time=50.0)], [kernel(101, aic_mte2_time=51.0)])
    assert why(result) == {"matmul": ""}
    assert result.kernel_metrics["moved"].isna().all()


def test_metrics_are_means_over_calls_of_all_ranks_and_the_median_over_runs(store: Store):
    for version, values in (("v1", (10.0, 10.0, 10.0)), ("v2", (20.0, 90.0, 30.0))):
        for number, value in enumerate(values):
            kernels = [[kernel(10 * calls, calls, aic_mte2_time=value * calls)] for calls in (1, 3)]
            captures = [capture(rank, world_size=2, kernels=of_rank) for rank, of_rank in enumerate(kernels)]
            made = record(version, started_at_ns=1_700_000_000_000_000_000 + number * 10**12)
            save_run(store, made, captures, formats=["torch_profiler"])
    row = diff(store, "v1", "v2").kernel_metrics.iloc[0]
    # one call of 1 x value and three of 3 x value: 2.5 x value
    assert (row["baseline_mean"], row["candidate_mean"]) == (25.0, 75.0)


def test_the_kernels_that_changed_most_come_first(store: Store):
    names = {"small": 1, "large": 50}
    before = [kernel(100, name=name, aic_mac_time=10.0) for name in names]
    after = [kernel(100 + more, name=name, aic_mac_time=10.0 + more) for name, more in names.items()]
    result = compared(store, before, after)
    assert result.kernel_metrics["name"].tolist() == ["large", "small"]


def test_other_metric_groups_cannot_be_compared_and_a_note_says_so(store: Store):
    for version, group, metric in (("v1", "PipeUtilization", "aic_mac_time"), ("v2", "L2Cache", "mte2_time")):
        made = kernel(20, aicore_time=1.0, **{metric: 5.0})
        save(store, version, kernels=[made], settings={"aic_metrics": group})
    result = diff(store, "v1", "v2")
    assert result.notes == (
        "The two sides measured different kernel metrics (aic_metrics: PipeUtilization against L2Cache): "
        "aic_mac_time(us) against mte2_time(us); only aicore_time(us) can be compared.",
    )
    assert result.kernel_metrics["metric"].tolist() == ["aicore_time(us)"]


def test_a_side_without_metrics_is_told(store: Store):
    result = compared(store, [kernel(20)], [kernel(30, aic_mac_time=5.0)])
    assert result.notes == ("Kernel metrics cannot be compared: the profiler of v1 measured none.",)
    assert result.kernel_metrics.empty


def test_without_any_metrics_nothing_is_said(store: Store):
    result = compared(store, [kernel(20)], [kernel(30)])
    assert (result.notes, why(result), len(result.kernel_metrics)) == ((), {"matmul": ""}, 0)


def test_a_filter_leaves_metrics_of_other_kernels_out_but_not_the_reasons(store: Store):
    before, after = kernel(20, aic_mte2_time=12.0), kernel(26, aic_mte2_time=18.0)
    for version, entry in (("v1", before), ("v2", after)):
        mine = ("aclnnMm", entry[1], {"calls": entry[2]["calls"]})
        save(store, version, ops=[mine, ("aten::other", 10 * US)], kernels=[entry])
    result = diff(store, "v1", "v2", options=DiffOptions(op="aten::other"))
    assert (len(result.kernels), len(result.kernel_metrics)) == (0, 0)
    assert result.explanation.causes[0].why.startswith("matmul: aic_mte2_time")


@pytest.mark.parametrize("match", ["shape", "name"])
def test_reasons_follow_the_op_map_and_the_match(store: Store, match):
    for version, op, total_us in (("v1", "old", 20), ("v2", "new", 30)):
        launched = {"op": op, "metrics": {"mac_time(us)": total_us - 15.0}}
        save(store, version, ops=[(op, total_us * US)], kernels=[("k", total_us * US, launched)])
    result = diff(store, "v1", "v2", options=DiffOptions(match=match, op_map={"old": "new"}))
    assert result.explanation.rollup[0].why == "k: mac_time (cube) 5.00 us -> 15.00 us (100 % of the change)"


def test_show_lists_the_metrics_of_the_kernels_with_most_time(store: Store):
    kernels = [kernel(10, name="short", aic_mac_time=1.0), kernel(90, name="long", aic_mac_time=9.0, aic_mac_ratio=0.5)]
    save(store, ranks=2, steps=2, kernels=kernels)
    same_table(
        show(store, "v1").kernel_metrics,
        """
        name   metric            kind       calls  mean
        long   aic_mac_ratio     ratio      2      0.5
        long   aic_mac_time(us)  pipe_time  2      9
        short  aic_mac_time(us)  pipe_time  2      1
        """,
    )
    by_rank = show(store, "v1", options=ShowOptions(by=("rank", "step"))).kernel_metrics
    assert by_rank.groupby("rank")["metric"].count().to_dict() == {0: 3, 1: 3}
    assert "step" not in by_rank


def test_metrics_of_more_than_100_kernels_are_all_there(store: Store):
    before = [kernel(100, name=f"k{number}", aic_mac_time=10.0) for number in range(103)]
    after = [kernel(200, name=f"k{number}", aic_mac_time=20.0) for number in range(103)]
    result = compared(store, before, after)
    assert len(result.kernel_metrics) == 103
    assert len(show(store, "v1").kernel_metrics) == 103


def test_diff_of_a_run_with_itself_moved_nothing(store: Store):
    save(store, "v1", kernels=[kernel(20, aic_mte2_time=12.0)])
    result = diff(store, "v1", "v1")
    assert result.kernel_metrics["delta"].tolist() == [0]
    assert pd.isna(result.kernel_metrics["share"]).all()


def occupied(total_us: float, occupancy: float, blocks: float):
    return kernel(total_us, **{"est. achieved occupancy %": occupancy, "blocks per SM": blocks})


def test_occupancy_of_a_kernel_is_compared_and_claims_no_time(store: Store):
    result = compared(store, [occupied(20, 75, 39.25)], [occupied(26, 50, 39.25)])
    rows = result.kernel_metrics[["metric", "kind", "baseline_mean", "candidate_mean", "delta"]].to_numpy().tolist()
    assert rows == [
        ["blocks per SM", "other", 39.25, 39.25, 0.0],
        ["est. achieved occupancy %", "ratio", 75.0, 50.0, -25.0],
    ]
    assert result.kernel_metrics[["share", "moved"]].isna().all(axis=None)
    assert why(result) == {"matmul": ""}
    pipes = show(store, "v2", options=ShowOptions()).kernel_pipes
    assert pipes[["metric", "mean"]].to_numpy().tolist() == [["est. achieved occupancy %", 50.0]]


def test_occupancy_that_one_side_does_not_state_is_said(store: Store):
    result = compared(store, [occupied(20, 75, 39.25)], [kernel(26)])
    assert result.kernel_metrics.empty
    assert "Kernel metrics cannot be compared: the profiler of v2 measured none." in result.notes
