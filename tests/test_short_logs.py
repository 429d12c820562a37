"""Logs of jobs that ended early: few intervals say how long a step takes, and not what some slow steps cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracker import reports
from tracker.compare import diff
from tracker.intake import ingest
from tracker.regressions.inbox import findings
from tracker.store import Store, queries

LINE = "iter {}: reader_cost: 0.001 s batch_cost: {:.3f} s ips: 800.0 images/s"


@pytest.mark.parametrize(("intervals", "series"), [(5, {"step"}), (6, {"step", "mean step"})])
def test_the_mean_step_of_a_log_needs_five_intervals_behind_the_first(
    memory_store: Store, tmp_path: Path, intervals: int, series: set[str]
):
    path = tmp_path / "train.log"
    times = [0.3, *[0.1] * (intervals - 1)]
    path.write_text("\n".join(LINE.format(10 * at, seconds) for at, seconds in enumerate(times)) + "\n")
    ingest(memory_store, [path], version="v1", workload="toy")
    found = queries.run_level(memory_store, [1]).rows("name", "per_step")
    assert {name: ns for name, ns in found if "step" in name} == dict.fromkeys(series, 100e6)


def mindformers(time_ms: int) -> list[str]:
    return [
        f"{{ step:[{step}/ 310], loss: 11.8, per_step_time: {time_ms}ms, lr: 1.0e-05, overflow cond: False }}"
        for step in range(10, 310, 10)
    ]


def ingest_version(store: Store, folder: Path, version: str, time_ms: int) -> None:
    for run in range(3):
        path = folder / f"{version}_run{run}.log"
        # the runs differ in their losses alone
        path.write_text("\n".join(mindformers(time_ms)).replace("11.8", f"{version[1:]}.{run}") + "\n")
        ingest(store, [path], version=version, workload="toy")


@pytest.mark.parametrize(("after_ms", "verdict"), [(13, "INCONCLUSIVE"), (14, "REGRESSED"), (12, "INCONCLUSIVE")])
def test_one_whole_ms_of_twelve_is_within_the_rounding(
    memory_store: Store, tmp_path: Path, after_ms: int, verdict: str
):
    ingest_version(memory_store, tmp_path, "v1", 12)
    ingest_version(memory_store, tmp_path, "v2", after_ms)
    found = diff(memory_store, "v1", "v2")
    assert found.explanation.verdict == verdict
    is_rounded = "The step is known to 4.2 % only: its source rounds it." in found.explanation.remarks
    assert is_rounded == (verdict == "INCONCLUSIVE")
    assert (len(findings(memory_store).findings) > 0) == (verdict == "REGRESSED")


def test_incident_of_a_throughput_does_not_call_the_step_a_finding(memory_store: Store, tmp_path: Path):
    """A step of .1 s, of one digit, with 800, then 700 images/s."""
    for version, rate in (("v1", 800), ("v2", 700)):
        for run in range(3):
            path = tmp_path / f"{version}_{run}.log"
            lines = [f"iter {step}: batch_cost: 0.1 s ips: {rate + run}.0 images/s" for step in range(10, 300, 10)]
            path.write_text("\n".join([*lines, ""]))
            ingest(memory_store, [path], version=version, workload="toy")
    found = findings(memory_store)
    text = " ".join(reports.render(found, "text", width=200).split())
    assert "throughput images/s, without a profiler (-12.5 %); the step itself is no finding (0.0 %)" in text
