"""What a long list of calls costs beside the reading of its file."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import tracker

CALLS = 100_000
MEASURE = """
import resource, sys, time
from pathlib import Path
import tracker
from tracker import readers, reports
from tracker.compare import calls
from tracker.reports.views import calls as view
from tracker.results import CallsOptions

def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

path, database, name, form = sys.argv[1:]
began = time.process_time()
readers.read(readers.Found(Path(path), "torch_profiler"), readers.ReadOptions())
read_s, read_mb = time.process_time() - began, peak_mb()
with tracker.open_store(database, read_only=True) as store:
    began = time.process_time()
    found = calls.list_calls(store, "run:1", options=CallsOptions(calls=name))
    reports.render(found, form)
    listed_s = time.process_time() - began
print(found.spread.calls, listed_s - read_s, peak_mb() - read_mb)
"""


@pytest.fixture(scope="module")
def long_run(tmp_path_factory):
    """A trace with 100,000 calls of an operator that launches a kernel, and a database that has its run."""
    folder = tmp_path_factory.mktemp("long")
    events = [{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0,
               "dur": 50 * CALLS + 10}]  # fmt: skip
    for call in range(1, CALLS + 1):
        ids = {"External id": call}
        for cat, name, pid, ts, dur, args in (
            ("cpu_op", "aten::mm", 1, 0, 20, {"Input Dims": [[64, 64], [64, 64]]}),
            ("cuda_runtime", "cudaLaunchKernel", 1, 5, 5, {"correlation": call}),
            ("kernel", "sgemm", 0, 15, 10 + call % 17, {"correlation": call, "stream": 7, "device": 0}),
        ):
            span = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": pid, "ts": 50 * call + ts, "dur": dur}
            events.append({**span, "args": ids | args})
    path, database = folder / "long.pt.trace.json", folder / "long.db"
    device = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100"}]}
    path.write_text(json.dumps({"schemaVersion": 1, **device, "traceEvents": events}))
    with tracker.open_store(str(database)) as store:
        tracker.ingest(path, version="v1", workload="toy", store=store)
    return path, database


@pytest.mark.slow
@pytest.mark.parametrize("name", ["aten::mm", "sgemm"])
@pytest.mark.parametrize("form", ["text", "json", "csv", "html"])
def test_list_of_100_000_calls_costs_a_second_and_150_mb(long_run, name, form):
    words = [sys.executable, "-c", MEASURE, *map(str, long_run), name, form]
    done = [subprocess.run(words, capture_output=True, text=True, check=True).stdout.split() for _ in range(3)]
    assert {int(calls) for calls, _, _ in done} == {CALLS}
    assert min(float(seconds) for _, seconds, _ in done) <= 1.0
    assert min(float(megabytes) for _, _, megabytes in done) <= 150
