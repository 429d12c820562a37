"""Hand-computable stories: what each number means."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.timeline.made_events import Made, by_op, records
from tracker.profile import MISSING, NO_STEP, Breakdown, LaunchLevel
from tracker.timeline import build, rows_of


def parts(breakdown: Breakdown) -> dict[str, int | None]:
    names = ("compute", "communication", "overlap", "exposed_communication", "copy", "exposed_copy", "idle", "e2e")
    return {name: getattr(breakdown, f"{name}_ns") for name in names}


def test_classes_of_device_time_share_the_span_between_first_start_and_last_end():
    made = Made()
    made.kernel("sgemm", 100, 140)
    made.kernel("relu", 120, 160, stream=8)
    made.kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 150, 190, stream=9)
    made.copy(185, 200, stream=10)
    made.memset(210, 220, stream=10)
    assert parts(made.built().overall) == {
        "compute": 60,
        "communication": 40,
        "overlap": 10,
        "exposed_communication": 30,
        "copy": 25,
        "exposed_copy": 20,
        "idle": 10,
        "e2e": 120,
    }


def test_plain_sums_stand_beside_the_unions_and_copies_are_no_kernels():
    made = Made()
    made.launch(1, 1)
    made.kernel("a", 10, 20, 1)
    made.kernel("b", 15, 25)
    made.copy(30, 34)
    overall = made.built().overall
    assert (overall.kernel_count, overall.kernel_total_ns, overall.compute_total_ns) == (2, 20, 20)
    assert (overall.copy_total_ns, overall.communication_total_ns) == (4, 0)
    assert (overall.unlinked_kernel_count, overall.unlinked_kernel_total_ns) == (1, 10)


def test_a_copy_inside_a_collective_on_a_stream_of_collectives_belongs_to_the_collective():
    made = Made()
    gather = made.collective("all_gather", bytes=1000)
    made.annotation("nccl:all_gather", 0, 50, collective=gather)
    for correlation in (1, 2, 3):
        made.launch(10 + correlation, correlation)
    made.kernel("ncclDevKernel_AllGather_RING_LL", 100, 110, 1, stream=20)
    made.copy(110, 115, 2, stream=20)
    made.copy(110, 117, 3, stream=7)
    rows = made.built()
    assert (rows.overall.communication_ns, rows.overall.copy_ns) == (15, 7)
    assert (rows.overall.kernel_count, rows.overall.kernel_total_ns) == (1, 10)
    columns = ("kind", "calls", "bytes", "total_ns", "size_class_bytes")
    assert records(rows.tables["communication"], *columns) == [("all_gather", 1, 1000, 15, 1024)]
    assert records(rows.tables["communication_task"], "communication", "name", "calls", "total_ns") == [
        (0, "Memcpy HtoD (Pinned -> Device)", 1, 5),
        (0, "ncclDevKernel_AllGather_RING_LL", 1, 10),
    ]


def test_host_timeline_stands_in_without_device_activity():
    made = Made()
    reduce = made.collective("all_reduce", bytes=4096, data_type="float32", group_size=2)
    made.step(1, 0, 100)
    made.annotation("Optimizer.step#SGD.step", 60, 95)
    made.op("aten::mm", 10, 40)
    made.op("c10d::allreduce_", 40, 45)
    made.annotation("gloo:all_reduce", 35, 55, thread=1, collective=reduce)
    made.op("aten::add_", 50, 52, thread=1)
    made.op("aten::mul", 90, 130)
    rows = made.built()
    (step,) = rows.steps
    assert (step.breakdown.timeline, step.breakdown.kernel_count) == ("host", 0)
    assert parts(step.breakdown) == {
        "compute": 40,
        "communication": 20,
        "overlap": 5,
        "exposed_communication": 15,
        "copy": 0,
        "exposed_copy": 0,
        "idle": 45,
        "e2e": 100,
    }
    assert parts(rows.overall)["e2e"] == 130 and parts(rows.overall)["compute"] == 70
    columns = (
        "step",
        "kind",
        "group_size",
        "data_type",
        "size_class_bytes",
        "calls",
        "bytes",
        "total_ns",
        "exposed_ns",
    )
    assert records(rows.tables["communication"], *columns) == [(1, "all_reduce", 2, "float32", 4096, 1, 4096, 20, 15)]
    assert records(rows.tables["kernel"], "calls") == []


def test_collective_beyond_its_step_is_exposed_up_to_its_end():
    """A call of 30 ns of which the step has 20: the row of its process group is no larger than that of the step."""
    made = Made()
    reduce = made.collective("all_reduce")
    made.step(1, 0, 100)
    made.step(2, 150, 200)
    made.op("aten::mm", 10, 40)
    made.annotation("gloo:all_reduce", 80, 110, thread=1, collective=reduce)
    rows = made.built()
    assert [row.breakdown.exposed_communication_ns for row in rows.steps] == [20, 0]
    assert records(rows.tables["communication"], "step", "total_ns", "exposed_ns") == [(1, 30, 20)]


def test_data_loading_is_unknown_where_the_source_never_mentions_it():
    made = Made()
    made.op("aten::mm", 0, 1)
    assert made.built().overall.data_loading_ns is None


def test_device_idles_in_data_loading_from_the_start_of_the_step():
    """Of 60 ns of loading the device works in 10; no kernel runs before 70, which is no reason to call it busy."""
    made = Made()
    made.step(1, 0, 100)
    made.op("DataLoader", 0, 50, phase="dataloader")
    made.launch(60, 1)
    made.kernel("gemm", 70, 95, 1)
    made.step(2, 100, 200)
    made.op("DataLoader", 110, 120, phase="dataloader")
    made.launch(101, 2)
    made.kernel("gemm", 105, 130, 2)
    rows = made.built()
    found = [(row.breakdown.data_loading_ns, row.breakdown.data_loading_idle_ns) for row in rows.steps]
    assert found == [(50, 50), (10, 0)]
    assert rows.overall.data_loading_idle_ns == 50


def test_a_thread_in_a_collective_does_not_compute_though_an_op_is_around_it():
    made = Made()
    gather = made.collective("all_gather")
    made.step(1, 0, 100)
    made.op("MyAllToAll", 10, 90)
    made.annotation("gloo:all_to_all", 20, 80, collective=gather)
    made.op("aten::mm", 30, 40, thread=1)
    (step,) = made.built().steps
    found = parts(step.breakdown)
    assert (found["compute"], found["communication"], found["overlap"], found["idle"]) == (30, 60, 10, 20)


def test_without_addresses_nobody_knows_how_long_memory_was_held():
    made = Made()
    made.op("op", 0, 100)
    made.allocation(10, 512, MISSING)
    made.allocation(20, -512, MISSING)
    rows = made.built()
    assert records(rows.tables["memory"], "bytes", "held_ns", "unreleased_bytes") == [(512, MISSING, MISSING)]


def test_memory_goes_to_the_outer_op_of_the_allocating_thread():
    made = Made()
    made.step(1, 0, 50)
    made.op("outer", 0, 100)
    made.op("inner", 10, 20)
    made.allocation(12, 512, 0xA, total_allocated_bytes=512, total_reserved_bytes=2048)
    made.allocation(30, 256, 0xB, total_allocated_bytes=768, total_reserved_bytes=2048)
    made.allocation(60, -512, 0xA, total_allocated_bytes=256, total_reserved_bytes=2048)
    made.allocation(70, 64, 0xC, thread=1)
    made.allocation(71, 8, 0xC, on_device=0, component="cpu", total_allocated_bytes=9_999)
    rows = made.built()
    columns = ("step", "component", "calls", "bytes", "held_ns", "unreleased_bytes")
    names = rows.tables["op_key"]["name"]
    found = [(names[key], *values) for key, *values in records(rows.tables["memory"], "op_key", *columns)]
    assert sorted(found) == [
        ("(no op)", NO_STEP, "device", 1, 64, MISSING, 64),
        ("outer", NO_STEP, "cpu", 1, 8, MISSING, 8),
        ("outer", 1, "device", 2, 768, 48, 256),
    ]
    assert (rows.overall.peak_allocated_bytes, rows.overall.peak_reserved_bytes) == (768, 2048)
    assert rows.steps[0].breakdown.peak_allocated_bytes == 768
    curve = rows.tables["memory_curve"]
    assert records(curve, "component", "time_ns", "allocated_bytes") == [
        ("cpu", 71, 9_999),
        ("device", 12, 512),
        ("device", 30, 768),
        ("device", 60, 256),
    ]


def test_a_long_memory_curve_keeps_its_maximum_in_500_points():
    made = Made()
    for time in range(5000):
        made.allocation(time, 1, time, total_allocated_bytes=10**6 if time == 3333 else time, total_reserved_bytes=0)
    curve = made.built().tables["memory_curve"]
    assert len(curve["time_ns"]) <= 500
    assert max(curve["allocated_bytes"]) == 10**6


def test_api_self_time_leaves_out_nested_calls():
    made = Made()
    made.launch(0, 1, end=100, name="cudaLaunchKernel")
    made.launch(10, 2, end=40, name="cuLaunchKernel", level=LaunchLevel.DRIVER)
    columns = ("level", "name", "calls", "total_ns", "self_ns", "min_ns", "max_ns")
    assert sorted(records(made.built().tables["api"], *columns)) == [
        ("driver", "cuLaunchKernel", 1, 30, 30, 30, 30),
        ("runtime", "cudaLaunchKernel", 1, 100, 70, 100, 100),
    ]


def test_the_second_device_of_a_process_leaves_host_time_to_the_first():
    made = Made()
    made.host_is_primary = False
    made.op("idle", 0, 10)
    made.op("busy", 20, 30)
    made.launch(25, 1)
    made.kernel("k", 40, 45, 1)
    made.allocation(25, 10, 1, total_allocated_bytes=10)
    rows = made.built()
    assert by_op(rows, "calls", "host_total_ns", "host_self_ns", "device_self_ns") == {
        "busy": (MISSING, MISSING, MISSING, 5)
    }
    assert by_op(rows, "host_total_ns", "device_total_ns", table="op_tree") == {"busy": (MISSING, 5)}
    assert records(rows.tables["api"], "calls") == []
    assert rows.overall.peak_allocated_bytes == 10


def test_kernel_rows_tell_kernels_of_different_ops_apart_and_include_copies():
    made = Made()
    made.op("aten::mm", 0, 10)
    made.op("aten::add", 20, 30)
    made.launch(5, 1)
    made.launch(25, 2)
    made.launch(26, 3)
    made.kernel("void same<4>(int)", 40, 50, 1)
    made.kernel("void same<4>(int)", 50, 53, 2)
    made.copy(60, 64, 3, bytes=100)
    rows = made.built()
    names, keys = rows.tables["op_key"]["name"], rows.tables["kernel_key"]
    found = [
        (keys["canonical_name"][kernel], names[op], *values)
        for kernel, op, *values in records(
            rows.tables["kernel"], "kernel_key", "op_key", "category", "calls", "total_ns", "bytes", "wait_ns"
        )
    ]
    assert sorted(found) == [
        ("Memcpy HtoD (Pinned -> Device)", "aten::add", "copy", 1, 4, 100, MISSING),
        ("same<4>", "aten::add", "vector", 1, 3, MISSING, MISSING),
        ("same<4>", "aten::mm", "matmul", 1, 10, MISSING, MISSING),
    ]


def test_a_capture_with_rows_stays_as_it_is_and_one_without_anything_is_refused():
    capture = build(Made().capture())
    assert capture.events is None and capture.rows is not None
    assert build(capture) is capture
    with pytest.raises(ValueError, match="neither"):
        build(Made().capture().__class__(0, 1, "", capture.device, 0, None, None, ()))


def test_nothing_happened_is_a_capture_too():
    rows = Made().built()
    assert parts(rows.overall)["e2e"] == 0
    assert rows.overall.peak_allocated_bytes is None
    assert [row.step for row in rows.steps] == [0]


def without_copies(made: Made) -> Breakdown:
    events = made.events()
    return rows_of(replace(events, extras=replace(events.extras, no_copies=True))).overall


def test_where_copies_are_unknown_so_are_end_to_end_time_and_idle_time():
    made = Made()
    made.kernel("sgemm", 100, 140)
    made.kernel("relu", 150, 160)
    assert parts(without_copies(made)) == {
        "compute": 50, "communication": 0, "overlap": 0, "exposed_communication": 0,
        "copy": None, "exposed_copy": None, "idle": None, "e2e": None,
    }  # fmt: skip


@pytest.mark.parametrize(("steps", "idle", "e2e"), [((0, 1), 30, 80), ((0,), None, None)])
def test_where_copies_are_unknown_the_idle_time_that_the_profiler_says_of_all_steps_stands_in(steps, idle, e2e):
    made = Made()
    for number, start in ((0, 100), (1, 200)):
        made.step(number, start, start + 100)
        made.kernel("sgemm", start, start + 25, step=number)
    for number in steps:
        made.step_times(number, idle=15)
    found = without_copies(made)
    assert (found.compute_ns, found.idle_ns, found.e2e_ns) == (50, idle, e2e)


def test_gloo_beside_kernels_is_communication_of_the_host():
    """A kernel from 10 to 30, gloo from 20 to 60: 40 of communication, of which compute hides 10."""
    made = Made()
    gloo = made.collective("all_reduce", bytes=1000)
    made.annotation("gloo:all_reduce", 20, 60, thread=1, collective=gloo)
    made.launch(5, 1)
    made.kernel("gemm", 10, 30, 1)
    rows = made.built()
    assert parts(rows.overall) == {
        "compute": 20,
        "communication": 40,
        "overlap": 10,
        "exposed_communication": 30,
        "copy": 0,
        "exposed_copy": 0,
        "idle": 0,
        "e2e": 50,
    }
    columns = ("kind", "calls", "bytes", "total_ns", "exposed_ns")
    assert records(rows.tables["communication"], *columns) == [("all_reduce", 1, 1000, 40, 30)]
    assert rows.overall.communication_total_ns == 40
