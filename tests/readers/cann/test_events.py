"""CANN 8, one folder of files: what stands in which file arrives in which column."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.readers.cann.captures import NEW, OUTPUT, TIME, T, add_arrow, capture, counted, measured, profile, us
from tests.readers.helpers import texts
from tracker import readers, timeline
from tracker.errors import SourceError
from tracker.profile import MISSING, DeviceKind, LaunchLevel
from tracker.readers import Found


def test_who_ran_comes_from_info_json_by_an_allow_list():
    read = capture()
    assert (read.rank, read.world_size, read.host, read.device_ordinal) == (3, None, "node-7", 0)
    assert (read.device.vendor, read.device.model) == ("Huawei", "Ascend910B")
    facts = {"ai_core_num": "24", "aiv_num": "48", "aic_frequency": "1650", "platform_version": "5"}
    assert read.facts == {**facts, "hwtype": "aarch64", "device_max_clock_mhz": "1650"}
    assert (read.started_at_ns, read.ended_at_ns) == tuple(us(5, 93))


@pytest.mark.parametrize("devices", [True, 1e300, "two", {"id": 0}, [1], [[]], None])
def test_devices_of_info_json_that_are_no_list_say_nothing_and_the_rest_is_read(tmp_path, devices):
    folder = tmp_path / NEW.name
    shutil.copytree(NEW, folder)
    path = folder / "device_0" / "info.json.0"
    path.write_text(json.dumps({**json.loads(path.read_text()), "DeviceInfo": devices}))
    (read,) = readers.read(Found(folder, "cann")).captures
    assert (read.rank, read.device.model) == (3, "Ascend910B")
    assert read.facts == {"platform_version": "5", "hwtype": "aarch64"}


def test_every_file_is_a_source_but_the_text_for_people():
    read = profile()
    files = {file for file in NEW.rglob("*") if file.is_file() and file.name != "README.txt"}
    assert {Path(source.path) for source in read.captures[0].sources} == files
    assert read.warnings == ()


def test_a_table_of_a_folder_is_the_same_source_when_it_comes_alone(tmp_path):
    of_folder = {Path(source.path).name: source.digest for source in capture().sources}
    for name in (f"op_summary_{TIME}.csv", f"msprof_{TIME}.json"):
        alone = tmp_path / name.partition("_2")[0] / OUTPUT / name
        alone.parent.mkdir(parents=True)
        shutil.copy(NEW / OUTPUT / name, alone)
        (source,) = readers.read(Found(alone.parents[1], "cann")).captures[0].sources
        assert source.digest == of_folder[name]


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


def test_kernels_are_handed_over_where_their_calls_begin():
    """The call of MatMul1 begins at 5, that of Add1 at 20; the collective and the copy name no call."""
    extras = capture().events.extras
    assert extras.handover_ns.tolist() == [*us(5, 20), MISSING, MISSING]
    assert extras.handover_thread.tolist() == [0, 0, -1, -1]


def test_arrow_to_the_task_goes_before_the_call(new):
    """It ends at 9.1, where the timeline starts MatMul1, which op_summary starts at 10.5."""
    add_arrow(
        new / OUTPUT / f"msprof_{TIME}.json", (78943, 77, f"{T // 1000 + 6}.000"), (79264, 2, f"{T // 1000 + 9}.100")
    )
    extras = capture(new).events.extras
    assert extras.handover_ns.tolist() == [*us(6, 20), MISSING, MISSING]
    assert extras.handover_thread.tolist() == [0, 0, -1, -1]


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


def test_op_summary_alone_says_nothing_of_copies_and_so_nothing_of_free_time(tmp_path):
    shutil.copy(NEW / OUTPUT / f"op_summary_{TIME}.csv", tmp_path)
    (found,) = readers.find(tmp_path)
    overall = timeline.rows_of(readers.read(found).captures[0].events).overall
    assert (overall.copy_ns, overall.exposed_copy_ns, overall.e2e_ns, overall.idle_ns) == (None,) * 4
    # 20.25 and 5 us
    assert overall.compute_ns == 25_250


def test_kernel_of_hccl_in_op_summary_is_its_collective(new):
    """A row AivKernel at the time of the collective: nothing but the kernels of the table becomes more."""
    before = timeline.rows_of(capture(new).events)
    device = capture(new).events.device
    (row,) = np.flatnonzero(device.kind == DeviceKind.COMMUNICATION).tolist()
    start, length = int(device.start_ns[row]), int(device.end_ns[row] - device.start_ns[row])
    file = new / OUTPUT / f"op_summary_{TIME}.csv"
    add = file.read_text().splitlines()[2].split(",")
    add[2:6] = ["99", "9", "AivKernel", "AivKernel"]
    add[8:10] = [f"{start // 1000}.{start % 1000:03d}\t", f"{length / 1000:.3f}"]
    file.write_text(file.read_text() + ",".join(add) + "\n")
    after = timeline.rows_of(capture(new).events)
    assert after.overall == before.overall


def test_host_of_msprof_alone_has_no_device_data(new):
    """Calls of CANN and no task of a device."""
    (new / OUTPUT / f"op_summary_{TIME}.csv").unlink()
    trace = new / OUTPUT / f"msprof_{TIME}.json"
    names = {event["pid"]: event["args"]["name"] for event in json.loads(trace.read_text())
             if event["name"] == "process_name"}  # fmt: skip
    kept = [event for event in json.loads(trace.read_text()) if names[event["pid"]] == "CANN"]
    trace.write_text(json.dumps(kept))
    for other in (new / OUTPUT).glob("task_time*"):
        other.unlink()
    found = timeline.build(capture(new))
    assert found.rows is not None
    assert found.quality_reason.startswith("no device data: ")
    assert (found.rows.overall.compute_ns, found.rows.overall.idle_ns) == (None, None)
