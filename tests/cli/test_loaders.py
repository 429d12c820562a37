"""A team names its own data loaders in the settings file, and every command that reads a profile knows them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

LABELS = ("--version", "v1", "--workload", "w")


@pytest.fixture
def fed(tmp_path) -> Path:
    """Two steps of 1000 us: a range `Feeder.pull` of 600 us, then a kernel of 300 us, launched at 650."""
    events = []
    for step in range(2):
        start = 1000 * step
        own = {"ph": "X", "pid": 1, "tid": 1}
        events += [
            {**own, "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": start, "dur": 1000},
            {**own, "cat": "user_annotation", "name": "Feeder.pull", "ts": start + 10, "dur": 600},
            {**own, "cat": "cpu_op", "name": "aten::mm", "ts": start + 640, "dur": 20, "args": {}},
            {**own, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": start + 645, "dur": 5,
             "args": {"correlation": step + 1}},
            {**own, "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "ts": start + 700, "dur": 270, "args": {}},
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": start + 660, "dur": 300,
             "args": {"correlation": step + 1, "device": 0, "stream": 7}},
        ]  # fmt: skip
    path = tmp_path / "fed.pt.trace.json"
    device = {"id": 0, "name": "NVIDIA H100", "computeMajor": 9}
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [device], "traceEvents": events}))
    return path


@pytest.fixture
def settings(tmp_path, monkeypatch) -> Path:
    path = tmp_path / "tracker.toml"
    path.write_text('[readers]\nloaders = ["feeder."]\n')
    monkeypatch.setenv("TRACKER_CONFIG", str(path))
    return path


def test_range_of_no_known_loader_is_no_loader(tracker, fed):
    assert "data loading is" not in tracker("show", fed).out


def test_own_loader_is_known_to_a_look_at_a_file_and_to_an_ingest(tracker, fed, settings):
    """The device idles 600 of 1000 us under it."""
    assert "input bound: data loading is 60" in tracker("show", fed).out
    assert "I1 the device waits for data" in tracker("advise", fed).out
    assert tracker("ingest", fed, *LABELS).code == 0
    assert "input bound: data loading is 60" in tracker("show", "latest").out


def test_empty_name_is_refused_with_its_key(tracker, fed, settings):
    settings.write_text('[readers]\nloaders = ["Feeder", ""]\n')
    done = tracker("show", fed)
    assert (done.code, done.out) == (2, "")
    assert "key readers.loaders: has '', which every range holds; expected a part of a name" in done.err
