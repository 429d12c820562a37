"""Operators that all became slower, or faster, by one factor, where they are too few to take the machine out.

A common-mode shift needs many operators. Of fewer nothing tells a slower machine from code that all of them use; but
that they moved alike is seen, and it is one thing that happened, not one for each operator: docs/judging.md, step 3.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import F64, Flags
from tracker.detect.series import KindCode, SeriesTraits
from tracker.detect.statistics import t_above
from tracker.detect.thresholds import Thresholds
from tracker.detect.verdicts import JudgedSeries, Reason, Verdict
from tracker.profile.arrays import median

LEAST_ALIKE: Final = 3
"""Operators from which one factor is no coincidence."""
WIDTH: Final = 0.1
"""Of the factor, a log: what is as near to it moved by it, however little its runs vary."""
CERTAIN: Final = 0.05
"""How often chance may take any of the operators for one that moved by another factor."""
_NEAR: Final = 0.5
"""Of the factor, a log: what is farther away, and noisy, does not count as moved by it."""
MOST: Final = 0.9
"""Share of the time of the operators that must have moved by the factor; the others are too noisy to say."""
EXPLAINS: Final = 0.8
"""Share of the change of the step that the operators must make: else something else is slower, too."""
_MOVED: Final = (Verdict.REGRESSED, Verdict.IMPROVED)
_NOT_OF_OPERATORS: Final = (KindCode.WAIT, KindCode.PEAK, KindCode.MEMORY)
"""Kinds of series that do not become longer because operators do."""


class _Factor(Struct, frozen=True, eq=False):
    """By what all operators moved: `log`, signed; `operators` (series,): those of which that is a finding."""

    log: float
    operators: Flags

    def contains(self, change: F64) -> Flags:
        """Return which changes are this factor, but for a tenth of it."""
        return np.asarray(np.abs(change - self.log) <= WIDTH * abs(self.log))


def judge_alike(
    judged: JudgedSeries, series: SeriesTraits, share: F64, has_shift: bool, limits: Thresholds
) -> JudgedSeries:
    """Turn changes of operators that all moved by one factor into DRIFT, and let the step alone stand for them.

    The step keeps its verdict, with the reason ALIKE. What moved because operators did, as kernels, modules or compute,
    is DRIFT, too. Nothing changes where another verdict says more: where an operator moved by another factor, is new or
    gone, or where the operators do not make most of the change of the step. `share` (series,): of the step, before;
    `has_shift`: whether there are operators enough for a common-mode shift, which is taken out then.
    """
    step = series.choose_step(judged.new_runs, judged.base_runs)
    if has_shift or step is None or judged.verdict[step] not in _MOVED:
        return judged
    factor = _find_factor(judged, series, share, limits)
    if factor is None or not _explains_step(judged, factor, step):
        return judged
    follows = _find_followers(judged, series, factor) | factor.operators
    follows[step] = False
    reason = np.where(follows, Reason.ALIKE, judged.reason)
    reason[step] = Reason.ALIKE
    return replace(judged, verdict=np.where(follows, Verdict.DRIFT, judged.verdict), reason=reason)


def _find_factor(judged: JudgedSeries, series: SeriesTraits, share: F64, limits: Thresholds) -> _Factor | None:
    """Return the factor by which all operators moved; None where they did not, or are too few."""
    is_leaf = series.leaf & (np.nan_to_num(share) >= limits.floor)
    moved = is_leaf & np.isin(judged.verdict, _MOVED)
    by_name = (series.kind == KindCode.NAME) & np.isin(judged.verdict, _MOVED)
    # shapes of one operator are no several operators; of kernels alone there are no names
    operators = by_name.sum() if (series.kind == KindCode.NAME).any() else moved.sum()
    comes_or_goes = is_leaf & np.isin(judged.verdict, (Verdict.ADDED, Verdict.REMOVED))
    if not moved.any() or operators < LEAST_ALIKE or comes_or_goes.any():
        return None
    factor = _Factor(float(median(judged.change[moved])), moved)
    compared = is_leaf & ~np.isnan(judged.se)
    if _any_differs(judged, compared, factor):
        return None
    with np.errstate(invalid="ignore"):
        is_near = np.abs(judged.change - factor.log) <= _NEAR * abs(factor.log)
    of_factor = share[compared & is_near].sum()
    return factor if of_factor >= MOST * share[is_leaf].sum() else None


def _any_differs(judged: JudgedSeries, rows: Flags, factor: _Factor) -> bool:
    """Return whether the change of any of these series is another one than the factor, beyond its noise."""
    away = np.abs(judged.change[rows] - factor.log)
    with np.errstate(invalid="ignore", divide="ignore"):
        chance = 2 * t_above(away / judged.se[rows], np.maximum(judged.freedom[rows], 1e-9))
        differs = (chance * len(away) <= CERTAIN) & ~factor.contains(judged.change[rows])
    return bool(differs.any())


def _explains_step(judged: JudgedSeries, factor: _Factor, step: int) -> bool:
    """Return whether the step moved with the operators, and they make most of its change."""
    of_step, of_operators = float(judged.contribution[step]), float(judged.contribution[factor.operators].sum())
    return of_step * factor.log > 0 and of_operators * np.sign(of_step) >= EXPLAINS * abs(of_step)


def _find_followers(judged: JudgedSeries, series: SeriesTraits, factor: _Factor) -> Flags:
    """Return which other series moved because operators did: parts of the step by no more than the factor, and calls
    that wait for the device by no more than the operators.
    """
    is_open = np.isin(judged.verdict, (*_MOVED, Verdict.SUSPECT)) & ~np.isin(series.kind, _NOT_OF_OPERATORS)
    size = judged.change * np.sign(factor.log)
    with np.errstate(invalid="ignore"):
        is_part = (size > 0) & (size <= (1 + WIDTH) * abs(factor.log))
        is_own = np.isin(series.kind, (KindCode.OPERATOR, KindCode.NAME, KindCode.KERNEL, KindCode.COMMUNICATION))
        of_operators = abs(float(judged.contribution[factor.operators].sum()))
        waits = (series.kind == KindCode.API) & (size > 0) & (np.abs(judged.contribution) <= of_operators)
    return np.asarray(is_open & (np.where(is_own, factor.contains(judged.change), is_part) | waits))
