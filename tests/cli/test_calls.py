"""`tracker show RUN --calls NAME`: the single calls of a name, from the file of the run."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import pytest

from tests.test_intake import write_trace
from tracker.profile import label_idle

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def run(tracker, tmp_path):
    """A stored run of two ranks, each with a kernel and an all-reduce; returns the folder of its files."""
    folder = tmp_path / "job"
    for rank, kernel_us in ((0, 100), (1, 300)):
        path = folder / f"rank{rank}.pt.trace.json"
        write_trace(path, rank=rank, kernel_us=kernel_us, all_reduce_us=50 + rank)
    assert tracker("ingest", folder, "--version", "v1", "--workload", "toy", "--db", tmp_path / "runs.db").code == 0
    return folder


@pytest.fixture
def calls(tracker, run, tmp_path):
    """Lists calls of the stored run as JSON: calls("gemm", "--rank", 1)."""

    def listed(name, *words):
        done = tracker("show", "1", "--calls", name, *words, "--format", "json", "--db", tmp_path / "runs.db")
        assert done.code == 0, done.err
        return json.loads(done.out)

    return listed


def test_calls_of_all_ranks_come_slowest_first(calls):
    found = calls("gemm")
    assert (found["kind"], found["measure"]) == ("kernel", "duration_ns")
    assert [(row["rank"], row["step"], row["duration_ns"]) for row in found["calls"]] == [
        (1, 1, 300_000), (0, 1, 100_000),
    ]  # fmt: skip
    assert found["calls"][0]["start_ns"] == 200_000 and found["calls"][0]["end_ns"] == 500_000
    assert found["calls"][0]["stream"] == 7 and found["calls"][0]["op"] == "aten::mm"
    assert found["stored"]["total_ns"] == found["spread"]["total_ns"] == 400_000
    assert found["spread"]["median_ns"] == 200_000
    assert sum(row["calls"] for row in found["histogram"]) == 2


def test_an_operator_is_ordered_by_what_it_launched(calls):
    found = calls("aten::mm")
    assert (found["kind"], found["measure"]) == ("operator", "device_total_ns")
    assert [row["device_total_ns"] for row in found["calls"]] == [300_000, 100_000]
    assert {row["duration_ns"] for row in found["calls"]} == {50_000}
    assert found["calls"][0]["input_shapes"] == "[[2,2],[2,2]]"


def test_calls_of_a_rank_and_of_a_step(calls):
    assert [row["rank"] for row in calls("gemm", "--rank", 1)["calls"]] == [1]
    assert len(calls("gemm", "--step", 1)["calls"]) == 2


def test_idle_time_is_listed_by_cause_and_place(calls, tracker, tmp_path):
    shown = tracker("show", "1", "--only", "idle", "--format", "json", "--db", tmp_path / "runs.db")
    rows = json.loads(shown.out)["idle"]
    assert rows
    for row in rows:
        found = calls(label_idle(row["cause"], row["place"] or ""))
        assert (found["kind"], found["spread"]["total_ns"], found["spread"]["calls"]) == (
            "idle",
            row["ns"],
            row["gaps"],
        )
        assert {call["cause"] for call in found["calls"]} == {row["cause"]}
    of_cause = [row for row in rows if row["cause"] == rows[0]["cause"]]
    assert calls(rows[0]["cause"], "--calls-of", "idle")["spread"]["total_ns"] == sum(row["ns"] for row in of_cause)


def test_formats_hold_the_calls(tracker, run, tmp_path):
    database = ("--db", tmp_path / "runs.db")
    text = tracker("show", "1", "--calls", "gemm", *database)
    assert "gemm: 2 calls, 400.00 us together; median 200.00 us, longest 300.00 us" in text.out
    written = tracker("show", "1", "--calls", "gemm", "--format", "csv", *database).out
    rows = [row for row in csv.DictReader(io.StringIO(written)) if row["section"] == "calls"]
    assert [row["duration_ns"] for row in rows] == ["300000", "100000"]
    assert "| 300.00 us |" in tracker("show", "1", "--calls", "gemm", "--format", "markdown", *database).out
    for name in ("calls.html", "calls.xlsx"):
        assert tracker("show", "1", "--calls", "gemm", "-o", tmp_path / name, *database).code == 0
        assert (tmp_path / name).stat().st_size > 4_000


def test_without_a_device_an_operator_is_ordered_by_its_time_on_the_host(tracker, trace):
    done = tracker("show", trace["v01"], "--calls", "aten::mm")
    assert (done.code, "Time on the host of a call" in done.out) == (0, True), done.err


def test_a_path_has_calls_without_a_database(tracker, run):
    done = tracker("show", run / "rank0.pt.trace.json", "--calls", "gemm", "--format", "json")
    assert [row["duration_ns"] for row in json.loads(done.out)["calls"]] == [100_000]


def test_an_npu_states_the_number_of_a_task(tracker):
    folder = DATA / "ascend_text" / "worker-1_4711_20250109073443012_ascend_pt"
    listed = tracker("show", folder, "--only", "kernel", "--format", "json")
    name = next(row["name"] for row in json.loads(listed.out)["kernels"] if row["category"] != "communication")
    done = tracker("show", folder, "--calls", name, "--format", "json")
    assert [row["task_id"] for row in json.loads(done.out)["calls"]] == [11]


def test_without_its_file_what_is_stored_is_shown_and_code_is_2(tracker, run, tmp_path):
    (run / "rank0.pt.trace.json").unlink()
    (run / "rank1.pt.trace.json").write_text((run / "rank1.pt.trace.json").read_text().replace("gemm", "gemv"))
    done = tracker("show", "1", "--calls", "gemm", "--db", tmp_path / "runs.db")
    assert done.code == 2
    assert "gemm: 2 calls, 400.00 us together" in done.out
    assert done.err.count("\n") == 1
    assert "no such file any more" in done.err and "has another content" in done.err


def test_without_its_file_collectives_come_from_the_database(tracker, run, tmp_path):
    for path in run.iterdir():
        path.unlink()
    done = tracker("show", "1", "--calls", "all_reduce", "--format", "json", "--db", tmp_path / "runs.db")
    found = json.loads(done.out)
    assert done.code == 0
    assert [(row["rank"], row["duration_ns"], row["start_ns"]) for row in found["calls"]] == [
        (1, 51_000, 400_000), (0, 50_000, 400_000),
    ]  # fmt: skip
    assert found["notes"][0].startswith("The calls are those of the database")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--calls", "gem"), "there is no operator, kernel, collective or idle place 'gem' in run:1"),
        (("--calls", "gemm", "--calls-of", "operator"), "there is no operator 'gemm'"),
        (("--calls", "gemm", "--calls-of", "thing"), "must be one of"),
        (("--calls", ""), "no name to list the calls of"),
        (("--calls", "gemm", "--by", "rank"), "--by with --calls"),
        (("--calls", "gemm", "--min-us", "3"), "--min-us chooses nothing"),
        (("--calls", "aten::mm", "--op", "aten::mm"), "--op chooses nothing"),
        (("--calls", "gemm", "--op", "aten::add"), "leave no call of 'gemm'"),
        (("--calls", "gemm", "--rank", "7"), "no rank is left"),
        (("--calls", "gemm", "--step", "7"), "has no step 7"),
        (("--shapes", "[[1]]"), "name them: --calls NAME"),
    ],
)
def test_bad_input_is_one_line(tracker, run, tmp_path, words, says):
    done = tracker("show", "1", *words, "--db", tmp_path / "runs.db")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert says in done.err


def test_a_name_of_two_kinds_asks_for_one(tracker, tmp_path):
    path = write_trace(tmp_path / "a.json")
    path.write_text(path.read_text().replace('"gemm"', '"aten::mm"'))
    done = tracker("show", path, "--calls", "aten::mm")
    assert done.code == 2
    assert "--calls-of operator or --calls-of kernel" in done.err
    assert tracker("show", path, "--calls", "aten::mm", "--calls-of", "kernel").code == 0


def test_a_log_has_no_calls(tracker, tmp_path):
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {step} loss 2.{step} step_time: 0.{step + 10} s\n" for step in range(12)))
    done = tracker("show", log, "--input-format", "training_log", "--calls", "aten::mm")
    assert done.code == 2
    assert "has no calls" in done.err


def test_a_pruned_run_has_no_calls(tracker, run, tmp_path):
    database = tmp_path / "runs.db"
    newer = write_trace(tmp_path / "newer.json", start_us=60_000_000)
    assert tracker("ingest", newer, "--version", "v2", "--workload", "toy", "--db", database).code == 0
    assert tracker("prune", "--older-than", "1s", "--keep-versions", "1", "--db", database).code == 0
    done = tracker("show", "1", "--calls", "gemm", "--db", database)
    assert done.code == 2
    assert "only totals are left" in done.err


def test_a_call_is_where_its_trace_says(calls, tracker, tmp_path):
    (row,) = calls("gemm", "--rank", 1)["calls"]
    target = tmp_path / "step.json.gz"
    words = ("cut", "1", "--step", row["step"], "--rank", row["rank"], "-o", target, "--db", tmp_path / "runs.db")
    assert tracker(*words).code == 0
    events = json.loads(gzip.decompress(target.read_bytes()))["traceEvents"]
    (event,) = [event for event in events if event["name"] == "gemm"]
    assert event["ts"] * 1_000 == row["trace_ns"]
    assert event["dur"] * 1_000 == row["duration_ns"]
