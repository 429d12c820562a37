"""Which processes, devices and steps of one PyTorch trace are what: merged ranks, counters, other makers, engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.readers import traces
from tests.readers.helpers import decoding, texts
from tracker.profile import Capture, Device, DeviceKind
from tracker.readers.torch_profiler import native, read

BOTH = [
    pytest.param(True, marks=pytest.mark.skipif(not native.is_built(), reason="the decoder is not built here")),
    False,
]


def read_events(folder: Path, events: list[dict], **top: Any) -> tuple[tuple[Capture, ...], tuple[str, ...]]:
    profile = read(traces.write(folder, events, **top))
    return profile.captures, profile.warnings


def work(pid: Any, device_pid: Any, ordinal: int, kernel_us: int) -> list[dict]:
    """A step of 100 us in which aten::mm launches one kernel, under correlation 1."""
    kernel = traces.kernel("gemm", 20, kernel_us, 1, device=ordinal) | {"pid": device_pid}
    return [
        traces.step(1, 0, 100, pid=pid, tid=pid),
        traces.op("aten::mm", 5, 20, pid=pid, tid=pid),
        traces.launch(1, 10, pid=pid, tid=pid),
        kernel,
    ]


def device_times(captures: tuple[Capture, ...]) -> list[tuple[int | None, list[int]]]:
    return [
        (capture.rank, (capture.events.device.end_ns - capture.events.device.start_ns).tolist())
        for capture in captures
        if capture.events is not None
    ]


@pytest.mark.parametrize("ordinal", [0, 1])
def test_merged_ranks_are_captures_with_their_own_kernels(tmp_path: Path, ordinal: int):
    first = work("[TP00] 4100", "[TP00] 0", 0, 30)
    second = work("[TP01] 4101", f"[TP01] {ordinal}", ordinal, 50)
    captures, _ = read_events(tmp_path, [*second, *first])
    assert device_times(captures) == [(0, [30_000]), (1, [50_000])]


def test_merged_ranks_keep_the_numbers_of_their_labels(tmp_path: Path):
    captures, _ = read_events(tmp_path, [*work("[TP04] 1", "[TP04] 0", 0, 30), *work("[TP06] 2", "[TP06] 0", 0, 50)])
    assert [capture.rank for capture in captures] == [4, 6]


def test_merged_ranks_of_two_numbers_are_counted(tmp_path: Path):
    events = [*work("[DP1-TP0] 1", "[DP1-TP0] 0", 0, 30), *work("[DP0-TP0] 2", "[DP0-TP0] 0", 0, 50)]
    captures, _ = read_events(tmp_path, events)
    assert device_times(captures) == [(0, [50_000]), (1, [30_000])]


@pytest.mark.parametrize("compiled", BOTH)
def test_counters_of_another_process_are_no_rank(tmp_path: Path, compiled: bool):
    counters = [traces.op(f"nic:{i}", i, 0, cat="privateuse1_runtime", pid=77, tid=0) for i in range(400)]
    with decoding(compiled=compiled):
        (capture,), warnings = read_events(tmp_path, [*work(1, 0, 0, 30), *counters])
    assert capture.events is not None
    assert len(capture.events.launches) == 1
    assert warnings == ("process 77 runs no operator and launches nothing, so it is no rank: 400 events are left out",)


def test_calls_of_a_driver_process_are_host_calls(tmp_path: Path):
    driver = traces.op("nrt_run", 20, 30, cat="privateuse1_driver", pid=2, tid=0, device=0)
    (capture,), _ = read_events(tmp_path, [traces.step(1, 0, 100), traces.op("aten::mm", 5, 20), driver])
    assert capture.events is not None
    assert [capture.events.strings[name] for name in capture.events.launches.name.tolist()] == ["nrt_run"]


@pytest.mark.parametrize("compiled", BOTH)
def test_calls_of_any_vendor_launch_kernels(tmp_path: Path, compiled: bool):
    call = traces.launch(1, 10, cat="musa_runtime", name="musaLaunchKernel")
    events = [traces.op("aten::mm", 5, 20), call, traces.kernel("gemm", 20, 30, 1)]
    with decoding(compiled=compiled):
        (capture,), _ = read_events(tmp_path, events, deviceProperties=[{"id": 0, "name": "MTT S5000"}])
    assert capture.device == Device("unknown", "MTT S5000")
    assert capture.events is not None
    assert capture.events.launches.correlation.tolist() == [1]


@pytest.mark.parametrize(
    ("name", "top", "vendor"),
    [
        ("NVIDIA H100 80GB HBM3", {}, "NVIDIA"),
        ("Tesla V100-SXM2-16GB", {}, "NVIDIA"),
        ("A100-SXM4-40GB", {}, "NVIDIA"),
        ("Graphics Device", {"cuda_driver_version": 12040}, "NVIDIA"),
        ("AMD Instinct MI300X", {}, "AMD"),
        ("ARTEMIS", {}, "unknown"),
        ("Trainium2", {}, "unknown"),
    ],
)
def test_vendor_is_known_by_name_or_libraries(tmp_path: Path, name: str, top: dict, vendor: str):
    properties = [{"id": 0, "name": name}]
    (capture,), _ = read_events(tmp_path, work(1, 0, 0, 30), deviceProperties=properties, **top)
    assert capture.device.vendor == vendor


def test_waits_of_mtia_are_no_work_and_its_requests_are_copies(tmp_path: Path):
    names = ("pe_exe", "event_wait", "dma_request", "event_record")
    events = [traces.kernel(name, 10 * i, 5, cat="mtia_ccp_events") for i, name in enumerate(names)]
    (capture,), _ = read_events(tmp_path, [traces.op("aten::mm", 0, 50), *events])
    assert capture.events is not None
    device = capture.events.device
    assert texts(capture.events, device.name) == ["pe_exe", "dma_request"]
    assert device.kind.tolist() == [DeviceKind.KERNEL, DeviceKind.COPY]


def allocation(ts: int, device: int, total: int) -> dict:
    return traces.memory(ts, 8, **{"Device Id": device, "Total Allocated": total, "Total Reserved": total})


def test_memory_of_an_idle_device_is_of_no_rank(tmp_path: Path):
    (capture,), _ = read_events(tmp_path, [*work(traces.HOST, 0, 0, 30), allocation(6, 0, 100), allocation(7, 1, 500)])
    assert capture.events is not None
    assert capture.events.allocations.total_allocated_bytes.tolist() == [100]


def test_memory_of_one_device_counted_otherwise_is_kept(tmp_path: Path):
    # kernels name the device of the machine, the allocator the first visible one
    (capture,), _ = read_events(tmp_path, [*work(traces.HOST, 3, 3, 30), allocation(6, 0, 100)])
    assert capture.events is not None
    assert capture.events.allocations.total_allocated_bytes.tolist() == [100]


@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        (("execute_context_0(0)_generation_16(16)",) * 3, [0, 1, 2]),
        (("step[EXTEND bs=1 toks=8]", "step[DECODE bs=1]", "step[DECODE bs=1]"), [0, 1, 2]),
        (("iteration 7", "iteration 8", "iteration 9"), [7, 8, 9]),
        (("batch 2", "batch 1", "batch 2"), [0, 1, 2]),
    ],
)
def test_annotations_of_an_engine_are_steps(tmp_path: Path, names: tuple[str, ...], numbers: list[int]):
    marks = [traces.op(name, 100 * i, 90, cat="user_annotation") for i, name in enumerate(names)]
    (capture,), warnings = read_events(tmp_path, [*marks, traces.op("aten::mm", 5, 20)])
    assert capture.events is not None
    assert capture.events.markers.step.tolist() == numbers
    assert warnings == (f"no ProfilerStep marks a step: the 3 annotations such as {names[0]} do",)
    # what marks a step is no operator
    assert texts(capture.events, capture.events.ops.name) == ["aten::mm"]


def test_collective_beside_marks_of_an_engine_stays_with_its_operator(tmp_path: Path):
    marks = [traces.op("step[DECODE bs=1]", 100 * i, 90, cat="user_annotation") for i in range(2)]
    said = {"Input Dims": [[4]], "Input type": ["float"]}
    reduce = traces.op("nccl:all_reduce", 30, 5, cat="user_annotation", **said)
    (capture,), _ = read_events(tmp_path, [*marks, traces.op("aten::mm", 5, 20), reduce])
    assert capture.events is not None
    ops = capture.events.ops
    assert texts(capture.events, ops.name[ops.collective >= 0]) == ["nccl:all_reduce"]


@pytest.mark.parametrize(
    "marks",
    [
        [("execute_model", 0, 90)],  # once
        [("execute_model", 0, 90), ("execute_model", 50, 90)],  # they overlap
        [("forward", 0, 90), ("forward", 100, 90)],  # no word of an engine
    ],
)
def test_other_annotations_are_no_steps(tmp_path: Path, marks: list[tuple[str, int, int]]):
    events = [traces.op(name, ts, dur, cat="user_annotation") for name, ts, dur in marks]
    (capture,), _ = read_events(tmp_path, [*events, traces.op("aten::mm", 5, 20)])
    assert capture.events is not None
    assert len(capture.events.markers) == 0


def test_step_numbers_of_two_cycles_are_counted_on(tmp_path: Path):
    marks = [traces.step(number, 100 * i, 90) for i, number in enumerate((1, 2, 3, 1, 2, 3))]
    (capture,), warnings = read_events(tmp_path, [*marks, traces.op("aten::mm", 5, 20)])
    assert capture.events is not None
    assert capture.events.markers.step.tolist() == [1, 2, 3, 4, 5, 6]
    assert warnings == ("numbers of steps stand there twice, as in cycles of one schedule: they are counted on",)


def test_marker_without_length_that_stands_there_twice_is_one_step(tmp_path: Path):
    (capture,), warnings = read_events(tmp_path, [traces.step(3, 0, 0), traces.step(3, 0, 0), traces.op("a", 5, 9)])
    assert capture.events is not None
    assert capture.events.markers.step.tolist() == [3]
    assert warnings == ()


def test_nested_markers_of_one_number_are_one_step(tmp_path: Path):
    (capture,), warnings = read_events(tmp_path, [traces.step(1, 10, 50), traces.step(1, 0, 90), traces.op("a", 5, 9)])
    assert capture.events is not None
    markers = capture.events.markers
    assert np.stack([markers.start_ns, markers.end_ns]).tolist() == [[0], [90_000]]
    assert warnings == ()
