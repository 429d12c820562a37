"""One execution is one run: the trace of a job, the log of its timer and its summary beside it."""

from __future__ import annotations

import json
import shutil
from itertools import permutations
from pathlib import Path

import pytest

from tracker import compare
from tracker.compare.advised import advise
from tracker.intake import IngestOptions, ingest
from tracker.regressions.board import board
from tracker.results import LogOptions
from tracker.schema.series import STEP_WAYS
from tracker.store import Store, documents, open_store, queries
from tracker.store.runs import delete_all, edit_all, exclude_all, restore_all
from tracker.store.sql import statement

TRACE = Path(__file__).parent / "data" / "torch_profiler" / "cpu_gloo_rank1.pt.trace.json"
SUMMARY = Path(__file__).parent / "data" / "paddle_summary" / "cpu.txt"
LINE = "[Epoch 0, batch {}] loss: 1.0, reader_cost: 0.001 sec, batch_cost: {:.5f} sec, ips: 640.0 samples/sec"


def write_job(folder: Path, *, step_ms: int, number: int = 0, names: tuple[str, ...] = ("train.log",)) -> Path:
    """Write the same trace, as a file of its own, and logs beside it whose steps take `step_ms`."""
    folder.mkdir(parents=True, exist_ok=True)
    trace = json.loads(TRACE.read_text())
    trace["baseTimeNanoseconds"] = trace.get("baseTimeNanoseconds", 0) + number * 3600 * 10**9
    (folder / TRACE.name).write_text(json.dumps(trace))
    for place, name in enumerate(names):
        lines = [LINE.format(10 * at, step_ms / 1e3) for at in range(12 + number + place)]
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


def fill(store: Store, tmp_path: Path) -> None:
    """Ingest v1 with steps of 50 ms by the log and v2 with 60 ms, three runs each; the traces are all alike."""
    for number in range(6):
        version, step_ms = ("v1", 50) if number < 3 else ("v2", 60)
        folder = write_job(tmp_path / str(number), step_ms=step_ms, number=number)
        ingest(store, [folder], version=version, workload="toy")


def states_of(store: Store) -> dict[str, str]:
    """Return of each run the name of its file, and what became of it."""
    paths = {run_id: Path(path).name for run_id, path in queries.sources(store, [1, 2, 3, 4]).rows("run_id", "path")}
    runs = queries.runs(store, state=None)
    return {paths[run_id]: reason or state for run_id, state, reason in runs.rows("run_id", "state", "state_reason")}


def test_the_step_is_that_of_the_log_and_the_trace_explains_it(memory_store: Store, tmp_path: Path):
    fill(memory_store, tmp_path)
    runs = queries.runs(memory_store, state="active")
    assert sorted(runs.rows("version", "step_ns")) == [("v1", 50_000_000)] * 3 + [("v2", 60_000_000)] * 3
    found = compare.diff(memory_store, "v1", "v2")
    assert found.headline.startswith(
        "v2 is 20.0 % slower than v1: 50.00 -> 60.00 ms per step by the timer log, without a profiler (+10.00 ms), "
        "under the profiler E2E 0.0 % (1.00 -> 1.00 ms)"
    )
    assert found.explanation.verdict == "REGRESSED"
    overall = {row["metric"]: row for row in found.tables["overall"].records()}
    assert overall["unprofiled_step_ns"]["verdict"] == "REGRESSED"
    assert overall["step_ns"]["diff"] == 0
    assert overall["step_ns"]["verdict"] != "REGRESSED"
    assert found.gates["new"].code == 1


def test_board_log_history_and_advice_have_the_step_of_the_diff(memory_store: Store, tmp_path: Path):
    fill(memory_store, tmp_path)
    (line,) = board(memory_store).tables["lines"].records()
    assert (line["step_ns"], line["runs"], line["step_verdict"]) == (60e6, 6, "REGRESSED")
    assert line["previous_change"] == pytest.approx(0.2)
    logged = compare.log(memory_store, options=LogOptions(workload="toy", metric="step"))
    assert [row["value"] for row in logged.tables["cells"].records()] == [50e6, 60e6]
    shown = compare.show(memory_store, "v2")
    assert shown.run["unprofiled_step_ns"] == 60e6
    assert advise(memory_store, "v2").run["unprofiled_step_ns"] == 60e6


def test_files_that_come_one_by_one_are_one_run_as_well(memory_store: Store, tmp_path: Path):
    folder = write_job(tmp_path / "job", step_ms=50)
    for path in (folder / "train.log", folder / TRACE.name):
        ingest(memory_store, [path], version="v1", workload="toy")
    assert states_of(memory_store) == {TRACE.name: "active", "train.log": "a document of run:2"}
    (result,) = ingest(memory_store, [folder], version="v1", workload="toy")
    assert result.already
    assert queries.runs(memory_store, state="active").listed("step_ns") == [50_000_000]


def test_files_are_one_run_in_whatever_order_they_come(tmp_path: Path):
    folder = write_job(tmp_path / "job", step_ms=50)
    shutil.copy(SUMMARY, folder)
    for order in permutations([TRACE.name, SUMMARY.name, "train.log"]):
        with open_store("sqlite://") as store:
            for name in order:
                ingest(store, [folder / name], version="v1", workload="toy")
            (run_id,) = queries.runs(store).listed("run_id")
            document = f"a document of run:{run_id}"
            assert states_of(store) == {TRACE.name: "active", SUMMARY.name: document, "train.log": document}
            assert queries.runs(store).listed("step_ns") == [50_000_000]


def test_logs_that_come_after_their_traces_were_judged_are_judged(memory_store: Store, tmp_path: Path):
    folders = []
    for number in range(6):
        version, step_ms = ("v1", 50) if number < 3 else ("v2", 60)
        folders.append((write_job(tmp_path / str(number), step_ms=step_ms, number=number), version))
        ingest(memory_store, [folders[-1][0] / TRACE.name], version=version, workload="toy")
    for folder, version in folders:
        ingest(memory_store, [folder / "train.log"], version=version, workload="toy")
    (line,) = board(memory_store).tables["lines"].records()
    assert (line["step_ns"], line["step_verdict"]) == (60e6, "REGRESSED")


def test_what_a_user_decides_of_a_document_holds(memory_store: Store, tmp_path: Path):
    """Restored, it is a run of its own, and no later ingest makes a document of it again."""
    folder = write_job(tmp_path / "job", step_ms=50)
    ingest(memory_store, [folder], version="v1", workload="toy")
    trace_ns = 1_000_000
    delete_all(memory_store, [2], "of another job")
    assert queries.runs(memory_store).rows("run_id", "step_ns") != [(1, 50_000_000)]
    restore_all(memory_store, [2])
    ingest(memory_store, [folder], version="v1", workload="toy")
    assert sorted(queries.runs(memory_store).listed("run_id")) == [1, 2]
    assert compare.show(memory_store, "run:1").run.get("unprofiled_step_ns") is None
    assert compare.show(memory_store, "run:1").run["step_ns"] == trace_ns


def test_documents_go_and_are_relabelled_with_their_run(memory_store: Store, tmp_path: Path):
    folder = write_job(tmp_path / "job", step_ms=50)
    ingest(memory_store, [folder], version="v1", workload="toy")
    edit_all(memory_store, [1], version="v2")
    (result,) = ingest(memory_store, [folder], version="v2", workload="toy")
    assert result.already
    assert queries.versions(memory_store).listed("version") == ["v2"]
    delete_all(memory_store, [1], "wrong", purge=True)
    (result,) = ingest(memory_store, [folder], version="v3", workload="toy")
    assert result.created
    assert queries.runs(memory_store).listed("step_ns") == [50_000_000]


def test_a_log_of_a_run_that_does_not_count_stays_a_run(memory_store: Store, tmp_path: Path):
    folder = write_job(tmp_path / "job", step_ms=50)
    ingest(memory_store, [folder / TRACE.name], version="v1", workload="toy")
    exclude_all(memory_store, [1], "noisy")
    ingest(memory_store, [folder], version="v1", workload="toy")
    assert states_of(memory_store) == {TRACE.name: "noisy", "train.log": "active"}


def test_a_log_that_came_under_another_version_stays_a_run(memory_store: Store, tmp_path: Path):
    folder = write_job(tmp_path / "job", step_ms=50)
    ingest(memory_store, [folder / "train.log"], version="v0", workload="toy")
    ingest(memory_store, [folder / TRACE.name], version="v1", workload="toy")
    assert states_of(memory_store) == {TRACE.name: "active", "train.log": "active"}


def test_of_two_logs_nobody_knows_which_is_of_the_trace(memory_store: Store, tmp_path: Path):
    folder = write_job(tmp_path / "job", step_ms=50, names=("a.log", "b.log"))
    assert len(ingest(memory_store, [folder], version="v1", workload="toy")) == 3
    shown = compare.show(None, str(folder))
    assert "2 runs of training_log left out" in shown.notes[0]
    with memory_store.connect() as connection:
        (apart,) = documents.find_apart(connection)
    assert (apart.folder, sorted(apart.ways), apart.why) == (str(folder), ["log", "log", "trace"], "2 logs")
    exclude_all(memory_store, [1], reason="another job")
    with memory_store.connect() as connection:
        (apart,) = documents.find_apart(connection)
    assert (apart.run_ids, apart.why) == ((2, 3), "an ingest of this folder joins them")


def test_files_of_a_folder_and_of_one_in_it_are_joined_in_each(memory_store: Store, tmp_path: Path):
    outer = write_job(tmp_path / "job", step_ms=50)
    inner = write_job(outer / "eval", step_ms=70, number=1)
    for name in ("train.log", TRACE.name):
        ingest(memory_store, [outer / name, inner / name], version="v1", workload="toy")
    steps = queries.runs(memory_store, state="active").rows("step_ns")
    assert sorted(steps) == [(50_000_000,), (70_000_000,)]


def test_runs_that_an_earlier_program_stored_are_joined_by_the_upgrade(tmp_path: Path):
    """Where the folder says so; a log of another folder stays what it was."""
    store = open_store(f"sqlite:///{tmp_path / 'old.db'}")
    folder = write_job(tmp_path / "job", step_ms=50)
    other = write_job(tmp_path / "other", step_ms=70, number=1)
    for path in (folder / "train.log", folder / TRACE.name, other / "train.log"):
        options = IngestOptions(as_run=True)  # as the program before stored them
        ingest(store, [path], version="v1", workload="toy", options=options)
    with store.engine.begin() as connection:
        assert documents.join_beside(connection) == {2}
        assert documents.of_runs(connection, [1, 2, 3]) == {2: [1]}
    assert queries.runs(store, state="active").listed("run_id") == [3, 2]
    store.close()


def test_sides_of_which_one_has_no_trace_are_compared_by_their_logs(memory_store: Store, tmp_path: Path):
    both = write_job(tmp_path / "both", step_ms=50)
    alone = write_job(tmp_path / "alone", step_ms=60, number=1)
    (alone / TRACE.name).unlink()
    ingest(memory_store, [both], version="v1", workload="toy", options=IngestOptions(device="Intel Xeon"))
    ingest(memory_store, [alone], version="v2", workload="toy", options=IngestOptions(device="Intel Xeon"))
    found = compare.diff(memory_store, "v1", "v2")
    assert "50.00 -> 60.00 ms per step by the timer log, without a profiler" in found.headline
    assert "under the profiler" not in found.headline
    (step,) = [row for row in found.tables["overall"].records() if row["metric"] == "step_ns"]
    assert (step["baseline_value"], step["candidate_value"]) == (50e6, 60e6)
    assert found.explanation.parts == ()


def test_runs_of_a_log_alone_are_in_no_step_under_the_profiler(memory_store: Store, tmp_path: Path):
    """One run of each version has a trace, two have a log alone: all of them have a step without a profiler."""
    for number in range(6):
        version, step_ms = ("v1", 50) if number < 3 else ("v2", 60)
        folder = write_job(tmp_path / str(number), step_ms=step_ms, number=number)
        if number % 3:
            (folder / TRACE.name).unlink()
        options = IngestOptions(device="Intel Xeon", configuration={"world_size": "2"})
        ingest(memory_store, [folder], version=version, workload="toy", options=options)
    found = compare.diff(memory_store, "v1", "v2")
    assert "50.00 -> 60.00 ms per step by the timer log" in found.headline
    assert "under the profiler 0.0 % (1.00 -> 1.00 ms)" in found.headline


def test_a_board_compares_no_step_of_a_log_with_one_of_a_trace(memory_store: Store, tmp_path: Path):
    options = IngestOptions(device="Intel Xeon", configuration={"world_size": "2"})
    for number, (version, left_out) in enumerate([("v1", TRACE.name), ("v2", "train.log")]):
        folder = write_job(tmp_path / version, step_ms=50, number=number)
        (folder / left_out).unlink()
        ingest(memory_store, [folder], version=version, workload="toy", options=options)
    (line,) = board(memory_store).tables["lines"].records()
    assert (line["step_ns"], line["previous_change"]) == (1e6, None)


def test_a_log_of_which_a_sidecar_says_another_version_is_a_run(memory_store: Store, tmp_path: Path):
    folder = write_job(tmp_path / "job", step_ms=50)
    for name, version in ((TRACE.name, "v1"), ("train.log", "v2")):
        (folder / f"{name}.tracker.json").write_text(json.dumps({"version": version, "workload": "toy"}))
    assert sorted(result.version for result in ingest(memory_store, [folder])) == ["v1", "v2"]


def test_the_throughput_has_the_unit_of_its_source(memory_store: Store, tmp_path: Path):
    folder = write_job(tmp_path / "job", step_ms=50)
    log = folder / "train.log"
    log.write_text(log.read_text().replace("samples/sec", "tokens/sec"))
    ingest(memory_store, [folder], version="v1", workload="toy")
    found = compare.log(memory_store, options=LogOptions(workload="toy", metric="throughput"))
    assert [row["unit"] for row in found.tables["columns"].records()] == ["tokens/s"]


def test_sql_takes_the_step_in_the_order_of_the_ways():
    """The order is declared in schema.series; SQL cannot read it there."""
    assert STEP_WAYS == ("unprofiled", "", "summary")
    for name in ("runs", "run_numbers"):
        text = str(statement(name))
        assert text.index("'unprofiled'") < text.index("= ''" if name == "runs" else "WHEN ''")


@pytest.mark.parametrize(("step_ms", "is_said"), [(15, False), (25, True)])
def test_a_log_whose_step_is_twice_that_of_the_trace_may_be_of_another_job(
    memory_store: Store, tmp_path: Path, step_ms: int, is_said: bool
):
    """The summary beside the log has steps of 10 ms."""
    folder = tmp_path / "job"
    folder.mkdir()
    shutil.copy(SUMMARY, folder)
    lines = [LINE.format(10 * at, step_ms / 1e3) for at in range(12)]
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    ingest(memory_store, [folder], version="v1", workload="toy")
    sentences = (
        *compare.show(memory_store, "v1").notes,
        *compare.diff(memory_store, "run:1", "run:1").explanation.remarks,
    )
    found = [sentence for sentence in sentences if "whether both are of one job is not known" in sentence]
    assert len(found) == 2 * is_said
