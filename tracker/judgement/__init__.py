"""One key across versions: judges every version of a line against those before it, keeps that true, and shows it.

A line is a workload in one configuration on one device. `update` follows ingests and edits, `history` answers,
`verdicts_of` judges chosen runs against others.
"""

from __future__ import annotations

from tracker.judgement.accepted import Acceptance, acceptance_of, known_at, size_of, words_of
from tracker.judgement.act import Wish, act, settle
from tracker.judgement.calibrating import calibrate
from tracker.judgement.explain import explain
from tracker.judgement.gates import gate_of_findings
from tracker.judgement.setting import Where, apply_calibration, set_thresholds, unset_thresholds
from tracker.judgement.show import history
from tracker.judgement.tell import findings
from tracker.judgement.thresholds import Thresholds
from tracker.judgement.update import lines_of, update
from tracker.judgement.verdicts import Verdicts, verdicts_of
from tracker.judgement.yardstick import older_runs

__all__ = [
    "Acceptance",
    "Thresholds",
    "Verdicts",
    "Where",
    "Wish",
    "acceptance_of",
    "act",
    "apply_calibration",
    "calibrate",
    "explain",
    "findings",
    "gate_of_findings",
    "history",
    "known_at",
    "lines_of",
    "older_runs",
    "set_thresholds",
    "settle",
    "size_of",
    "unset_thresholds",
    "update",
    "verdicts_of",
    "words_of",
]
