"""Captures of torch_npu as text: what stands in which file arrives in which column, to the ns."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.readers.ascend_text.captures import PT, T, capture, counters, edited, links, profile, us
from tests.readers.helpers import texts
from tracker import readers, timeline
from tracker.profile import MISSING, NO_STEP, DeviceKind, LaunchLevel


def test_rank_settings_facts_and_groups_come_from_the_metadata():
    read = capture()
    assert (read.rank, read.world_size, read.host, read.device_ordinal, read.quality) == (3, 4, "worker-1", 1, "ok")
    assert (read.device.vendor, read.device.model) == ("Huawei", "Ascend910B")
    assert read.parallel == {"tp": 0, "cp": 0, "dp": 1, "pp": 1, "stage": 1}
    assert read.configuration == {"tp": "1", "pp": "2", "dp": "2", "cp": "1", "ep": "1"}
    assert read.settings["profiler_level"] == "Level1"
    assert read.settings["schedule"] == "wait 0 active 1 warmup 1 repeat 1 skip_first 6"
    assert read.settings["export_type"] == "text"
    assert read.facts["cann_version"] == "8.3.RC1"
    assert read.facts["HCCL_ALGO"] == "ring"
    # of info.json of CANN, which lies in the same folder
    assert read.facts["device_max_clock_mhz"] == "1850"
    assert read.facts["process_groups"] == "default 4; dp_cp 2; pp 2"
    assert "do-not-keep" not in str(read.facts)


@pytest.mark.parametrize("platform", ['"99"', "null"])
def test_a_chip_that_no_file_names_is_unknown(copy, platform):
    (info,) = copy.rglob("info.json.1")
    info.write_text(info.read_text().replace('"5"', platform))
    read = profile(copy)
    assert read.captures[0].device.model == "unknown"


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({"ascend_pytorch_profiler_3.db": ["Ascend910B"]}, "Ascend910B"),
        ({"PROF_000001_x/msprof_20250109073443.db": ["Ascend910B"]}, "Ascend910B"),
        ({"ascend_pytorch_profiler_3.db": ["Ascend910B", "Ascend910A"]}, "unknown"),
        ({"ascend_pytorch_profiler_3.db": []}, "unknown"),
    ],
)
def test_a_database_beside_the_text_names_the_chip(copy, named, expected):
    (info,) = copy.rglob("info.json.1")
    info.write_text(info.read_text().replace('"5"', "null"))
    sources = profile(copy).captures[0].sources
    for name, chips in named.items():
        folder = copy if "/" in name else copy / "ASCEND_PROFILER_OUTPUT"
        (folder / name).parent.mkdir(exist_ok=True)
        with closing(sqlite3.connect(folder / name)) as database, database:
            database.execute("CREATE TABLE NPU_INFO (id INTEGER, name TEXT)")
            database.executemany("INSERT INTO NPU_INFO VALUES (?, ?)", list(enumerate(chips)))
    read = profile(copy).captures[0]
    assert (read.device.vendor, read.device.model) == ("Huawei", expected)
    # what is in already stays what it is: the database is no further source of the capture
    assert read.sources == sources


@pytest.mark.parametrize("name", ["foo.json", "Trace_1.JSON", "foo.json.gz"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf\n "])
def test_a_chrome_trace_of_torch_npu_is_known_under_any_name(tmp_path, name, start):
    """Its host events stand first; what names Ascend can stand megabytes behind them."""
    op = {"ph": "X", "name": "aten::mul", "pid": 7, "tid": 7, "dur": 3.5, "cat": "cpu_op", "args": {}}
    process = {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "Python"}}
    events = [process, *({**op, "ts": f"{T // 1000 + 10 * place}.250"} for place in range(4000))]
    content = start + json.dumps(events).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert readers.claim(tmp_path / name) == "ascend_text"
    assert len(capture(tmp_path / name).events.ops) == 4000


def test_every_file_of_the_capture_is_read_and_is_a_source():
    read = profile()
    files = {file for file in PT.rglob("*") if file.is_file()}
    assert {Path(source.path) for source in read.captures[0].sources} == files
    assert all(source.bytes == Path(source.path).stat().st_size for source in read.captures[0].sources)
    assert read.warnings == ()


def test_equal_files_of_two_captures_are_sources_of_their_own(tmp_path):
    other = tmp_path / PT.name
    shutil.copytree(PT, other)
    edited(other, "trace_view.json", '"aten::mm"', '"aten::bmm"')

    def digests(folder):
        return {Path(s.path).name: s.digest for s in capture(folder).sources}

    one, two = digests(PT), digests(other)
    # what can be read alone is known wherever it lies
    assert one["kernel_details.csv"] == two["kernel_details.csv"]
    assert {name for name in one if one[name] == two[name]} == {"kernel_details.csv"}


def test_a_capture_starts_and_ends_with_its_events():
    read = capture()
    assert [read.started_at_ns, read.ended_at_ns] == us(0, 1000)


# -- device


def test_kernels_keep_what_kernel_details_says(events):
    device = events.device
    assert texts(events, device.name) == ["MatMulV2_1", "Cast_2", "hcom_allReduce__097_4_1", "MEMCPY_ASYNC"]
    assert device.kind.tolist() == [
        DeviceKind.KERNEL,
        DeviceKind.KERNEL,
        DeviceKind.COMMUNICATION,
        DeviceKind.COPY,
    ]
    assert device.start_ns.tolist() == us(100.001, 160, 199.999, 180)
    assert (device.end_ns - device.start_ns).tolist() == [50_000, 10_000, 300_000, 5_250]
    assert texts(events, device.type) == ["MatMulV2", "Cast", "hcom_allReduce_", ""]
    assert texts(events, device.core_type) == ["AI_CORE", "AI_CPU", "HCCL", ""]
    assert texts(events, device.input_shapes) == ["[[2,3],[3,4],[]]", "[[]]", "", ""]
    assert texts(events, device.input_types) == ["bfloat16,bfloat16,float32", "int64", "", ""]
    assert texts(events, device.input_formats) == ["ND,FRACTAL_Z,NCHW", "ND", "", ""]
    assert device.wait_ns.tolist() == [0, 9_999, 30_000, MISSING]
    assert device.step.tolist() == [7, 7, 7, MISSING]
    assert events.extras.block_num.tolist() == [16, 8, 0, MISSING]


def test_the_stream_of_a_collective_is_that_of_its_tasks(events):
    assert events.device.stream.tolist() == [2, 2, 3, 2]


def test_waits_and_copies_inside_a_collective_are_no_device_events(events):
    # EVENT_WAIT, PROFILING_ENABLE and the SDMA_SQE of stream 3, which shares the collective's connection
    assert len(events.device) == 4


def test_measurements_have_a_row_where_there_is_a_value(events):
    metrics = events.extras.kernel_metrics
    assert list(zip(metrics.event.tolist(), texts(events, metrics.metric), metrics.value.tolist(), strict=True)) == [
        (0, "aicore_time(us)", 48.5),
        (0, "aic_mac_ratio", 0.519),
        (0, "aiv_time(us)", 0.0),
        (0, "cube_utilization(%)", 95.517),
    ]


def test_an_arrow_links_a_kernel_to_its_op_within_a_ns(events):
    launches = events.launches
    flows = {
        int(c): (int(t), int(s))
        for c, t, s, level in zip(launches.correlation, launches.thread, launches.start_ns, launches.level, strict=True)
        if level == LaunchLevel.FLOW
    }
    linked = [flows.get(int(correlation)) for correlation in events.device.correlation]
    threads = [events.threads.index(name) for name in ("Thread 1", "Thread 3")]
    assert linked == [(threads[0], us(10)[0]), None, (threads[1], us(60)[0]), None]


def test_calls_of_cann_and_of_the_queue_are_launches_of_their_level(events):
    launches = events.launches
    calls = np.flatnonzero(launches.level != LaunchLevel.FLOW)
    assert texts(events, launches.name[calls]) == ["aclnnMm", "launch", "Enqueue", "Dequeue@aclnnMm"]
    queue = [LaunchLevel.QUEUE] * 2
    assert launches.level[calls].tolist() == [LaunchLevel.ACL, LaunchLevel.NODE, *queue]
    threads = ["Thread 2", "Thread 2", "Thread 1", "Thread 2"]
    assert [events.threads[thread] for thread in launches.thread[calls]] == threads
    assert launches.correlation[launches.level == LaunchLevel.QUEUE].tolist() == [-1, -1]


def test_what_the_queue_does_is_told_with_the_calls_of_the_host(events):
    api = timeline.rows_of(events).tables["api"]
    said = zip(api["level"], api["name"], api["total_ns"].tolist(), api["self_ns"].tolist(), strict=True)
    # Dequeue runs from 20 to 35 us, and in it aclnnMm from 21 to 33, and in that the launch from 25 to 30
    assert set(said) == {
        ("queue", "Enqueue", 3_000, 3_000),
        ("queue", "Dequeue@aclnnMm", 15_000, 3_000),
        ("acl", "aclnnMm", 12_000, 7_000),
        ("node", "launch", 5_000, 5_000),
    }


# -- host


def test_ops_keep_shapes_types_stacks_and_modules(events):
    ops = events.ops
    assert texts(events, ops.name) == ["aten::mm", "Optimizer.step#SGD.step", "MmBackward0"]
    assert texts(events, ops.input_shapes) == ["[[2,3],[3,4]]", "", "[[],[]]"]
    assert texts(events, ops.input_types) == ["c10::BFloat16,c10::BFloat16", "", "float,"]
    assert texts(events, ops.call_stack) == ["net.py(7): forward;train.py(3): <module>", "", ""]
    assert texts(events, ops.module) == ["net/linear", "", ""]
    assert ops.is_annotation.tolist() == [0, 1, 0]
    assert ops.is_backward.tolist() == [0, 0, 1]
    assert ops.sequence.tolist() == [5, -1, 5]


def test_modules_and_step_markers_come_from_their_names(events):
    assert texts(events, events.frames.name) == ["Linear_0", "net.py(7): forward"]
    assert events.frames.is_module.tolist() == [1, 0]
    assert events.markers.step.tolist() == [7]
    assert [int(events.markers.start_ns[0]), int(events.markers.end_ns[0])] == us(0, 1000)


# -- collectives


def test_a_collective_knows_its_group_by_the_double_hash(events):
    calls = events.collectives
    assert texts(events, calls.kind) == ["all_reduce"]
    assert texts(events, calls.group) == ["group_name_5"]
    assert texts(events, calls.group_role) == ["dp_cp"]
    assert (calls.group_size.tolist(), calls.bytes.tolist()) == ([2], [4000])
    assert texts(events, calls.data_type) == ["float32"]
    assert events.device.collective.tolist() == [-1, -1, 0, -1]


def test_times_of_a_collective_are_those_of_communication_json(events):
    times = events.extras.collective_times
    assert (times.transit_ns.tolist(), times.wait_ns.tolist()) == ([50_000], [200_000])
    assert (times.synchronization_ns.tolist(), times.idle_ns.tolist()) == ([150_000], [50_000])


def test_tasks_of_a_collective_lie_on_their_plane(events):
    tasks = events.extras.collective_tasks
    assert texts(events, tasks.name) == ["Memcpy", "Notify_Wait", "Reduce_Inline", "Reduce_Inline"]
    assert set(texts(events, tasks.plane)) == {"0"}
    assert (tasks.end_ns - tasks.start_ns).tolist() == [10_000, 200_000, 20_000, 30_000]


def test_links_have_packets_by_transport_and_bytes_by_global_ranks(events):
    # ranks 1 and 0 of group_name_5 are the global ranks 3 and 2
    assert links(events) == [
        ("HCCS", -1, -1, -1, 2, 4000, 50_000),
        ("HCCS", -1, -1, 2000, 2, 4000, 50_000),
        ("LOCAL", 3, 3, -1, MISSING, 4000, 10_000),
        ("HCCS", 3, 2, -1, MISSING, 4000, 50_000),
    ]
    assert events.extras.collective_links.large_packet_ratio[0] == 0.25


def test_without_a_trace_the_matrix_says_what_moved(copy, events):
    (copy / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").unlink()
    read = profile(copy)
    assert sorted(links(read.captures[0].events)) == sorted(links(events))
    assert [warning.partition(":")[0] for warning in read.warnings][:1] == ["no trace_view.json"]


# -- memory and counters


def test_a_block_is_allocated_and_released_under_one_number(events):
    blocks = events.allocations
    assert blocks.bytes.tolist() == [1536, 2048, -512, -1536]
    assert blocks.address.tolist() == [1, 2, 3, 1]
    assert texts(events, blocks.component) == ["PTA", "GE", "PTA", "PTA"]
    # cann::Mm is allocated in the Dequeue at 22 us; it belongs to the Enqueue at 12 us, which lies in aten::mm
    assert blocks.time_ns.tolist() == us(11, 12, 65, 300)
    assert [events.threads[thread] for thread in blocks.thread[:3]] == ["Thread 1", "Thread 1", "Thread 3"]
    assert blocks.total_allocated_bytes.tolist() == [11010048, 1 << 20, 8 << 20, 9 << 20]


def test_memory_record_gives_points_per_component(events):
    points = events.extras.memory_points
    assert texts(events, points.component) == ["APP", "PTA", "GE"]
    assert points.allocated_bytes.tolist() == [MISSING, 11010048, 1 << 20]
    assert points.reserved_bytes.tolist() == [4 << 30, 12 << 20, 2 << 20]


def test_other_tables_are_counters(events):
    found = counters(events)
    assert found["step_trace_time", "7", "Free"] == (40.000000000000004, 7)
    assert found["op_statistic", "MatMulV2 AI_CORE", "Total Time(us)"] == (50.0, NO_STEP)
    assert found["l2_cache", "MatMulV2_1", "Victim Rate"] == (0.25, NO_STEP)
    assert ("l2_cache", "MatMulV2_1", "Hit Rate") not in found
    assert found["npu_module_mem", "HCCL", "Total Reserved(MB)"][0] == 201.5
    assert found["operator_details", "aten::mm", "Device Self Duration(us)"][0] == 50.0
    assert found["data_preprocess", "Cast_2", "Compute_time(us)"][0] == 9.0
    assert found["ai_core_freq", "AI Core Freq", "MHz"][0] == 800.0
    # the trace has the calls themselves
    assert not any(source == "api_statistic" for source, _, _ in found)


def test_api_statistic_counts_where_no_trace_has_the_calls(copy):
    (copy / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").unlink()
    assert counters(capture(copy).events)["api_statistic", "acl aclnnMm", "Time(us)"] == (12.0, NO_STEP)
    api = {name: list(column) for name, column in timeline.rows_of(capture(copy).events).tables["api"].items()}
    assert api == {
        "step": [NO_STEP], "level": ["acl"], "name": ["aclnnMm"], "calls": [1], "total_ns": [12_000],
        "self_ns": [MISSING], "min_ns": [12_000], "max_ns": [12_000],
    }  # fmt: skip


def test_bubble_and_preparing_are_times_of_the_step(events):
    times = events.extras.step_times
    assert (times.step.tolist(), times.bubble_ns.tolist(), times.preparing_ns.tolist()) == ([7], [2_500], [100_000])


def test_a_preparing_that_is_a_point_in_time_is_missing(copy):
    edited(copy, "step_trace_time.csv", ",100.0\n", ",1700000000000000.5\n")
    assert capture(copy).events.extras.step_times.preparing_ns.tolist() == [MISSING]


def test_a_hit_rate_of_the_trace_is_per_cent_as_in_a_database(copy):
    counter = '{"ph": "C", "name": "LLC 0 Read/Hit Rate", "pid": 9, "ts": "1.000", "args": {"Hit Rate(%)": 0.8}}'
    process = '{"ph": "M", "name": "process_name", "pid": 9, "tid": 0, "args": {"name": "LLC"}}'
    edited(copy, "trace_view.json", '[{"ph": "M"', f'[{counter}, {process}, {{"ph": "M"')
    assert counters(capture(copy).events)["llc", "LLC 0 Read/Hit Rate", "Hit Rate(%)"][0] == 80.0


def two_steps(folder, keep):
    """The capture without a marker, its second kernel in step 8; of its trace only the processes that `keep` takes."""
    edited(folder, "kernel_details.csv", "7,4294967295,12,", "8,4294967295,12,")
    trace = folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
    events = json.loads(trace.read_text(encoding="utf-8"))
    kept = {event["pid"] for event in events if event["name"] == "process_name" and keep(event["args"]["name"])}
    found = [event for event in events if event["pid"] in kept and "ProfilerStep" not in event["name"]]
    trace.write_text(json.dumps(found), encoding="utf-8")
    return profile(folder)


def test_step_ids_are_the_steps_of_a_trace_that_knows_nothing_of_the_host(copy):
    read = two_steps(copy, lambda process: process not in ("Python", "CANN"))
    markers = read.captures[0].events.markers
    assert markers.step.tolist() == [7, 8]
    assert markers.start_ns.tolist() == [T + 100_001, T + 160_000]
    assert not any("steps" in warning for warning in read.warnings)


def test_step_ids_alone_do_not_say_which_ops_are_in_a_step(copy):
    read = two_steps(copy, lambda process: True)
    assert len(read.captures[0].events.markers) == 0
    assert (
        "kernel_details.csv names 2 steps, trace_view.json has no ProfilerStep that says which ops are in which: "
        "the capture is one step"
    ) in read.warnings
