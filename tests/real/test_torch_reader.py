"""Every shared PyTorch trace, read twice: by the reader, and the slow and obvious way with json and Decimal."""

from __future__ import annotations

import gzip
import json
import shutil

import pytest

from tests.readers import reference_reader
from tests.readers.helpers import decoding, texts
from tests.readers.test_records import told
from tests.real import data
from tracker import readers
from tracker.readers import Found
from tracker.readers._source import SourceText, read_head
from tracker.readers.torch_profiler.kinds import KERNEL_METRICS
from tracker.readers.torch_profiler.reading import captures_of

NOT_OURS = (
    "ascend/trace_view_2024/trace_view.json",
    "ascend/run_2025-01/text/level0/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json",
    "paddle/cpu_captures",
    "cann",
)


def traces():
    return data.some(path for kind in ("pytorch", "torch_cpu") for path in data.folder().glob(f"{kind}/**/*.json.gz"))


def test_shared_traces_are_there():
    data.path("pytorch")
    assert len(traces()) >= 10


@pytest.mark.parametrize("name", traces())
def test_totals_of_a_real_trace_are_those_of_plain_json(name):
    path = data.path(name)
    captures = readers.read(Found(path, readers.claim(path))).captures
    with decoding(compiled=False):
        assert told(captures) == told(readers.read(Found(path, readers.claim(path))).captures)
    options = readers.ReadOptions()
    by_threads, _ = captures_of(SourceText(path, options, block_bytes=300_000), options, threads=3)
    assert told(captures) == told(by_threads)
    expected = reference_reader.totals(reference_reader.content(path))
    found = reference_reader.totals_of_captures(captures)
    for kind in ("kernel", "copy", "op", "launch", "frame"):
        assert found.count(kind) == expected.count(kind), kind
        assert found.total_ns(kind) == expected.total_ns(kind), kind
    assert found == expected
    assert len(captures) == 1


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("h100_vs_mi300/h100/gaunernst_bert-small-uncased.pt.trace.json.gz", True),
        ("two_ranks_nccl/rank-1.pt.trace.json.gz", True),
        ("h100_vs_mi300/mi300/gaunernst_bert-small-uncased.pt.trace.json.gz", False),
    ],
)
def test_metrics_of_kernels_are_those_of_plain_json(name, kernels):
    path = data.path(f"pytorch/{name}")
    expected = []
    for event in json.loads(reference_reader.content(path))["traceEvents"]:
        if event.get("cat") == "kernel":
            states = event["args"]
            expected += [(metric, float(states[metric])) for metric in KERNEL_METRICS.values() if metric in states]
    (capture,) = readers.read(Found(path, "torch_profiler")).captures
    metrics = capture.events.extras.kernel_metrics
    names = texts(capture.events, metrics.metric)
    assert sorted(zip(names, metrics.value.tolist(), strict=True)) == sorted(expected)
    assert bool(expected) == kernels


@pytest.mark.slow
def test_all_traces_of_a_folder_are_found_and_read():
    folder = data.path("torch_cpu")
    found = readers.find(folder)
    assert len(found) == len(list(folder.rglob("*.json.gz")))
    assert all(readers.read(one).captures[0].quality == "ok" for one in found)


@pytest.mark.parametrize("name", NOT_OURS)
def test_traces_of_other_profilers_are_not_claimed(name):
    path = data.path(name)
    for file in [path] if path.is_file() else sorted(path.rglob("*.json"))[:12]:
        assert not readers.load("torch_profiler").sniff(file, read_head(file)), file


def test_plain_and_zipped_trace_have_one_digest(tmp_path):
    zipped = data.path("pytorch/edge_cases/triton_example.pt.trace.json.gz")
    plain = tmp_path / "plain.json"
    with gzip.open(zipped) as source, plain.open("wb") as target:
        shutil.copyfileobj(source, target)
    one, other = (readers.read(readers.find(path)[0]).captures[0] for path in (zipped, plain))
    assert one.sources[0].digest == other.sources[0].digest
    assert one.events.markers.step.tolist() == [1]
    assert len(one.events.ops) == 3


@pytest.mark.parametrize(
    ("name", "device", "ordinal", "rank", "world_size"),
    [
        ("a100_vs_v100_nccl/control.pt.trace.json.gz", "A100-PG509-200", 3, 3, 8),
        ("a100_vs_v100_nccl/test.pt.trace.json.gz", "Tesla V100-SXM2-16GB", 1, 1, 2),
        ("mi300_resnet_ddp_rank0/resnet_act_checkpoint.pt.trace.json.gz", "Instinct MI300X", 2, 0, 8),
        ("h100_vs_mi300/h100/gaunernst_bert-small-uncased.pt.trace.json.gz", "H100 80GB HBM3", 0, None, None),
        ("two_ranks_nccl/rank-1.pt.trace.json.gz", "unknown", 1, 1, 128),
        ("edge_cases/rank_non_gpu.pt.trace.json.gz", "cpu", None, 0, None),
        ("edge_cases/cpu_only.pt.trace.json.gz", "cpu", None, 34, 300),
    ],
)
def test_who_ran_is_read_from_the_trace(name, device, ordinal, rank, world_size):
    path = data.path(f"pytorch/{name}")
    capture = readers.read(Found(path, "torch_profiler")).captures[0]
    assert (capture.device.model, capture.device_ordinal) == (device, ordinal)
    assert (capture.rank, capture.world_size) == (rank, world_size)


def test_each_nccl_call_of_a_real_trace_counts_once():
    path = data.path("pytorch/mi300_resnet_ddp_rank0/resnet_act_checkpoint.pt.trace.json.gz")
    events = readers.read(Found(path, "torch_profiler")).captures[0].events
    carriers = [events.strings[code] for code in events.ops.name[events.ops.collective >= 0].tolist()]
    assert sorted(carriers) == ["nccl:all_reduce"] * 6 + ["nccl:broadcast"] * 6
    assert set(events.collectives.group_size.tolist()) == {8}
    # the args of the kernels say the same as the host events that launched them
    assert set(events.device.collective.tolist()) - {-1} == set(events.ops.collective.tolist()) - {-1}
