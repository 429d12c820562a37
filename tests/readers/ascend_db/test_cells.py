"""A cell that is not what it should be: missing where the profiler may leave it out, else an error that says where."""

from __future__ import annotations

import numpy as np
import pytest

from tests.readers import ascend_databases as made
from tests.readers.ascend_databases import START, T, api, cann, changed, write, write_capture
from tests.readers.helpers import only
from tracker.errors import SourceError
from tracker.profile import MISSING
from tracker.readers import ReadOptions, ascend_db


def with_analysis(tmp_path, table, row=0, **cells):
    """The small capture with some cells of analysis.db replaced, read."""
    content = made.analysis_tables()
    content[table][row] |= cells
    folder = write_capture(tmp_path / "capture")
    path = folder / "ASCEND_PROFILER_OUTPUT" / "analysis.db"
    path.unlink()
    write(path, content)
    return only(ascend_db.read(folder)).events


@pytest.mark.parametrize("rank", [None, -1, "N/A"])
def test_a_device_without_a_rank_has_that_of_the_name_of_the_file(tmp_path, rank):
    content = changed(RANK_DEVICE_MAP=[{"rankId": rank, "deviceId": 0}])
    path = write(tmp_path / "ascend_pytorch_profiler_6.db", content)
    assert only(ascend_db.read(path)).rank == 6


def test_a_rank_that_is_a_word_is_an_error(database):
    with pytest.raises(
        SourceError, match=r"profiler_4.db: table RANK_DEVICE_MAP: rankId is 'four', expected a number; "
    ):
        database(changed(RANK_DEVICE_MAP=[{"rankId": "four", "deviceId": 0}]))


@pytest.mark.parametrize("nothing", [None, "", "N/A"])
def test_a_time_of_a_step_that_is_not_said_is_missing_and_no_zero(tmp_path, nothing):
    events = with_analysis(tmp_path, "StepTraceTime", computing=nothing)
    steps, counters = events.extras.step_times, events.extras.counters
    assert (steps.compute_ns.tolist(), steps.bubble_ns.tolist()) == ([MISSING], [2])
    names = [events.strings[code] for code in counters.attribute.tolist()]
    assert "Bubble" in names and "Computing" not in names


@pytest.mark.parametrize("nothing", [None, "", "N/A"])
def test_a_time_of_a_collective_that_is_not_said_is_missing(tmp_path, nothing):
    times = with_analysis(tmp_path, "CommAnalyzerTime", wait_time=nothing).extras.collective_times
    assert (times.wait_ns.tolist(), times.transit_ns.tolist()) == ([MISSING], [40])


def test_a_ratio_of_packets_that_is_not_said_is_missing(tmp_path):
    links = with_analysis(tmp_path, "CommAnalyzerBandwidth", large_packet_ratio="N/A").extras.collective_links
    assert np.isnan(links.large_packet_ratio[0])
    assert links.bytes[0] == 200


@pytest.mark.parametrize(
    ("table", "cells", "said"),
    [
        ("StepTraceTime", {"computing": "much"}, "table StepTraceTime: computing is 'much', expected a number"),
        (
            "CommAnalyzerTime",
            {"start_timestamp": "now"},
            "table CommAnalyzerTime: start_timestamp is 'now', expected a",
        ),
        ("CommAnalyzerTime", {"wait_time": 1e18}, r"CommAnalyzerTime: wait_time is 1e\+18, beyond the range of times"),
        (
            "CommAnalyzerBandwidth",
            {"count": b"\xff"},
            r"table CommAnalyzerBandwidth: count is b'\\xff', expected a num",
        ),
        (
            "CommAnalyzerBandwidth",
            {"count": 1e15, "package_size": 1.0},
            "packets of 1000000 bytes are beyond the range",
        ),
    ],
)
def test_what_is_no_number_of_the_analysis_is_an_error(tmp_path, table, cells, said):
    with pytest.raises(SourceError, match=f"analysis.db: .*{said}.*; .*export the profile again"):
        with_analysis(tmp_path, table, **cells)


def test_a_link_of_the_matrix_without_its_ranks_is_an_error(tmp_path):
    content = made.analysis_tables()
    content["CommAnalyzerMatrix"][1] |= {"src_rank": None}
    folder = write_capture(tmp_path / "capture", changed(COMMUNICATION_TASK_INFO=None))
    path = folder / "ASCEND_PROFILER_OUTPUT" / "analysis.db"
    path.unlink()
    write(path, content)
    with pytest.raises(SourceError, match="table CommAnalyzerMatrix: a link without its ranks"):
        ascend_db.read(folder)


def collective(start, end):
    (row,) = made.tables()["COMMUNICATION_OP"]
    return {**row, "startNs": None if start is None else START + start, "endNs": START + end}


@pytest.mark.parametrize(
    ("table", "bad", "said"),
    [
        ("COMMUNICATION_OP", collective(820, 700), f"starts at {START + 820} and ends at {START + 700}"),
        ("COMMUNICATION_OP", collective(None, 700), f"has no start and ends at {START + 700}"),
        ("COMMUNICATION_OP", collective(-(2**59), 700), f"ends at {START + 700}"),
        ("CANN_API", cann(made.LAYER_NODE, "launch", 160, 150, 501), f"starts at {START + 160}"),
        ("PYTORCH_API", api(made.OP, "aten::mm", 200, 100), f"starts at {START + 200}"),
    ],
)
def test_a_span_that_cannot_be_is_an_error_or_left_out_and_counted(tmp_path, table, bad, said):
    content = made.tables()
    good = only(ascend_db.read(write(tmp_path / "good.db", content)))
    content[table].append(bad)
    path = write(tmp_path / "ascend_pytorch_profiler_4.db", content)
    with pytest.raises(SourceError, match=f"table {table}, row {len(content[table])}: .*{said}.* --skip-bad-rows"):
        ascend_db.read(path)
    profile = ascend_db.read(path, ReadOptions(skip_bad_rows=True))
    assert f"1 rows of {table} with impossible times were left out" in profile.warnings
    assert only(profile).events.device.start_ns.tolist() == good.events.device.start_ns.tolist()
    assert only(profile).events.ops.start_ns.tolist() == good.events.ops.start_ns.tolist()


def test_a_task_without_a_device_is_an_error(database):
    content = made.tables()
    content["TASK"][0] |= {"deviceId": None}
    with pytest.raises(SourceError, match="table TASK: a row has no deviceId"):
        database(content)


def test_memory_beyond_all_sizes_is_an_error(database):
    content = changed(OP_MEMORY=[made.memory("aten::mm", 10**18, 120, 230, stream=1)])
    with pytest.raises(SourceError, match=r"table OP_MEMORY, row 1: size is 1000000000000000000, beyond the range"):
        database(content)


def test_a_text_that_is_a_number_or_bytes_is_a_text(tmp_path):
    content = changed(HOST_INFO=[{"hostUid": "1", "hostName": 7}], NPU_INFO=[{"id": 0, "name": 910}])
    content["TASK"][1] |= {"taskType": T("KERNEL_AICORE")}
    capture = only(ascend_db.read(write(tmp_path / "ascend_pytorch_profiler_4.db", content)))
    assert (capture.host, capture.device.model) == ("7", "910")
