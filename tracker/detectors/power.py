"""How often a real change of a series would be found, from how much its repeats vary."""

from __future__ import annotations

import numpy as np

from tracker.detectors import rule
from tracker.detectors._distributions import t_above, t_exceeded
from tracker.detectors.arrays import F64
from tracker.detectors.baseline import WINDOW
from tracker.detectors.rule import Limits
from tracker.detectors.spread import Spread


def recall(within: Spread, repeats: int, change: float, runs: int, tests: int, limits: Limits | None = None) -> F64:
    """The probability that a version of `runs` runs, all slower by `change` (0.1 = 10 %), is found to be REGRESSED
    against a full window, per series.

    `within`: how much each series varies within a version, moderated by its family, as `repeats` runs of one version
    show it; nan gives nan. `tests`: series of the family, of which this one alone changed: its p must be alpha / tests
    at most (Benjamini and Hochberg, one discovery). What is measured varies about the real change as Student's t, with
    the freedom of the runs of both sides and that of the family.

    >>> alone = Spread(np.array([0.01, 0.04, 0.2]) ** 2, np.full(3, 19.0))
    >>> recall(alone, 20, 0.10, 3, tests=100).round(2).tolist()
    [1.0, 0.12, 0.0]
    >>> alike = Spread(alone.variance, np.full(3, np.inf))
    >>> recall(alike, 20, 0.10, 3, tests=100).round(2).tolist()
    [1.0, 0.59, 0.0]
    """
    limits = limits or Limits()
    of_family = np.maximum(within.freedom - (repeats - 1), 0.0)
    freedom = WINDOW + runs - rule.FINDING_RUNS + of_family
    error = np.sqrt(within.variance * (1.0 / WINDOW + 1.0 / runs))
    real = np.log1p(change)
    known = ~np.isnan(error)
    found = np.full(len(error), np.nan)
    sure = t_exceeded(limits.alpha / max(1, tests), freedom[known]) - real / error[known]
    large = (np.broadcast_to(limits.effect, error.shape)[known] - real) / error[known]
    found[known] = t_above(np.fmax(sure, large), freedom[known])
    return found
