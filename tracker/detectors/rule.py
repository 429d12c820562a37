"""The words of a judgement, and the limits that it is made with."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from tracker.detectors.arrays import F64

REGRESSED: Final = "REGRESSED"
IMPROVED: Final = "IMPROVED"
UNCHANGED: Final = "UNCHANGED"
BELOW_LIMIT: Final = "BELOW_LIMIT"
DRIFT: Final = "DRIFT"
INCONCLUSIVE: Final = "INCONCLUSIVE"
SUSPECT: Final = "SUSPECT"
TOO_FEW_RUNS: Final = "TOO_FEW_RUNS"
ADDED: Final = "ADDED"
REMOVED: Final = "REMOVED"

VERDICTS: Final = (
    REGRESSED, IMPROVED, UNCHANGED, BELOW_LIMIT, DRIFT, INCONCLUSIVE, SUSPECT, TOO_FEW_RUNS, ADDED, REMOVED,
)  # fmt: skip
"""UNCHANGED: the interval lies inside the smallest change that matters. BELOW_LIMIT: sure, but smaller than what
matters, of the series or of the step. DRIFT: moved with the machine. INCONCLUSIVE: too noisy to say. TOO_FEW_RUNS: the
number of runs, nothing else.
"""

CALM: Final = (UNCHANGED, BELOW_LIMIT, DRIFT)
"""What is said of a series that has not changed by as much as matters."""

CHANGED: Final = (REGRESSED, IMPROVED, SUSPECT)
"""What is said of a series that is on another level, or may be."""

RULE_VERSION: Final = 6
"""Goes up with every change that can change a verdict; stored beside each, so that two rules can be told apart."""

TESTED_SHARE: Final = 1e-4
"""Series below 0.01 % of the step are not tested: they cannot matter, and each test costs the others power."""

MIN_RATIO: Final = 0.03
COMMUNICATION_RATIO: Final = 0.10
DEVICE_TIMED_STEP_RATIO: Final = 0.02
HOST_TIMED_STEP_RATIO: Final = 0.05
MIN_CONTRIBUTION: Final = 0.001
PART_CONTRIBUTION: Final = 0.01
"""Smallest change of the step that matters of a part of it that is no operator (idle time, data loading, exposed
communication): such a part is small beside the step, and moves by 3 % of itself where nothing has changed.
"""
ALPHA: Final = 0.05  # 0.08 finds hardly more, and twice as much that is false: see `judging`
CREEP_RATIO: Final = 0.08
POWER: Final = 0.8

FINDING_RUNS: Final = 2
"""Runs of each side from which a change can be a finding; with one it is a suspicion at most (JUDGEMENT 4.8)."""

CONFIRMING: Final = 2
"""Runs after a suspicion that decide (JUDGEMENT 4.8): they alone must show it, and together with the suspicious one the
test of the whole family must. The second keeps false findings as rare over many runs as in a single comparison.
"""

RECOVERING: Final = 2
"""Good runs in a row after which a finding is recovering, and as many again after which it has recovered (JUDGEMENT 6).
"""

# Equal numbers, one from a quotient and one from a difference of logs, must not land on two sides of a limit.
ROUNDING: Final = 1e-9


class Limits(Struct, frozen=True, eq=False):
    """What a change must pass to be a finding (JUDGEMENT 4.5, 4.6).

    `min_ratio`: smallest change of a series that matters, 0.03 = 3 %. `alpha`: share of false discoveries that is
    borne. `min_contribution`: smallest change of the step that matters, as a fraction of the larger step. The first and
    the last are one number, or one per series of the family that is judged.
    """

    min_ratio: float | F64 = MIN_RATIO
    alpha: float = ALPHA
    min_contribution: float | F64 = MIN_CONTRIBUTION

    def __post_init__(self) -> None:
        if not (np.all(self.min_ratio >= 0) and 0 < self.alpha < 1 and np.all(self.min_contribution >= 0)):
            raise ValueError(
                f"min_ratio {self.min_ratio} and min_contribution {self.min_contribution} must not be negative, "
                f"alpha {self.alpha} must lie between 0 and 1"
            )

    @property
    def effect(self) -> float | F64:
        """The smallest change that matters, as a log."""
        return np.log1p(self.min_ratio)
