"""What captures of Ascend NPUs make the screens say, from files to sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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
