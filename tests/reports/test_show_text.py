"""What somebody who asks about one run reads first."""

from tests.reports import builders
from tests.reports.builders import METRIC, MS
from tracker.profile import UNLINKED_OP
from tracker.reports import render_show


def test_without_ops_the_summary_names_the_kernel_with_the_most_time_over_all_its_shapes():
    whole = builders.shown()
    ops = whole.ops.tail(1).assign(name=UNLINKED_OP)
    kernel = whole.kernels.iloc[[0, 0, 0]].reset_index(drop=True)
    kernel["canonical_name"] = ["matmul", "hcom_allReduce", "hcom_allReduce"]
    kernel["total_ns"] = [5 * MS, 4 * MS, 3 * MS]  # 4 + 3 > 5
    last = render_show(builders.shown(ops=ops, kernels=kernel), "text").splitlines()[-1]
    assert "most time in the kernel hcom_allReduce: 7.00 ms" in last and "unlinked" not in last


def test_metrics_and_counters_of_nothing_but_zeros_come_last():
    numbers = {"fixpipe": 0.0, "mac": 2.5, "mte": 0.0, "scalar": 1.5}
    metrics = [
        {**METRIC, "metric": name, "kind": "ratio", "mean": value, "min": value, "max": value}
        for name, value in numbers.items()
    ]
    counters = [
        {"source": "acc_pmu", "name": "read", "attribute": name, "calls": 1, "mean": value, "min": value, "max": value}
        for name, value in numbers.items()
    ]
    shown = builders.shown(kernel_metrics=builders.nullable(metrics), counters=builders.nullable(counters))
    for section in ("metric", "counter"):
        words = render_show(shown, "text", only=[section], width=200).split()
        places = [words.index(name) for name in ("mac", "scalar", "fixpipe", "mte")]
        assert places == sorted(places)
