"""What the rule would have said of repeats of one version: every finding is false."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import Final, Literal

import numpy as np

from tracker.detectors import rule
from tracker.detectors.arrays import F64, table
from tracker.detectors.judging import Weights, judge_series
from tracker.lazy import pd

MIN_RUNS: Final = 6
RATIOS: Final = (0.01, 0.02, 0.03, 0.05, 0.08, 0.10, 0.15, 0.20, 0.30)

Split = tuple[tuple[int, ...], tuple[int, ...]]


def consecutive_splits(runs: int, baseline: int = 5, candidate: int = 3) -> list[Split]:
    """All windows of neighbouring runs: `baseline` of them, then `candidate`.

    >>> consecutive_splits(9)
    [((0, 1, 2, 3, 4), (5, 6, 7)), ((1, 2, 3, 4, 5), (6, 7, 8))]
    """
    return [
        (tuple(range(start, start + baseline)), tuple(range(start + baseline, start + baseline + candidate)))
        for start in range(runs - baseline - candidate + 1)
    ]


def random_splits(runs: int, baseline: int, candidate: int, *, most: int, seed: int) -> list[Split]:
    """All ways to choose the two sides among the runs; of more than `most`, that many drawn at random by `seed`."""
    total = comb(runs, baseline) * comb(runs - baseline, candidate)
    if total <= most:
        return [
            (one, other)
            for one in combinations(range(runs), baseline)
            for other in combinations([run for run in range(runs) if run not in one], candidate)
        ]
    draw = np.random.default_rng(seed)
    drawn = [draw.permutation(runs).tolist() for _ in range(most)]
    return [(tuple(sorted(each[:baseline])), tuple(sorted(each[baseline : baseline + candidate]))) for each in drawn]


def calibrate(
    repeats: F64,
    splits: Sequence[Split],
    weights: Weights | None = None,
    *,
    ratios: Sequence[float] = RATIOS,
    alpha: float = 0.05,
    min_contribution: float = rule.MIN_CONTRIBUTION,
) -> pd.DataFrame:
    """False findings of the rule on repeats of one version, per smallest change that counts.

    `repeats` (n_series, R >= 6): medians of runs between which nothing changed. One row per ratio of `ratios`, in
    order: `min_ratio`, `splits`, `mean_false`, `worst_false` (slower or faster findings of one split),
    `splits_with_false`. ValueError with fewer than 6 runs.
    """
    values = table(repeats, "repeats")
    if values.shape[1] < MIN_RUNS:
        raise ValueError(f"calibration needs at least {MIN_RUNS} repeats of one version; these are {values.shape[1]}")
    rows = []
    for ratio in ratios:
        limits = rule.Limits(ratio, alpha, min_contribution)
        false = [_findings(values[:, list(one)], values[:, list(other)], weights, limits) for one, other in splits]
        rows.append((ratio, len(false), float(np.mean(false)), max(false), sum(number > 0 for number in false)))
    return pd.DataFrame(rows, columns=["min_ratio", "splits", "mean_false", "worst_false", "splits_with_false"])


def smallest_ratio(
    calibrated: pd.DataFrame, most_false: float = 1.0, column: Literal["mean_false", "worst_false"] = "worst_false"
) -> float | None:
    """The smallest `min_ratio` from which on there are at most `most_false` false findings, in the worst split or in
    the mean of all; None: none.
    """
    passing: float | None = None
    for row in calibrated.sort_values("min_ratio", ascending=False).to_dict("records"):
        if row[column] > most_false:
            break
        passing = float(row["min_ratio"])
    return passing


def _findings(baseline: F64, candidate: F64, weights: Weights | None, limits: rule.Limits) -> int:
    verdict = judge_series(baseline, candidate, weights, limits=limits).columns["verdict"]
    return int(np.isin(verdict, [rule.REGRESSED, rule.IMPROVED]).sum())
