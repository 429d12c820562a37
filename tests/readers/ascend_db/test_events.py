"""What each table of an Ascend database becomes, on databases small enough to check in the head."""

from __future__ import annotations

from tests.readers import ascend_databases as made
from tests.readers.ascend_databases import ACL, MAIN, START, T, changed, span, task
from tests.readers.helpers import only, texts
from tracker.profile import MISSING, DeviceKind, LaunchLevel
from tracker.timeline.links import launches_of


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
