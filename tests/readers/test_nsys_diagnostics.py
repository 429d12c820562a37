"""What an Nsight Systems report says of itself: how many CUDA events it collected, and that some may be missing."""

from __future__ import annotations

import pytest

from tests.readers.helpers import only
from tests.readers.nsys_captures import read
from tests.readers.nsys_databases import call, kernel, one_step, pid, span
from tracker.profile import INCOMPLETE_SETTING
from tracker.results.recording import incomplete_of
from tracker.schema.series import LOST_CALLS, LOST_DEVICE
from tracker.timeline import build

NOT_ALL = "Not all CUDA events might have been collected."
EVENTS = 8
"""Of `one_step`: 4 calls, 2 kernels, a copy and a memset."""


def collected(count, process=7):
    return {
        "timestamp": 0,
        "severity": 1,
        "text": f"Number of CUDA events collected: \t{count}.",
        "globalPid": pid(process),
    }


def warned(process=7):
    return {"timestamp": 0, "severity": 2, "text": NOT_ALL, "globalPid": pid(process)}


def report(*events, **tables):
    return {**one_step(), "DIAGNOSTIC_EVENT": list(events), **tables}


def found_of(tmp_path, tables):
    """The quality of the one capture, and what is said of it."""
    profile = read(tmp_path, tables)
    capture = build(only(profile))
    said = [text for text in profile.warnings if "CUDA events" in text]
    return capture, said


def test_more_events_than_rows_make_the_capture_partial(tmp_path):
    capture, said = found_of(tmp_path, report(collected(12), warned()))
    assert capture.quality_reason == "the report collected 12 CUDA events, 8 are in the export"
    assert incomplete_of(capture.settings).forbids == (LOST_DEVICE, LOST_CALLS)
    assert said == [], "the sentence of the check says more"


def test_warning_of_a_count_that_agrees_is_a_note(tmp_path):
    capture, said = found_of(tmp_path, report(collected(EVENTS), warned()))
    assert (capture.quality, INCOMPLETE_SETTING in capture.settings) == ("ok", False)
    assert said == [
        "process 7: the report says that not all CUDA events might have been collected, and counts 8 events, which are "
        "in the export"
    ]


def test_count_that_agrees_is_not_mentioned(tmp_path):
    capture, said = found_of(tmp_path, report(collected(EVENTS)))
    assert (capture.quality, said) == ("ok", [])


def test_warning_without_a_count_is_a_note(tmp_path):
    capture, said = found_of(tmp_path, report(warned()))
    assert capture.quality == "ok"
    assert said == ["process 7: the report says that not all CUDA events might have been collected"]


@pytest.mark.parametrize(
    "event",
    [
        collected(EVENTS - 3),
        collected("many"),
        collected("1,000"),
        collected("9" * 30),
        collected(-5),
        {"text": "Number of CUDA events collected: 99.", "globalPid": None},
        {"text": "Number of CUDA events collected: 99.", "globalPid": "seven"},
        {"text": None, "globalPid": pid(7)},
        {"text": b"\xff", "globalPid": pid(7)},
        {"text": 12, "globalPid": pid(7)},
        {"text": "Number of CUDA events collected: 99."},
        {"message": "Number of CUDA events collected: 99.", "globalPid": pid(7)},
    ],
)
def test_count_that_says_nothing_of_a_loss_is_passed_over(tmp_path, event):
    capture, said = found_of(tmp_path, report(event))
    assert (capture.quality, said) == ("ok", [])


def test_largest_of_several_counts_was_collected(tmp_path):
    assert found_of(tmp_path, report(collected(5), collected(9)))[0].quality == "partial"


def test_graph_that_was_traced_as_a_whole_is_no_event(tmp_path):
    whole = {"deviceId": 0, "streamId": 7, "correlationId": 30, "globalPid": pid(7), "graphId": 4, "graphExecId": 5}
    graphs = [{"start": 600, "end": 610, **whole}]
    capture, _ = found_of(tmp_path, report(collected(EVENTS + 1), CUPTI_ACTIVITY_KIND_GRAPH_TRACE=graphs))
    assert capture.quality_reason == "the report collected 9 CUDA events, 8 are in the export"


def test_export_without_its_table_of_calls_is_not_counted(tmp_path):
    tables = report(collected(EVENTS))
    del tables["CUPTI_ACTIVITY_KIND_RUNTIME"]
    assert found_of(tmp_path, tables)[0].quality == "ok"


def test_each_process_is_counted_alone(tmp_path):
    """Process 8 has a call and a kernel on a device of its own, of the 4 events that it collected."""
    tables = report(collected(EVENTS), collected(4, process=8))
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"].append(call("cudaLaunchKernel_v7000", 150, 160, 12, process=8))
    tables["CUPTI_ACTIVITY_KIND_KERNEL"].append(kernel("ampere_sgemm_128x64_tn", 200, 260, 12, process=8, device=1))
    tables["NVTX_EVENTS"].append(span("iteration 17", 100, 400, process=8))
    first, second = (build(capture) for capture in read(tmp_path, tables).captures)
    assert first.quality == "ok"
    assert second.quality_reason == "the report collected 4 CUDA events, 2 are in the export"


def test_process_that_lost_all_its_events_is_named(tmp_path):
    _, said = found_of(tmp_path, report(collected(EVENTS), collected(40, process=9)))
    assert said == ["process 9: the report collected 40 CUDA events, 0 are in the export: it is left out"]


def test_rows_that_were_skipped_are_not_lost(tmp_path):
    tables = report(collected(EVENTS))
    tables["CUPTI_ACTIVITY_KIND_KERNEL"][1] |= {"end": 1}
    (capture,) = read(tmp_path, tables, skip_bad_rows=True).captures
    assert "collected" not in build(capture).quality_reason


def window(launches, served, *events):
    """So many launches without steps, each 100 ns, the first ones with a kernel."""
    rows = [call("cudaLaunchKernel_v7000", 100 * number, 100 * number + 9, number) for number in range(1, launches + 1)]
    tables = {**one_step(), "CUPTI_ACTIVITY_KIND_RUNTIME": rows, "DIAGNOSTIC_EVENT": list(events)}
    tables["CUPTI_ACTIVITY_KIND_KERNEL"] = [
        kernel(f"k{number}", 100 * number + 20, 100 * number + 80, number) for number in served
    ]
    for name in ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET", "NVTX_EVENTS"):
        tables.pop(name)
    return tables


def test_launches_behind_the_last_kernel_lie_behind_the_end(tmp_path):
    capture, _ = found_of(tmp_path, window(20, range(1, 13)))
    assert capture.quality_reason == (
        "8 of 20 launches lie behind that of the last kernel: the capture ended before their kernels did"
    )
    assert incomplete_of(capture.settings).forbids == ()


def test_launches_behind_the_end_of_a_count_above_the_rows_are_lost(tmp_path):
    capture, _ = found_of(tmp_path, window(20, range(1, 13), collected(40)))
    assert "the report collected 40 CUDA events, 32 are in the export" in capture.quality_reason
    assert incomplete_of(capture.settings).forbids == (LOST_DEVICE, LOST_CALLS)


def test_launch_in_the_middle_without_a_kernel_is_lost(tmp_path):
    capture, _ = found_of(tmp_path, window(20, [*range(1, 5), *range(8, 13)]))
    assert capture.quality_reason.startswith("11 of 20 launches have no kernel: the profiler lost them")
    assert incomplete_of(capture.settings).forbids == (LOST_DEVICE,)
