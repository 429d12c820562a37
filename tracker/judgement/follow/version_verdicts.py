"""The verdict of every series on one version: what diff, history, findings and gates read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.detectors import rule
from tracker.detectors.arrays import Columns, cut
from tracker.detectors.baseline import ENOUGH
from tracker.judgement.families import RUN, UNCOUNTED, Family, more_is_better
from tracker.judgement.follow.tracks import Said
from tracker.judgement.follow.watched import NEVER, Watched
from tracker.judgement.follow.windows import Windows, gathered

F64 = NDArray[np.float64]

_FEW: Final = f"fewer than {ENOUGH} accepted runs before this version"
_NUMBERS: Final = ("p", "q", "contribution", "detectable")


class VersionVerdicts(Struct, frozen=True):
    """The judgement of a version against the window of each series. `runs`: places of the runs of the version.

    `columns`: an element per row of the line, as in `judging.Compared`: `diff`, `p`, `q`, `contribution`, `detectable`,
    `verdict`, `calls_verdict`, `reason`, `large`; None and nan where there is nothing to say. `window`: places of the
    runs that the step is judged against, and most series with it, in order. `centre`: how much slower than those all
    operators are together, as a log; None: nothing to compare with.
    """

    runs: range
    columns: Columns
    window: tuple[int, ...]
    centre: float | None


def verdicts_of_version(
    watched: Watched, windows: Windows, runs: range, level: Said, calls: Said, presence: Said
) -> VersionVerdicts:
    """What was said of a version in each way, as one verdict per series. `level`: said of all series, whole."""
    count = len(watched.names)
    columns: Columns = {name: np.array(level.gates.get(name, np.full(count, np.nan))) for name in _NUMBERS}
    columns["diff"] = np.array(level.gates.get("ratio", np.full(count, np.nan)))
    for name in ("verdict", "reason", "calls_verdict"):
        columns[name] = np.full(count, None, dtype=object)
    own = level.gates.get("verdict")
    if own is not None:
        columns["verdict"], columns["reason"] = own.copy(), level.gates["reason"].copy()
    _say_too_few(windows, columns)
    came = presence.gates.get("verdict")
    if came is not None:
        changed = np.flatnonzero(presence.sign != 0)
        for name in ("verdict", "reason", "contribution"):
            columns[name][changed] = presence.gates[name][changed]
    there = np.asarray(~np.isnan(watched.raw[:, runs.start : runs.stop]).all(axis=1))
    known = np.asarray((windows.columns >= 0).any(axis=1))
    absent = ~there & (presence.sign == 0)
    for name in ("verdict", "reason"):
        columns[name][absent | (~known & (presence.sign == 0))] = None
    _say_calls(watched, calls, there & known, columns)
    columns["diff"] = _shown(watched, columns["diff"])
    columns["contribution"][_of_families(watched, lambda family: not watched.is_time(family))] = np.nan
    columns["large"] = _large(watched, windows, runs)
    window = _window(windows, watched.step_row(runs.stop - 1))
    centre = None
    if window and watched.leaf is not None:
        centre = float(watched.shared[runs.start : runs.stop].mean() - watched.shared[list(window)].mean())
    return VersionVerdicts(runs, columns, window, centre)


def _say_too_few(windows: Windows, columns: Columns) -> None:
    """A level of few runs, whose noise nobody knows, says nothing yet."""
    few = ~windows.enough(np.arange(len(columns["verdict"]))) & np.isin(
        columns["verdict"], (*rule.CHANGED, rule.INCONCLUSIVE)
    )
    columns["verdict"][few], columns["reason"][few] = rule.TOO_FEW_RUNS, _FEW


def _say_calls(watched: Watched, calls: Said, both: NDArray[np.bool_], columns: Columns) -> None:
    """How often series are called: as often, where nothing else was said of them."""
    counted = both & _of_families(watched, lambda family: family[0] not in UNCOUNTED and family[0] != RUN)
    counted &= watched.counted < NEVER
    columns["calls_verdict"][counted] = rule.UNCHANGED
    said = calls.gates.get("verdict")
    if said is not None:
        changed = calls.sign != 0
        columns["calls_verdict"][changed] = said[changed]


def _shown(watched: Watched, ratio: F64) -> F64:
    """More throughput is a positive DIFF, however it was judged."""
    inverse = more_is_better(watched.families)
    return np.where(inverse, 1.0 / (1.0 + ratio) - 1.0, ratio)


def _of_families(watched: Watched, holds: Callable[[Family], bool]) -> NDArray[np.bool_]:
    """The rows of the families for which something holds."""
    found = np.zeros(len(watched.names), dtype=bool)
    for family, rows in watched.kinds.items():
        found[rows] = holds(family)
    return found


def _large(watched: Watched, windows: Windows, runs: range) -> NDArray[np.bool_]:
    """At least 0.01 % of the step on either side, or no part of it."""
    rows = np.arange(len(watched.names))
    sides = gathered(watched.raw, rows, windows.columns), cut(watched.raw, rows, list(runs))
    with np.errstate(invalid="ignore"):
        level = np.fmax(*(np.nan_to_num(side).max(axis=1, initial=0.0) for side in sides))
    before = sorted(set(windows.columns[windows.columns >= 0].tolist()))[-windows.columns.shape[1] :]
    step = watched.larger_step(before, list(runs))
    least = 0.0 if np.isnan(step) else rule.TESTED_SHARE * step
    timed = _of_families(watched, lambda family: family[0] != RUN and watched.is_time(family))
    return np.asarray((level > 0) & (~timed | (level >= least)))


def _window(windows: Windows, step: int | None) -> tuple[int, ...]:
    """The window of the step; where nobody states it, the one that most series have."""
    if step is not None and (windows.columns[step] >= 0).any():
        own = windows.columns[step]
        return tuple(own[own >= 0].tolist())
    known = windows.columns[(windows.columns >= 0).any(axis=1)]
    if not len(known):
        return ()
    (most, _), *_ = Counter(map(tuple, known.tolist())).most_common(1)
    return tuple(run for run in most if run >= 0)
