"""The law of structures: whatever a trace is made of, what it costs grows as it does.

What is counted are calls of functions, which no load of the machine changes; the slow run measures CPU and memory.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import time
from typing import NamedTuple

import pytest

from tests.limits.structures import STRUCTURES, op, trace_of
from tracker.errors import SourceError
from tracker.intake import IngestOptions, read_pieces
from tracker.readers import Found

GROWTH = 2.3
"""How much more work twice the structure may be."""

SMALL_RUN = 60_000
"""Calls of functions below which what is done once counts most."""

SMALL_S = 0.5
"""Seconds of CPU that say as little."""

MOST_TRIES = 6
"""So often the costs are measured at most; the least of each counts."""


def read(path):
    try:
        return read_pieces(Found(path, "torch_profiler"), IngestOptions(one_process=True))
    except SourceError as error:  # beyond a budget: the cheapest answer
        return error


def calls_to_read(path):
    count = 0

    def count_call(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(count_call)
    try:
        read(path)
    finally:
        sys.setprofile(None)
    return count


def test_there_are_forty_one():
    assert len(STRUCTURES) == 41


@pytest.mark.parametrize("name", STRUCTURES)
def test_twice_the_structure_is_about_twice_the_work(name, tmp_path):
    make, size = STRUCTURES[name]
    counts = []
    for factor in (1, 2):
        path = tmp_path / f"{factor}.pt.trace.json"
        path.write_bytes(trace_of(make(max(8, size // 6) * factor)))
        read(path)  # what is imported and cached at first use
        counts.append(calls_to_read(path))
    assert counts[1] <= GROWTH * max(counts[0], SMALL_RUN), counts


@pytest.mark.slow
@pytest.mark.parametrize("name", STRUCTURES)
def test_time_and_memory_grow_with_the_trace(name, tmp_path):
    make, size = STRUCTURES[name]
    paths = []
    for factor in (0, 1, 2, 4):
        path = tmp_path / f"{factor}.pt.trace.json"
        path.write_bytes(
            trace_of(make(size * factor) or [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1}])
        )
        paths.append(path)
    cheapest = [cost_of(path) for path in paths]
    for _ in range(MOST_TRIES - 1):
        if breach_of(cheapest, paths) == "":
            break
        # other work on the machine makes any one dearer
        cheapest = [tuple(map(min, before, cost_of(path))) for before, path in zip(cheapest, paths, strict=True)]
    assert breach_of(cheapest, paths) == ""


def cost_of(path):
    """Return CPU seconds and most megabytes of a process that reads the file."""
    code = (
        "import resource, sys; from tests.limits.test_structures import read; from pathlib import Path; "
        "read(Path(sys.argv[1])); used = resource.getrusage(resource.RUSAGE_SELF); "
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    return tuple(map(float, done.stdout.split()))


def breach_of(costs, paths):
    """Say which costs break the law; the first file holds next to nothing."""
    seconds = [took - costs[0][0] for took, _ in costs]
    megabytes = [memory - costs[0][1] for _, memory in costs]
    for once, twice in ((1, 2), (2, 3)):
        if seconds[twice] > GROWTH * max(seconds[once], SMALL_S):
            return f"seconds {seconds}"
    for memory, path in zip(megabytes, paths, strict=True):
        if memory > 20 * path.stat().st_size / (1 << 20) + 100:
            return f"megabytes {megabytes}"
    return ""


@pytest.mark.slow
def test_names_of_one_rank_each_take_no_table_of_ranks_and_names(tmp_path, monkeypatch):
    # 512 processes with 20 or 80 operators each that no other one has
    monkeypatch.setenv("TRACKER_DB", str(tmp_path / "tracker.sqlite"))
    costs = {}
    for names in (20, 80):
        path = tmp_path / f"{names}.pt.trace.json"
        events = [op(f"rank {rank} op {name}", 10 * name, pid=rank) for rank in range(512) for name in range(names)]
        path.write_bytes(trace_of(events))
        costs[names] = cost_of_showing(path)
    assert (costs[20].megabytes < 140, costs[80].megabytes < 260) == (True, True), costs
    assert (costs[20].seconds < 8, costs[80].seconds < 20) == (True, True), costs
    assert costs[80].seconds < 4.6 * costs[20].seconds


class Cost(NamedTuple):
    seconds: float
    megabytes: float


def cost_of_showing(path):
    code = (
        "import resource, subprocess, sys; "
        "words = [sys.executable, '-m', 'tracker', 'show', sys.argv[1]]; "
        "subprocess.run(words, stdout=subprocess.DEVNULL, check=True); "
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); "
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    return Cost(*map(float, done.stdout.split()))


def test_more_processes_than_a_trace_can_have_are_refused_at_once(tmp_path):
    path = tmp_path / "a.pt.trace.json"
    path.write_bytes(trace_of(STRUCTURES["one op per process"][0](5_000)))
    began = time.process_time()
    error = read(path)
    assert str(error) == (
        f"{path}: 5,000 processes and devices work in one trace, more than 512; "
        "profile fewer steps, or one process in one file"
    )
    assert time.process_time() - began < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 < 2_000


def test_a_long_name_is_kept_as_its_start_and_the_same_digest_each_time(tmp_path):
    path = tmp_path / "a.pt.trace.json"
    path.write_bytes(trace_of(STRUCTURES["one name"][0](5_000)))
    names = []
    for _ in range(2):
        (piece,) = read(path)
        (name,) = piece.capture.rows.tables["kernel_key"]["name"]
        names.append(name)
    assert names[0] == names[1]
    assert (len(names[0]), names[0][:9]) == (4096, "</script>")
    assert re.search(r" \[\+\d+ characters ~[0-9a-f]{16}\]$", names[0])
