"""CSV: plain for one table, with a section column for several."""

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from tests.reports import builders
from tests.reports.workbooks import opened
from tracker.reports import render
from tracker.results import DIFF_COLUMNS
from tracker.results.status import ExpectedStatus, FolderStatus, Status
from tracker.units import printable


def read(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_one_section_is_plain_csv_with_the_columns_of_its_table():
    text = render(builders.diff(), "csv", only=["memory"])
    assert tuple(text.splitlines()[0].split(",")) == DIFF_COLUMNS["memory"]
    assert [row["name"] for row in read(text)] == ["aten::mm", "aten::add"]


def test_several_sections_share_a_header_behind_the_section_column():
    text = render(builders.diff(), "csv")
    rows = read(text)
    assert text.startswith("section,")
    assert list(dict.fromkeys(row["section"] for row in rows)) == [
        "environment", "bottleneck", "overall", "ops", "kernels", "kernel_types", "kernel_metrics", "communication",
        "communication_links", "memory", "memory_peak", "memory_peak_totals", "memory_blocks", "modules",
        "api", "idle", "input_operations", "input_queues", "operator_arguments", "counters", "contributions",
        "parts", "causes", "notes",
    ]  # fmt: skip
    assert None not in rows[0]  # every row has as many fields as the header


def test_missing_is_an_empty_field_and_integers_stay_exact():
    rows = read(render(builders.shown(), "csv", only=["operator"]))
    assert [row["device_self_ns"] for row in rows] == ["1736413971558972913", "24400"]
    assert rows[1]["host_self_ns"] == ""


def test_a_name_that_looks_like_a_formula_is_disarmed_and_a_negative_number_is_not():
    rows = read(render(builders.diff(), "csv", only=["operator"]))
    assert rows[4]["name"] == "'=cmd|' /C calc'!A0"
    assert rows[1]["delta_ns"] == "-3000000.0"


@given(st.text())
def test_any_name_is_one_field_of_one_line(name):
    ops = builders.frame("ops", [builders.op(name, "", 1, 2)])
    text = render(builders.diff(ops=ops), "csv", only=["operator"])
    assert text.count("\n") == 2
    (row,) = read(text)
    assert row["name"].removeprefix("'") == printable(name).removeprefix("'")


def test_files_of_a_status_have_its_lists_and_what_is_expected():
    expected = ExpectedStatus("gpt", 60, None, None, None, 120, True)
    folder = FolderStatus("/p", "", "*", 1, "", None, {"ingested": 2}, None, (expected,), (("/p/x", "unknown"),))
    found = Status("tracker.db", 180, folders=(folder,), muted=1)
    rows = read(render(found, "csv"))
    assert [row["section"] for row in rows] == ["status", "folders", "expected"]
    assert (rows[0]["muted"], rows[1]["profiles"], rows[2]["workload"]) == ("1", "{'ingested': 2}", "gpt")
    assert opened(render(found, "xlsx")).sheetnames == ["Summary", "Status", "Folders", "Expected"]
