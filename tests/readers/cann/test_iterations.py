"""Before CANN 8, a folder per device and a file per iteration: steps and times."""

from __future__ import annotations

from tests.readers.cann.captures import OLD, OLD_T, add_arrow, capture, counted, measured, profile, us
from tests.readers.helpers import texts
from tracker import timeline
from tracker.profile import LaunchLevel


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


def test_handovers_are_dated_like_the_events(old):
    """3 us behind the start of the first iteration; the kernel runs from 6 us on."""
    file = old / "device_0" / "timeline" / "msprof_0_2_1.json"
    add_arrow(file, (702, 70, 56001000003), (3, 2, 56001000006))
    events = capture(old).events
    row = events.device.start_ns.tolist().index(OLD_T + 6_000)
    assert events.extras.handover_ns[row] == OLD_T + 3_000


def test_times_outside_of_the_capture_are_not_dated(old):
    for file in old.glob("device_*/start_info.*"):
        file.write_text(file.read_text().replace("56000000000000", "56002000000000"))
    assert profile(old).captures[0].started_at_ns is None


def test_a_date_beyond_64_bits_of_ns_dates_nothing(old):
    for file in old.glob("device_*/start_info.*"):
        file.write_text(file.read_text().replace("1692340024000000", "169234002400000000"))
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
