"""Findings: the versions of a track in order, what changed in them, and what became of it."""

from tracker.regressions.incidents import IncidentParts, Moved, Replacement, incidents_of, replacements
from tracker.regressions.state import Finding, TrackState
from tracker.regressions.track import Track
from tracker.regressions.walk import VersionResult, judge_next, needed_runs, walk

__all__ = [
    "Finding",
    "IncidentParts",
    "Moved",
    "Replacement",
    "Track",
    "TrackState",
    "VersionResult",
    "incidents_of",
    "judge_next",
    "needed_runs",
    "replacements",
    "walk",
]
