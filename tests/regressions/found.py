"""A finding made by hand, as the judgement would find it."""

from __future__ import annotations

from tracker.regressions.found import FoundFinding
from tracker.store.tracks import TrackKey


def made_finding(number: int, name: str, **more) -> FoundFinding:
    """A new regression of an operator of gpt on a CPU, from 10 to 15 ms."""
    usual = {
        "finding_id": number, "incident_id": 1, "workload": "gpt", "configuration": "", "device": "cpu",
        "version": "v2", "good_version": "v1", "series_id": number, "kind": "op", "metric": "host_self_ns",
        "unit": "ns", "name": name, "input_shapes": "", "part": "", "step_kind": "", "direction": "regression",
        "change": "level", "state": "new", "is_new": True, "verdict": "REGRESSED", "ratio": 0.5, "q": 0.01,
        "contribution": 0.1, "baseline_value": 10e6, "candidate_value": 15e6, "delta": 5e6,
        "track_key": TrackKey(1, 1, 1), "vendor": "", "version_id": 2, "ordinal": 2, "base_state": "open",
        "is_newest": True,
    }  # fmt: skip
    return FoundFinding(**usual | more)
