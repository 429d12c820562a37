"""What all operators of a run share: a faster clock, a busier machine, another temperature."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from tracker.detectors.arrays import BOOL, F64, mean_of_rows, median_of_rows
from tracker.detectors.spread import pooled
from tracker.profile import median

MIN_SERIES: Final = 20
"""Series that a shared factor needs (JUDGEMENT 4.1); with fewer, a real change of one would pass as the machine's."""

_DOUBT: Final = 0.02
_MOVED: Final = 0.02
_MOVED_BY_DEVIATIONS: Final = 4.0
_RUNS_THAT_TELL: Final = 8
"""What makes a shared factor a change of the machine, and by how many runs it is measured (JUDGEMENT 4.1)."""


class Centre(Struct, frozen=True):
    """The factor that all series of a run share, as a log, per run; 0.0 in all runs where nothing was subtracted.

    `baseline`, `candidate`: one number per run, their means being equal and opposite. `series`: how many series it
    rests on. `mode_shift`: where the changes of the series lie densest, nan where nothing was subtracted.
    """

    baseline: F64
    candidate: F64
    series: int
    mode_shift: float

    @property
    def shift(self) -> float:
        """How much slower all series of the candidate are together, as a log (0.05 = about 5 % slower)."""
        return float(self.candidate.mean() - self.baseline.mean()) if self.series else 0.0

    @property
    def moved(self) -> bool:
        """Whether the machine itself changed: by more than 2 %, and 4 standard deviations of the factor over the
        baseline runs, of which there are at least 8. Of runs that a device timed: on a host it is mostly noise.
        """
        if not self.series or len(self.baseline) < _RUNS_THAT_TELL:
            return False
        usual = _MOVED_BY_DEVIATIONS * float(self.baseline.std(ddof=1))
        return abs(self.shift) > max(float(np.log1p(_MOVED)), usual)

    @property
    def doubtful(self) -> bool:
        """Whether the median and the densest point disagree by more than 2 %: then about half of the series or more
        moved on their own, and no statistics of operators can say what is the machine and what is the code.
        """
        return bool(self.series) and abs(self.shift - self.mode_shift) > _DOUBT


def no_centre(baseline_runs: int, candidate_runs: int) -> Centre:
    """A centre that subtracts nothing."""
    return Centre(np.zeros(baseline_runs), np.zeros(candidate_runs), 0, float("nan"))


def centre_of(baseline: F64, candidate: F64, usable: BOOL) -> Centre:
    """The shared factor of every run: the median over series of their distance from their usual level.

    `baseline` (n, A), `candidate` (n, B): logs, nan for missing. `usable`: series large enough to count; of those only
    the ones present in every run do. A run in which no usable series is present gets 0.

    JUDGEMENT 4.1, twice: first against the mean of the two sides, then against their medians. So the factor of a run
    comes out exactly even when a baseline run is the odd one, and swapping the sides gives the same factors.
    """
    sides = (baseline, candidate)
    seen = [~np.isnan(side[usable]).all(axis=0) for side in sides]
    complete = usable.copy()
    for side, present in zip(sides, seen, strict=True):
        complete &= ~np.isnan(side[:, present]).any(axis=1)
    count = int(complete.sum())
    if count < MIN_SERIES or not (seen[0].any() and seen[1].any()):
        return no_centre(baseline.shape[1], candidate.shape[1])
    x, y = (side[complete][:, present] for side, present in zip(sides, seen, strict=True))
    level = 0.5 * (mean_of_rows(x) + mean_of_rows(y))
    rough = [median(side - level[:, None], axis=0) for side in (x, y)]
    x, y = x - rough[0], y - rough[1]
    level = 0.5 * (median_of_rows(x) + median_of_rows(y))
    fine = [first + median(side - level[:, None], axis=0) for first, side in zip(rough, (x, y), strict=True)]
    middle = 0.5 * (fine[0].mean() + fine[1].mean())
    factors = [np.zeros(side.shape[1]) for side in sides]
    for factor, present, values in zip(factors, seen, fine, strict=True):
        factor[present] = values - middle
    both = x.shape[1] + y.shape[1] > 2
    moved = mean_of_rows(y) - mean_of_rows(x) + (rough[1].mean() - rough[0].mean())
    noise = np.sqrt(float(median(pooled(x, y).variance)) * (1 / x.shape[1] + 1 / y.shape[1])) if both else 0.0
    return Centre(factors[0], factors[1], count, densest(moved, max(_DOUBT, 2.0 * noise)))


def densest(values: F64, width: float) -> float:
    """The median of the values in the window of `width` that holds most of them. At least one value, none nan.

    >>> densest(np.array([0.0, 0.01, 0.02, 0.3, 0.5, 0.9]), 0.05)
    0.01
    """
    ordered = np.sort(values)
    ends = np.searchsorted(ordered, ordered + width, side="right")
    start = int(np.argmax(ends - np.arange(len(ordered))))
    return float(median(ordered[start : ends[start]]))
