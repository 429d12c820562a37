"""Captures of torch_npu and MindSpore as text: what stands in which file arrives in which column, to the ns."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tracker import intake, readers, timeline
from tracker.errors import SourceError
from tracker.profile import MISSING, NO_STEP, DeviceKind, LaunchLevel
from tracker.readers import Found, ReadOptions

DATA = Path(__file__).parents[1] / "data" / "ascend_text"
PT = DATA / "worker-1_4711_20250109073443012_ascend_pt"
MS = DATA / "rank1_start2_stop5"
T = 1700000000000000000


def us(*times):
    return [T + round(time * 1000) for time in times]


def profile(path=PT, **options):
    return readers.read(Found(path, readers.claim(path)), ReadOptions(**options))


def capture(path=PT, **options):
    return profile(path, **options).captures[0]


def texts(events, codes):
    return [events.strings[code] for code in codes.tolist()]


@pytest.fixture
def copy(tmp_path):
    """The capture, to be edited; `copy.output` holds its files."""
    return Path(shutil.copytree(PT, tmp_path / PT.name))


@pytest.fixture(scope="module")
def events():
    return capture().events


def edited(folder, name, old, new):
    file = folder / "ASCEND_PROFILER_OUTPUT" / name
    text = file.read_bytes().decode()
    assert old in text
    file.write_bytes(text.replace(old, new).encode())
    return folder


# -- who


def test_rank_settings_facts_and_groups_come_from_the_metadata():
    read = capture()
    assert (read.rank, read.world_size, read.host, read.device_ordinal, read.quality) == (3, 4, "worker-1", 1, "ok")
    assert (read.device.vendor, read.device.model) == ("Huawei", "Ascend910B")
    assert read.parallel == {"tp": 0, "cp": 0, "dp": 1, "pp": 1, "stage": 1}
    assert read.settings["profiler_level"] == "Level1"
    assert read.settings["schedule"] == "wait 0 active 1 warmup 1 repeat 1 skip_first 6"
    assert read.settings["export_type"] == "text"
    assert read.facts["cann_version"] == "8.3.RC1"
    assert read.facts["HCCL_ALGO"] == "ring"
    assert read.facts["process_groups"] == "default 4; dp_cp 2; pp 2"
    assert "do-not-keep" not in str(read.facts)


@pytest.mark.parametrize("platform", ['"99"', "null"])
def test_a_chip_that_no_file_names_is_unknown_and_the_user_is_told_how_to_name_it(copy, platform):
    (info,) = copy.rglob("info.json.1")
    info.write_text(info.read_text().replace('"5"', platform))
    read = profile(copy)
    assert read.captures[0].device.model == "unknown"
    assert any('--device "Huawei ' in warning for warning in read.warnings)


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


def links(events):
    said = events.extras.collective_links
    columns = (said.source, said.target, said.packet_bytes, said.packets, said.bytes, said.transit_ns)
    return list(zip(texts(events, said.transport), *(column.tolist() for column in columns), strict=True))


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
    assert [warning.partition(":")[0] for warning in read.warnings] == ["no trace_view.json"]


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


def counters(events):
    rows = events.extras.counters
    said = zip(texts(events, rows.source), texts(events, rows.name), texts(events, rows.attribute), strict=True)
    return {key: (value, step) for key, value, step in zip(said, rows.value.tolist(), rows.step.tolist(), strict=True)}


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


def test_bubble_and_preparing_are_times_of_the_step(events):
    times = events.extras.step_times
    assert (times.step.tolist(), times.bubble_ns.tolist(), times.preparing_ns.tolist()) == ([7], [2_500], [100_000])


def test_a_preparing_that_is_a_point_in_time_is_missing(copy):
    edited(copy, "step_trace_time.csv", ",100.0\n", ",1700000000000000.5\n")
    assert capture(copy).events.extras.step_times.preparing_ns.tolist() == [MISSING]


# -- other layouts


def test_mindspore_reads_its_own_tables():
    (found,) = readers.find(MS)
    assert found.format == "ascend_text"
    read = readers.read(found).captures[0]
    assert (read.rank, read.host, read.device_ordinal) == (1, "node-2", 5)
    said = read.events
    assert said.extras.block_num.tolist() == [8, 0]
    assert said.device.step.tolist() == [MISSING, MISSING]
    assert texts(said, said.collectives.kind) == ["all_gather"]
    assert texts(said, said.allocations.component) == ["MindSpore", "MindSpore"]
    assert said.extras.memory_points.allocated_bytes.tolist() == [1048576]
    counted = counters(said)
    assert counted["dataset", "Map DataLoad", "Avg. time (us)"][0] == 12.5
    assert counted["minddata_pipeline_raw", "ImageFolder", "output_queue_usage_rate"][0] == 0.19
    assert counted["minddata_pipeline_summary", "Batch", "avg_cpu_pct"][0] == 1.5


def test_two_ranges_of_the_dynamic_profiler_are_two_captures_of_one_rank(tmp_path):
    """`rank1_start2_stop5` and `rank1_start8_stop10`, with or without a folder of the capture inside."""
    first = Path(shutil.copytree(MS, tmp_path / MS.name))
    second = tmp_path / "rank1_start8_stop10"
    (inside,) = MS.iterdir()
    shutil.copytree(inside, second)
    edited(second, "kernel_details.csv", "17000000000000", "17000000090000")
    found = readers.find(tmp_path)
    assert [one.path for one in found] == [*first.iterdir(), second / "ASCEND_PROFILER_OUTPUT"]
    read = [readers.read(one).captures[0] for one in found]
    assert [capture.rank for capture in read] == [1, 1]
    for capture in read:
        assert texts(capture.events, capture.events.allocations.component) == ["MindSpore", "MindSpore"]
        assert capture.events.extras.memory_points.allocated_bytes.tolist() == [1 << 20]
    pieces = [intake.Piece(capture, "ascend_text", ()) for capture in read]
    assert [len(run) for run in intake.form_runs(pieces)] == [1, 1]


def test_the_call_stack_that_mindspore_glues_to_a_kernel_is_no_part_of_its_name(tmp_path):
    folder = Path(shutil.copytree(MS, tmp_path / MS.name)).iterdir().__next__()
    glued = '"Default/Add-op1;/home/a/net.py(7): construct;\r\n/home/a/train.py(9): main"'
    edited(folder, "kernel_details.csv", ",Default/Add-op1,", f",{glued},")
    device = capture(folder).events.device
    assert texts(capture(folder).events, device.name)[0] == "Default/Add-op1"


def test_the_matrix_of_mindspore_spells_the_operation_its_own_way(copy, events):
    edited(copy, "communication_matrix.json", '"Op Name"', '"op_name"')
    (copy / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").unlink()
    assert sorted(links(capture(copy).events)) == sorted(links(events))


def test_a_bare_trace_has_kernels_but_no_memory():
    read = profile(DATA / "bare" / "trace_view.json")
    said = read.captures[0].events
    assert texts(said, said.device.name) == ["MatMulV2_1", "Cast_2", "MEMCPY_ASYNC", "MEMCPY_ASYNC"]
    assert (said.device.correlation[:1] > 0).all()
    assert any("nothing is known of memory" in warning for warning in read.warnings)


def test_the_oldest_kernel_details_has_times_without_unit():
    read = profile(DATA / "oldest" / "kernel_details.csv")
    device = read.captures[0].events.device
    assert device.start_ns.tolist() == [1699529622790614800, 1699529622793969500]
    assert (device.end_ns - device.start_ns).tolist() == [607_980, 10_500]
    assert read.captures[0].started_at_ns == 1699529622790614800


def test_the_output_folder_alone_is_the_same_capture():
    read = capture(PT / "ASCEND_PROFILER_OUTPUT")
    assert (read.rank, read.host) == (3, "worker-1")
    assert len(read.sources) == len(capture().sources)


def test_a_rank_with_communication_files_only_is_partial(copy):
    for name in ("trace_view.json", "kernel_details.csv"):
        (copy / "ASCEND_PROFILER_OUTPUT" / name).unlink()
    read = capture(copy)
    assert read.quality == "partial"
    assert (read.events.device.end_ns - read.events.device.start_ns).tolist() == [300_000]


def test_of_a_rank_with_communication_files_only_compute_is_unknown_and_not_zero(copy):
    for name in ("trace_view.json", "kernel_details.csv"):
        (copy / "ASCEND_PROFILER_OUTPUT" / name).unlink()
    (copy / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv").unlink()
    read = capture(copy)
    assert read.quality_reason == "neither kernel_details.csv nor trace_view.json: collectives are all that is known"
    rows = timeline.rows_of(read.events)
    (step,) = rows.steps
    for found in (rows.overall, step.breakdown):
        assert (found.communication_ns, found.communication_total_ns, found.bubble_ns) == (300_000, 300_000, None)
        unknown = (found.compute_ns, found.e2e_ns, found.free_ns, found.exposed_communication_ns, found.copy_ns)
        assert unknown == (None,) * 5
        assert (found.kernel_count, found.duration_ns) == (None, None)
    assert rows.tables["communication"]["exposed_ns"].tolist() == [MISSING]


def test_of_a_rank_without_kernels_the_profilers_own_times_of_the_step_stand_in(copy):
    for name in ("trace_view.json", "kernel_details.csv"):
        (copy / "ASCEND_PROFILER_OUTPUT" / name).unlink()
    edited(copy, "step_trace_time.csv", "7,60.0,300.0,0.0,300.0,", "7,60.0,290.0,10.0,300.0,")
    read = capture(copy)
    assert (read.quality, "step_trace_time.csv" in read.quality_reason) == ("partial", True)
    rows = timeline.rows_of(read.events)
    (step,) = rows.steps
    assert step.step == 7
    for found in (rows.overall, step.breakdown):
        assert (found.compute_ns, found.communication_ns, found.overlap_ns) == (60_000, 300_000, 10_000)
        assert (found.exposed_communication_ns, found.free_ns) == (290_000, 40_000)
        # 60 + 290 + 40 us
        assert (found.e2e_ns, found.duration_ns) == (390_000, 390_000)
        assert (found.copy_ns, found.exposed_copy_ns, found.kernel_count, found.compute_total_ns) == (None,) * 4


# -- steps without a trace


def without_trace(folder):
    (folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").unlink()
    return folder


def steps_of(path):
    rows = timeline.rows_of(capture(path).events)
    return {row.step: (row.breakdown.duration_ns, row.breakdown.kernel_count) for row in rows.steps}


def test_without_a_trace_the_step_is_the_one_that_the_kernels_name(copy):
    # from MatMulV2_1 at 100.001 us to the end of the collective at 499.999 us
    assert steps_of(without_trace(copy)) == {7: (399_998, 3)}


def test_without_a_trace_two_step_ids_are_two_steps_as_long_as_their_work_on_the_device(copy):
    edited(without_trace(copy), "kernel_details.csv", "7,4294967295,N/A", "8,4294967295,N/A")
    # Cast_2 ends at 170 us; the collective takes 300 us
    assert steps_of(copy) == {7: (69_999, 2), 8: (300_000, 1)}


def test_steps_that_overlap_on_the_device_keep_the_kernels_that_name_them(copy):
    edited(without_trace(copy), "kernel_details.csv", "7,4294967295,12,", "8,4294967295,12,")
    assert steps_of(copy) == {7: (399_998, 2), 8: (10_000, 1)}


def test_where_no_kernel_names_a_step_the_only_one_of_step_trace_time_is_it(copy):
    edited(without_trace(copy), "kernel_details.csv", "7,4294967295", "N/A,4294967295")
    assert list(steps_of(copy)) == [7]


def test_a_capture_that_names_no_step_is_one_step(copy):
    edited(without_trace(copy), "kernel_details.csv", "7,4294967295", "N/A,4294967295")
    (copy / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv").unlink()
    assert list(steps_of(copy)) == [0]


# -- truncated tables


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


def test_renamed_columns_are_understood(copy, events):
    edited(copy, "kernel_details.csv", "Step Id,", "Step ID,")
    edited(copy, "kernel_details.csv", ",Block Dim,Mix Block Dim,", ",Block Num,Mix Block Num,")
    edited(copy, "kernel_details.csv", ",HCCL,", ",COMMUNICATION,")
    said = capture(copy).events
    assert said.device.step.tolist() == events.device.step.tolist()
    assert said.device.kind.tolist() == events.device.kind.tolist()
    assert said.extras.block_num.tolist() == events.extras.block_num.tolist()


def test_an_unknown_table_is_named_as_not_read(copy):
    (copy / "ASCEND_PROFILER_OUTPUT" / "new_table.csv").write_text("a,b\n1,2\n")
    (copy / "ASCEND_PROFILER_OUTPUT" / "analysis.db").write_bytes(b"")
    assert profile(copy).warnings == ("not read, unknown to this reader: new_table.csv",)


def test_a_database_beside_the_tables_goes_before_unless_kernels_are_there(copy):
    (copy / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_3.db").write_bytes(b"")
    assert readers.load("ascend_text").sniff(copy, b"")
    (copy / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").unlink()
    assert not readers.load("ascend_text").sniff(copy, b"")


@pytest.mark.parametrize(
    ("files", "format"),
    [
        (("trace_view.json",), "ascend_db"),
        (("kernel_details.csv",), "ascend_text"),
        (("trace_view.json", "kernel_details.csv"), "ascend_text"),
    ],
)
def test_a_folder_of_any_name_with_both_exports_is_one_capture(tmp_path, files, format):
    folder = tmp_path / "somewhere"
    folder.mkdir()
    for name in files:
        shutil.copy(PT / "ASCEND_PROFILER_OUTPUT" / name, folder)
    database = DATA.parent / "ascend_db" / "rank4_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_4.db"
    shutil.copy(database, folder)
    assert readers.find(tmp_path) == [Found(folder, format)]


# -- bad input


def error_of(path, **options):
    with pytest.raises(SourceError) as caught:
        readers.load("ascend_text").read(path, ReadOptions(**options))
    return str(caught.value)


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


def test_a_hit_rate_of_the_trace_is_per_cent_as_in_a_database(copy):
    counter = '{"ph": "C", "name": "LLC 0 Read/Hit Rate", "pid": 9, "ts": "1.000", "args": {"Hit Rate(%)": 0.8}}'
    process = '{"ph": "M", "name": "process_name", "pid": 9, "tid": 0, "args": {"name": "LLC"}}'
    edited(copy, "trace_view.json", '[{"ph": "M"', f'[{counter}, {process}, {{"ph": "M"')
    assert counters(capture(copy).events)["llc", "LLC 0 Read/Hit Rate", "Hit Rate(%)"][0] == 80.0
