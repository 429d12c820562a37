"""What a reader of the workbook sees: whose columns these are, what is red, numbers that fit their column."""

import pytest

from tests.reports import builders
from tests.reports.builders import MS
from tests.reports.workbooks import fill, opened, rows
from tracker.reports import render

RED = "FF0000"


def overall(**metric):
    """The sheet of one metric below an E2E of 100 ms on both sides."""
    e2e = {"metric": "e2e_ns", "title": "E2E", "level": 0, "unit": "ns",
           "baseline_value": 100 * MS, "candidate_value": 100 * MS}  # fmt: skip
    row = {"metric": "compute_ns", "title": "Computing", "level": 1, "unit": "ns", **metric}
    diff = builders.diff(overall=builders.frame("overall", [e2e, row]))
    return opened(render(diff, "xlsx", only=["overall"]))["OverallMetrics"]


def test_titles_say_which_columns_are_whose():
    sheet = opened(render(builders.diff(), "xlsx"))["OverallMetrics"]
    titles = {cell.value.split(":")[0]: cell.column for cell in sheet[1] if cell.value}
    heads = {cell.value: cell.column for cell in sheet[2]}
    assert titles == {"Baseline v41": heads["Baseline"], "Candidate v42": heads["Candidate"]}
    assert [heads[name] - heads["Baseline"] for name in ("Baseline Share of Step", "Baseline Number")] == [1, 2]
    assert fill(sheet.cell(1, heads["Baseline"])) != fill(sheet.cell(1, heads["Candidate"]))


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        (50 * MS, 52 * MS, "worse"),  # +4 %
        (50 * MS, 50.4 * MS, "small"),  # +0.8 %
        (50 * MS, 49.6 * MS, "small"),  # -0.8 %
        (50 * MS, 45 * MS, "better"),
        (0.02 * MS, 0.08 * MS, "small"),  # four times as long, and 0.06 % of E2E
        (0, 0.5 * MS, "worse"),
        (50 * MS, 50 * MS, "same"),
    ],
)
def test_a_small_change_is_never_red(before, after, word):
    cell = rows(overall(baseline_value=before, candidate_value=after))[1]["DIFF Filter"]
    assert (cell.value, fill(cell) == RED) == (word, word == "worse")


def test_small_changes_of_operators_are_not_red_either():
    ops = builders.frame("ops", [builders.op("aten::mm", "", 1000, 1009), builders.op("aten::add", "", 1000, 1020)])
    sheet = opened(render(builders.diff(ops=ops), "xlsx"))["OperatorCompare"]
    cells = {row["Operator Name"].value: row["DIFF Filter"] for row in rows(sheet) if row["Row"].value == "op"}
    assert [(cells[name].value, fill(cells[name]) == RED) for name in ("aten::mm", "aten::add")] == [
        ("small", False), ("worse", True)
    ]  # fmt: skip


def test_the_largest_numbers_fit_their_columns():
    many = {"baseline_value": 900_000 * MS, "candidate_value": 900_000 * MS,
            "baseline_calls": 123_456_789, "candidate_calls": 123_456_789.25}  # fmt: skip
    sheet = overall(**many)
    for head in sheet[2]:
        if "Number" in head.value or head.value in ("Baseline", "Candidate"):
            width = sheet.column_dimensions[head.column_letter].width
            cell = sheet.cell(4, head.column)
            shown = f"{cell.value:,.3f}" if cell.number_format.endswith(".000") else f"{cell.value:,.2f}"
            assert len(shown) < width


def test_tasks_of_collectives_say_that_planes_work_at_the_same_time():
    book = opened(render(builders.diff(), "xlsx"))
    assert "at the same time" in book["CommunicationCompare"]["A1"].value
    without = builders.diff(communication_details=builders.frame("communication_details", []))
    assert opened(render(without, "xlsx"))["CommunicationCompare"]["A1"].value == "Row"


def test_links_say_that_levels_state_the_same_bytes():
    book = opened(render(builders.diff(), "xlsx"))
    assert "same bytes" in book["CommunicationLinkCompare"]["A1"].value
    assert [row["Level"].value for row in rows(book["CommunicationLinkCompare"])] == ["transport", "link"]


def test_a_ratio_of_a_thousandth_is_not_shown_as_zero():
    metrics = builders.nullable([{**builders.METRIC, "metric": "aic_mac_ratio", "kind": "ratio", "mean": 0.001}])
    book = opened(render(builders.shown(kernel_metrics=metrics), "xlsx"))
    assert rows(book["KernelMetrics"])[0]["Mean"].number_format == "#,##0.0000"
