"""Tables that were cut, or that say nothing: what stands in for them, and what is unknown then."""

from __future__ import annotations

from tests.readers.ascend_text.captures import capture, edited, error_of, profile, without_trace
from tests.readers.helpers import texts
from tracker import timeline


def kept_rows(folder, count):
    """kernel_details.csv with its header and so many rows, cut at the end of a line."""
    file = folder / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[: count + 1]))
    return folder


def test_a_table_with_fewer_kernels_than_the_trace_was_cut(copy):
    # of MatMulV2_1, Cast_2 and the collective the first is left
    text = error_of(kept_rows(copy, 1))
    assert "the table ends early: 1 kernels in kernel_details.csv, 3 in trace_view.json" in text
    assert text.endswith("export it again, or read what is there with --allow-partial")
    assert "the table ends early" in error_of(copy, skip_bad_rows=True)
    read = profile(copy, allow_partial=True)
    assert read.captures[0].quality == "partial"
    assert read.captures[0].quality_reason == "1 kernels in kernel_details.csv, 3 in trace_view.json"
    assert "partial: 1 kernels in kernel_details.csv, 3 in trace_view.json" in read.warnings


def test_collectives_that_only_the_trace_has_are_no_loss(copy):
    read = capture(kept_rows(copy, 2))
    assert read.quality == "ok"
    assert texts(read.events, read.events.device.name)[:3] == ["MatMulV2_1", "Cast_2", "hcom_allReduce__097_4_1"]


def test_kinds_of_kernels_that_the_table_never_has_are_no_loss(copy):
    file = copy / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    file.write_bytes(b"".join(line for line in file.read_bytes().splitlines(keepends=True) if b"AI_CPU" not in line))
    assert capture(copy).quality == "ok"


def test_a_row_left_out_on_request_is_no_missing_kernel(copy):
    edited(copy, "kernel_details.csv", ",50.0,0,16", ",fast,0,16")
    assert capture(copy, skip_bad_rows=True).quality == "ok"


def test_without_a_trace_op_statistic_counts_the_kernels(copy):
    edited(without_trace(copy), "op_statistic.csv", "AI_CORE,1,50.0", "AI_CORE,5,50.0")
    assert "2 kernels in kernel_details.csv, 5 in op_statistic.csv" in error_of(copy)
    assert capture(copy, allow_partial=True).quality_reason == "2 kernels in kernel_details.csv, 5 in op_statistic.csv"


def test_an_op_statistic_that_was_cut_is_said(copy):
    assert not [text for text in profile(copy).warnings if "is cut" in text]
    edited(copy, "op_statistic.csv", "50.0,100.0", "50.0,83.333")
    assert "op_statistic.csv is cut: its rows are 83.3 % of the time of all kernels" in profile(copy).warnings


def test_a_table_with_a_header_alone_says_nothing_and_the_trace_stands_in(copy):
    assert "0 kernels in kernel_details.csv, 3 in trace_view.json" in error_of(kept_rows(copy, 0))
    read = capture(copy, allow_partial=True)
    assert read.quality == "partial"
    assert timeline.rows_of(read.events).overall.compute_ns == 60_000


def test_a_table_with_a_header_alone_and_no_trace_leaves_compute_unknown(copy):
    kept_rows(without_trace(copy), 0)
    for name in ("op_statistic.csv", "step_trace_time.csv", "communication.json"):
        (copy / "ASCEND_PROFILER_OUTPUT" / name).unlink()
    read = capture(copy)
    found = timeline.rows_of(read.events).overall
    assert (read.quality, found.compute_ns, found.communication_ns) == ("partial", None, None)
