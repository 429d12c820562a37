"""Who ran, the analysis beside a database, its steps, and which rows are which capture."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from blake3 import blake3

from tests.readers import ascend_databases as made
from tests.readers.ascend_databases import START, changed, span, task, write, write_capture
from tests.readers.helpers import only, texts
from tracker import timeline
from tracker.errors import SourceError
from tracker.profile import MISSING
from tracker.readers import ascend_db
from tracker.readers._source import ReadOptions


def test_who_ran_is_read_and_secrets_are_not(tmp_path):
    capture = only(ascend_db.read(write_capture(tmp_path / "host_1_20250109073443012_ascend_pt")))
    assert (capture.rank, capture.host, capture.device_ordinal) == (4, "node-7", 0)
    assert (capture.device.vendor, capture.device.model) == ("Huawei", "Ascend910B")
    assert (capture.started_at_ns, capture.ended_at_ns) == (START, START + 1000)
    assert capture.settings == {"profiler_level": "Level1"}
    assert capture.facts == {"cann_version": "8.0.RC1", "HCCL_ALGO": "ring", "process_groups": "dp 2"}
    assert capture.parallel == {"dp": 0}
    assert "secret" not in repr(capture.facts)


def test_each_file_is_a_source_known_by_its_content_and_by_its_database(tmp_path):
    folder = write_capture(tmp_path / "rank4_ascend_pt")
    sources = only(ascend_db.read(folder)).sources
    names = ["ascend_pytorch_profiler_4.db", "analysis.db", "profiler_info_4.json"]
    assert [Path(source.path).name for source in sources] == names
    contents = [Path(source.path).read_bytes() for source in sources]
    main, *beside = (blake3(content).digest(length=16) for content in contents)
    # two captures can have equal files beside their databases
    bound = [blake3(digest + main).digest(length=16) for digest in beside]
    assert [source.bytes for source in sources] == [len(content) for content in contents]
    assert [source.digest for source in sources] == [main, *bound]


def test_analysis_tells_where_the_time_of_a_collective_went(tmp_path):
    events = only(ascend_db.read(write_capture(tmp_path / "rank4_ascend_pt"))).events
    times = events.extras.collective_times
    columns = (times.collective, times.transit_ns, times.wait_ns, times.synchronization_ns, times.idle_ns)
    assert [column.tolist() for column in columns] == [[0], [40], [60], [50], [20]]


def test_analysis_tells_packets_per_size_and_the_whole_and_who_sent_to_whom(tmp_path):
    events = only(ascend_db.read(write_capture(tmp_path / "rank4_ascend_pt"))).events
    links = events.extras.collective_links
    columns = (links.source, links.target, links.packet_bytes, links.packets, links.bytes, links.transit_ns)
    # ranks 0 and 1 of the group are 4 and 6 of the job
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == [
        (-1, -1, -1, 5, 200, 40),
        (-1, -1, 50, 3, 150, 30),
        (-1, -1, 20, 2, 40, 10),
        (4, 6, -1, MISSING, 200, 40),
    ]
    assert set(texts(events, links.transport)) == {"HCCS"}
    assert links.large_packet_ratio[0] == 0.5


def test_analysis_tells_the_profilers_own_breakdown_of_a_step(tmp_path):
    events = only(ascend_db.read(write_capture(tmp_path / "rank4_ascend_pt"))).events
    steps, counters = events.extras.step_times, events.extras.counters
    # an old export wrote the time of day for the preparing time
    assert (steps.step.tolist(), steps.bubble_ns.tolist(), steps.preparing_ns.tolist()) == ([3], [2], [MISSING])
    mine = counters.step == 3
    assert set(texts(events, counters.source[mine])) == {"step_trace_time"}
    assert texts(events, counters.attribute[mine]) == ["Computing", "Bubble", "Preparing"]


def test_steps_come_from_their_table_where_the_host_says_nothing(database):
    rows = [{"id": 8, "startNs": START + 5, "endNs": START + 905}]
    events = only(database(changed(PYTORCH_API=None, STEP_TIME=rows))).events
    assert (events.markers.step.tolist(), span(events.markers)) == ([8], (5, 905))


def test_tables_beyond_task_and_texts_may_be_missing(database):
    events = only(database({"TASK": made.tables()["TASK"]}, "msprof_20250109073443.db")).events
    assert texts(events, events.device.name) == ["KERNEL_AICORE", "MEMCPY_ASYNC"]
    assert len(events.ops) == len(events.launches) == len(events.collectives) == 0


def test_tables_and_views_of_other_programs_do_no_harm(tmp_path):
    path = write(tmp_path / "ascend_pytorch_profiler.db", made.tables())
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE Insight_cache (startNs, blob)")
        db.execute("CREATE VIEW everything AS SELECT * FROM no_such_table")
        db.commit()
    assert len(only(ascend_db.read(path)).events.device) == 3


def test_two_devices_in_one_database_are_two_captures(database):
    tasks = [*made.tables()["TASK"], task(30, "KERNEL_AIVEC", 505, 515, deviceId=1)]
    kernels = [*made.tables()["COMPUTE_TASK_INFO"], made.kernel(30, "Add_1")]
    ranks = [{"rankId": 4, "deviceId": 0}, {"rankId": 5, "deviceId": 1}]
    first, second = database(changed(TASK=tasks, COMPUTE_TASK_INFO=kernels, RANK_DEVICE_MAP=ranks)).captures
    assert (first.rank, first.device_ordinal, len(first.events.device)) == (4, 0, 3)
    assert (second.rank, second.device_ordinal) == (5, 1)
    assert texts(second.events, second.events.device.name) == ["Add_1"]
    assert (first.events.host_is_primary, second.events.host_is_primary) == (True, False)
    assert len(second.events.allocations) == 0


def test_two_databases_in_a_folder_are_two_captures_of_their_ranks(tmp_path):
    folder = write_capture(tmp_path / "both_ascend_pt")
    other = changed(RANK_DEVICE_MAP=None)
    write(folder / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_5.db", other)
    captures = ascend_db.read(folder).captures
    assert [capture.rank for capture in captures] == [4, 5]
    # analysis.db does not say whose it is
    assert [len(capture.events.extras.collective_times) for capture in captures] == [0, 0]


def test_events_of_two_processes_stay_apart(database):
    other = 8 << 32 | 80
    rows = [*made.tables()["PYTORCH_API"], made.api(made.OP, "aten::add", 10, 20, other)]
    tasks = [*made.tables()["TASK"], task(31, "MEMCPY_ASYNC", 900, 910, globalPid=8)]
    events = only(database(changed(PYTORCH_API=rows, TASK=tasks))).events
    processes = dict(zip(events.threads, events.thread_process, strict=True))
    assert processes["thread 70"] != processes["thread 80"]
    assert events.device.process.tolist() == [processes["thread 70"]] * 3 + [processes["thread 80"]]


def test_order_of_rows_in_the_database_does_not_matter(database):
    content = made.tables()
    one = only(database(content)).events
    turned = only(database({name: rows[::-1] for name, rows in content.items()}, "ascend_pytorch_profiler_9.db")).events
    for events in (one, turned):
        assert sorted(texts(events, events.device.name)) == ["MEMCPY_ASYNC", "MatMulV2_1", "hcom_allReduce__097_0_1"]
    assert sorted(one.launches.correlation.tolist()) == sorted(turned.launches.correlation.tolist())
    assert np.sort(one.ops.start_ns).tolist() == np.sort(turned.ops.start_ns).tolist()


def test_a_task_that_ends_before_it_starts_is_an_error_or_left_out_and_counted(tmp_path):
    tables = made.tables()
    good = only(ascend_db.read(write_capture(tmp_path / "good", tables)))
    tables["TASK"].insert(1, task(99, "AI_CORE", 500, 400))
    path = write_capture(tmp_path / "bad", tables)
    with pytest.raises(SourceError, match="table TASK, row 2: starts at"):
        ascend_db.read(path)
    profile = ascend_db.read(path, ReadOptions(skip_bad_rows=True))
    assert "1 rows of TASK with impossible times were left out" in profile.warnings
    assert only(profile).events.device.start_ns.tolist() == good.events.device.start_ns.tolist()


@pytest.mark.parametrize("name", ["AivKernel", "allreduceAicpuKernel"])
def test_kernel_of_hccl_beside_its_collective_adds_nothing(database, name):
    """A kernel on a stream of its own, at the time of the collective (700 to 820 ns), and the copy that it made."""
    content = made.tables()
    content["TASK"] += [made.task(30, "KERNEL_AIVEC", 700, 820, 503, streamId=9),
                        made.task(31, "SDMA", 710, 720, streamId=9)]  # fmt: skip
    content["COMPUTE_TASK_INFO"].append(made.kernel(30, name, taskType=made.T("AI_VECTOR_CORE"), opType=made.T(name)))
    plain, own = (timeline.rows_of(only(found).events) for found in (database(), database(content, "b.db")))
    assert (own.overall, own.steps) == (plain.overall, plain.steps)
    assert own.overall.compute_ns == 100


def test_tasks_without_work_are_no_device_data(database):
    """Of the device there is a wait alone: no compute, and no idle time."""
    content = made.changed(TASK=[made.task(12, "EVENT_WAIT", 650, 690)], COMPUTE_TASK_INFO=None, COMMUNICATION_OP=None)
    capture = timeline.build(only(database(content)))
    assert capture.rows is not None
    assert capture.quality_reason.startswith("no device data: ")
    assert (capture.rows.overall.compute_ns, capture.rows.overall.idle_ns) == (None, None)
