"""Findings made by hand: one incident of v42 with two regressions, an improvement, and a suspect."""

from __future__ import annotations

from tests.reports.builders.diffs import MS
from tracker.results import Findings
from tracker.results.findings import FindingsRows, ListedFinding, ListedIncident, TrackStanding

LINE = {"workload": "gpt", "configuration": "batch=32", "device": "NVIDIA H100"}


def finding(number, name, state="new", **more):
    """A regression from 10 to 15 ms, of incident 3."""
    usual = {
        **LINE, "finding_id": number, "incident_id": 3, "version": "v42", "good_version": "v41", "series_id": number,
        "kind": "op_name", "metric": "device_self_ns", "unit": "ns", "name": name, "input_shapes": "", "part": "",
        "step_kind": "",
        "direction": "regression", "change": "level", "state": state, "is_new": state == "new", "verdict": "REGRESSED",
        "ratio": 0.5, "q": 0.001, "contribution": 0.05, "baseline_value": 10.0 * MS, "candidate_value": 15.0 * MS,
        "delta": 5.0 * MS, "share_of_change": 0.5, "cause": "slower per call", "covers": 0,
    }  # fmt: skip
    return ListedFinding(**usual | more)


ROWS = (
    finding(1, "step", kind="run", metric="duration_ns", baseline_value=100.0 * MS, candidate_value=110.0 * MS,
            delta=10.0 * MS, ratio=0.1, contribution=None),
    finding(2, "aten::mm", state="persisting"),
    finding(3, "aten::add", direction="improvement", ratio=-0.5, candidate_value=5.0 * MS, delta=-5.0 * MS),
    finding(None, "aten::mul", state="suspect", incident_id=None, verdict="SUSPECT", q=None, series_id=4),
)  # fmt: skip


def line(**more):
    """v42 with three runs of ten, the last one of 2026-01-01."""
    usual = {
        **LINE, "version": "v42", "version_runs": 3, "runs": 10, "last_run_id": 10,
        "last_run_ns": 1_767_225_600_000_000_000, "step_ns": 110.0 * MS, "e2e_ns": 108.0 * MS, "compute_ns": 90.0 * MS,
        "idle_ns": 8.0 * MS, "peak_allocated_bytes": 3.0 * 2**30, "step_verdict": "REGRESSED", "step_change": 0.1,
        "net": 0.05, "peak": 0.0, "gate_new": 1, "gate_new_cause": "step", "gate_any": 1, "gate_any_cause": "step",
    }  # fmt: skip
    return TrackStanding(**usual | more)


def incident(**more):
    usual = {
        **LINE, "incident_id": 3, "version": "v42", "good_version": "v41", "direction": "regression",
        "severity": "critical", "is_new": True, "findings": 3, "open": 3, "baseline_runs": "1 2 3",
        "candidate_runs": "4 5 6", "baseline_step_ns": 100.0 * MS, "candidate_step_ns": 110.0 * MS,
        "step_delta_ns": 10.0 * MS, "operators_ns": 5.0 * MS, "machine_ns": 1.0 * MS,
        "other_operators_ns": -0.5 * MS, "beside_ns": 4.5 * MS, "causes": "slower per call",
        "new_ns": None, "gone_ns": None, "earlier_ns": None, "shared_factor": None,
    }  # fmt: skip
    return ListedIncident(**usual | more)


def findings(rows=ROWS, incidents=None, lines=None, **changes):
    """What was found."""
    found = FindingsRows(
        incidents=tuple([incident()] if incidents is None else incidents),
        findings=tuple(rows),
        lines=tuple([line()] if lines is None else lines),
    )
    return Findings(found, **changes)
