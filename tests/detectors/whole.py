"""In one call what the package does part by part: run-level series judged, the life of a finding from its events."""

from __future__ import annotations

import pandas as pd

from tracker.detectors import rule
from tracker.detectors.life import Finding, LifeRule, step
from tracker.detectors.totals import changes_of_totals


def judge_totals(baseline, candidate, centre, *, explained=None, timed=None, device_timed, older=None):
    """The table of run-level series: columns as of `ChangedTotals.columns`, parameters as of `changes_of_totals`. The
    smallest change is 2 % where a device timed the ops (`device_timed`), else 5 %.
    """
    usual = rule.DEVICE_TIMED_STEP_RATIO if device_timed else rule.HOST_TIMED_STEP_RATIO
    limits = rule.Limits(usual, rule.ALPHA)
    changed = changes_of_totals(baseline, candidate, centre, timed=timed, limits=limits, older=older)
    return pd.DataFrame(changed.columns(explained))


def replay(events, life=None):
    """The finding after all `events`, in order of time, and every transition on the way."""
    finding, rows = Finding(), []
    for event in events:
        finding, more = step(finding, event, life or LifeRule())
        rows += more
    return finding, rows
