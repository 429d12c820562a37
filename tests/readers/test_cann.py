"""Exports of CANN msprof: what stands in which file arrives in which column, to the ns, and nothing twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.readers import ascend_databases as made
from tests.readers.ascend_databases import write
from tests.readers.helpers import texts
from tracker import readers, timeline
from tracker.errors import SourceError
from tracker.intake import ingest
from tracker.profile import MISSING, DeviceKind, LaunchLevel
from tracker.readers import Found, ReadOptions
from tracker.readers.cann.trace import MsprofTrace
from tracker.store import open_store

DATA = Path(__file__).parents[1] / "data" / "cann"
NEW = DATA / "PROF_000001_20231114221320000_AAAA"
OLD = DATA / "PROF_000001_20230818142704322_BBBB"
OUTPUT = "mindstudio_profiler_output"
TIME = "20231114221400"
T = 1_700_000_000_000_000_000
# the clock of the machine stood at 56,000 s at 1692340024 s of UTC; the first iteration starts one second later
OLD_T = 1_692_340_025_000_000_000


def us(*times, start=T):
    return [start + round(time * 1000) for time in times]


def profile(path=NEW, **options):
    return readers.read(Found(path, readers.claim(path)), ReadOptions(**options))


def capture(path=NEW):
    return profile(path).captures[0]


def measured(events):
    metrics = events.extras.kernel_metrics
    columns = (metrics.event.tolist(), texts(events, metrics.metric), metrics.value.tolist())
    return sorted(zip(*columns, strict=True))


def counted(events, source):
    rows = events.extras.counters
    columns = (rows.step.tolist(), texts(events, rows.name), texts(events, rows.attribute), rows.value.tolist())
    sources = texts(events, rows.source)
    return [row for row, of in zip(zip(*columns, strict=True), sources, strict=True) if of == source]


@pytest.fixture
def new(tmp_path):
    return Path(shutil.copytree(NEW, tmp_path / NEW.name))


@pytest.fixture
def old(tmp_path):
    return Path(shutil.copytree(OLD, tmp_path / OLD.name))


# -- what is claimed


@pytest.mark.parametrize("path", [NEW, OLD, NEW / OUTPUT, OLD / "device_1"], ids=["new", "old", "output", "device"])
def test_folders_of_a_capture_are_claimed_once(path):
    assert [(found.path, found.format) for found in readers.find(path)] == [(path, "cann")]


@pytest.mark.parametrize("name", [f"op_summary_{TIME}.csv", f"msprof_{TIME}.json"])
def test_main_files_alone_are_captures(name):
    read = profile(NEW / OUTPUT / name)
    assert len(read.captures) == 1
    assert len(read.captures[0].events.device) == (3 if name.endswith("csv") else 4)


def test_a_trace_of_a_framework_is_not_a_timeline_of_cann(tmp_path):
    event = {"ph": "X", "name": "aten::mm", "pid": 1, "tid": 1, "ts": "1700000000000000.500", "dur": 1, "cat": "cpu_op"}
    hardware = {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "Ascend Hardware"}}
    path = tmp_path / "trace_view.json"
    path.write_text(json.dumps([hardware, event]))
    assert readers.claim(path) == "ascend_text"


def test_raw_data_inside_a_capture_of_a_framework_belongs_to_that_capture(tmp_path):
    folder = tmp_path / "host_1_20250101000000000_ascend_pt"
    shutil.copytree(NEW, folder / NEW.name)
    (folder / "ASCEND_PROFILER_OUTPUT").mkdir()
    (folder / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").touch()
    assert [(found.path, found.format) for found in readers.find(tmp_path)] == [(folder, "ascend_text")]


def test_capture_that_was_never_parsed_is_an_error_with_the_line_that_parses_it(tmp_path):
    folder = tmp_path / "PROF_000001_20250101000000000_C"
    (folder / "device_0" / "data").mkdir(parents=True)
    (folder / "host" / "sqlite").mkdir(parents=True)
    with pytest.raises(SourceError, match=rf"only raw data; parse it: msprof --export=on --output={folder}"):
        readers.read(Found(folder, readers.claim(folder)))


def test_never_parsed_capture_of_a_framework_still_names_its_own_line(tmp_path):
    folder = tmp_path / "host_1_20250101000000000_ascend_pt"
    (folder / "PROF_000001_20250101000000000_C" / "device_0").mkdir(parents=True)
    (found,) = readers.find(tmp_path)
    with pytest.raises(SourceError, match=r"torch_npu\.profiler\.profiler import analyse"):
        readers.read(found)


def test_a_capture_in_both_exports_is_read_as_text(new):
    write(new / "msprof_20231114221400.db", made.tables())
    assert [(found.path, found.format) for found in readers.find(new)] == [(new, "cann")]
    shutil.rmtree(new / OUTPUT)
    assert [(found.path, found.format) for found in readers.find(new)] == [(new, "ascend_db")]


# -- CANN 8: one folder of files


def test_who_ran_comes_from_info_json_by_an_allow_list():
    read = capture()
    assert (read.rank, read.world_size, read.host, read.device_ordinal) == (3, None, "node-7", 0)
    assert (read.device.vendor, read.device.model) == ("Huawei", "Ascend910B")
    facts = {"ai_core_num": "24", "aiv_num": "48", "aic_frequency": "1650", "platform_version": "5"}
    assert read.facts == {**facts, "hwtype": "aarch64"}
    assert (read.started_at_ns, read.ended_at_ns) == tuple(us(5, 93))


def test_every_file_is_a_source_but_the_text_for_people():
    read = profile()
    files = {file for file in NEW.rglob("*") if file.is_file() and file.name != "README.txt"}
    assert {Path(source.path) for source in read.captures[0].sources} == files
    assert read.warnings == ()


def test_kernels_are_those_of_op_summary_and_copies_those_of_the_timeline():
    events = capture().events
    device = events.device
    assert texts(events, device.name) == ["MatMul1", "Add1", "hcom_allReduce__123_0_1", "MEMCPY_ASYNC"]
    assert device.start_ns.tolist() == us(10.5, 40, 50, 90)
    assert device.end_ns.tolist() == us(30.75, 45, 80, 93)
    assert device.wait_ns.tolist() == [0, 9250, 5000, MISSING]
    kinds = [DeviceKind.KERNEL, DeviceKind.KERNEL, DeviceKind.COMMUNICATION, DeviceKind.COPY]
    assert device.kind.tolist() == kinds
    assert texts(events, device.core_type) == ["MIX_AIC", "AI_VECTOR_CORE", "HCCL", ""]
    assert texts(events, device.input_shapes)[:2] == ["[[4,8],[8,2]]", "[[4,2],[4,2]]"]
    assert texts(events, device.input_types)[:2] == ["bfloat16,bfloat16", "float32,float32"]
    assert events.extras.block_num.tolist()[:2] == [8, 4]
    assert measured(events) == [(0, "aic_total_cycles", 18500.0), (0, "aicore_time(us)", 18.5)]


def test_kernels_are_linked_to_the_calls_of_cann_though_the_timeline_starts_them_earlier():
    events = capture().events
    launches = events.launches
    calls = dict(zip(texts(events, launches.name), launches.correlation.tolist(), strict=True))
    assert events.device.correlation.tolist()[:2] == [calls["launch"], calls["aclnnAdd"]]
    assert launches.level.tolist() == [LaunchLevel.NODE, LaunchLevel.ACL]
    assert launches.end_ns.tolist() == us(7, 23)


def test_collective_has_its_payload_times_tasks_and_links():
    events = capture().events
    calls, extras = events.collectives, events.extras
    assert texts(events, calls.kind) == ["all_reduce"]
    # 256 elements of 4 bytes
    assert calls.bytes.tolist() == [1024]
    assert (extras.collective_times.transit_ns.tolist(), extras.collective_times.wait_ns.tolist()) == ([20000], [10000])
    assert texts(events, extras.collective_tasks.name) == ["Notify_Wait", "Memcpy"]
    links = extras.collective_links
    columns = (texts(events, links.transport), links.source.tolist(), links.target.tolist(), links.bytes.tolist())
    assert list(zip(*columns, strict=True)) == [("SDMA", -1, -1, 1024), ("HCCS", 0, 1, 1024)]


def test_memory_of_the_graph_engine_is_released_when_it_was_held_long_enough():
    events = capture().events
    made_blocks, points = events.allocations, events.extras.memory_points
    assert (made_blocks.time_ns.tolist(), made_blocks.bytes.tolist()) == (us(8, 48), [2048, -2048])
    assert texts(events, made_blocks.component) == ["GE", "GE"]
    assert (points.allocated_bytes.tolist(), points.reserved_bytes.tolist()) == ([3072], [4096])


def test_tables_without_rows_of_their_own_are_counters():
    events = capture().events
    assert counted(events, "npu_module_mem") == [(-1, "HCCL", "Total Reserved(KB)", 512.0)]
    tasks = [(-1, "EVENT_WAIT", "task_time(us)", 1.0), (-1, "MatMul1 MIX_AIC", "task_time(us)", 22.0)]
    assert counted(events, "task_time") == tasks
    assert (-1, "MatMulV2 MIX_AIC", "Total Time(us)", 20.25) in counted(events, "op_statistic")
    assert len(counted(events, "communication_statistic")) == 6
    # the timeline has the calls themselves
    assert counted(events, "api_statistic") == []


def test_api_statistic_counts_where_no_timeline_has_the_calls(new):
    (new / OUTPUT / f"msprof_{TIME}.json").unlink()
    read = profile(new)
    assert (-1, "node launch", "Count", 1.0) in counted(read.captures[0].events, "api_statistic")
    assert "no msprof_*.json" in read.warnings[0]


def test_kernels_of_task_time_stand_in_where_there_is_nothing_else(new):
    for name in (f"msprof_{TIME}.json", f"op_summary_{TIME}.csv"):
        (new / OUTPUT / name).unlink()
    events = capture(new).events
    assert texts(events, events.device.name)[0] == "MatMul1"
    assert (events.device.start_ns[0], events.device.end_ns[0]) == tuple(us(9.1, 31.1))
    assert "EVENT_WAIT" not in texts(events, events.device.core_type)


def test_slices_of_one_export_are_parts_and_an_older_export_is_left_out(new):
    whole = new / OUTPUT / f"op_summary_{TIME}.csv"
    header, *rows = whole.read_text().splitlines()
    whole.rename(new / OUTPUT / "op_summary_20231114221300.csv")
    for part, lines in enumerate((rows[:2], rows[2:])):
        # written one second apart
        file = new / OUTPUT / f"op_summary_slice_{part}_{int(TIME) + part}.csv"
        file.write_text("\n".join([header, *lines]) + "\n")
    read = profile(new)
    events = read.captures[0].events
    assert texts(events, events.device.name) == ["MatMul1", "Add1", "hcom_allReduce__123_0_1", "MEMCPY_ASYNC"]
    assert measured(events)[0][0] == 0
    (warning,) = read.warnings
    assert warning.endswith("only the newest export was read, left out: op_summary_20231114221300.csv")


def test_unknown_column_is_an_error_that_names_file_and_header(new):
    file = new / OUTPUT / f"op_summary_{TIME}.csv"
    file.write_text(file.read_text().replace("Task Duration(us)", "Span(us)"))
    with pytest.raises(SourceError, match=r"op_summary_\d+\.csv: row 1: no column 'Duration\(us\)' or 'Task Duration"):
        readers.read(Found(new, "cann"))


def test_older_start_times_without_unit_are_nanoseconds_where_they_can_be_nothing_else(new):
    file = new / OUTPUT / f"op_summary_{TIME}.csv"
    text = file.read_text().replace("Task Start Time(us)", "Task Start Time").replace("Block Num", "Block Dim")
    for at in (10.5, 40, 50):
        text = text.replace(f"{us(at)[0] // 1000}.{us(at)[0] % 1000:03}", f"{us(at)[0]}")
    file.write_text(text)
    events = capture(new).events
    assert events.device.start_ns.tolist()[:3] == us(10.5, 40, 50)
    assert events.extras.block_num.tolist()[:2] == [8, 4]


@pytest.fixture
def two(new):
    """Two devices: Add1 and all events of the hardware happen on the second one too; the frequencies differ."""
    file = new / OUTPUT / f"op_summary_{TIME}.csv"
    rows = file.read_text().splitlines()
    file.write_text("\n".join([*rows, "1" + rows[2][1:]]) + "\n")
    trace = new / OUTPUT / f"msprof_{TIME}.json"
    events = json.loads(trace.read_text())
    # pid << 10 | layer << 5 | device
    hardware = 77 << 10 | 13 << 5
    others = [{**event, "pid": event["pid"] + 1} for event in events if event["pid"] == hardware]
    counted = [
        {"ph": "C", "name": "MHz", "pid": pid, "tid": 0, "ts": "1700000000000011.000", "args": {"MHz": value}}
        for pid, value in ((hardware, 800), (hardware + 1, 1650), (77 << 10 | 31, 2600))
    ]
    trace.write_text(json.dumps([*events, *others, *counted]))
    shutil.copytree(new / "device_0", new / "device_1")
    return new


def test_what_the_host_counts_belongs_to_the_first_of_two_devices(two):
    (two / OUTPUT / f"host_cpu_usage_{TIME}.csv").write_text("Cpu Type,Usage(%)\nAvg,12.5\n")
    first, second = (capture.events for capture in profile(two).captures)
    assert counted(first, "host_cpu_usage") == [(-1, "Avg", "Usage(%)", 12.5)]
    assert counted(second, "host_cpu_usage") == []
    assert [value for *_, value in counted(first, "ascend_hardware")] == [800.0]
    assert [value for *_, value in counted(second, "ascend_hardware")] == [1650.0]
    assert [value for *_, value in counted(first, "counter")] == [2600.0]
    assert counted(second, "counter") == []


def test_rows_of_the_host_belong_to_the_first_of_two_devices(two):
    (two / OUTPUT / f"msprof_{TIME}.json").unlink()
    first, second = (capture.events for capture in profile(two).captures)
    assert (-1, "node launch", "Count", 1.0) in counted(first, "api_statistic")
    assert counted(second, "api_statistic") == []


def test_rows_of_the_host_belong_to_the_first_device_on_which_anything_happens(two):
    (two / OUTPUT / f"msprof_{TIME}.json").unlink()
    for name in ("op_summary", "operator_memory"):
        file = two / OUTPUT / f"{name}_{TIME}.csv"
        header, *rows = file.read_text().splitlines()
        file.write_text("\n".join([header, *(row for row in rows if row[0] == "1")]) + "\n")
    (two / OUTPUT / f"task_time_{TIME}.csv").unlink()
    (only,) = profile(two).captures
    assert only.device_ordinal == 1
    assert (-1, "node launch", "Count", 1.0) in counted(only.events, "api_statistic")


def test_whose_the_processes_of_a_timeline_are_is_read_once_for_all_devices(two, monkeypatch):
    read, passes = MsprofTrace.read, []
    monkeypatch.setattr(MsprofTrace, "read", lambda trace, path: (passes.append(path.name), read(trace, path))[1])
    assert len(profile(two).captures) == 2
    # once for that, and once for each device
    assert passes == [f"msprof_{TIME}.json"] * 3
    passes.clear()
    assert len(profile(NEW).captures) == 1
    assert len(passes) == 1


def test_two_devices_in_one_folder_are_two_captures_and_host_time_counts_once(two):
    captures = profile(two).captures
    assert [len(capture.events.device) for capture in captures] == [4, 2]
    assert [(c.rank, c.device_ordinal, c.events.host_is_primary) for c in captures] == [(3, 0, True), (None, 1, False)]
    assert captures[0].sources == captures[1].sources


# -- before CANN 8: a folder per device, a file per iteration


def test_iterations_are_steps_dated_by_the_start_of_the_capture():
    read = profile(OLD)
    assert [capture.rank for capture in read.captures] == [0, 1]
    first, second = (capture.events.markers for capture in read.captures)
    assert first.step.tolist() == second.step.tolist() == [1, 2]
    assert first.start_ns.tolist() == us(0, 100, start=OLD_T)
    assert second.end_ns.tolist() == us(70, 170, start=OLD_T)
    assert read.captures[0].started_at_ns == OLD_T


def test_events_in_two_files_are_counted_once(old):
    every = capture(OLD).events
    names = ["Default/Net/Conv2D-op1", "Default/Net/Dropout-op2", "Default/AllReduce-op9_0"]
    # the copy on the collective's stream is its task, the one among the kernels is not
    assert texts(every, every.device.name) == [*names, *names, "MEMCPY_ASYNC", "MEMCPY_ASYNC"]
    for file in old.glob("device_0/timeline/msprof_*"):
        file.unlink()
    parts = capture(old).events
    assert texts(parts, parts.device.name) == texts(every, every.device.name)
    assert parts.device.start_ns.tolist() == every.device.start_ns.tolist()
    assert len(parts.extras.collective_tasks) == len(every.extras.collective_tasks) == 4


def test_calls_and_collectives_without_arguments_are_told_by_their_process():
    events = capture(OLD).events
    assert sorted(texts(events, events.launches.name)) == ["Infer", "Infer", "ModelExecute", "ModelExecute"]
    assert set(events.launches.level.tolist()) == {LaunchLevel.MODEL}
    assert texts(events, events.collectives.kind) == ["all_reduce", "all_reduce"]
    links = events.extras.collective_links
    assert (links.source.tolist(), links.target.tolist(), links.bytes.tolist()) == ([0, 0], [1, 1], [4096, 4096])


def test_core_time_is_in_microseconds_whatever_its_title_says():
    # 18000 cycles on 2 cores of 1000 MHz are 9 us
    events = capture(OLD).events
    assert measured(events) == [
        (0, "aicore_time(us)", 9.0), (0, "total_cycles", 18000.0),
        (3, "aicore_time(us)", 9.0), (3, "total_cycles", 18000.0),
    ]  # fmt: skip


def test_parts_of_iterations_are_counters_and_the_first_has_no_gap_before_it():
    assert counted(capture(OLD).events, "step_trace") == [
        (1, "", "FP_BP Time(us)", 25.0), (1, "0", "Reduce(us)", 21.0),
        (2, "", "FP_BP Time(us)", 25.0), (2, "0", "Reduce(us)", 21.0), (2, "", "Data_aug Bound(us)", 45.0),
    ]  # fmt: skip


def test_kernels_lie_in_their_iterations():
    rows = timeline.build(capture(OLD)).rows
    assert [(row.step, row.breakdown.kernel_count, row.breakdown.compute_ns) for row in rows.steps] == [
        (1, 3, 14000), (2, 3, 14000)
    ]  # fmt: skip


def test_times_stay_as_they_are_where_nothing_dates_them(old):
    for file in old.glob("device_*/start_info.*"):
        file.unlink()
    read = profile(old)
    assert read.captures[0].started_at_ns is None
    assert read.captures[0].events.markers.start_ns.tolist() == [56_001_000_000_000, 56_001_000_100_000]
    assert "no start_info for the clock of this capture: its times have no date" in read.warnings


def test_times_outside_of_the_capture_are_not_dated(old):
    for file in old.glob("device_*/start_info.*"):
        file.write_text(file.read_text().replace("56000000000000", "56002000000000"))
    assert profile(old).captures[0].started_at_ns is None


def test_tables_of_iterations_give_steps_without_a_timeline(tmp_path):
    folder = tmp_path / "PROF_000001_20230818142704322_D" / "device_0" / "summary"
    folder.mkdir(parents=True)
    for iteration in (1, 2):
        file = folder / f"op_summary_0_2_{iteration}_20230818142800.csv"
        file.write_text(
            "Model Name,Infer ID,Task ID,Stream ID,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\n"
            f"net,{iteration},1,2,Conv2D1,Conv2D,AI_CORE,{iteration}10.500\t,5\n"
        )
        (folder / f"step_trace_0_2_{iteration}_20230818142800.csv").write_text(
            "Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),FP to BP Time(us),"
            "Iteration Refresh(us),Data Aug Bound(us),Model ID,Reduce Start(us),Reduce Duration(us)\n"
            "1,105,130,160,60,25,30,N/A,2,130,20\n2,205,230,260,60,25,30,45,2,230,20\n"
        )
    events = capture(folder.parent.parent).events
    assert texts(events, events.device.name) == ["Conv2D1", "Conv2D1"]
    assert events.device.start_ns.tolist() == [110_500, 210_500]
    assert (events.markers.start_ns.tolist(), events.markers.step.tolist()) == ([100_000, 200_000], [1, 2])
    assert len(events.extras.kernel_metrics) == 0
    assert (2, "", "Data_aug Bound(us)", 45.0) in counted(events, "step_trace")
    assert (1, "0", "Reduce(us)", 20.0) in counted(events, "step_trace")


def test_devices_of_one_process_form_one_run(tmp_path):
    with open_store("sqlite://") as store:
        (result,) = ingest(store, [OLD], version="v1", workload="w")
        assert (result.ranks, result.steps) == ((0, 1), 2)
        (again,) = ingest(store, [OLD], version="v1", workload="w")
        assert again.already
