"""One key across versions: judges every version of a line against those before it, keeps that true, and shows it.

A line is a workload in one configuration on one device. `update` follows ingests and edits, `history` answers.
"""

from __future__ import annotations

from tracker.judgement.calibrating import calibrate
from tracker.judgement.show import history
from tracker.judgement.update import lines_of, update

__all__ = ["calibrate", "history", "lines_of", "update"]
