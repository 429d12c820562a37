"""What captures of Ascend NPUs make the screens say, from files to sentences."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Done
from tests.readers.ascend_text.captures import PT, edited
from tests.readers.ascend_texts import Written, write_versions


def parts_us(run: dict[str, Any]) -> list[float | None]:
    """Return compute, exposed communication and idle time of the first step, in us."""
    names = ("compute_ns", "exposed_communication_ns", "idle_ns")
    found = [run["steps"][0][name] for name in names]
    return [None if part is None else part / 1e3 for part in found]


def ingest_versions(tracker: Any, tmp_path: Path, *versions: tuple[Written, int]) -> None:
    for place in write_versions(tmp_path, versions):
        tracker("ingest", place, "--version", place.name, "--workload", "w")


@pytest.mark.parametrize("table", [True, False], ids=["table and trace", "trace alone"])
def test_hccl_in_aiv_mode_changes_nothing(tracker, tmp_path, table):
    """v2 was recorded in AIV mode: beside each row of the collective a kernel of the same time."""
    plain, aiv = Written(has_table=table), Written(own_kernel="AivKernel", has_table=table)
    ingest_versions(tracker, tmp_path, (plain, 3), (aiv, 3))
    for version in ("v1", "v2"):
        shown = json.loads(tracker("show", version, "--format", "json").out)
        assert parts_us(shown) == [600.0, 250.0, 150.0]
        assert {row["name"] for row in shown["kernels"]} >= {"aclnnMm_MatMulV2"}
        assert not any("Aiv" in row["name"] for row in shown["kernels"])
    compared = json.loads(tracker("diff", "v1", "v2", "--format", "json", "--fail-on", "any").out)
    assert compared["explanation"]["verdict"] == "UNCHANGED"
    assert json.loads(tracker("findings", "--format", "json").out)["findings"] == []


def test_collective_that_runs_by_a_kernel_alone_is_communication(tracker, tmp_path):
    ingest_versions(tracker, tmp_path, (Written(own_kernel="AivKernel", has_rows=False), 1))
    shown = json.loads(tracker("show", "v1", "--format", "json").out)
    assert parts_us(shown) == [600.0, 250.0, 150.0]
    assert [row["kind"] for row in shown["communication"]] == ["all_reduce"]


@pytest.mark.parametrize("table", [True, False], ids=["empty table", "no table"])
def test_host_data_alone_is_said_and_makes_no_idle_time(tracker, tmp_path, table):
    """v2 has host data alone. Of 1 ms of a step, operators run for 20 us: 98 % idle would be of the host."""
    host_alone = Written(has_device=False, has_table=table)
    ingest_versions(tracker, tmp_path, (Written(), 3), (host_alone, 3))
    shown = tracker("show", "v2").out
    assert "1.00 ms per step, no device data" in shown
    assert "compute, communication and idle time are not known" in " ".join(shown.split())
    assert "  idle" not in shown
    assert parts_us(json.loads(tracker("show", "v2", "--format", "json").out)) == [None, None, None]
    compared = tracker("diff", "v1", "v2").out
    assert "; no device data of v2" in compared
    assert "faster" not in compared
    advice = json.loads(tracker("advise", "v2", "--format", "json").out)
    assert advice["advice"] == []
    assert "no device data" not in tracker("show", "v1").out


def test_two_versions_of_host_data_compare_their_steps(tracker, tmp_path):
    host_alone = Written(has_device=False)
    ingest_versions(tracker, tmp_path, (host_alone, 3), (host_alone, 3))
    compared = tracker("diff", "v1", "v2").out
    assert "; no device data of v1 and v2" in compared
    assert "UNCHANGED" in compared


@pytest.mark.parametrize("calls", [False, True], ids=["arrows alone", "calls with correlations"])
def test_head_without_device_records_stays_partial(tracker, tmp_path, calls):
    """Steps 0 and 1 of 4 lost their records; the others are faster, and nothing of the device is judged."""
    ingest_versions(tracker, tmp_path, (Written(calls=calls), 3), (Written(calls=calls, lost={0, 1}, mm_us=500), 3))
    shown = json.loads(tracker("show", "v2", "--format", "json").out)
    (rank,) = shown["overall"]
    assert rank["quality"] == "partial"
    assert rank["quality_reason"] == (
        "steps 0-1 are left out: 4 of 4 operators that launch have no device work: the profiler lost its records"
    )
    compared = json.loads(tracker("diff", "v1", "v2", "--format", "json").out)
    assert compared["explanation"]["verdict"] is None
    assert "IMPROVED" not in tracker("diff", "v1", "v2").out


def test_times_of_profiler_stand_beside_waits_of_tasks(tracker, monkeypatch):
    """Of 300 us the Notify_Wait for rank 1 takes 200; communication.json states 150 of synchronization and 50 idle."""
    (row,) = json.loads(tracker("show", PT, "--format", "json").out)["communication"]
    numbers = [row[f"{name}_ns"] for name in ("total", "transit", "wait", "synchronization", "idle")]
    assert [number / 1e3 for number in numbers] == [300.0, 100.0, 200.0, 150.0, 50.0]
    assert row["split_by"] == "tasks"
    monkeypatch.setenv("COLUMNS", "170")
    shown = tracker("show", PT, "--only", "communication").out
    assert "transit (tasks)  wait (tasks)  sync (profiler)  idle (profiler)" in shown


def test_waits_of_tasks_and_of_profiler_are_not_compared(tracker, tmp_path):
    """The other side's tasks name no rank: its waiting is the column of the profiler."""
    copy = Path(shutil.copytree(PT, tmp_path / PT.name))
    edited(copy, "trace_view.json", '"src rank": 1, "dst rank": 0,', '"src rank": 4294967295, "dst rank": 4294967295,')
    compared = json.loads(tracker("diff", PT, copy, "--format", "json").out)
    (row,) = compared["communication"]
    assert (row["baseline_split_by"], row["candidate_split_by"]) == ("tasks", "profiler")
    assert any(
        "Wait and transit of dp_cp x2 come from the tasks of the calls in the baseline and from the profiler" in note
        for note in compared["notes"]
    )


def test_synchronization_that_is_no_number_is_one_line(tracker, tmp_path):
    copy = Path(shutil.copytree(PT, tmp_path / PT.name))
    edited(copy, "communication.json", '"Synchronization Time(ms)": 0.15', '"Synchronization Time(ms)": "soon"')
    done: Done = tracker("show", copy)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "communication.json" in done.err and "not a record of a collective" in done.err
