"""Processes, devices, CUDA graphs, memory and metrics of an Nsight Systems export."""

from __future__ import annotations

import pytest

from tests.readers.helpers import frame, only
from tests.readers.nsys_captures import kernels, read
from tests.readers.nsys_databases import call, kernel, one_step, pid, span
from tracker.errors import SourceError
from tracker.profile import MODULE_CALLS, UNKNOWN_DEVICE
from tracker.timeline import rows_of


def test_each_process_and_device_is_a_capture_in_order_of_devices(tmp_path):
    tables = one_step()
    tables["TARGET_INFO_GPU"] = [
        {"id": number, "name": "NVIDIA H100 80GB HBM3", "cuDevice": number} for number in range(2)
    ]
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"] = [
        call("cudaLaunchKernel_v7000", 10, 20, 1, process=9),
        call("cudaLaunchKernel_v7000", 10, 20, 1, process=5),
    ]
    tables["CUPTI_ACTIVITY_KIND_KERNEL"] = [
        kernel("gemm", 30, 40, 1, process=5, device=1),
        kernel("gemm", 30, 50, 1, process=9, device=0),
        kernel("gemm", 60, 70, 2, process=9, device=1),
    ]
    tables["CUPTI_ACTIVITY_KIND_MEMCPY"] = []
    del tables["CUPTI_ACTIVITY_KIND_MEMSET"], tables["CUPTI_ACTIVITY_KIND_MEMCPY"]
    profile = read(tmp_path, {**tables, "NVTX_EVENTS": [span("alone", 0, 9, process=3)]})
    said = [
        (c.device_ordinal, c.rank, c.events.host_is_primary, c.events.device.end_ns.tolist(), len(c.events.launches))
        for c in profile.captures
    ]
    assert said == [(0, None, True, [50], 1), (1, None, False, [70], 1), (1, None, True, [40], 1)]
    assert {c.device.model for c in profile.captures} == {"H100 80GB HBM3"}
    assert "NVTX ranges of processes without device work were left out: 3" in profile.warnings


def test_process_that_sees_one_of_several_devices_calls_it_number_0(tmp_path):
    tables = one_step()
    tables["TARGET_INFO_GPU"] = [
        {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "cuDevice": 0},
        {"id": 1, "name": "NVIDIA H100 80GB HBM3", "cuDevice": 1},
    ]
    tables["TARGET_INFO_CUDA_DEVICE"] = [{"gpuId": 1, "cudaId": 0, "pid": 7}]
    assert only(read(tmp_path, tables)).device.model == "H100 80GB HBM3"


def test_device_without_a_name_is_unknown(tmp_path):
    tables = one_step()
    del tables["TARGET_INFO_GPU"]
    assert only(read(tmp_path, tables)).device == UNKNOWN_DEVICE


def test_rank_in_the_name_of_the_file_counts(tmp_path):
    assert only(read(tmp_path, one_step(), name="report_rank3.sqlite")).rank == 3


def test_kernels_of_one_graph_launch_share_it(tmp_path):
    tables = one_step()
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"].append(call("cudaGraphLaunch_v10000", 126, 129, 30))
    nodes = [kernel("node", start, start + 5, 30, graphNodeId=start) for start in (210, 220, 230)]
    tables["CUPTI_ACTIVITY_KIND_KERNEL"] = [kernel("gemm", 200, 205, 12, graphNodeId=None), *nodes]
    whole = {"start": 200, "end": 300, "deviceId": 0, "streamId": 7, "correlationId": 30, "globalPid": pid(7)}
    tables["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"] = [{**whole, "graphId": 4, "graphExecId": 5}]
    found = kernels(only(read(tmp_path, tables)))
    assert found["node"] == ("attention", "layer_0/attention", "forward", 3, 15)
    assert "CUDA graph 1" not in found, "its kernels are there one by one"


def test_graph_that_was_traced_as_a_whole_is_work_too(tmp_path):
    tables = one_step()
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"].append(call("cudaGraphLaunch_v10000", 126, 129, 30))
    whole = {"deviceId": 0, "streamId": 7, "correlationId": 30, "globalPid": pid(7), "graphId": 4, "graphExecId": 5}
    tables["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"] = [{"start": 600, "end": 700, **whole}]
    profile = read(tmp_path, tables)
    assert kernels(only(profile))["CUDA graph 1"] == ("attention", "layer_0/attention", "forward", 1, 100)
    assert any(text.startswith("1 runs of CUDA graphs were traced as a whole") for text in profile.warnings)


def test_memory_of_the_driver_belongs_to_the_range_that_asked_for_it(tmp_path):
    tables = one_step()
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"].append(call("cudaMalloc_v3020", 126, 129, 40))
    row = {"globalPid": pid(7), "deviceId": 0, "address": 77, "bytes": 512, "memKind": 2}
    tables["CUDA_GPU_MEMORY_USAGE_EVENTS"] = [
        {"start": 128, **row, "memoryOperationType": 0, "correlationId": 40},
        {"start": 228, **row, "memoryOperationType": 1, "correlationId": 41},
    ]
    rows = rows_of(only(read(tmp_path, tables)).events).tables
    (memory,) = frame(rows["memory"])
    assert rows["op_key"]["name"][memory["op_key"]] == "attention"
    assert (memory["component"], memory["bytes"], memory["held_ns"]) == ("cuda", 512, 100)


def test_metrics_of_the_gpu_are_counters_of_its_capture(tmp_path):
    tables = one_step()
    tables["TARGET_INFO_GPU_METRICS"] = [
        {"typeId": 0x500 | gpu, "metricId": 3, "metricName": "SMs Active [Throughput %]"} for gpu in (0, 1)
    ]
    tables["GPU_METRICS"] = [
        {"timestamp": 150, "typeId": 0x500 | gpu, "metricId": 3, "value": value}
        for gpu, value in ((0, 40), (0, 60), (1, 99))
    ]
    counters = frame(rows_of(only(read(tmp_path, tables)).events).tables["counter"])
    (row,) = [row for row in counters if row["source"] != MODULE_CALLS]
    assert (row["attribute"], row["calls"], row["mean"], row["max"]) == ("SMs Active [Throughput %]", 2, 50, 60)


@pytest.mark.parametrize("cell", ["id", "cuDevice"])
def test_a_device_without_a_number_is_no_device_that_is_known(tmp_path, cell):
    tables = one_step()
    tables["TARGET_INFO_GPU"][0] |= {cell: None}
    assert only(read(tmp_path, tables)).device == UNKNOWN_DEVICE


def test_a_number_of_a_device_that_is_none_is_an_error(tmp_path):
    tables = one_step()
    tables["TARGET_INFO_GPU"][0] |= {"cuDevice": "first"}
    with pytest.raises(SourceError, match=r"table TARGET_INFO_GPU: cuDevice is 'first', expected a number"):
        read(tmp_path, tables)


@pytest.mark.parametrize(("text", "name"), [(5.5, "5.5"), (b"attn\xff", "attn\ufffd")])
def test_a_range_whose_text_is_a_number_or_bytes_has_that_for_its_name(tmp_path, text, name):
    tables = one_step()
    tables["NVTX_EVENTS"][3] |= {"text": text}
    events = only(read(tmp_path, tables)).events
    assert name in {events.strings[code] for code in events.ops.name.tolist()}
