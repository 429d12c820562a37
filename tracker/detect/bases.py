"""Which runs each series of a version is compared with: those that its verdict rests on, or those of the step."""

from __future__ import annotations

from typing import Final

import numpy as np

from tracker.columns import Flags
from tracker.detect.track import VersionRuns
from tracker.detect.verdicts import JudgedSeries, Verdict

_SAYS_NO_CHANGE: Final = (Verdict.ABSENT, Verdict.UNCHANGED, Verdict.INCONCLUSIVE, Verdict.TOO_FEW_RUNS)


def states_change(judged: JudgedSeries) -> Flags:
    """Return of which series (series,) the verdict says a change, though it may be too small to matter."""
    return np.asarray(~np.isin(judged.verdict, _SAYS_NO_CHANGE))


def own_bases(now: VersionRuns, judged: JudgedSeries, of_step: Flags) -> tuple[Flags, Flags]:
    """Return the runs (series, runs) that each series is compared with, and in which runs of the step it had another
    level.

    A series is compared with the runs that its verdict rests on: the newest of its own level, whatever the step's are.
    One that was not judged, or has no run of its level, is compared with the runs of the step. What costs too little
    for a verdict comes and goes against the version before: what went versions ago is not gone now. `of_step` (runs,).
    """
    other_level = of_step & ~now.level(now.current)
    # what costs next to nothing begins no level when it comes or goes: it is as in the newest version before that has
    # the operators of this one
    alike = np.ones(len(of_step), dtype=bool)
    step = now.series.choose_step(judged.new_runs, judged.base_runs)
    if step is not None:
        alike = now.level(now.current)[step]
    moved = of_step & _differ_from_newest(now, judged.base & alike) & ~states_change(judged)[:, None]
    base, other_level = judged.base & ~moved, other_level | moved
    base = np.where(base.any(axis=1, keepdims=True), base, of_step)
    there = ~np.isnan(now.window.logs)
    newest = now.looked_back & (now.versions == now.versions[now.looked_back].max(initial=-1))
    is_on_both_sides = there[:, newest].any(axis=1) & there[:, now.new].any(axis=1)
    comes_or_goes = newest.any() & ~is_on_both_sides & ~states_change(judged)
    return np.where(comes_or_goes[:, None], newest, base), other_level


def _differ_from_newest(now: VersionRuns, base: Flags) -> Flags:
    """Return which base runs (series, runs) lack a series that all of the newest base version have, or have one that
    those lack. A series of which the newest runs differ among themselves comes and goes.
    """
    there = ~np.isnan(now.window.logs)
    newest = np.where(base, now.versions, -1).max(axis=1, keepdims=True)
    is_newest = base & (now.versions == newest)
    in_all, in_none = (there | ~is_newest).all(axis=1), (~there | ~is_newest).all(axis=1)
    differs = np.where(in_all[:, None], ~there, there) & (in_all | in_none)[:, None]
    return np.asarray(base & now.window.recorded & differs)
