"""Runs whose steps were cut by an earlier rule, beside runs of today."""

from __future__ import annotations

import pandas as pd
from msgspec.structs import replace

from tests.factories import capture, record
from tracker.compare import diff, show
from tracker.store import Store, save_run

REMEDY = "tracker ingest --again reads their files again"


def save(store: Store, version: str, step_ns: int, *, older: bool = False, at: int = 0) -> None:
    """A run of two steps on a device, cut by the rule of today unless `older`."""
    one = capture(steps=2, step_ns=step_ns, started_at_ns=at)
    if older:
        one = replace(one, settings={})
    else:
        steps = tuple(replace(row, marker_ns=row.breakdown.duration_ns) for row in one.rows.steps)
        one = replace(one, rows=replace(one.rows, steps=steps))
    save_run(store, record(version, started_at_ns=at), [one], formats=["torch_profiler"])


def test_older_steps_are_not_judged_against_windows(store: Store):
    """15.95 -> 18.98 is another definition, no regression; kernels are compared all the same."""
    for at in range(3):
        save(store, "v1", 1595, older=True, at=at)
        save(store, "v2", 1898, at=at + 10)
    found = diff(store, "v1", "v2")
    step = found.overall[found.overall["metric"] == "step_ns"].iloc[0]
    assert pd.isna(step["verdict"])
    (remark,) = [text for text in found.explanation.remarks if "step definition" in text]
    assert "markers of the host -> windows of the device" in remark
    assert found.kernels["verdict"].tolist() == ["UNCHANGED"]


def test_side_of_both_rules_counts_steps_of_today(store: Store):
    save(store, "v1", 1000, at=0)
    save(store, "v1", 300, older=True, at=1)
    save(store, "v2", 1000, at=10)
    found = diff(store, "v1", "v2")
    assert (found.explanation.baseline_ns, found.explanation.candidate_ns) == (1000, 1000)
    assert any(text.startswith("v1: run 2 was read by an earlier step definition: no steps") for text in found.notes)


def test_run_of_the_earlier_rule_says_so(store: Store):
    save(store, "v1", 300, older=True)
    assert REMEDY in show(store, "v1").notes[0]
    save(store, "v2", 300)
    assert not any(REMEDY in text for text in show(store, "v2").notes)
