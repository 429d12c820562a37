"""Every shared PyTorch capture, from file to database to report: nothing is lost, and what must add up adds up."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.real import data
from tracker import reports
from tracker.compare import show
from tracker.intake import ingest
from tracker.results import ShowOptions
from tracker.store import open_store, queries

pytestmark = pytest.mark.slow

KERNELS, COPIES = {"kernel"}, {"gpu_memcpy", "gpu_memset", "memcpy", "memset"}


def captures() -> list[str]:
    return data.some(path for kind in ("pytorch", "torch_cpu") for path in (data.folder() / kind).rglob("*.gz"))


def raw_events(path: Path) -> list[dict[str, Any]]:
    """The events of a trace, numbers with all their digits."""
    trace = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    return [event for event in (trace if isinstance(trace, list) else trace["traceEvents"]) if event]


def total_ns(events: list[dict[str, Any]], categories: set[str]) -> tuple[int, int]:
    """How many slices have one of the categories, and how long they are together, in ns."""
    found = [event for event in events if event.get("ph") == "X" and str(event.get("cat", "")).lower() in categories]
    return len(found), int(sum((Decimal(event["dur"]) * 1000 for event in found), Decimal(0)))


def shown(path: Path, **options: Any) -> dict[str, Any]:
    with open_store("sqlite://") as store:
        ingest(store, [path], version="v1", workload="w")
        return json.loads(reports.render(show(store, "latest", options=ShowOptions(**options)), "json"))


@pytest.mark.parametrize("name", captures() or ["pytorch"])
def test_kernel_time_is_conserved_from_file_to_database(name: str):
    """Reports have what runs in steps, and collectives in a table of their own; the database has all."""
    path = data.path(name)
    events = raw_events(path)
    with open_store("sqlite://") as store:
        ingest(store, [path], version="v1", workload="w")
        runs = queries.runs(store).listed("run_id")
        rows = queries.kernels(store, runs).records()
        ops = queries.ops(store, runs).records()
        overall = queries.captures(store, runs).records()
    kernels, copies = total_ns(events, KERNELS), total_ns(events, COPIES)
    of_copies = [row for row in rows if row["category"] in ("copy", "memset")]
    of_kernels = [row for row in rows if row["category"] not in ("copy", "memset")]
    assert sum(row["kernel_count"] for row in overall) == kernels[0]
    assert sum(row["kernel_total_ns"] for row in overall) == kernels[1]
    assert (sum(row["calls"] for row in of_kernels), sum(row["total_ns"] for row in of_kernels)) == kernels
    assert (sum(row["calls"] for row in of_copies), sum(row["total_ns"] for row in of_copies)) == copies
    assert sum(row["device_self_ns"] or 0 for row in ops) == kernels[1] + copies[1]
    unlinked = sum(row["total_ns"] for row in of_kernels if row["op"] == "(unlinked)")
    assert sum(row["unlinked_kernel_total_ns"] for row in overall) == unlinked


@pytest.mark.parametrize("name", captures() or ["pytorch"])
def test_the_breakdown_is_an_identity_and_grains_add_up(name: str):
    path = data.path(name)
    whole, by_step = shown(path), shown(path, by=("step", "rank"))
    for row in whole["overall"] + whole["steps"]:
        if row["e2e_ns"] is None:
            continue
        parts = row["compute_ns"] + row["exposed_communication_ns"] + row["exposed_copy_ns"] + row["idle_ns"]
        # a step that is a window of the device is whole in itself; else it is from its first to its last work
        assert parts in (row["e2e_ns"], row["duration_ns"])
        assert row["exposed_communication_ns"] == row["communication_ns"] - row["overlap_ns"]
        assert min(row["idle_ns"], row["overlap_ns"], row["exposed_copy_ns"]) >= 0
    for table, columns in {
        "ops": ("calls", "device_self_ns", "host_self_ns"), "kernels": ("calls", "total_ns"),
        "communication": ("calls", "total_ns"), "memory": ("calls", "bytes"), "api": ("calls", "total_ns"),
    }.items():  # fmt: skip
        for column in columns:
            sums = [sum(row[column] or 0 for row in report[table]) for report in (whole, by_step)]
            assert sums[0] == sums[1], (table, column)
