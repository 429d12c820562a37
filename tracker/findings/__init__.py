"""Findings: the versions of a track in order, what changed in them, and what became of it."""

from tracker.findings.gate import Gate, gate_of
from tracker.findings.lifecycle import Finding, State
from tracker.findings.track import Track
from tracker.findings.walk import VersionResult, judge_next, needed_runs, walk

__all__ = ["Finding", "Gate", "State", "Track", "VersionResult", "gate_of", "judge_next", "needed_runs", "walk"]
