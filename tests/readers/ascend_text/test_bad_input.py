"""Ascend text that is damaged: the error names the file and the place, or the rest is read on request."""

from __future__ import annotations

import pytest

from tests.readers.ascend_text.captures import capture, edited, error_of, links, profile
from tests.readers.helpers import texts
from tracker import readers


def test_a_capture_that_was_never_parsed_says_how_to_parse_it(tmp_path):
    folder = tmp_path / "node_1_20250109073443012_ascend_pt"
    (folder / "FRAMEWORK").mkdir(parents=True)
    (folder / "PROF_000001_20250109_X" / "device_0").mkdir(parents=True)
    assert readers.load("ascend_text").sniff(folder, b"")
    assert f"analyse({str(folder)!r})" in error_of(folder)


def test_a_missing_column_is_an_error_with_file_and_header(copy):
    edited(copy, "kernel_details.csv", ",Accelerator Core,", ",Unit,")
    text = error_of(copy)
    assert "kernel_details.csv" in text
    assert "no column 'Accelerator Core'" in text
    assert "Step Id, Model ID" in text


@pytest.mark.parametrize("name", ["kernel_details.csv", "step_trace_time.csv"])
@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_table_that_a_spreadsheet_saved_is_an_error_with_file_and_reason(copy, name, separator):
    (path,) = copy.rglob(name)
    path.write_text(path.read_text().replace(",", separator))
    assert f"{name}: row 1: its columns are not separated by commas" in error_of(copy)


@pytest.mark.parametrize(
    ("name", "old", "new", "place", "problem"),
    [
        ("kernel_details.csv", ",50.0,0,16", ",fast,0,16", "row 2", "expected a number of microseconds"),
        ("kernel_details.csv", ",50.0,0,16", ",-50.0,0,16", "row 2", "negative"),
        ("kernel_details.csv", ",95.517", "", "row 2", "24 cells under a header of 25"),
        ("operator_memory.csv", "mm,1.5", "mm,1.5.2", "row 2", "expected a size in KB"),
        ("communication.json", '"Elapse Time(ms)": 0.3', '"Elapse Time(ms)": "x"', "hcom_allReduce", "not a record"),
        ("communication.json", '"step7"', "step7", "communication.json", "malformed JSON"),
        ("trace_view.json", '"dur": 20.0', '"dur": -20.0', "byte", "event 'aten::mm': dur is negative"),
        ("trace_view.json", '"dur": 20.0', '"dur": "x"', "byte", "expected a number"),
    ],
)
def test_impossible_values_name_file_and_place(copy, name, old, new, place, problem):
    text = error_of(edited(copy, name, old, new))
    assert name in text
    assert place in text
    assert problem in text


@pytest.mark.parametrize(
    ("old", "new"),
    [(",50.0,0,16", ",fast,0,16"), (",50.0,0,16", ",-50.0,0,16"), (",50.0,0,16", ",,0,16"), (",95.517", "")],
)
def test_a_bad_row_of_a_table_is_left_out_on_request(copy, old, new):
    edited(copy, "kernel_details.csv", old, new)
    assert "--skip-bad-rows" in error_of(copy)
    read = profile(copy, skip_bad_rows=True)
    said = read.captures[0].events
    assert texts(said, said.device.name) == ["Cast_2", "hcom_allReduce__097_4_1", "MEMCPY_ASYNC"]
    assert len(said.extras.kernel_metrics) == 0
    assert "1 rows of kernel_details.csv with impossible values were left out" in read.warnings
    assert read.captures[0].quality == "ok"


@pytest.mark.parametrize("name", ["kernel_details.csv", "operator_memory.csv", "memory_record.csv"])
def test_a_table_whose_last_row_was_cut_is_partial_on_request(copy, name):
    file = copy / "ASCEND_PROFILER_OUTPUT" / name
    text = file.read_bytes().decode()
    rows = text.count("\n")
    file.write_bytes(text[: text.rstrip().rfind(",") - 1].encode())
    text = error_of(copy)
    assert f"{name}: row {rows}" in text
    assert "--allow-partial" in text
    read = capture(copy, allow_partial=True)
    assert (read.quality, read.quality_reason) == ("partial", f"{name}: its last row was cut")


def test_a_byte_order_mark_is_no_part_of_a_file(copy):
    def seen(read):
        events = read.events
        return read.rank, read.facts, len(events.ops), events.device.start_ns.tolist(), links(events)

    plain = seen(capture(copy))
    for file in copy.rglob("*"):
        if file.is_file():
            file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert readers.claim(copy / "ASCEND_PROFILER_OUTPUT" / "trace_view.json") == "ascend_text"
    assert seen(capture(copy)) == plain


def test_a_bad_event_is_left_out_on_request(copy):
    read = profile(edited(copy, "trace_view.json", '10.000", "dur": 20.0', '10.000", "dur": -20.0'), skip_bad_rows=True)
    assert texts(read.captures[0].events, read.captures[0].events.ops.name) == [
        "Optimizer.step#SGD.step",
        "MmBackward0",
    ]
    assert "1 events with impossible times were left out" in read.warnings


@pytest.mark.parametrize("end", ["", ",", " ,\n", "\n"])
def test_a_trace_that_was_never_closed_is_whole_where_it_ends_behind_an_event(copy, end):
    file = copy / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
    file.write_text(file.read_text().rstrip().removesuffix("]").rstrip() + end)
    read = profile(copy)
    assert (read.captures[0].quality, len(read.captures[0].events.ops)) == ("ok", 3)
    assert read.warnings == ("trace_view.json was never closed: its last ] is missing, all events before it are whole",)


def test_a_trace_torn_inside_an_event_is_partial_on_request(copy):
    file = copy / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
    file.write_text(file.read_text().rstrip().removesuffix("]").rstrip()[:-1])
    assert "--allow-partial" in error_of(copy)
    assert capture(copy, allow_partial=True).quality == "partial"


def test_a_last_row_that_was_cut_is_no_bad_row(copy):
    file = copy / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    file.write_bytes(file.read_bytes().rstrip()[:-20])
    text = error_of(copy, skip_bad_rows=True)
    assert "kernel_details.csv: row 4" in text
    assert "--allow-partial" in text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf_16_is_named_as_what_it_is(copy, encoding):
    file = copy / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    file.write_bytes(file.read_text().encode(encoding))
    text = error_of(copy)
    assert "UTF-16" in text
    assert "save it as UTF-8" in text
