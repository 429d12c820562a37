"""Metrics as Prometheus reads them, whatever operators are called."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.reports import builders
from tests.reports.builders import MS
from tests.reports.prometheus import parse
from tests.reports.test_junit import HOSTILE
from tracker import reports
from tracker.results import Judgement
from tracker.results.budgets import JudgedBudget


def only(samples, **labels):
    """The one sample that has these labels."""
    (value,) = [value for pairs, value in samples.items() if set(labels.items()) <= pairs]
    return value


def test_a_diff_gives_its_times_in_seconds_and_its_differences_as_ratios():
    found = parse(reports.render(builders.judged(), "prometheus"))
    assert only(found["tracker_diff_seconds"], part="step", side="candidate") == pytest.approx(0.104)
    assert only(found["tracker_diff_seconds"], part="compute", side="baseline") == pytest.approx(0.070)
    assert only(found["tracker_diff_ratio"], part="step") == pytest.approx(0.04)
    assert only(found["tracker_diff_judged"], section="operator", outcome="failed") == 1  # and one that was renamed
    assert only(found["tracker_diff_exit_code"], fail_on="new") == 1
    assert only(found["tracker_diff_regression_seconds"], section="operator", name="aten::mm") == pytest.approx(0.006)
    assert only(found["tracker_diff_regression_ratio"], section="operator", name="aten::mm") == 0.25


def test_findings_give_where_each_line_stands_and_what_is_open():
    found = parse(reports.render(builders.findings(), "prometheus"))
    line = {"workload": "gpt", "configuration": "batch=32", "device": "NVIDIA H100"}
    assert only(found["tracker_last_run_timestamp_seconds"], version="v42", **line) == 1_767_225_600
    assert only(found["tracker_step_seconds"], version="v42", **line) == pytest.approx(0.110)
    assert only(found["tracker_compute_seconds"], **line) == pytest.approx(0.090)
    assert only(found["tracker_idle_seconds"], **line) == pytest.approx(0.008)
    assert only(found["tracker_peak_allocated_bytes"], **line) == 3 * 2**30
    assert only(found["tracker_step_change_ratio"], **line) == 0.1
    assert only(found["tracker_exit_code"], **line) == 1
    assert "tracker_data_loading_seconds" not in found  # nobody says
    regression = {"direction": "regression", "severity": "critical"}
    assert only(found["tracker_findings"], state="new", **regression) == 1
    assert only(found["tracker_findings"], state="suspect", direction="regression", severity="undecided") == 1
    assert only(found["tracker_open_regressions"], **line) == 2
    assert only(found["tracker_finding_ratio"], name="aten::mm", state="persisting") == 0.5


def test_budgets_have_their_number_and_their_limit():
    where = {"workload": "gpt", "configuration": "", "device": "H100", "version": "v2"}
    step = {"series": "step", "limit": "at most 120 ms", "limit_value": 120.0 * MS, "unit": "ns"}
    mfu = {"series": "mfu", "limit": "at least 0.45", "limit_value": 0.45, "unit": "ratio"}
    budgets = (
        JudgedBudget(**where, **step, verdict="not met", value=131.0 * MS),
        JudgedBudget(**where, **mfu, verdict="not judged", reason="it has 1 run"),
    )
    found = parse(reports.render(replace(builders.findings(), budgets=budgets), "prometheus"))
    assert only(found["tracker_budget_met"], **where, series="step", limit="at most 120 ms") == 0
    assert only(found["tracker_budget_value_seconds"], series="step") == pytest.approx(0.131)
    assert only(found["tracker_budget_limit_seconds"], series="step") == pytest.approx(0.120)
    # nothing is known of it, but for what is wanted
    assert len(found["tracker_budget_met"]) == 1
    assert "tracker_budget_value_share_ratio" not in found
    assert only(found["tracker_budget_limit_share_ratio"], series="mfu") == 0.45


def test_a_line_without_findings_says_zero():
    found = parse(reports.render(builders.findings([], incidents=[]), "prometheus"))
    assert list(found["tracker_open_regressions"].values()) == [0]
    assert "tracker_findings" not in found


def test_operators_with_labels_of_their_own_are_few():
    rows = [builders.finding(number, f"op{number}") for number in range(1, 101)]
    said = []
    found = parse(reports.render(builders.findings(rows), "prometheus", tell=said.append))
    assert (len(found["tracker_finding_ratio"]), *found["tracker_open_regressions"].values()) == (20, 100)
    assert said == ["20 of 100 regressions have a metric of their own, the others are counted; --top 0: all"]
    said.clear()
    whole = parse(reports.render(builders.findings(rows), "prometheus", limit=0, tell=said.append))
    assert (len(whole["tracker_finding_ratio"]), said) == (100, [])


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_breaks_a_line(name):
    ops = [{**builders.op(name, name, 10 * MS, 20 * MS), "verdict": "REGRESSED", "judged_diff": 1.0}]
    diff = builders.diff(ops=builders.frame("ops", ops), judgement=Judgement(True, ("3 runs against 5.",)))
    assert len(parse(reports.render(diff, "prometheus"))["tracker_diff_regression_ratio"]) == 1
    found = builders.findings([builders.finding(1, name)], lines=[builders.line(version=name)])
    assert len(parse(reports.render(found, "prometheus"))["tracker_finding_ratio"]) == 1


@pytest.mark.parametrize(
    "text",
    [
        "a 1\n", "# HELP a b\n# TYPE a gauge\na 1", "# HELP a b\n# TYPE a gauge\na 1\na 1\n",
        "# HELP a b\n# TYPE a gauge\na{b=\"c\"d=\"e\"} 1\n", "# HELP a b\n# TYPE a gauge\na NaN\n",
        "# HELP a b\n# TYPE a gauge\na 1 1700000000\n", '# HELP a b\n# TYPE a gauge\na{b="\\x"} 1\n',
        "# HELP a b\n# TYPE a gauge\na 1\n# HELP c d\n# TYPE c gauge\nc 1\n# TYPE a gauge\na 2\n",
    ],
)  # fmt: skip
def test_the_parser_of_these_tests_is_strict(text):
    with pytest.raises((ValueError, KeyError)):
        parse(text)
