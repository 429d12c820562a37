"""Logs of jobs that ended early: few intervals say how long a step takes, and not what some slow steps cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracker.intake import ingest
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
