"""How much the runs of one version resemble each other: the night effect.

Runs of one version come from one night: one machine in one state, one build, one temperature. They vary less among each
other than from one night to the next, so that many runs of one night say less than as many of several. The night effect
is the variance between versions of one code as a share of that between runs of one version.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from tracker.columns import F64, I64, Flags
from tracker.detect.sides import lone_outliers
from tracker.detect.statistics import LEAST_VARIANCE, polygamma
from tracker.table import sort_distinct

LEAST_SERIES: Final = 20
"""Operators from which the night effect can be measured."""
LEAST_RUNS: Final = 2
"""Runs of a version from which they show how runs of one night vary."""
USUAL: Final = 0.15
"""The night effect where nothing is measured: that of nightly series is .19 and .25."""
WORTH: Final = 3
"""So many versions the usual one is worth."""
ALPHA_ALONE: Final = 0.001
"""Largest p of a series alone whose nights vary more than its runs: a version is one look, not as many as it has runs.
"""
_LEAST_SQUARES: Final = 1e-12
"""Mean squares below it are those of numbers that do not vary."""


def night_effect(logs: F64, level: Flags, versions: I64) -> float:
    """Return the night effect of series: the variance of their versions by the variance of the runs of one version.

    One-way analysis of variance of each series over the runs of its level: ln F less what chance makes of it (digamma
    of half the degrees of freedom), the mean over the series, drawn towards the usual one; never below 0.

    `logs`, `level` (series, runs): the numbers without common-mode shift, and which of the runs count; `versions`
    (runs,): their versions.
    """
    known = level & ~np.isnan(logs)
    values = np.where(known, logs, 0.0)
    counts, sums, squares = [], [], np.zeros(len(logs))
    for version in sort_distinct(versions):
        own = known[:, versions == version]
        if not len(own) or (own.sum(axis=1) >= LEAST_RUNS).mean() <= 0.5:
            # a version of one run says nothing of how runs of one night vary
            continue
        count, total = own.sum(axis=1), values[:, versions == version].sum(axis=1)
        mean = total / np.maximum(count, 1)
        squares += np.where(own, (values[:, versions == version] - mean[:, None]) ** 2, 0.0).sum(axis=1)
        counts.append(count)
        sums.append(total)
    if len(counts) < LEAST_RUNS:
        return USUAL
    count, total = np.stack(counts, axis=1).astype(np.float64), np.stack(sums, axis=1)
    there = (count > 0).sum(axis=1)
    runs = np.maximum(count.sum(axis=1), 1)
    mean = total / np.maximum(count, 1)
    between = (count * (mean - (total.sum(axis=1) / runs)[:, None]) ** 2).sum(axis=1)
    freedom, freedom_within = np.maximum(there - 1, 0), np.maximum(count - 1, 0).sum(axis=1)
    counts_as = (freedom >= 1) & (freedom_within >= 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        between, within = between / freedom, squares / freedom_within
        counts_as &= (between > _LEAST_SQUARES) & (within > _LEAST_SQUARES)
    if counts_as.sum() < LEAST_SERIES:
        return USUAL
    halves = [0.5 * one[counts_as].astype(np.float64) for one in (freedom, freedom_within)]
    by_chance = [polygamma(half)[0] - np.log(half) for half in halves]
    ratio = np.log(between[counts_as] / within[counts_as]) - (by_chance[0] - by_chance[1])
    # the sum does not depend on the order of the series
    quotient = float(np.exp(np.sort(ratio).mean()))
    measured = (quotient - 1.0) / float(np.median(count[count > 0]))
    worth = len(counts) - 1
    return max(0.0, (USUAL * WORTH + measured * worth) / (WORTH + worth))


class Alone(Struct, frozen=True, eq=False):
    """How series vary that have no others to measure the night effect with, an element each, nan where that is not
    known: `within`: the variance between runs of one version, on `freedom` degrees, `between`: that between versions,
    on `worth` degrees.
    """

    within: F64
    freedom: F64
    between: F64
    worth: F64


def vary_alone(logs: F64, level: Flags, new: Flags, versions: I64, least: F64) -> Alone:
    """Return how each series varies over the runs of its level and of the new version, from its own runs alone.

    Unbalanced one-way analysis of variance (Searle, Linear Models, 11.1), drawn towards the usual night effect. It
    needs two versions of the level, and any version with two runs. A version that alone lies far from all others, by
    `least` (series,) or more, was another matter, and is over.

    `logs`, `level`, `new` (series, runs): the last two say which runs count; `versions` (runs,).
    """
    known = ~np.isnan(logs)
    values = np.where(known, logs, 0.0)
    counts, means, squares, freedom = [], [], np.zeros(len(logs)), np.zeros(len(logs))
    for version in sort_distinct(versions):
        is_own = versions == version
        own = known[:, is_own] & (level | new)[:, is_own]
        count = own.sum(axis=1)
        mean = np.where(own, values[:, is_own], 0.0).sum(axis=1) / np.maximum(count, 1)
        squares += np.where(own, (values[:, is_own] - mean[:, None]) ** 2, 0.0).sum(axis=1)
        freedom += np.maximum(count - 1, 0)
        counts.append((own & level[:, is_own]).sum(axis=1))
        means.append(mean)
    count, mean = np.stack(counts, axis=1).astype(np.float64), np.stack(means, axis=1)
    count = np.where(lone_outliers(mean, count > 0, least), 0.0, count)
    runs, nights = count.sum(axis=1), (count > 0).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        within = np.maximum(squares / freedom, LEAST_VARIANCE)
        whole = (count * mean).sum(axis=1) / runs
        of_versions = (count * (mean - whole[:, None]) ** 2).sum(axis=1) / (nights - 1)
        usual_count = (runs - (count**2).sum(axis=1) / runs) / (nights - 1)
        measured = np.maximum(0.0, (of_versions - within) / usual_count)
        worth = WORTH + nights - 1.0
        between = (USUAL * within * WORTH + measured * (nights - 1)) / worth
    shows = (nights >= 2) & (freedom > 0)
    nothing = np.full(len(logs), np.nan)
    return Alone(*(np.where(shows, one, nothing) for one in (within, freedom, between, worth)))


def variance_of_nights(new_runs: I64 | F64, base_versions: I64, effect: F64 | float, new_versions: int = 1) -> F64:
    """Return what nights add to the variance of a change, as a share of that between runs of one night.

    A mean over runs of few nights is known no better than the nights are. One run alone is compared with runs of all
    nights, and shares their variance. `new_runs`, `base_versions` (series,).
    """
    return np.where(new_runs >= LEAST_RUNS, effect * (1.0 / base_versions + 1.0 / new_versions), 0.0)


def count_versions(runs: Flags, versions: I64) -> I64:
    """Return of how many versions these runs (series, runs) are, of each series."""
    found = np.zeros(len(runs), dtype=np.int64)
    for version in sort_distinct(versions[runs.any(axis=0)]):
        found += runs[:, versions == version].any(axis=1)
    return found
