"""Findings made by hand: one incident of v42 with two regressions, an improvement, and a suspicion."""

from __future__ import annotations

import pandas as pd

from tests.reports.builders.diffs import MS
from tracker.results import FINDINGS_COLUMNS, Findings

LINE = {"workload": "gpt", "configuration": "batch=32", "device": "NVIDIA H100"}


def finding(number, name, state="new", **more):
    """A regression from 10 to 15 ms, of incident 3."""
    usual = {
        **LINE, "finding_id": number, "incident_id": 3, "version": "v42", "good_version": "v41", "series_id": number,
        "kind": "op_name", "metric": "device_self_ns", "unit": "ns", "name": name, "input_shapes": "", "part": "",
        "direction": "regression", "change": "level", "state": state, "is_new": state == "new", "verdict": "REGRESSED",
        "ratio": 0.5, "q": 0.001, "contribution": 0.05, "baseline_value": 10.0 * MS, "candidate_value": 15.0 * MS,
        "delta": 5.0 * MS, "share_of_change": 0.5, "cause": "slower calls", "effect": 0.5, "covers": 0, "confirm": 2,
    }  # fmt: skip
    return usual | more


ROWS = (
    finding(1, "step", kind="run", metric="duration_ns", baseline_value=100.0 * MS, candidate_value=110.0 * MS,
            delta=10.0 * MS, ratio=0.1, contribution=None),
    finding(2, "aten::mm", state="persisting"),
    finding(3, "aten::add", direction="improvement", ratio=-0.5, candidate_value=5.0 * MS, delta=-5.0 * MS),
    finding(4, "aten::mul", state="suspect", incident_id=None, verdict=None),
)  # fmt: skip


def frame(name, rows):
    return pd.DataFrame([{**dict.fromkeys(FINDINGS_COLUMNS[name]), **row} for row in rows],
                        columns=list(FINDINGS_COLUMNS[name]), dtype=object)  # fmt: skip


def line(**more):
    """v42 with three runs of ten, the last one of 2026-01-01."""
    usual = {
        **LINE, "version": "v42", "version_runs": 3, "runs": 10, "last_run_id": 10,
        "last_run_ns": 1_767_225_600_000_000_000, "step_ns": 110.0 * MS, "e2e_ns": 108.0 * MS, "compute_ns": 90.0 * MS,
        "free_ns": 8.0 * MS, "peak_allocated_bytes": 3.0 * 2**30, "baseline_diff": 0.1, "pinned_diff": 0.12,
    }  # fmt: skip
    return usual | more


def incident(**more):
    usual = {
        **LINE, "incident_id": 3, "version": "v42", "good_version": "v41", "direction": "regression",
        "severity": "critical", "is_new": True, "findings": 3, "open": 3, "baseline_runs": "1 2 3",
        "candidate_runs": "4 5 6", "baseline_step_ns": 100.0 * MS, "candidate_step_ns": 110.0 * MS,
        "step_delta_ns": 10.0 * MS, "operators_ns": 5.0 * MS, "drift_ns": 1.0 * MS,
        "others_ns": -0.5 * MS, "free_ns": 0.0, "explained_share": 0.5,
        "rest_ns": 4.5 * MS, "gain_ns": 0.0, "loss_ns": 5.0 * MS, "causes": "slower calls",
    }  # fmt: skip
    return usual | more


def findings(rows=ROWS, incidents=None, lines=None, **changes):
    """What was found; `rows`, `incidents` and `lines` as dicts."""
    content = {
        "incidents": frame("incidents", [incident()] if incidents is None else incidents),
        "findings": frame("findings", rows),
        "environment": frame("environment", []),
        "replacements": frame("replacements", []),
        "lines": frame("lines", [line()] if lines is None else lines),
    }
    return Findings(**(content | changes))
