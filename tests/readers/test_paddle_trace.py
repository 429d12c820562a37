"""The reader of Paddle traces: what becomes of each kind of event, and how exact its times are."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.readers.paddle_traces import BASE_US, event, kernel, memory, step, write
from tracker import readers, timeline
from tracker.errors import SourceError
from tracker.profile import CPU, MISSING, Capture, Device, DeviceKind, Rows
from tracker.readers import ReadOptions, paddle_trace
from tracker.readers.paddle_trace.clock import base_of, settled


def read(path: Path, **options: Any) -> Capture:
    (capture,) = paddle_trace.read(path, ReadOptions(**options)).captures
    return capture


def rows_of(path: Path) -> Rows:
    rows = timeline.build(read(path)).rows
    assert rows is not None
    return rows


def frame(rows: Rows, table: str) -> pd.DataFrame:
    """A table of rows with the names of its ops."""
    keys = pd.DataFrame(rows.tables["op_key"])
    return pd.DataFrame(rows.tables[table]).merge(keys, left_on="op_key", right_index=True)


def a_step(folder: Path) -> Path:
    """One step: loads, runs a layer of one op with an inner op and a launch, goes back, optimizes."""
    return write(
        folder,
        step(5, 0, 100_000),
        event("Dataloader", "_DataLoaderIter", 1_000, 9_000, lane="Python"),
        event("Forward", "Net", 10_000, 40_000, lane="Python"),
        event("Backward", "Gradient Backward", 50_000, 20_000, lane="Python"),
        event("Optimization", "Optimization Step", 70_000, 20_000, lane="Python"),
        event("UserDefined", "optimizer clear_grad", 91_000, 4_000),
        event("UserDefined", "relu pybind_imperative_func", 11_000, 32_000),
        event(
            "Operator", "relu dygraph", 12_000, 30_000, input_shapes={"x": [[8, 96]]}, input_dtypes={"x": ["float32"]}
        ),
        event("OperatorInner", "relu infer_meta", 13_000, 1_000),
        event("DygraphKernelLaunch", "relu kernel launch", 15_000, 20_000),
        memory("Allocate", 512, 16_000, allocated=600),
    )


def test_ops_nest_across_both_lanes_of_a_thread_and_own_times_add_up(tmp_path: Path):
    ops = frame(rows_of(a_step(tmp_path)), "op").set_index("name")
    assert ops["host_self_ns"].drop(["(no op)", "(unlinked)"], errors="ignore").to_dict() == {
        "_DataLoaderIter": 9_000,
        "Net": 40_000 - 32_000,
        "relu pybind_imperative_func": 32_000 - 30_000,
        "relu dygraph": 30_000 - 1_000 - 20_000,
        "relu infer_meta": 1_000,
        "relu kernel launch": 20_000,
        "Gradient Backward": 20_000,
        "Optimization Step": 20_000,
        "optimizer clear_grad": 4_000,
    }


def test_phases_and_layers_go_down_to_the_ops_inside(tmp_path: Path):
    ops = frame(rows_of(a_step(tmp_path)), "op").set_index("name")
    assert ops["phase"].to_dict() == {
        "_DataLoaderIter": "dataloader",
        "Net": "forward",
        "relu pybind_imperative_func": "forward",
        "relu dygraph": "forward",
        "relu infer_meta": "forward",
        "relu kernel launch": "forward",
        "Gradient Backward": "backward",
        "Optimization Step": "optimizer",
        "optimizer clear_grad": "clear_grad",
    }
    assert ops.loc["relu dygraph", ["module", "input_shapes", "input_types"]].tolist() == [
        "Net", "x[[8,96]]", "x[float32]",
    ]  # fmt: skip


def test_without_a_device_only_operators_compute(tmp_path: Path):
    rows = rows_of(a_step(tmp_path))
    (one,) = rows.steps
    assert (one.step, one.steps, one.breakdown.duration_ns) == (5, 1, 100_000)
    assert (rows.overall.timeline, rows.overall.compute_ns, rows.overall.idle_ns) == ("host", 30_000, 70_000)
    assert rows.overall.data_loading_ns == 9_000


def test_an_allocation_belongs_to_the_event_that_it_stands_behind(tmp_path: Path):
    # both ops start inside of the us that the allocation names, and `ts` is cut to whole us
    path = write(
        tmp_path,
        event("Operator", "a dygraph", 1_000, 400),
        memory("Allocate", 8, 1_300, allocated=8),
        event("Operator", "b dygraph", 1_600, 3_000),
        memory("Allocate", 64, 1_650, allocated=72),
        memory("ReservedAllocate", 4096, 1_700, allocated=72),
    )
    rows = rows_of(path)
    assert frame(rows, "memory").set_index("name")[["calls", "bytes"]].T.to_dict("list") == {
        "a dygraph": [1, 8],
        "b dygraph": [1, 64],
    }
    assert (rows.overall.peak_allocated_bytes, rows.overall.peak_reserved_bytes) == (72, 1024)


def gpu_step(folder: Path, **top: Any) -> Path:
    return write(
        folder,
        event("Operator", "matmul dygraph", 1_000, 20_000),
        event("CudaRuntime", "cudaLaunchKernel", 5_000, 2_000, **{"correlation id": 41}),
        event("Communication", "ProcessGroupNCCL::AllReduce", 30_000, 5_000),
        event("CudaRuntime", "cudaLaunchKernel", 31_000, 2_000, **{"correlation id": 42}),
        event("CudaRuntime", "cudaMemcpyAsync", 40_000, 2_000, **{"correlation id": 43}),
        kernel("volta_sgemm_128x64_nn", 8_000, 10_000, correlation=41),
        kernel("ncclKernel_AllReduce_RING_LL_Sum_float", 32_000, 6_000, correlation=42),
        kernel("MEMCPY_HtoD", 43_000, 3_000, correlation=43, category="Memcpy"),
        **top,
    )


def test_kernels_are_linked_to_the_op_that_launched_them(tmp_path: Path):
    rows = rows_of(gpu_step(tmp_path))
    keys = pd.DataFrame(rows.tables["kernel_key"])[["canonical_name"]]
    kernels = frame(rows, "kernel").merge(keys, left_on="kernel_key", right_index=True).set_index("name")
    assert kernels[["canonical_name", "category", "total_ns"]].T.to_dict("list") == {
        "matmul dygraph": ["volta_sgemm_128x64_nn", "matmul", 10_000],
        "ProcessGroupNCCL::AllReduce": ["ncclKernel_AllReduce_RING_LL_Sum_float", "communication", 6_000],
        "(no op)": ["MEMCPY_HtoD", "copy", 3_000],
    }
    overall = rows.overall
    assert (overall.timeline, overall.e2e_ns, overall.compute_ns, overall.communication_ns, overall.copy_ns) == (
        "device", 38_000, 10_000, 6_000, 3_000,
    )  # fmt: skip
    assert rows.tables["communication"]["kind"] == ["all_reduce"]


def test_the_device_is_what_the_trace_names(tmp_path: Path):
    assert read(gpu_step(tmp_path)).device == Device("", "unknown")
    named = gpu_step(tmp_path, deviceProperties=[{"id": 0, "name": "NVIDIA A100-SXM4-40GB"}])
    assert read(named).device == Device("NVIDIA", "A100-SXM4-40GB")
    assert read(named).device_ordinal == 0
    assert read(a_step(tmp_path)).device == CPU


def test_device_events_keep_their_kind(tmp_path: Path):
    events = read(gpu_step(tmp_path)).events
    assert events is not None
    assert events.device.kind.tolist() == [DeviceKind.KERNEL, DeviceKind.KERNEL, DeviceKind.COPY]


def test_host_rank_time_and_utilization_are_read(tmp_path: Path):
    made = write(tmp_path, step(1, 0, 1_000), name="host_node-3pid_7_time_2026.paddle_trace.json")
    capture = read(made)
    assert (capture.host, capture.rank, capture.started_at_ns) == ("node-3", None, BASE_US * 1000)
    assert capture.events is not None
    assert capture.events.extras.counters.value.tolist() == [125.0, 50.0]
    assert read(write(tmp_path, step(1, 0, 1_000), name="rank3_time_1.paddle_trace.json")).rank == 3


def test_times_are_exact_where_the_floats_of_the_trace_are_not():
    # after 4.2 s a single-precision float of ns counts in steps of 256 ns
    start = 4_200_000_123
    told = int(np.float32(start))
    events = {
        "ts_ns": np.array([BASE_US * 1000, BASE_US * 1000 + start // 1000 * 1000], dtype=np.int64),
        "told_start_ns": np.array([0, told], dtype=np.int64),
        "told_end_ns": np.array([500, int(np.float32(start + 2_001))], dtype=np.int64),
        "duration_ns": np.array([500, 2_001], dtype=np.int64),
        "thread": np.zeros(2, dtype=np.int32),
    }
    starts, ends = settled(events, base_of(events))
    assert (ends - starts).tolist() == [500, 2_001]
    assert abs(int(starts[1]) - (BASE_US * 1000 + start)) <= 256


def test_rounding_makes_no_child_stick_out_of_its_parent(tmp_path: Path):
    # 1 s into the capture floats are 64 ns apart: parent and child end together, the child seems to end later
    parent, child = (1_000_000_031, 5_000), (1_000_003_001, 2_030)
    path = write(
        tmp_path,
        event("Operator", "first", 0, 500),
        event("Operator", "parent", *parent),
        event("OperatorInner", "child", *child),
    )
    tree = frame(rows_of(path), "op_tree").set_index("name")
    assert tree.loc["child", "parent"] == tree.loc["parent", "node"]
    assert tree.loc["child", "host_total_ns"] == 2_030


def test_a_trace_without_start_times_is_read_by_ts_and_dur(tmp_path: Path):
    bare = event("Operator", "relu dygraph", 3_000, 1_500)
    bare["args"] = {}
    events = read(write(tmp_path, bare)).events
    assert events is not None
    assert (events.ops.start_ns - BASE_US * 1000).tolist() == [3_000]
    assert (events.ops.end_ns - events.ops.start_ns).tolist() == [1_500]
    assert events.ops.sequence.tolist() == [-1]
    assert MISSING not in events.ops.start_ns


def test_gzip_and_the_old_spelling_are_claimed(tmp_path: Path):
    plain = write(tmp_path, step(1, 0, 1_000))
    zipped = tmp_path / "a.json.gz"
    zipped.write_bytes(gzip.compress(plain.read_bytes()))
    assert readers.claim(zipped) == "paddle_trace"
    properties = [{"id": number, "name": "Tesla V100", "note": "x" * 900} for number in range(8)]
    old = plain.read_text().replace("span_index", "span_indx")
    old = old.replace('"traceEvents"', f'"deviceProperties": {properties}, "traceEvents"'.replace("'", '"'))
    plain.write_text(old)
    assert readers.claim(plain) == "paddle_trace"


def test_an_impossible_time_is_an_error_with_its_byte_and_can_be_skipped(tmp_path: Path):
    bad = event("Operator", "relu dygraph", 0, 1_000)
    bad["args"]["start_time"] = "soon"
    path = write(tmp_path, event("Operator", "good", 0, 1_000), bad)
    with pytest.raises(SourceError, match=r"byte \d+: event 'relu dygraph\[1.000 us\]': start_time: 'soon' is not"):
        read(path)
    profile = paddle_trace.read(path, ReadOptions(skip_bad_rows=True))
    assert profile.warnings == ("1 events with impossible times were left out",)


def test_reserved_memory_that_is_less_than_what_is_allocated_is_not_believed(tmp_path: Path):
    """The trace says of both places that 1,024 bytes are reserved, whatever happens."""
    path = write(
        tmp_path,
        step(5, 0, 100_000),
        memory("Allocate", 700, 1_000, allocated=700, peak=1_500),
        memory("Allocate", 1_300, 2_000, allocated=2_000, peak=2_500),
        memory("Allocate", 300, 3_000, allocated=300, place="gpu_pinned", peak=5_000),
    )
    reserved = read(path).events.allocations.total_reserved_bytes
    assert reserved.tolist() == [1_500, 2_500, 1_024]


def test_a_cut_trace_is_refused_or_partial(tmp_path: Path):
    path = a_step(tmp_path)
    path.write_text(path.read_text()[:-900])
    with pytest.raises(SourceError, match="ends in the middle"):
        read(path)
    assert read(path, allow_partial=True).quality == "partial"


@pytest.mark.parametrize(("cut_at", "steps"), [("relu2", []), ("ExtraInfo", [1, 2])])
def test_no_step_of_a_trace_that_ends_in_the_middle_of_its_events_is_surely_whole(tmp_path: Path, cut_at, steps):
    """Paddle writes all steps first, then what they called: `relu2` is all that step 2 lacks, and may lack more."""
    path = write(
        tmp_path,
        step(1, 0, 900_000),
        step(2, 1_000_000, 900_000),
        event("Operator", "relu1", 100_000, 300_000),
        event("Operator", "relu2", 1_100_000, 300_000),
    )
    path.write_text(path.read_text()[: path.read_text().index(f'"{cut_at}')])
    capture = timeline.build(read(path, allow_partial=True))
    assert capture.rows is not None
    assert [row.step for row in capture.rows.steps] == steps
    assert capture.quality == "partial"
    assert capture.quality_reason.endswith("; left out, as not wholly in the file: steps 1-2") == (not steps)
    assert frame(capture.rows, "op")["name"].tolist() == (["relu1", "relu2"] if steps else ["relu1"])


def test_an_empty_trace_is_an_error(tmp_path: Path):
    with pytest.raises(SourceError, match="holds no events of a profile"):
        read(write(tmp_path))


def test_a_file_that_is_no_trace_asks_for_one_of_paddle(tmp_path: Path):
    path = tmp_path / "a.paddle_trace.json"
    path.write_text('{"schemaVersion": "1.0.2"}')
    with pytest.raises(SourceError, match=r"give a trace exported by paddle\.profiler"):
        readers.read(readers.Found(path, "paddle_trace"))
