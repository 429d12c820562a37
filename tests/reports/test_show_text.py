"""What somebody who asks about one run reads first."""

from tests.reports import builders
from tests.reports.builders import METRIC, MS
from tracker.profile import UNLINKED_OP
from tracker.reports import render


def test_without_ops_the_summary_names_the_kernel_with_the_most_time_over_all_its_shapes():
    whole = builders.shown()
    ops = whole.ops.tail(1).assign(name=UNLINKED_OP)
    kernel = whole.kernels.iloc[[0, 0, 0]].reset_index(drop=True)
    kernel["canonical_name"] = ["matmul", "hcom_allReduce", "hcom_allReduce"]
    kernel["total_ns"] = [5 * MS, 4 * MS, 3 * MS]  # 4 + 3 > 5
    last = render(builders.shown(ops=ops, kernels=kernel), "text").splitlines()[-1]
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
        words = render(shown, "text", only=[section], width=200).split()
        places = [words.index(name) for name in ("mac", "scalar", "fixpipe", "mte")]
        assert places == sorted(places)


def test_counters_of_several_names_have_no_common_mean():
    """The mean of 8 ms in operators and 2 ms in data loading is the time of nothing."""
    one = {"source": "overview", "attribute": "time (ms)", "calls": 1}
    counters = [{**one, "name": name, "mean": ms, "min": ms, "max": ms} for name, ms in (("op", 8.0), ("load", 2.0))]
    counters.append({**one, "attribute": "share", "name": "op", "mean": 0.5, "min": 0.5, "max": 0.5})
    text = render(builders.shown(counters=builders.nullable(counters)), "text", width=120)
    lines = [line.split() for line in text.splitlines() if line.split()[:1] == ["overview"]]
    assert lines == [
        ["overview", "time", "(ms)", "2", "-", "2", "8", "op"],
        ["overview", "share", "1", "0.5", "0.5", "0.5", "op"],
    ]


def test_no_operator_is_named_with_no_time():
    ops = builders.shown().ops.assign(device_self_ns=0, name="aten::empty")
    last = render(builders.shown(ops=ops), "text").splitlines()[-1]
    assert "no operator has device self time" in last and "aten::empty" not in last


def test_operators_show_average_and_share_at_80_columns():
    """Two ops with 6 and 2 ms in 3 and 4 calls: 75 % and 25 %, 2 and 0.5 ms a call."""
    ops = builders.shown().ops.iloc[[0, 0]].reset_index(drop=True)
    ops = ops.assign(name=["aten::mm", "aten::add"], input_shapes="", calls=[3, 4])
    for column in ("device_self_ns", "device_total_ns"):
        ops[column] = [6 * MS, 2 * MS]
    text = render(builders.shown(ops=ops), "text", only=["operator"], width=80)
    lines = {line.split()[0]: line for line in text.splitlines() if line.startswith("  aten::")}
    assert "75.0 %     2.00 ms" in lines["aten::mm"] or "75.0 %  2.00 ms" in lines["aten::mm"]
    assert "25.0 %" in lines["aten::add"] and lines["aten::add"].split()[-2:] in (["0.50", "ms"], ["500.00", "us"])


def test_the_summary_says_of_what_each_number_is():
    """A step takes 90 ms; a rank's capture 80 ms on the device; the op's time is that of all steps and ranks."""
    last = render(builders.shown(), "text").splitlines()[-1]
    assert last.startswith("run 41: 90.00 ms per step; whole capture: E2E 80.00 ms (mean of 2 ranks), compute 75.0 %")
    assert " in all steps and all ranks." in last


def test_idle_time_has_one_name():
    for text in (render(builders.shown(), "text"), render(builders.diff(), "text")):
        assert "dle time" in text and "(scheduling)" not in text
