"""The verdicts of series in a version, with the reason and the numbers that each of them rests on."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from msgspec import Struct

from tracker.columns import F64, I64, Flags


class Verdict(IntEnum):
    """The verdict of a series in a version."""

    ABSENT = 0
    """In neither side."""
    UNCHANGED = 1
    INCONCLUSIVE = 2
    TOO_FEW_RUNS = 3
    BELOW_LIMIT = 4
    """Significant, but below the smallest change or contribution."""
    DRIFT = 5
    """A part of the step that moved with the machine."""
    SUSPECT = 6
    """Would be a change, but one run does not decide."""
    REGRESSED = 7
    IMPROVED = 8
    ADDED = 9
    REMOVED = 10


LEVEL_CHANGES = (Verdict.REGRESSED.name, Verdict.IMPROVED.name)
"""Verdicts by which the level of a series has changed, as they are stored."""
CHANGES = (Verdict.REGRESSED, Verdict.IMPROVED, Verdict.ADDED, Verdict.REMOVED)


class Reason(IntEnum):
    """What kept a series from being a change: the first condition that does not hold; NONE for a change, but for
    EQUAL_MACHINE, OPERATORS, ALIKE, HOST and THROTTLED.
    """

    NONE = 0
    RATIO = 1
    """The change is smaller than the limit."""
    CONTRIBUTION = 2
    """The contribution to the step is smaller than the floor."""
    OVERLAP = 3
    """A new run lies within the range of the base runs."""
    SIGNIFICANCE = 4
    """q is above alpha."""
    FEW_BASE = 5
    FEW_NEW = 6
    MACHINE = 7
    """Passes only with the common-mode shift in it."""
    PRESENCE = 8
    """In some runs of a side only."""
    SETTINGS = 9
    """The runs before were recorded with other settings of the profiler."""
    INCOMPLETE = 10
    """The profiler lost records that the series rests on, so that a side has no run."""
    CORRECTION = 11
    """More than half of the change is the common-mode shift that was taken out."""
    EQUAL_MACHINE = 12
    """Of the step that is a change: it is one without the common-mode shift, which hid a part of it."""
    OPERATORS = 13
    """Of the step that is a change: one run decides, since new and gone operators make up half of it."""
    OTHER_WORK = 14
    """The runs before had inputs of another size."""
    ALIKE = 15
    """All operators moved by one factor, and are too few to tell the machine from the code: `detect.alike`."""
    HOST = 16
    """Too few of the runs before are of the same host: `detect.hosts`."""
    ROUNDING = 17
    """The change lies within what the sources of both sides rounded."""
    THROTTLED = 18
    """A clock was held down in the new runs, and in too few of those before: `detect.hosts`."""


class JudgedSeries(Struct, frozen=True):
    """One element per series. `change`: a log, positive for worse, without the common-mode shift where that is taken
    out, and of the step where it hid a change; `raw_change`: with it; `contribution`: share of the step; `se`: standard
    error of the change, on `freedom` degrees; `base_mean`: a log, as judged; p and q are one-sided, in the direction of
    the change; `beyond`: 1 or -1 where the new runs are above or below the base runs, but for a few pairs; `verdict`,
    `reason`: codes. `base`, `new` (series, runs): the base runs and those of the version that count, without outliers.
    `logs` (series, runs): what was judged; `statistic`: which number of a run that is, a `sides.Statistic`. `suspect`:
    1 or -1 where one run is no verdict and further ones may make it one, by the sign of the change, else 0. `nights`:
    what nights add to the variance of the change, as a share of that between runs of one; `base_versions`: of how many
    versions the base runs are; `alpha`: the largest q that counts.
    """

    verdict: I64
    reason: I64
    change: F64
    raw_change: F64
    p: F64
    q: F64
    contribution: F64
    se: F64
    freedom: F64
    base_mean: F64
    base_runs: I64
    new_runs: I64
    beyond: I64
    base: Flags
    new: Flags
    logs: F64
    statistic: I64
    suspect: I64
    nights: F64
    base_versions: I64
    alpha: F64

    @property
    def sign(self) -> I64:
        """1 where the verdict is a change for the worse, -1 for the better, else 0; new operators are worse."""
        worse = (self.verdict == Verdict.REGRESSED) | (self.verdict == Verdict.ADDED)
        better = (self.verdict == Verdict.IMPROVED) | (self.verdict == Verdict.REMOVED)
        return np.asarray(worse.astype(np.int64) - better)
