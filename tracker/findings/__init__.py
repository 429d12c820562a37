"""Findings: the versions of a track in order, what changed in them, and what became of it."""

from tracker.findings.gate import Gate, gate_of
from tracker.findings.incidents import Incident, Moved, Replacement, incidents_of, replacements
from tracker.findings.state import Finding, State
from tracker.findings.track import Track
from tracker.findings.walk import VersionResult, judge_next, needed_runs, walk

__all__ = [
    "Finding",
    "Gate",
    "Incident",
    "Moved",
    "Replacement",
    "State",
    "Track",
    "VersionResult",
    "gate_of",
    "incidents_of",
    "judge_next",
    "needed_runs",
    "replacements",
    "walk",
]
