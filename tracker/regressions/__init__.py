"""Findings: the versions of a track in order, what changed in them, and what became of it."""

from tracker.regressions.gate import GateResult, gate_of
from tracker.regressions.incidents import IncidentParts, Moved, Replacement, incidents_of, replacements
from tracker.regressions.state import Finding, TrackState
from tracker.regressions.track import Track
from tracker.regressions.walk import VersionResult, judge_next, needed_runs, walk

__all__ = [
    "Finding",
    "GateResult",
    "IncidentParts",
    "Moved",
    "Replacement",
    "Track",
    "TrackState",
    "VersionResult",
    "gate_of",
    "incidents_of",
    "judge_next",
    "needed_runs",
    "replacements",
    "walk",
]
