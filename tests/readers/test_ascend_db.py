"""The reader of Ascend databases, on databases small enough to check in the head."""

from __future__ import annotations

import gzip
import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.readers import ascend_databases as made
from tests.readers.ascend_databases import ACL, MAIN, START, T, changed, task, write, write_capture
from tracker import timeline
from tracker.errors import SourceError
from tracker.profile import MISSING, DeviceKind, LaunchLevel
from tracker.readers import ascend_db
from tracker.readers._source import ReadOptions, read_head
from tracker.timeline.links import launches_of

FIXTURE = Path(__file__).parents[1] / "data" / "ascend_db" / "rank4_ascend_pt"


@pytest.fixture
def database(tmp_path):
    """Writes tables to a database of its own and reads it."""

    def read(content=None, name="ascend_pytorch_profiler_4.db"):
        return ascend_db.read(write(tmp_path / name, made.tables() if content is None else content))

    return read


def only(profile):
    (capture,) = profile.captures
    return capture


def texts(events, codes):
    return [events.strings[code] for code in codes.tolist()]


def span(table, row=0):
    return int(table.start_ns[row]) - START, int(table.end_ns[row]) - START


def test_kernel_collective_and_copy_are_the_work_of_the_device(database):
    device = (events := only(database()).events).device
    assert texts(events, device.name) == ["MatMulV2_1", "hcom_allReduce__097_0_1", "MEMCPY_ASYNC"]
    assert device.kind.tolist() == [DeviceKind.KERNEL, DeviceKind.COMMUNICATION, DeviceKind.COPY]
    assert [span(device, row) for row in range(3)] == [(500, 600), (700, 820), (620, 650)]
    assert device.stream.tolist() == [2, 6, 2]
    assert device.bytes.tolist() == [MISSING, 200, 4096]


def test_kernel_says_type_core_shapes_types_formats_and_blocks(database):
    events = only(database()).events
    device = events.device
    columns = (device.type, device.core_type, device.input_shapes, device.input_types, device.input_formats)
    said = [events.strings[int(column[0])] for column in columns]
    assert said == ["MatMulV2", "AI_CORE", "[[8,96],[96,4]]", "bfloat16,float32", "ND,ND"]
    assert events.extras.block_num.tolist() == [24, MISSING, MISSING]
    assert device.wait_ns.tolist() == [MISSING] * 3


def test_direction_of_a_copy_is_its_type(database):
    events = only(database()).events
    assert events.strings[int(events.device.type[2])] == "host to device"


def test_newer_spelling_of_the_block_count_and_the_wait_are_read(database):
    row = made.kernel(10, "MatMulV2_1", waitNs=7) | {"blockNum": 20}
    del row["blockDim"]
    events = only(database(changed(COMPUTE_TASK_INFO=[row]))).events
    assert events.extras.block_num[0] == 20
    assert events.device.wait_ns[0] == 7


def test_host_ops_frames_annotations_and_steps(database):
    events = only(database()).events
    ops = events.ops
    assert texts(events, ops.name) == ["aten::mm", "MmBackward0", "aten::copy_", "forward"]
    assert ops.is_annotation.tolist() == [0, 0, 0, 1]
    assert ops.is_backward.tolist() == [0, 1, 0, 0]
    assert ops.sequence.tolist() == [9, 9, -1, -1]
    assert span(ops) == (100, 200)
    assert texts(events, ops.input_shapes)[0] == "[[8,96],[96,4],[]]"
    assert texts(events, ops.input_types)[0] == "float,float,Scalar"
    assert texts(events, ops.call_stack)[0] == "train.py(3): step;train.py(9): main"
    assert texts(events, events.frames.name) == ["Linear_0", "train.py(3): step"]
    assert events.frames.is_module.tolist() == [1, 0]
    assert events.markers.step.tolist() == [3]
    assert span(events.markers) == (0, 1000)


def test_shapes_and_types_in_each_others_column_are_put_right(database):
    content = made.tables()
    row = next(row for row in content["PYTORCH_API"] if row["name"] == "aten::mm")
    row["inputShapes"], row["inputDtypes"] = row["inputDtypes"], row["inputShapes"]
    events = only(database(content)).events
    assert texts(events, events.ops.input_shapes)[0] == "[[8,96],[96,4],[]]"
    assert texts(events, events.ops.input_types)[0] == "float,float,Scalar"


def test_an_empty_shape_is_one_input_without_dimensions(database):
    rows = [made.api(made.OP, "aten::item", 1, 2, inputShapes=shape, inputDtypes=T("float")) for shape in (T(""), None)]
    rows.append(made.api(made.OP, "unrecorded", 1, 2))
    events = only(database(changed(PYTORCH_API=rows))).events
    assert texts(events, events.ops.input_shapes) == ["[[]]", "[[]]", ""]


def test_kernel_is_linked_to_its_op_and_copy_through_the_queue(database):
    events = only(database()).events
    launch = launches_of(events)
    launches = events.launches
    assert launches.level[launch].tolist() == [LaunchLevel.FLOW, LaunchLevel.ACL, LaunchLevel.FLOW]
    starts = (launches.start_ns[launch] - START).tolist()
    # the kernel from its op, the collective from its own call, the copy from the call that enqueued it
    assert starts == [100, 450, 310]
    assert events.threads == ("thread 70", "thread 71")
    assert launches.thread[launch].tolist() == [0, 1, 0]


def test_calls_of_cann_keep_name_and_level(database):
    events = only(database()).events
    calls = events.launches.level != LaunchLevel.FLOW
    queue = ["Enqueue", "Dequeue@acl_memcpy"]
    assert texts(events, events.launches.name[calls]) == ["launch", "aclrtMemcpyAsync", "hcom_allReduce_", *queue]
    levels = [LaunchLevel.NODE, LaunchLevel.ACL, LaunchLevel.ACL, LaunchLevel.QUEUE, LaunchLevel.QUEUE]
    assert events.launches.level[calls].tolist() == levels


def test_calls_at_an_unknown_level_are_left_out_and_said(database):
    words = made.tables()["ENUM_API_TYPE"] + made.words({8: "driver_v2"})
    rows = [*made.tables()["CANN_API"], made.cann(8, "odd", 1, 2, 77)]
    profile = database(changed(ENUM_API_TYPE=words, CANN_API=rows))
    assert profile.warnings == ("1 calls of CANN at an unknown level (driver_v2) were left out",)
    assert "odd" not in texts(only(profile).events, only(profile).events.launches.name)


def test_collective_knows_kind_group_type_and_bytes(database):
    events = only(database()).events
    calls = events.collectives
    words = [events.strings[int(c[0])] for c in (calls.kind, calls.group, calls.group_role, calls.data_type)]
    assert words == ["all_reduce", "group_name_5", "dp", "float16"]
    assert (calls.group_size.tolist(), calls.bytes.tolist()) == ([2], [200])
    assert events.device.collective.tolist() == [-1, 0, -1]


def test_tasks_of_a_collective_are_no_copies_but_its_tasks(database):
    events = only(database()).events
    tasks = events.extras.collective_tasks
    assert texts(events, tasks.name) == ["Notify_Wait", "Memcpy"]
    assert [span(tasks, row) for row in range(2)] == [(700, 760), (760, 800)]
    assert texts(events, events.device.name).count("SDMA") == 0


def test_unlaunched_copy_inside_a_collective_on_a_stream_of_its_own_belongs_to_it(database):
    copies = [
        task(20, "MEMCPY_ASYNC", 710, 720, streamId=9),  # of the collective
        task(21, "MEMCPY_ASYNC", 710, 720),  # on the stream of the kernel
        task(22, "MEMCPY_ASYNC", 815, 830, streamId=9),  # ends behind the collective
    ]
    events = only(database(changed(TASK=made.tables()["TASK"] + copies))).events
    kept = events.device.kind == DeviceKind.COPY
    assert (events.device.start_ns[kept] - START).tolist() == [620, 710, 815]


def test_measurements_have_the_names_and_units_of_the_text_export(database):
    events = only(database()).events
    metrics = events.extras.kernel_metrics
    assert metrics.event.tolist() == [0, 0, 0]
    found = dict(zip(texts(events, metrics.metric), metrics.value.tolist(), strict=True))
    assert found == {"aic_mac_time(us)": 0.0625, "aicore_time(us)": 0.09, "aic_mac_ratio": 0.625}


def test_memory_rows_become_pairs_on_the_thread_that_allocated(database):
    events = only(database()).events
    memory = events.allocations
    assert (memory.time_ns - START).tolist() == [120, 150, 230]
    assert memory.bytes.tolist() == [512, 64, -512]
    assert memory.address.tolist() == [0, 1, 0]
    assert texts(events, memory.component) == ["PTA", "GE", "PTA"]
    assert [events.threads[thread] for thread in memory.thread.tolist()] == ["thread 70", "thread 71", "thread 70"]
    assert memory.total_allocated_bytes.tolist() == [512, 64, 0]
    points = events.extras.memory_points
    assert (texts(events, points.component), points.reserved_bytes.tolist()) == (["PTA"], [2048])


def test_memory_of_a_dequeued_task_belongs_to_the_op_that_enqueued_it(database):
    rows = [made.memory("MatMulV2_1", 64, 420, 500, stream=None)]
    threads = [{"timestampNs": START + 420, "globalTid": ACL}]
    events = only(database(changed(OP_MEMORY=rows, NPU_OP_MEM=threads))).events
    memory = events.allocations
    assert (memory.time_ns - START).tolist() == [310, 500]
    assert events.threads[int(memory.thread[0])] == "thread 70"


def test_tasks_tell_what_moved_from_rank_to_rank(database):
    rows = [
        row | {"size": size, "srcRank": 0, "dstRank": target, "linkType": 6 if target == 1 else 7}
        for row, size, target in zip(made.tables()["COMMUNICATION_TASK_INFO"], (50, 30), (1, made.NONE), strict=True)
    ]
    content = changed(COMMUNICATION_TASK_INFO=rows, ENUM_HCCL_LINK_TYPE=made.words({6: "HCCS", 7: "ON_CHIP"}))
    events = only(database(content)).events
    links = events.extras.collective_links
    columns = (texts(events, links.transport), links.source.tolist(), links.target.tolist(), links.bytes.tolist())
    # ranks 0 and 1 of the group are 4 and 6 of the job; what stays on the chip is local
    assert sorted(zip(*columns, links.transit_ns.tolist(), strict=True)) == [
        ("HCCS", 4, 6, 50, 60),
        ("LOCAL", 4, 4, 30, 40),
    ]


def test_row_of_negative_size_is_a_release_alone(database):
    events = only(database(changed(OP_MEMORY=[made.memory("aten::mm", -512, 120, 230, stream=1)]))).events
    assert events.allocations.bytes.tolist() == [-512]


def test_other_tables_become_counters(database):
    events = only(database()).events
    counters = events.extras.counters
    columns = (counters.source, counters.name, counters.attribute)
    rows = list(zip(*(texts(events, column) for column in columns), counters.value.tolist(), strict=True))
    assert rows == [
        ("npu_module_mem", "HCCL", "Total Reserved(MB)", 3.0),
        ("ai_core_freq", "AI Core Freq", "MHz", 1800.0),
    ]


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
    main, *beside = (hashlib.blake2b(content, digest_size=16).digest() for content in contents)
    # two captures can have equal files beside their databases
    bound = [hashlib.blake2b(digest + main, digest_size=16).digest() for digest in beside]
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


def test_database_is_read_without_a_trace_of_the_reading(tmp_path):
    folder = write_capture(tmp_path / "rank4_ascend_pt")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    folder.chmod(0o500)
    try:
        ascend_db.read(folder)
    finally:
        folder.chmod(0o700)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_journal_of_another_program_is_said_not_read(tmp_path):
    path = write(tmp_path / "ascend_pytorch_profiler_4.db", made.tables())
    path.with_name(f"{path.name}-wal").write_bytes(b"x" * 64)
    assert "which were not read" in ascend_db.read(path).warnings[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (changed(TASK=None), r"profiler_4\.db: table TASK: is missing; export the profile again"),
        (changed(ENUM_API_TYPE=None), r"table ENUM_API_TYPE: does not say what type 1 of PYTORCH_API is"),
        ({"STRING_IDS": [{"id": 1, "value": "a"}], "TASK": []}, r"table TASK: has no column startNs; it has globalT"),
        (changed(TASK=[task(1, "KERNEL_AICORE", 0, 1) | {"startNs": "soon"}]), r"table TASK: startNs is 'soon', exp"),
    ],
    ids=["no_tasks", "no_words", "no_column", "no_number"],
)
def test_database_that_is_no_profile_names_the_table(database, content, message):
    with pytest.raises(SourceError, match=message):
        database(content)


def test_database_without_texts_is_an_error(tmp_path):
    path = write(tmp_path / "ascend_pytorch_profiler_4.db", {"TASK": [{"startNs": 1}]})
    with pytest.raises(SourceError, match="table STRING_IDS: is missing"):
        ascend_db.read(path)


def test_truncated_database_is_an_error(tmp_path):
    path = write(tmp_path / "ascend_pytorch_profiler_4.db", made.tables())
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert ascend_db.sniff(path, read_head(path))
    with pytest.raises(SourceError, match=r"the database ends early: \d+ bytes of \d+; copy the file again"):
        ascend_db.read(path)


def test_damaged_page_is_an_error_that_names_a_table(tmp_path):
    path = write(tmp_path / "ascend_pytorch_profiler_4.db", made.tables())
    content = bytearray(path.read_bytes())
    content[1024:] = b"\x77" * (len(content) - 1024)
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"ascend_pytorch_profiler_4\.db: table \w+: .*copy the file again"):
        ascend_db.read(path)


@pytest.mark.parametrize(("content", "problem"), [(b"", "the file is empty"), (b"PK..", "is no SQLite database")])
def test_file_of_the_name_that_is_no_database_is_claimed_and_refused(tmp_path, content, problem):
    path = tmp_path / "ascend_pytorch_profiler_0.db"
    path.write_bytes(content)
    assert ascend_db.sniff(path, content)
    with pytest.raises(SourceError, match=problem):
        ascend_db.read(path)


def test_file_beyond_the_limit_is_refused(tmp_path):
    path = write(tmp_path / "ascend_pytorch_profiler_4.db", made.tables())
    with pytest.raises(SourceError, match="larger than the limit of 100 bytes"):
        ascend_db.read(path, ReadOptions(max_bytes=100))


def test_databases_are_told_by_name_or_tables(tmp_path):
    renamed = write(tmp_path / "mine.db", made.tables())
    other = write(tmp_path / "other.db", {"users": [{"id": 1}]})
    analysis = write(tmp_path / "analysis.db", made.analysis_tables())
    claims = [ascend_db.sniff(path, read_head(path)) for path in (renamed, other, analysis)]
    assert claims == [True, False, False]


def test_folder_is_claimed_unless_its_kernels_are_there_as_text(tmp_path):
    folder = write_capture(tmp_path / "rank4_ascend_pt")
    assert ascend_db.sniff(folder, b"")
    assert ascend_db.sniff(folder / "ASCEND_PROFILER_OUTPUT", b"")
    assert not ascend_db.sniff(tmp_path, b"")
    (folder / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").write_text("Name")
    assert not ascend_db.sniff(folder, b"")


def test_raw_folder_of_msprof_is_claimed_only_without_its_own_text(tmp_path):
    folder = tmp_path / "PROF_000001_20250109073443_ABC"
    write(folder / "msprof_20250109073443.db", made.tables())
    assert ascend_db.sniff(folder, b"")
    (folder / "mindstudio_profiler_output").mkdir()
    assert ascend_db.sniff(folder, b"")
    (folder / "mindstudio_profiler_output" / "op_summary_20250109073443.csv").touch()
    assert not ascend_db.sniff(folder, b"")


def test_database_alone_finds_what_stands_beside_it(tmp_path):
    folder = write_capture(tmp_path / "rank4_ascend_pt")
    capture = only(ascend_db.read(folder / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_4.db"))
    assert capture.settings == {"profiler_level": "Level1"}
    assert len(capture.events.extras.collective_times) == 1


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


def test_mstx_ranges_of_their_own_table_are_annotations(database):
    rows = [row for row in made.tables()["PYTORCH_API"] if row["type"] != made.MSTX]
    event = {"startNs": START + 60, "endNs": START + 160, "eventType": 21, "message": T("loss"), "globalTid": MAIN}
    mark = event | {"eventType": 22, "endNs": START + 60}
    crossing = event | {"endGlobalTid": ACL}
    enum = made.words({21: "start/end", 22: "marker"})
    rows_of = [event | {"endGlobalTid": MAIN}, mark | {"endGlobalTid": MAIN}, crossing]
    events = only(database(changed(PYTORCH_API=rows, MSTX_EVENTS=rows_of, ENUM_MSTX_EVENT_TYPE=enum))).events
    notes = events.ops.is_annotation == 1
    assert texts(events, events.ops.name[notes]) == ["loss"]


def test_committed_fixture_is_what_the_code_makes(tmp_path):
    def dump(folder):
        found = {}
        for path in sorted(folder.rglob("*.db")):
            with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
                found[path.name] = list(db.iterdump())
        return found

    assert dump(FIXTURE) == dump(write_capture(tmp_path / "rank4_ascend_pt"))


@pytest.mark.parametrize("content", [b'{"rank_id": ', b"[4]"])
def test_a_damaged_file_beside_the_database_is_an_error_that_names_it(tmp_path, content):
    path = write_capture(tmp_path)
    info = next(path.rglob("profiler_info*.json"))
    info.write_bytes(content)
    with pytest.raises(SourceError, match=r"profiler_info_4\.json: malformed JSON"):
        ascend_db.read(path)


def test_a_file_beside_the_database_may_be_compressed_and_no_larger_than_the_limit_then(tmp_path):
    path = write_capture(tmp_path)
    info = next(path.rglob("profiler_info*.json"))
    info.write_bytes(gzip.compress(info.read_bytes()))
    assert only(ascend_db.read(path)).rank == 4
    info.write_bytes(gzip.compress(b'{"rank_id": 4}' + b" " * 1_000_000))
    with pytest.raises(SourceError, match=r"profiler_info_4\.json: .* larger than the limit"):
        ascend_db.read(path, ReadOptions(max_bytes=900_000))


# -- tables that are missing


def breakdown(capture):
    return timeline.rows_of(capture.events).overall


def test_without_compute_task_info_tasks_of_kernel_types_stand_in(database):
    whole, part = only(database()), only(read := database(changed(COMPUTE_TASK_INFO=None), "b.db"))
    assert texts(part.events, part.events.device.name)[:1] == ["KERNEL_AICORE"]
    assert breakdown(part) == breakdown(whole)
    assert (part.quality, "no COMPUTE_TASK_INFO" in part.quality_reason) == ("partial", True)
    assert any(text.startswith("no COMPUTE_TASK_INFO: the kernels are those of TASK") for text in read.warnings)


def test_of_a_kernel_of_several_parts_the_parts_stand_in(database):
    place = {"streamId": 2, "taskId": 7}
    tasks = [
        task(20, "AI_CORE", 100, 150, 601, **place, contextId=made.NONE),
        task(21, "MIX_AIV", 105, 140, 601, **place, contextId=0),
        task(22, "STARS_COMMON", 200, 210, 602, taskId=8, contextId=made.NONE),
        task(23, "EVENT_WAIT", 300, 310, 603, taskId=9, contextId=made.NONE),
    ]
    capture = only(database(changed(TASK=tasks, COMPUTE_TASK_INFO=None, COMMUNICATION_OP=None)))
    device = capture.events.device
    assert texts(capture.events, device.name) == ["MIX_AIV", "STARS_COMMON"]
    assert [span(device, row) for row in range(2)] == [(105, 140), (200, 210)]


def test_without_communication_op_the_tasks_of_a_collective_are_its_call(database):
    hccl = [{**row, "groupName": T("group_name_5"), "dataType": 77} for row in made.tables()["COMMUNICATION_TASK_INFO"]]
    capture = only(read := database(changed(COMMUNICATION_OP=None, COMMUNICATION_TASK_INFO=hccl)))
    events = capture.events
    (row,) = np.flatnonzero(events.device.kind == DeviceKind.COMMUNICATION).tolist()
    assert texts(events, events.device.name)[row] == "hcom_allReduce__097_0_1"
    # from the start of Notify Wait to the end of SDMA
    assert span(events.device, row) == (700, 800)
    assert texts(events, events.collectives.kind) == ["all_reduce"]
    assert texts(events, events.collectives.group_role) == ["dp"]
    assert events.collectives.bytes.tolist() == [MISSING]
    assert (capture.quality, breakdown(capture).communication_ns) == ("partial", 100)
    assert any(text.startswith("no COMMUNICATION_OP: the collectives are those of") for text in read.warnings)


def test_collectives_of_which_nothing_is_left_are_unknown_and_not_zero(database):
    capture = only(database(changed(COMMUNICATION_OP=None, COMMUNICATION_TASK_INFO=None)))
    found = breakdown(capture)
    assert (found.communication_ns, found.exposed_communication_ns, found.free_ns, found.e2e_ns) == (None,) * 4
    # the SDMA task on the stream of Notify Wait is no copy
    assert (found.compute_ns, found.copy_ns) == (100, 30)
    assert (capture.quality, capture.quality_reason.partition(":")[0]) == (
        "partial", "neither COMMUNICATION_OP nor COMMUNICATION_TASK_INFO",
    )  # fmt: skip


def test_a_device_that_never_waits_for_another_has_no_collectives_and_no_warning(database):
    alone = [row for row in made.tables()["TASK"] if row["globalTaskId"] < 13]
    capture = only(read := database(changed(TASK=alone, COMMUNICATION_OP=None, COMMUNICATION_TASK_INFO=None)))
    assert (capture.quality, breakdown(capture).communication_ns, read.warnings) == ("ok", 0, ())


@pytest.mark.parametrize(
    ("table", "warning"),
    [
        ("PYTORCH_API", "no PYTORCH_API: no ops, and kernels without the op that launched them"),
        ("CONNECTION_IDS", "no CONNECTION_IDS: kernels without the op that launched them"),
        ("OP_MEMORY", "no OP_MEMORY: nothing is known of what ops allocated"),
    ],
)
def test_a_missing_table_is_named_with_what_is_lost(database, table, warning):
    read = database(changed(**{table: None}))
    assert (only(read).quality, read.warnings) == ("ok", (warning,))


def test_a_capture_of_cann_alone_has_no_framework_to_miss(database):
    assert database(changed(PYTORCH_API=None, OP_MEMORY=None), "msprof_20250101000000.db").warnings == ()


@pytest.mark.parametrize(
    ("level", "metrics", "count"), [("Level1", "PIPE", 1), ("Level0", "PIPE", 0), ("Level1", "", 0)]
)
def test_measurements_are_missed_where_the_profiler_was_to_take_them(tmp_path, level, metrics, count):
    folder = write_capture(tmp_path / "rank4_ascend_pt", changed(TASK_PMU_INFO=None))
    settings = {"_profiler_level": level, "_aic_metrics": metrics}
    info = {"config": {"experimental_config": settings}, "rank_id": 4}
    (folder / "profiler_info_4.json").write_text(json.dumps(info))
    warnings = ascend_db.read(folder).warnings
    assert len([text for text in warnings if text.startswith("no TASK_PMU_INFO")]) == count
