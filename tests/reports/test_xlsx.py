"""The workbook, opened again."""

import pytest
from msgspec.structs import replace

from tests.reports import builders
from tests.reports.builders import MS
from tests.reports.workbooks import fill, header_row, opened, rows, values
from tracker.profile import BEFORE_CAPTURE
from tracker.reports import render, workbook

BLUE, RED = "DDEBF7", "FF0000"


@pytest.fixture(scope="module")
def book():
    return opened(render(builders.diff(), "xlsx"))


def test_sheets_stand_in_reading_order(book):
    assert book.sheetnames == [
        "Summary",
        "OverallMetrics", "OperatorCompare", "CommunicationCompare", "CommunicationLinkCompare", "MemoryCompare",
        "MemoryPeak", "KernelCompare", "KernelTypeCompare", "KernelMetricCompare", "ModuleCompare", "ApiCompare",
        "IdleCompare", "InputCompare", "InputQueueCompare", "ArgumentCompare", "CounterCompare", "Environment",
        "Explanation",
    ]  # fmt: skip


def test_every_table_has_a_frozen_header_and_a_filter_over_all_rows(book):
    titled = {"OverallMetrics": "B3", "CommunicationCompare": "A3", "CommunicationLinkCompare": "A3"}
    for sheet in book.worksheets[1:-1]:
        assert sheet.freeze_panes == titled.get(sheet.title, "A2")
        assert sheet.auto_filter.ref == sheet.dimensions.replace("A1", f"A{header_row(sheet)}")


def test_operator_summary_is_light_blue_and_its_kernels_follow_without_background(book):
    summary, first, second, following = rows(book["OperatorCompare"])[:4]
    assert {fill(cell) for name, cell in summary.items() if name != "DIFF Filter"} == {BLUE}
    assert {fill(cell) for name, cell in first.items() if name != "DIFF Filter"} == {None}
    assert [row["Kernel"].value for row in (summary, first, second, following)] == [
        None, "sm90_xmma_gemm_bf16", "splitKreduce_kernel", None
    ]  # fmt: skip
    assert [row["Baseline Calls"].value for row in (summary, first, second)] == [10, 10, 2]


def test_operator_columns_hold_us_and_diff_is_a_quotient(book):
    row = values(book["OperatorCompare"])[0]
    assert (row["Operator Name"], row["Input Shape"], row["Input Type"]) == (
        "aten::mm", "[[64, 512], [512, 512]]", "float"
    )  # fmt: skip
    assert (row["Baseline Device Duration (us)"], row["Candidate Device Duration (us)"]) == (20_000, 26_000)
    assert row["Delta (us)"] == 6_000
    assert row["DIFF"] == pytest.approx(0.3)
    assert rows(book["OperatorCompare"])[0]["DIFF"].number_format == "0.0%"


def test_filter_column_is_red_exactly_where_the_candidate_is_worse(book):
    cells = [row["DIFF Filter"] for row in rows(book["OperatorCompare"]) if row["Row"].value == "op"]
    assert [(cell.value, fill(cell) == RED) for cell in cells] == [
        ("worse", True), ("better", False), ("ADDED", True), ("REMOVED", False), ("worse", True), ("same", False),
        ("worse", True), ("worse", True),
    ]  # fmt: skip


def test_diff_is_empty_without_a_baseline(book):
    added = values(book["OperatorCompare"])[4]
    assert (added["DIFF Filter"], added["DIFF"], added["Baseline Device Duration (us)"]) == ("ADDED", None, None)


def test_overall_has_shares_units_and_good_news_is_not_red(book):
    by_name = {row["Name"].value: row for row in rows(book["OverallMetrics"])}
    assert by_name["idle_ns"]["Baseline Share of Step"].value == 0.1
    assert by_name["peak_reserved_bytes"]["Unit"].value == "MiB"
    assert by_name["peak_reserved_bytes"]["Candidate"].value == 4096
    assert by_name["overlap_ns"]["DIFF Filter"].value == "better"
    assert by_name["kernel_count"]["DIFF Filter"].value is None
    assert by_name["matmul:cube"]["Metric"].value == "            Matmul (cube)"


def test_communication_has_calls_total_average_maximum_minimum_and_tasks(book):
    summary, task, broadcast = values(book["CommunicationCompare"])
    names = ["Calls", "Total Duration (us)", "Avg Duration (us)", "Max Duration (us)", "Min Duration (us)"]
    assert [summary[f"Baseline {name}"] for name in names] == [10, 24_000, 2_400, 3_000, 2_000]
    assert (task["Row"], task["Task Name"], task["Baseline Calls"]) == ("task", "Notify_Wait", 20)
    assert (broadcast["Group Size"], broadcast["Size Class (KiB)"]) == (None, None)  # not -1


def test_groups_stand_below_the_exposed_communication_with_wait_and_transmit(book):
    sheet = values(book["OverallMetrics"])
    at = next(index for index, row in enumerate(sheet) if row["Name"] == "exposed_communication_ns")
    below = [(row["Metric"].strip(), row["Baseline"], row["Baseline Number"]) for row in sheet[at + 1 : at + 5]]
    assert below == [
        ("dp x8", 24, 10),
        ("Wait", 5, None),
        ("Transmit (all but wait)", 19, None),
        ("Collectives at the same time (counted twice above)", -4, None),
    ]
    assert sheet[at]["Baseline"] == 24 - 4
    assert sheet[at + 4]["DIFF Filter"] is None  # a correction is neither good nor bad


def test_kinds_of_work_have_the_number_of_their_kernels(book):
    by_name = {row["Name"]: row for row in values(book["OverallMetrics"])}
    assert (by_name["matmul"]["Baseline Number"], by_name["matmul"]["Candidate Number"]) == (10, 12)
    assert by_name["compute_ns"]["Baseline Number"] is None


def test_kernel_types_have_calls_total_average_maximum_and_minimum(book):
    cast, added = values(book["KernelTypeCompare"])
    assert (cast["Kernel Type"], cast["Core Type"], cast["DIFF Filter"]) == (
        "Cast", "AI_CORE -> AI_VECTOR_CORE", "better"
    )  # fmt: skip
    names = ["Calls", "Total Duration (us)", "Avg Duration (us)", "Max Duration (us)", "Min Duration (us)"]
    assert [cast[f"Baseline {name}"] for name in names] == [4, 8_000, 2_000, 3_000, 1_000]
    assert (added["DIFF Filter"], added["DIFF"], added["Baseline Calls"]) == ("ADDED", None, None)


def test_without_kernel_types_on_either_side_there_is_no_sheet_of_them():
    without = builders.diff(kernel_types=builders.frame("kernel_types", []))
    assert "KernelTypeCompare" not in opened(render(without, "xlsx")).sheetnames


def test_kernels_show_the_type_and_shapes_of_an_npu(book):
    kernels = {row["Launched by Operator"]: row for row in values(book["KernelCompare"])}
    assert kernels["aten::add"]["Kernel Type"] == "Add"
    assert "Input Shape" in kernels["aten::add"]


def test_memory_is_in_kb_with_components_below(book):
    summary, component, block, removed = values(book["MemoryCompare"])
    assert (summary["Baseline Size (KiB)"], summary["Candidate Size (KiB)"], summary["DIFF"]) == (128, 192, 0.5)
    assert (component["Component"], component["Baseline Duration Held (us)"]) == ("device", 2_000)
    assert [block[name] for name in ("Row", "Baseline Size (KiB)", "Candidate Size (KiB)", "Allocator")] == [
        "allocation", 64, 96, "aten::empty"
    ]  # fmt: skip
    assert [block[f"{side} Duration Held (us)"] for side in ("Baseline", "Candidate")] == [1_000, None]
    assert [block[f"{side} Released"] for side in ("Baseline", "Candidate")] == ["yes", "no"]
    assert removed["DIFF Filter"] == "REMOVED"


def test_the_owners_of_the_peak_have_a_sheet_whose_rows_add_up(book):
    rows = values(book["MemoryPeak"])
    assert [row["Operator Name"] for row in rows] == ["aten::mm", "aten::add", BEFORE_CAPTURE]
    assert sum(row["Baseline Size (KiB)"] or 0 for row in rows) == 1_000
    assert sum(row["Candidate Size (KiB)"] or 0 for row in rows) == 1_200
    assert (rows[0]["Baseline Held Since (us)"], rows[0]["Code"]) == (1_000, "train.py(42): forward")


def test_only_selects_sheets():
    book = opened(render(builders.diff(), "xlsx", only=["memory", "kernel"]))
    assert book.sheetnames == ["Summary", "MemoryCompare", "KernelCompare", "Environment", "Explanation"]


def test_on_a_host_timeline_the_duration_says_host_self_time():
    book = opened(render(builders.diff(metric="host_self_ns"), "xlsx"))
    header = [cell.value for cell in book["OperatorCompare"][1]]
    assert "Baseline Host Self Time (us)" in header and "Baseline Device Duration (us)" not in header
    assert len(header) == len(set(header))


def test_strings_are_never_formulas_or_errors_and_hold_no_illegal_characters():
    names = ["=1+1", "#N/A", "a\x00b\x1b\ufffe", "tile128_x1024_", "x" * 40_000, "-5", "12"]
    ops = builders.frame("ops", [builders.op(name, "", MS, 2 * MS) for name in names])
    said = []
    book = opened(render(builders.diff(ops=ops), "xlsx", only=["operator"], tell=said.append))
    assert said == ["1 text cut in the middle: a cell holds 32,767 characters; --format csv has them whole"]
    cells = [row["Operator Name"] for row in rows(book["OperatorCompare"])]
    assert {cell.data_type for cell in cells} <= {"s", "inlineStr"}
    assert [cell.value for cell in cells[:4]] == ["'=1+1", "#N/A", r"a\x00b\x1b\ufffe", "tile128_x005F_x1024_"]
    assert len(cells[4].value) == 32_767
    assert [cell.value for cell in cells[5:]] == ["'-5", "12"]


def test_a_cut_at_the_row_limit_is_told_in_the_sheet_and_to_the_caller(monkeypatch):
    monkeypatch.setattr(workbook, "MAX_ROWS", 6)
    told = []
    document = render(builders.diff(), "xlsx", only=["operator"], tell=told.append)
    sheet = opened(document)["OperatorCompare"]
    assert sheet.max_row == 6
    assert sheet["A6"].value == "OperatorCompare: 6 of 10 rows left out: a sheet holds 6 rows"
    assert sheet.auto_filter.ref.endswith("5")
    assert told == ["OperatorCompare: 6 of 10 rows left out: a sheet holds 6 rows; --format csv has them all"]


def test_exactly_as_many_rows_as_fit_are_not_cut(monkeypatch):
    monkeypatch.setattr(workbook, "MAX_ROWS", 11)
    told = []
    document = render(builders.diff(), "xlsx", only=["operator"], tell=told.append)
    assert opened(document)["OperatorCompare"].max_row == 11 and not told


def test_explanation_has_the_headline_and_adds_up(book):
    lines = [[cell.value for cell in row] for row in book["Explanation"].iter_rows()]
    assert lines[0][0] == builders.explanation().headline
    start = next(index for index, line in enumerate(lines) if line[0] == "Operators, ranked by contribution")
    end = next(index for index, line in enumerate(lines) if index > start and line[0] == "total: step time")
    assert sum(line[3] for line in lines[start + 2 : end]) == pytest.approx(lines[end][3])


def test_it_opens_on_what_was_found_with_numbers_and_a_chart(book):
    sheet = book.active
    assert sheet.title == "Summary"
    lines = [[cell for cell in line if cell is not None] for line in sheet.iter_rows(values_only=True)]
    assert lines[0] == [builders.diff().explanation.headline]
    at = lines.index(["Part", "Baseline (ms)", "Candidate (ms)", "Change (ms)", "Change", "Verdict"])
    parts = {line[0]: line[1:] for line in lines[at + 1 : lines.index([], at)]}
    # 100 -> 104 ms: a change is a number with a unit in its header, and a quotient
    assert parts["step time"] == [100, 104, 4, 0.04]
    # what stands below the step is no part of it
    inside = [numbers[2] for name, numbers in parts.items() if name != "step time" and "(" not in name]
    assert sum(inside) == pytest.approx(4)
    (chart,) = sheet._charts
    assert chart.series[0].val.numRef.f.startswith("'Summary'!$B$")


def test_a_table_without_rows_has_no_sheet():
    diff = builders.diff()
    empty = replace(diff, tables={**diff.tables, "kernels": diff.tables["kernels"].head(0)})
    assert {*opened(render(diff, "xlsx")).sheetnames} - {*opened(render(empty, "xlsx")).sheetnames} == {"KernelCompare"}


def test_a_run_has_a_sheet_per_table_with_units_in_the_header():
    book = opened(render(builders.shown(), "xlsx"))
    assert book.sheetnames == [
        "Summary",
        "Run", "Overall", "Steps", "RankSummary", "StepSummary", "Operators", "Kernels", "Copies", "KernelTypes",
        "KernelMetrics", "KernelPipes", "Communication", "CommunicationLinks", "LinkTotals", "Memory", "MemoryPeak",
        "MemoryPeakTotals", "MemoryBlocks", "Modules", "Api", "IdleCauses", "Idle", "Queues", "InputOperations",
        "InputQueues", "OperatorArguments", "Counters",
        "CounterSummary",
        "Efficiency",
        "MemoryCurve", "Facts",
        "Sources",
    ]  # fmt: skip
    assert values(book["Communication"])[0]["Total (us)"] == 15_000
    assert values(book["Copies"])[0]["Size (KiB)"] == 4


def test_a_workbook_of_a_list_opens_on_what_was_found():
    """Headline, what it is about, and the rows of the first screen, which other sheets have as numbers."""
    found = builders.findings()
    book = opened(render(found, "xlsx"))
    lines = [[cell for cell in row if cell is not None] for row in book["Summary"].iter_rows(values_only=True)]
    assert book.sheetnames[0] == "Summary"
    assert lines[0] == ["New in v42: the step is 10.0 % slower, 100.00 -> 110.00 ms per step REGRESSED"]
    assert any("finding" in line and "change %" in line for line in lines)


def test_summary_of_a_diff_has_the_memory_below_the_step():
    """3 and 4 GiB."""
    overall = builders.diff().overall
    overall["metric"] = overall["metric"].replace("peak_reserved_bytes", "peak_allocated_bytes")
    sheet = opened(render(builders.diff(overall=overall), "xlsx"))["Summary"]
    (row,) = [row for row in sheet.iter_rows(values_only=True) if row[0] == "peak memory (MiB)"]
    assert row[1:4] == (3072, 4096, 1024)


def test_numbers_of_a_run_are_numbers():
    cells = {row[0]: row[1] for row in opened(render(builders.shown(), "xlsx"))["Run"].iter_rows(values_only=True)}
    assert (cells["run_id"], cells["step_ns"], cells["per_step.step_ns"]) == (41, 90 * MS, 90 * MS)
    # a spreadsheet shows 15 digits
    assert cells["started_at_ns"] == "1736413971558972912"


@pytest.mark.parametrize("text", ["+1 % / WEBSERVICE(A1)", "-5 kB / SUM(A1,B2)", "-1 % / 1+1", "+ / A1", "+1+1"])
def test_a_formula_behind_a_number_is_disarmed(text):
    assert workbook.cell_text(text) == f"'{text}"


@pytest.mark.parametrize("text", ["+1.2 ms / +3.4 %", "- / -", "-5.0 % ▼", "-"])
def test_a_signed_number_stays_as_it_is(text):
    assert workbook.cell_text(text) == text
