"""False discovery rate: of all series that are called changed, how many are called so by chance."""

from __future__ import annotations

import numpy as np

from tracker.detectors.arrays import F64


def q_values(p: F64) -> F64:
    """For each p the smallest share of false discoveries at which it is one; nan where p is nan, which is not counted.

    Benjamini and Hochberg (1995), Controlling the false discovery rate:
    q_i = min over j >= i of m p_(j) / j, at most 1.

    >>> q_values(np.array([0.01, 0.04, 0.03, np.nan])).round(3).tolist()
    [0.03, 0.04, 0.04, nan]
    """
    q = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    m = len(known)
    order = known[np.argsort(p[known], kind="stable")]
    scaled = p[order] * m / np.arange(1, m + 1)
    q[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return q
