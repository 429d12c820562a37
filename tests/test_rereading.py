"""`tracker ingest --again`: stored runs are read again from their files where they were read by earlier rules."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.readers import nsys_databases
from tests.readers.ascend_texts import Written, write
from tests.readers.nsys_databases import span
from tracker import intake
from tracker.errors import UsageError
from tracker.profile import CHECK_RULES, CHECK_SETTING, STEP_RULES, STEP_SETTING
from tracker.store import Store, health, queries, recordings
from tracker.timeline import RULES_VERSION


def trace(path: Path, kernel_us: int) -> Path:
    """The host marks and launches two steps in 20 us; the device needs `kernel_us` for each."""
    events = []
    for step in range(2):
        start = 1000 + 10 * step
        own = {"ph": "X", "pid": 1, "tid": 1}
        events += [
            {**own, "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": start, "dur": 10},
            {**own, "cat": "cpu_op", "name": "aten::mm", "ts": start + 1, "dur": 5, "args": {"External id": step + 1}},
            {**own, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": start + 2, "dur": 1,
             "args": {"correlation": step + 1, "External id": step + 1}},
            {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1005 + kernel_us * step,
             "dur": kernel_us, "args": {"correlation": step + 1, "device": 0, "stream": 7, "External id": step + 1}},
        ]  # fmt: skip
    device = {"id": 0, "name": "NVIDIA H100", "computeMajor": 9}
    content = {"schemaVersion": 1, "deviceProperties": [device], "traceEvents": events}
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    return path


@pytest.fixture
def older(store: Store, tmp_path: Path) -> Store:
    """Two runs of v1 as an earlier version of tracker stored them: their steps are the markers, 10 us each."""
    for name, kernel_us in (("a", 100), ("b", 200)):
        intake.ingest(store, [trace(tmp_path / f"{name}.pt.trace.json.gz", kernel_us)], version="v1", workload="w")
    with store.begin() as connection:
        connection.execute(text("UPDATE capture SET settings = '{}'"))
        connection.execute(text("UPDATE step SET duration_ns = 10000, marker_ns = NULL"))
        recordings.refresh_recordings(connection, [1, 2])
    return store


def steps_of(store: Store) -> list[tuple[int, int]]:
    runs = queries.runs(store).listed("run_id")
    return sorted(queries.steps(store, runs).rows("run_id", "duration_ns"))


def test_runs_are_read_again_under_their_numbers(older: Store):
    """Windows of 105 and 100 us, of 205 and 200 us: the first ones hold the launch of the first kernel."""
    done = intake.ingest_again(older)
    assert [one.run_id for one in done.results] == [1, 2]
    assert (done.left, done.up_to_date) == ({}, 0)
    assert steps_of(older) == [(1, 100_000), (1, 105_000), (2, 200_000), (2, 205_000)]
    assert dict(queries.runs(older).rows("run_id", "version")) == {1: "v1", 2: "v1"}
    assert health.check(older) == []


def test_second_time_changes_nothing(older: Store):
    intake.ingest_again(older)
    done = intake.ingest_again(older)
    assert (done.results, done.left, done.up_to_date) == ((), {}, 2)


def test_run_without_its_file_stays_as_it_is(older: Store, tmp_path: Path):
    (tmp_path / "a.pt.trace.json.gz").unlink()
    done = intake.ingest_again(older)
    assert [one.run_id for one in done.results] == [2]
    assert done.left == {1: f"{tmp_path}/a.pt.trace.json.gz is gone"}
    assert steps_of(older) == [(1, 10_000), (1, 10_000), (2, 200_000), (2, 205_000)]


def test_file_with_another_content_is_no_stand_in(older: Store, tmp_path: Path):
    trace(tmp_path / "b.pt.trace.json.gz", 300)
    done = intake.ingest_again(older)
    assert "b.pt.trace.json.gz has another content than when it was ingested" in done.left[2]
    assert steps_of(older)[2:] == [(2, 10_000), (2, 10_000)]


def test_only_the_named_version_is_read_again(older: Store):
    with pytest.raises(UsageError, match="there is no run of version 'v2'"):
        intake.ingest_again(older, version="v2")
    assert [one.run_id for one in intake.ingest_again(older, version="v1").results] == [1, 2]


def outdated(store: Store, loaders: tuple[str, ...] = ()) -> dict[int, str]:
    return dict(intake.outdated_runs(store, queries.runs(store), loaders).rows("run_id", "why"))


def test_outdated_runs_are_those_that_are_read_again(older: Store):
    with older.begin() as connection:
        connection.execute(text("UPDATE run SET rules_version = 6 WHERE id = 2"))
    steps = "steps are what the host marked, not when the device works on them"
    causes = "idle time and data loading were explained by earlier rules, or with other [readers] loaders"
    assert outdated(older) == {
        1: steps,
        2: f"names and categories are by rules 6, those of today by rules {RULES_VERSION}; {steps}",
    }
    intake.ingest_again(older)
    assert outdated(older) == {}
    assert outdated(older, ("Feeder.pull",)) == {1: causes, 2: causes}


def test_outdated_run_without_its_file_says_so(older: Store, tmp_path: Path):
    (tmp_path / "a.pt.trace.json.gz").unlink()
    assert outdated(older)[1].endswith(f" ({tmp_path}/a.pt.trace.json.gz is gone, so that it stays as it is)")


def calls(path: Path) -> Path:
    """A step of 10 us on the host: aten::mm is called twice, for 4 and 2 us."""
    events = [{"ph": "X", "pid": 1, "tid": 1, "cat": "user_annotation", "name": "ProfilerStep#0", "ts": 0, "dur": 10}]
    for start_us, duration_us in ((1, 4), (6, 2)):
        own = {"ph": "X", "pid": 1, "tid": 1, "cat": "cpu_op", "name": "aten::mm"}
        events.append({**own, "ts": start_us, "dur": duration_us})
    path.write_text(json.dumps({"schemaVersion": 1, "name": path.name, "traceEvents": events}))
    return path


def test_nsight_run_of_earlier_range_rules_is_read_again(store: Store, tmp_path: Path):
    """An earlier program took the longest of two rounds of step 0 and 1: a stored run cannot say whether it did."""
    ranges = [span(f"step {place % 2}", 100 * place, 100 * place + 90) for place in range(4)]
    path = nsys_databases.write(tmp_path / "a.sqlite", {**nsys_databases.one_step(), "NVTX_EVENTS": ranges})
    intake.ingest(store, [path], version="v1", workload="w")
    assert intake.ingest_again(store).up_to_date == 1
    with store.begin() as connection:
        connection.execute(text(f"UPDATE capture SET settings = '{json.dumps({STEP_SETTING: STEP_RULES})}'"))
        connection.execute(text("DELETE FROM step WHERE step > 1"))
        recordings.refresh_recordings(connection, [1])
    assert [one.run_id for one in intake.ingest_again(store).results] == [1]
    assert queries.steps(store, [1]).listed("step") == [0, 1, 2, 3]


def test_run_of_before_a_check_is_read_again(store: Store, tmp_path: Path):
    intake.ingest(store, [trace(tmp_path / "gpu.pt.trace.json.gz", 100)], version="v1", workload="w")
    assert intake.ingest_again(store).up_to_date == 1
    with store.begin() as connection:
        connection.execute(text(f"UPDATE capture SET settings = '{json.dumps({STEP_SETTING: STEP_RULES})}'"))
        recordings.refresh_recordings(connection, [1])
    assert [one.run_id for one in intake.ingest_again(store).results] == [1]
    assert intake.ingest_again(store).up_to_date == 1


def test_run_of_earlier_rules_on_idle_time_is_read_again(store: Store, tmp_path: Path):
    intake.ingest(store, [trace(tmp_path / "gpu.pt.trace.json.gz", 100)], version="v1", workload="w")
    older = json.dumps({STEP_SETTING: STEP_RULES, CHECK_SETTING: CHECK_RULES})
    with store.begin() as connection:
        connection.execute(text(f"UPDATE capture SET settings = '{older}'"))
        recordings.refresh_recordings(connection, [1])
    assert [one.run_id for one in intake.ingest_again(store).results] == [1]
    assert intake.ingest_again(store).up_to_date == 1


def test_run_read_with_other_names_of_loaders_is_read_again(store: Store, tmp_path: Path):
    intake.ingest(store, [trace(tmp_path / "gpu.pt.trace.json.gz", 100)], version="v1", workload="w")
    named = intake.IngestOptions(loaders=("Feeder.pull",))
    assert [one.run_id for one in intake.ingest_again(store, options=named).results] == [1]
    assert intake.ingest_again(store, options=named).up_to_date == 1
    assert [one.run_id for one in intake.ingest_again(store).results] == [1]


def test_run_without_times_by_calls_is_read_again(store: Store, tmp_path: Path):
    """An earlier program did not keep that a usual call takes 3 us."""
    intake.ingest(store, [calls(tmp_path / "cpu.pt.trace.json")], version="v1", workload="w")
    with store.begin() as connection:
        connection.execute(text("UPDATE op SET self_by_quartile_ns = NULL, self_by_median_ns = NULL"))
        connection.execute(text("UPDATE judged_version SET step_after_ns = NULL"))
    assert [one.run_id for one in intake.ingest_again(store).results] == [1]
    with store.connect() as connection:
        assert connection.execute(text("SELECT self_by_median_ns FROM op")).scalars().all() == [6000]
        # its version is judged again
        assert connection.execute(text("SELECT step_after_ns FROM judged_version")).scalar_one() == 10_000
    assert intake.ingest_again(store).up_to_date == 1


def test_run_with_hccl_kernels_as_compute_is_read_again(store: Store, tmp_path: Path):
    """An earlier program counted the kernel by which HCCL runs a collective as compute."""
    place = write(tmp_path, 0, Written(own_kernel="AivKernel", has_rows=False))
    intake.ingest(store, [place], version="v1", workload="w")
    assert intake.ingest_again(store).up_to_date == 1
    with store.begin() as connection:
        vector = connection.execute(text("SELECT id FROM detail_text WHERE text = 'matmul'")).scalar_one()
        connection.execute(text("UPDATE kernel SET category_id = :vector"), {"vector": vector})
    assert [one.run_id for one in intake.ingest_again(store).results] == [1]
    assert intake.ingest_again(store).up_to_date == 1


def test_run_whose_host_stood_in_for_an_npu_is_read_again(store: Store, tmp_path: Path):
    place = write(tmp_path, 0, Written(has_device=False))
    intake.ingest(store, [place], version="v1", workload="w")
    assert intake.ingest_again(store).up_to_date == 1
    with store.begin() as connection:
        connection.execute(text("UPDATE capture SET idle_ns = 980000"))
    assert [one.run_id for one in intake.ingest_again(store).results] == [1]
    with store.connect() as connection:
        assert connection.execute(text("SELECT idle_ns FROM capture")).scalar_one() is None


def test_branch_is_judged_again_when_its_main_line_was_read_again(store: Store, tmp_path: Path):
    intake.ingest(store, [calls(tmp_path / "main.pt.trace.json")], version="v1", workload="w")
    of_branch = intake.IngestOptions(branch="pr7")
    intake.ingest(store, [calls(tmp_path / "push.pt.trace.json")], version="p1", workload="w", options=of_branch)
    with store.begin() as connection:
        connection.execute(text("UPDATE op SET self_by_quartile_ns = NULL, self_by_median_ns = NULL WHERE run_id = 1"))
        connection.execute(text("UPDATE judged_version SET step_after_ns = NULL"))
    assert [one.run_id for one in intake.ingest_again(store).results] == [1]
    with store.connect() as connection:
        assert connection.execute(text("SELECT step_after_ns FROM judged_version")).scalars().all() == [10_000] * 2
