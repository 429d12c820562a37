"""A process without any event of a device: the host of a job is no run, a rank that lost its records is partial."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.test_intake import write_trace
from tracker.intake import IngestOptions, IngestResult, ingest
from tracker.results.recording import incomplete_of
from tracker.schema.series import LOST_DEVICE, LOST_STEPS
from tracker.store import Store, queries

LAUNCH = "cuda_runtime"
LOST = "partial: no event of the device, which other processes of the job have: the profiler lost its records"


def write_without(path: Path, categories: Collection[str], **of_trace: int) -> Path:
    """Write the trace of `write_trace` without the events of these categories, and without the name of the device."""
    trace = json.loads(write_trace(path, **of_trace).read_text())
    trace["traceEvents"] = [event for event in trace["traceEvents"] if event["cat"] not in categories]
    trace["deviceProperties"] = []
    path.write_text(json.dumps(trace))
    return path


def write_host(path: Path, **of_trace: int) -> Path:
    return write_without(path, ("kernel", LAUNCH), **of_trace)


def ingest_all(store: Store, folder: Path, **options: object) -> list[IngestResult]:
    return ingest(store, [folder], version="v1", workload="toy", options=IngestOptions(one_process=True, **options))


def write_ranks(folder: Path, *ranks: int) -> None:
    for rank in ranks:
        write_trace(folder / f"rank{rank}.json", rank=rank, kernel_us=100 + rank)


@pytest.mark.parametrize("options", [{}, {"device": "NVIDIA H100"}, {"as_run": True}])
def test_front_end_of_a_job_is_no_rank_and_no_run(memory_store: Store, tmp_path: Path, options: dict):
    write_ranks(tmp_path, 0, 1)
    write_host(tmp_path / "node7.async_llm.json")
    (result,) = ingest_all(memory_store, tmp_path, **options)
    assert (result.ranks, result.device) == ((0, 1), "NVIDIA H100")
    assert (
        "node7.async_llm.json is the host of a job, no rank and no run: no work of a device, no rank and no launch in "
        "it, beside files of the same time with them"
    ) in result.warnings


def test_process_of_a_cpu_alone_is_a_run(memory_store: Store, tmp_path: Path):
    write_host(tmp_path / "cpu.json")
    (result,) = ingest_all(memory_store, tmp_path)
    assert (result.ranks, result.device) == ((0,), "cpu")


def test_process_of_a_cpu_at_another_time_is_a_run(memory_store: Store, tmp_path: Path):
    write_ranks(tmp_path, 0, 1)
    write_host(tmp_path / "cpu.json", start_us=60_000_000)
    assert [(result.ranks, result.device) for result in ingest_all(memory_store, tmp_path)] == [
        ((0, 1), "NVIDIA H100"),
        ((0,), "cpu"),
    ]


@pytest.mark.parametrize(("workload", "runs"), [("data preparation", 2), ("toy", 1)])
def test_process_of_another_workload_is_a_run(memory_store: Store, tmp_path: Path, workload: str, runs: int):
    write_ranks(tmp_path, 0, 1)
    write_host(tmp_path / "cpu.json")
    for name, said in (("rank0", "toy"), ("rank1", "toy"), ("cpu", workload)):
        (tmp_path / f"{name}.json.tracker.json").write_text(json.dumps({"workload": said}))
    assert len(ingest(memory_store, [tmp_path], version="v1", options=IngestOptions(one_process=True))) == runs


@pytest.mark.parametrize("lost", [("kernel",), ("kernel", LAUNCH)])
def test_rank_without_records_of_its_device_is_partial(memory_store: Store, tmp_path: Path, lost: tuple[str, ...]):
    write_ranks(tmp_path, 0)
    write_without(tmp_path / "rank1.json", lost, rank=1)
    (result,) = ingest_all(memory_store, tmp_path)
    assert (result.ranks, result.device) == ((0, 1), "NVIDIA H100")
    (whole, partial) = result.captures
    assert whole.warnings == ("the files of rank 1 do not name the chip: it is taken for that of the others, H100",)
    assert LOST.removeprefix("partial: ") in partial.warnings[-1]
    assert partial.warnings[-1].startswith("partial: ")


def test_no_step_of_a_rank_that_lost_its_device_is_judged(memory_store: Store, tmp_path: Path):
    write_ranks(tmp_path, 0)
    write_without(tmp_path / "rank1.json", ("kernel",), rank=1)
    ingest_all(memory_store, tmp_path)
    whole, partial = (incomplete_of(json.loads(text or "{}")) for text in settings_of(memory_store))
    assert whole is None
    assert partial is not None
    assert {LOST_DEVICE, LOST_STEPS} <= set(partial.forbids)


def settings_of(store: Store) -> list[str]:
    return list(queries.captures(store, [1]).frame["settings"])


def test_process_that_launched_without_a_rank_is_a_partial_run(memory_store: Store, tmp_path: Path):
    write_ranks(tmp_path, 0)
    write_without(tmp_path / "other.json", ("kernel",))
    lost, whole = sorted(ingest_all(memory_store, tmp_path), key=lambda result: result.paths)
    assert whole.captures[0].warnings == ()
    assert LOST.removeprefix("partial: ") in lost.captures[0].warnings[-1]


def test_rank_by_its_name_that_lost_its_records_joins_the_others(memory_store: Store, tmp_path: Path):
    for number in (0, 1, 3):
        write_trace(tmp_path / f"w_{number}.json", kernel_us=100 + number)
    write_without(tmp_path / "w_2.json", ("kernel",))
    (result,) = ingest_all(memory_store, tmp_path)
    assert (result.ranks, result.device) == ((0, 1, 2, 3), "NVIDIA H100")
