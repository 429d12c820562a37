"""Follows the series of a line run by run: suspicions, what the next runs say of them, and the life of each finding.

Pure functions on the values of a line: the same runs and the same actions of users always give the same findings, so
that findings can be made again at any time, by this rule or by another one.
"""

from __future__ import annotations

from tracker.judgement.follow.checkpoint import Checkpoint, resume
from tracker.judgement.follow.following import follow
from tracker.judgement.follow.normal import normal_runs
from tracker.judgement.follow.tracked import Tracked, UserAction
from tracker.judgement.follow.watched import Watched, WatchedRun, is_centred, watched_of

__all__ = [
    "Checkpoint",
    "Tracked",
    "UserAction",
    "Watched",
    "WatchedRun",
    "follow",
    "is_centred",
    "normal_runs",
    "resume",
    "watched_of",
]
