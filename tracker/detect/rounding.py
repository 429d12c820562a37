"""What a source rounds is known no better: a change within the roundings of both sides is none."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from tracker.columns import F64, I64, Flags
from tracker.detect.series import KindCode, SeriesTraits
from tracker.detect.sides import Window
from tracker.detect.statistics import median
from tracker.detect.verdicts import JudgedSeries, Reason, Verdict

_MOVED: Final = (Verdict.REGRESSED, Verdict.IMPROVED, Verdict.SUSPECT, Verdict.BELOW_LIMIT)
_SLACK: Final = 1.01
"""Roundings are kept with three digits: a step of one unit, from 12 ms to 13 ms, is within half a unit of both."""


def within_rounding(found: JudgedSeries, window: Window, series: SeriesTraits) -> JudgedSeries:
    """Turn changes that lie within the roundings of both sides into INCONCLUSIVE, and what is unchanged only as far as
    the source prints it.
    """
    if window.roundings is None:
        return found
    base, new = (_rounding_of_side(window.roundings, side) for side in (found.base, found.new))
    width = rounding_width(base, new)
    is_hidden = np.isin(found.verdict, _MOVED) & (np.abs(found.change) <= width)
    # a part of the step may be so small that its rounding does not matter
    is_whole = np.isin(series.kind, (KindCode.STEP, KindCode.RATE))
    is_hidden |= is_whole & (found.verdict == Verdict.UNCHANGED) & (width > series.ratio)
    return replace(
        found,
        verdict=np.where(is_hidden, Verdict.INCONCLUSIVE, found.verdict),
        reason=np.where(is_hidden, Reason.ROUNDING, found.reason),
    )


def is_of_rounding(window: Window, row: int, before: I64, after: I64, change: float) -> bool:
    """Return whether a change of a series (a log) from some runs to others, columns of the window, may be made by what
    their sources rounded.
    """
    if window.roundings is None:
        return False
    own = window.roundings[row]
    return bool(abs(change) <= rounding_width(np.median(own[before]), np.median(own[after])))


def rounding_width(base: Any, new: Any) -> F64:
    """Return the largest change, a log, that two roundings may make, each a part of its side; arrays or numbers.

    >>> width = rounding_width(np.array([0.5 / 12]), np.array([0.5 / 13]))
    >>> bool(np.log(13 / 12) <= width[0] < np.log(13.1 / 12))
    True
    """
    return np.asarray(_SLACK * np.log((1 + base) / (1 - np.minimum(new, 0.9))))


def _rounding_of_side(roundings: F64, side: Flags) -> F64:
    """Return the usual rounding of the runs of a side of each series; 0 without any."""
    side = np.broadcast_to(side, roundings.shape)
    return np.asarray(np.nan_to_num(median(np.where(side, roundings, np.nan), axis=1)))
