"""Files of other tools that are known and not read are refused by name, with what to give instead."""

from __future__ import annotations

import gzip
import json
import os
import pickle
from pathlib import Path

import pytest

from tracker import readers
from tracker.doctor import examine
from tracker.errors import SourceError

STATS = (
    'Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Name\n57.1,799240,4,199810.0,199800.0,"gemm<float>(int)"\n'
)
DISPATCHES = (
    '"Kind","Agent_Id","Queue_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp","Grid_Size_X"\n'
    '"KERNEL_DISPATCH","Agent 4",1,"gemm",1,100,200,64\n'
)
AVERAGES = (
    f"{'-' * 20}  {'-' * 12}  {'-' * 12}\n"
    "                Name    Self CPU %      Self CPU   CPU total %    # of Calls\n"
    f"{'-' * 20}  {'-' * 12}  {'-' * 12}\n"
    "            aten::mm        12.00%      12.000us        12.00%             4\n"
)
NODES = [{"id": 2, "name": "[pytorch|profiler|execution_trace|thread]", "ctrl_deps": 1}]
DUMP = {"version": "2.4", "pg_config": {}, "entries": [{"collective_seq_id": 1, "state": "completed"}]}
SNAPSHOT = {"segments": [{"address": 1, "total_size": 2, "allocated_size": 2, "blocks": []}], "device_traces": [[]]}
VIZTRACER = {"traceEvents": [{"ph": "X", "cat": "FEE", "name": "f", "ts": 1.5, "dur": 2.0, "pid": 1, "tid": 1}],
             "viztracer_metadata": {"version": "0.16.3"}, "displayTimeUnit": "ms"}  # fmt: skip
XLA = {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True},
       "traceEvents": [{"ph": "M", "pid": 3, "name": "process_name", "args": {"name": "/device:TPU:0"}}]}  # fmt: skip
PROTON = [{"children": [], "frame": {"name": "ROOT", "type": "function"}, "metrics": {"count": 1, "time (ns)": 2048}}]
PAGE = '<html>\n<head><meta charset="utf-8" /><title>GPU Memory Timeline HTML</title></head>\n<body></body></html>'

FILES: dict[str, tuple[str, str | bytes, str]] = {
    "nsys sums": ("report1_cuda_gpu_kern_sum.csv", STATS, "a table of nsys stats as CSV"),
    "nsys sums behind its lines": ("a.csv", f"Processing [a.sqlite] with [x.py]...\n{STATS}", "a table of nsys stats"),
    "nsys trace": ("t.csv", "Start (ns),Duration (ns),CorrId,GrdX,Name\n1,2,3,4,gemm\n", "a table of nsys stats"),
    "nsys older": ("o.csv", '"Time(%)","Total Time (ns)","Calls","Name"\n1,2,3,"f"\n', "a table of nsys stats as CSV"),
    "rocprofv3 dispatches": ("12_kernel_trace.csv", DISPATCHES, "a table of rocprof as CSV"),
    "rocprofv3 sums": ("12_kernel_stats.csv", '"Name","Calls","TotalDurationNs","AverageNs"\n', "a table of rocprof"),
    "Chakra": ("et.json", json.dumps({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": NODES}), "an execution trace"),
    "Chakra, earlier": ("et.json", json.dumps({"schema": "1.0.1", "pid": 1, "nodes": NODES}), "an execution trace"),
    "Chakra, binary": ("trace.0.et", b"\x0a\x05\x0a\x03abc", "an execution trace"),
    "flight recorder": ("nccl_trace_rank_0", pickle.dumps(DUMP, protocol=2), "a flight recorder dump"),
    "flight recorder, JSON": ("dump.json", json.dumps(DUMP), "a flight recorder dump"),
    "memory snapshot": ("snapshot.pickle", pickle.dumps(SNAPSHOT), "a memory snapshot of PyTorch"),
    "memory timeline, rows": ("m.raw.json.gz", gzip.compress(b"[[-1, 0, 512, 3], [-1, 0, 64, 3]]"), "a memory"),
    "memory timeline, lists": ("m.json", "[[1690000000123, 1690000000456], [[0, 1], [0, 2]]]", "a memory timeline"),
    "memory timeline, page": ("m.html", PAGE, "a memory timeline of torch.profiler"),
    "key_averages": ("averages.txt", AVERAGES, "a table of sums of torch.profiler"),
    "VizTracer": ("result.json", json.dumps(VIZTRACER), "a trace of VizTracer"),
    "XLA": ("host.trace.json.gz", gzip.compress(json.dumps(XLA).encode()), "a trace of XLA"),
    "XLA, binary": ("host.xplane.pb", b"\x0a\x05\x0a\x03abc", "a trace of XLA"),
    "Proton": ("proton.hatchet", json.dumps(PROTON), "a profile of Proton"),
    "Proton, renamed": ("proton.json", json.dumps(PROTON), "a profile of Proton"),
}  # fmt: skip


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("kind", FILES)
def test_file_of_another_tool_is_refused_by_its_name(tmp_path: Path, kind: str):
    name, content, title = FILES[kind]
    path = written(tmp_path, name, content)
    with pytest.raises(SourceError) as caught:
        readers.claim(path)
    error = str(caught.value)
    assert f": is {title}" in error
    assert ", and is not read; give " in error
    assert "\n" not in error


@pytest.mark.parametrize("kind", FILES)
def test_doctor_and_search_say_what_to_give(tmp_path: Path, kind: str):
    name, content, title = FILES[kind]
    written(tmp_path, name, content)
    (unclaimed,) = examine([tmp_path]).unclaimed
    assert unclaimed.kind.startswith(title)
    with pytest.raises(SourceError, match="; give "):
        readers.search(tmp_path)


OTHERS: dict[str, tuple[str, str | bytes]] = {
    "a table": ("a.csv", "Time,Total,Name\n1,2,f\n"),
    "a matrix": ("a.json", "[[1, 2, 3, 4], [5, 6, 7, 8]]"),
    "another pickle": ("a.pickle", pickle.dumps({"weights": [1, 2]})),
    "another list": ("a.json", json.dumps([{"frame": {"width": 3}}])),
    "a text": ("a.txt", "Name of the run: a\nNumber of calls: 4\n"),
    "an object": ("a.json", json.dumps({"entries": [1], "schema": "1.0"})),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_file_of_no_known_tool_is_not_given_its_name(tmp_path: Path, kind: str):
    path = written(tmp_path, *OTHERS[kind])
    with pytest.raises(SourceError, match="no reader knows this file"):
        readers.claim(path)


class RunsCode:
    """What a pickle runs when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


def test_pickle_is_never_loaded(tmp_path: Path):
    made = tmp_path / "made"
    path = written(tmp_path, "snapshot.pickle", pickle.dumps({**SNAPSHOT, "code": RunsCode(made)}))
    with pytest.raises(SourceError, match="is a memory snapshot of PyTorch"):
        readers.claim(path)
    assert not made.exists()
