"""A finding as it is followed, and what a run says of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tracker.detectors import change_points
from tracker.detectors.life import NOTIFIED, Acted, Event, Finding, LifeRule, Transition, step
from tracker.detectors.within import MODES_OF, jumps_between
from tracker.judgement.families import RUN
from tracker.judgement.follow.tracks import Change
from tracker.judgement.follow.watched import BOOL, Watched

_LAST_RUNS: Final = 60
_LASTING: Final = 3
"""Runs in which a step back is looked for, and that it must have lasted (JUDGEMENT 5)."""

Key = tuple[int, int, Change]


@dataclass(slots=True)
class Tracked:
    """A finding of the series `row`: `sign` 1 for worse, -1 for better; `change`: in what.

    `first`: the run (column) that raised the suspicion. `baseline`: the runs it is measured against, frozen then;
    `step_baseline`: those that the step was judged against then. `candidate`: the runs that decided; the first one,
    until then. `gates`: what they said. `effect`: log change of the last run that has the series, `last` that run.
    `turned`: the run with which the last step back began that was told. `further`: it is a step of one that is open.
    """

    row: int
    sign: int
    change: Change
    first: int
    baseline: tuple[int, ...]
    candidate: tuple[int, ...]
    gates: dict[str, Any]
    life: LifeRule
    finding: Finding = field(default_factory=Finding)
    transitions: list[Transition] = field(default_factory=list)
    suspected: int | None = None
    effect: float = 0.0
    last: int = 0
    turned: int | None = None
    step_baseline: tuple[int, ...] = ()
    further: bool = False

    @property
    def key(self) -> Key:
        """One finding is open per key."""
        return self.row, self.sign, self.change

    def take(self, event: Event) -> list[Transition]:
        """The next event of its life; the transitions that it made."""
        self.finding, more = step(self.finding, event, self.life)
        self.transitions += more
        return more


@dataclass(frozen=True, slots=True)
class UserAction:
    """What a user did to the finding of `key` that began with the run `first_run`, after the run `after_run`."""

    key: Key
    first_run: int
    after_run: int | None
    acted: Acted


def effect_of(watched: Watched, tracked: Tracked, run: int) -> float | None:
    """How much worse the run is than the baseline, as a log, in the direction of the finding; None: not known."""
    row, columns = tracked.row, list(tracked.baseline)
    value = watched.raw[row, run]
    if tracked.change == "presence":
        return float((not math.isnan(value)) == (tracked.sign > 0)) if watched.tells(row, run) else None
    if tracked.change == "calls":
        before, now = watched.calls[row, columns], float(watched.calls[row, run])
        known = before[before > 0]
        return tracked.sign * math.log(now / float(np.median(known))) if len(known) and now > 0 else None
    if math.isnan(value):
        return None
    before = watched.centred[row, columns]
    level = float(np.log(before[~np.isnan(before)]).mean())
    effect = tracked.sign * (math.log(watched.centred[row, run]) - level)
    if watched.families[row][0] != RUN or not watched.is_clocked(row):
        return effect
    # of a whole run the part counts that the machine does not explain, as when it was found (JUDGEMENT 4.9)
    shared = float(watched.shared[run] - watched.shared[columns].mean())
    return min(effect, effect - tracked.sign * shared)


def is_gone(watched: Watched, tracked: Tracked, run: int) -> bool:
    """Whether no run of this version, so far, has the series."""
    if tracked.change == "presence":
        return False
    runs = watched.runs
    same = [place for place in range(run + 1) if runs[place].version == runs[run].version]
    told = [place for place in same if watched.tells(tracked.row, place)]
    return bool(told) and bool(np.isnan(watched.raw[tracked.row, told]).all())


def is_bistable(watched: Watched, tracked: Tracked, columns: Sequence[int], normal: BOOL) -> bool:
    """Whether the series jumps between two levels from run to run, and `columns` are on one of them.

    `normal`: (series, runs), which runs were as they should be.
    """
    if tracked.change != "level":
        return False
    before = slice(max(0, columns[0] - 1 - MODES_OF), columns[0] - 1)
    # what a confirmed finding did to it is no level between which it jumps
    own = watched.centred[tracked.row, before][normal[tracked.row, before]]
    return jumps_between(own, watched.centred[tracked.row, list(columns)], tracked.life.effect) is not None


def step_back(watched: Watched, tracked: Tracked, run: int) -> tuple[float, int] | None:
    """The size, as a log, of a lasting change the other way since a finding began, and the run it began with; None:
    there is none that was not told yet.

    Looked for only where the last runs lie low enough: a change of a noisy series that no two runs in a row show.
    """
    finding = tracked.finding
    state = finding.muted_before if finding.state == "muted" else finding.state
    if tracked.change != "level" or state not in NOTIFIED or finding.size <= 0:
        return None
    wanted = tracked.life.opposite_step * finding.size
    first = max(0, run + 1 - _LAST_RUNS)
    values = watched.centred[tracked.row, first : run + 1]
    known = np.flatnonzero(~np.isnan(values))
    logs = tracked.sign * np.log(values[known])
    since = int(np.searchsorted(known, max(0, tracked.first - first)))
    if len(known) - since < 2 * _LASTING or np.median(logs[since:-_LASTING]) - np.median(logs[-_LASTING:]) < wanted:
        return None
    places = [place for place in change_points(values[known]) if place >= since + _LASTING]
    if not places:
        return None
    last = places[-1]
    before = logs[places[-2] if len(places) > 1 else since : last]
    size = float(np.median(before) - np.median(logs[last:]))
    began = first + int(known[last])
    told = tracked.turned is not None and abs(began - tracked.turned) <= _LASTING
    return None if told or size < wanted else (size, began)
