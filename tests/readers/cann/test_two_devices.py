"""Two devices in one capture of CANN: which rows belong to which."""

from __future__ import annotations

from tests.readers.cann.captures import NEW, OLD, OUTPUT, TIME, T, add_arrow, counted, profile, us
from tests.readers.helpers import texts
from tracker.intake import ingest
from tracker.readers.cann.trace import MsprofTrace
from tracker.store import open_store


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


def test_arrow_to_one_device_launches_nothing_on_the_other(two):
    """It ends at 9.1, where MatMul1 starts on the first device; Add1 starts on both, and is launched at 20."""
    add_arrow(
        two / OUTPUT / f"msprof_{TIME}.json", (78943, 77, f"{T // 1000 + 6}.000"), (79264, 2, f"{T // 1000 + 39}.500")
    )
    first, second = (one.events for one in profile(two).captures)
    row, other = (texts(events, events.device.name).index("Add1") for events in (first, second))
    assert (first.extras.handover_ns[row], second.extras.handover_ns[other]) == tuple(us(6, 20))


def test_two_devices_in_one_folder_are_two_captures_and_host_time_counts_once(two):
    captures = profile(two).captures
    assert [len(capture.events.device) for capture in captures] == [4, 2]
    assert [(c.rank, c.device_ordinal, c.events.host_is_primary) for c in captures] == [(3, 0, True), (None, 1, False)]
    assert captures[0].sources == captures[1].sources


def test_devices_of_one_process_form_one_run(tmp_path):
    with open_store("sqlite://") as store:
        (result,) = ingest(store, [OLD], version="v1", workload="w")
        assert (result.ranks, result.steps) == ((0, 1), 2)
        (again,) = ingest(store, [OLD], version="v1", workload="w")
        assert again.already
