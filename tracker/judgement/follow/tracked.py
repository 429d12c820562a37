"""A finding as it is followed, and what a run says of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct, field

from tracker.detectors import change_points
from tracker.detectors.life import NOTIFIED, Acted, Event, Finding, LifeRule, Transition, step
from tracker.detectors.totals import EXPLAINED
from tracker.detectors.vote import LAST_RUNS
from tracker.detectors.within import MODES_OF, jumps_between
from tracker.judgement.families import RUN, UNCOUNTED
from tracker.judgement.follow.tracks import Change
from tracker.judgement.follow.watched import BOOL, Watched
from tracker.profile import median

_LASTING: Final = 3
"""Runs that a step back must have lasted (JUDGEMENT 5)."""

_SINCE: Final = 20
"""Runs that have the series, before a version, of those since its finding began that still count: a level has 8."""

DATED_BY: Final = 30
"""Runs on either side of a suspicion by which it is dated (JUDGEMENT 5)."""

_NEAR: Final = 3
"""How far from a suspicion a lasting change is the same one."""

Key = tuple[int, int, Change]


class Tracked(Struct):
    """A finding of the series `row`: `sign` 1 for worse, -1 for better; `change`: in what.

    `first`: the run (column) that raised the suspicion. `baseline`: the runs it is measured against, frozen then;
    `step_baseline`: those that the step was judged against then. `candidate`: the runs that decided; the first one,
    until then. `gates`: what they said. `effect`: log change of the last run that has the series, `last` that run, None
    until there is one. `turned`: the run with which the last step back began that was told. `further`: it is a step of
    one that is open. `dated`: see `dated_of`; None: more runs may date it otherwise. `stepped`: the run with which the
    last further step of its key began.
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
    last: int | None = None
    turned: int | None = None
    step_baseline: tuple[int, ...] = ()
    further: bool = False
    dated: int | None = None
    stepped: int | None = None

    @property
    def key(self) -> Key:
        """One finding is open per key."""
        return self.row, self.sign, self.change

    def take(self, event: Event) -> list[Transition]:
        """The next event of its life; the transitions that it made."""
        self.finding, more = step(self.finding, event, self.life)
        self.transitions += more
        return more


class UserAction(Struct, frozen=True):
    """What a user did to the finding of `key` that began with the run `first_run`, after the run `after_run`."""

    key: Key
    first_run: int
    after_run: int | None
    acted: Acted


def life_of(watched: Watched, key: Key, run: int) -> LifeRule:
    """The rule that a finding of `key` lives by, which the run `run` raises."""
    row, _, change = key
    if change == "presence":
        return LifeRule(effect=0.5)
    family, names = watched.families[row], [watched.names[row]]
    if change == "creep":
        limits, _ = watched.thresholds.creep(family, names)
    else:
        limits = watched.thresholds.limits(family, names, device_timed=watched.runs[run].device_timed)
    return LifeRule(effect=float(np.max(limits.effect)))


def effect_of(watched: Watched, tracked: Tracked, run: int) -> float | None:
    """How much worse the run is than the baseline, as a log, in the direction of the finding; None: not known."""
    row, columns = tracked.row, list(tracked.baseline)
    value = watched.raw[row, run]
    if tracked.change == "presence":
        return float((not math.isnan(value)) == (tracked.sign > 0)) if watched.tells(row, run) else None
    if tracked.change == "calls":
        return _effect_of_calls(watched, tracked, run)
    if math.isnan(value):
        return None
    before = watched.centred[row, columns]
    level = float(np.log(before[~np.isnan(before)]).mean())
    effect = tracked.sign * (math.log(watched.centred[row, run]) - level)
    if watched.families[row][0] != RUN:
        of_calls = _effect_when_taken_back(watched, tracked, run, effect)
        return effect if of_calls is None else min(effect, of_calls)
    if not watched.is_clocked(row):
        return effect
    # of a whole run the part counts that the machine does not explain, as when it was found (JUDGEMENT 4.9)
    shared = float(watched.shared[run] - watched.shared[columns].mean())
    return min(effect, effect - tracked.sign * shared)


def _effect_of_calls(watched: Watched, tracked: Tracked, run: int) -> float | None:
    """How much more often the run calls the series than the baseline, as `effect_of`."""
    before, now = watched.calls[tracked.row, list(tracked.baseline)], float(watched.calls[tracked.row, run])
    known = before[before > 0]
    return tracked.sign * math.log(now / float(median(known))) if len(known) and now > 0 else None


def _effect_when_taken_back(watched: Watched, tracked: Tracked, run: int, effect: float) -> float | None:
    """The effect by the calls, of a level that changed by them and of a run that has them back; else None.

    A series whose time varies more than the change would stay bad without its cause. Time per call that is worse by
    itself is a finding of its own then.
    """
    kind, metric, *_ = watched.families[tracked.row]
    if effect <= 0 or kind in UNCOUNTED or not metric.endswith("_ns") or run in tracked.candidate:
        return None
    now = _effect_of_calls(watched, tracked, run)
    found = [part for at in tracked.candidate if (part := _effect_of_calls(watched, tracked, at)) is not None]
    if now is None or not found:
        return None
    by_calls, size = sum(found) / len(found), tracked.finding.size
    is_cause = 0 < size * EXPLAINED <= by_calls
    return now if is_cause and now <= (1.0 - tracked.life.opposite_step) * by_calls else None


def size_of(watched: Watched, tracked: Tracked, columns: Sequence[int]) -> float | None:
    """The mean effect of the runs `columns`; None: it is known of none."""
    effects = [effect for at in columns if (effect := effect_of(watched, tracked, at)) is not None]
    return sum(effects) / len(effects) if effects else None


def runs_since(watched: Watched, tracked: Tracked, runs: range) -> list[int]:
    """The runs that have the series since the finding began: of those before the version of `runs` the last 20, which
    tell as much as all of one that is open for thousands of runs.
    """
    row, since = tracked.row, slice(tracked.first, runs.stop)
    there = ~np.isnan(watched.raw[row, since]) | ~np.isnan(watched.calls[row, since])
    columns = tracked.first + np.flatnonzero(there)
    before = int(np.searchsorted(columns, runs.start))
    return columns[max(0, before - _SINCE) :].tolist()  # type: ignore[no-any-return]


def good_runs(watched: Watched, tracked: Tracked, runs: range) -> list[int]:
    """The runs before the version of `runs` that a finding recovered with, together with those; see `runs_since`."""
    finding = tracked.finding
    limit = finding.back_level + tracked.life.effect
    since = [at for at in runs_since(watched, tracked, runs) if at > tracked.first]
    effects = {at: effect_of(watched, tracked, at) for at in reversed(since)}
    good = [at for at, effect in effects.items() if effect is not None and effect < limit]
    return sorted(at for at in good[: finding.back_runs] if at < runs.start)


def dated_of(watched: Watched, tracked: Tracked) -> int:
    """The run from which on the series is changed: a lasting change near the suspicion dates it (JUDGEMENT 5)."""
    first = tracked.first
    if tracked.dated is not None or tracked.change != "level":
        return first if tracked.dated is None else tracked.dated
    around = np.arange(max(0, first - DATED_BY), min(len(watched.runs), first + DATED_BY))
    values = watched.centred[tracked.row, around]
    known = around[~np.isnan(values)]
    near = [int(known[place]) for place in change_points(values[~np.isnan(values)])]
    # the runs of its baseline were as they should be
    near = [place for place in near if abs(place - first) <= _NEAR and place > max(tracked.baseline, default=-1)]
    return min(near, key=lambda place: (abs(place - first), place), default=first)


def is_dated(tracked: Tracked, stop: int) -> bool:
    """Whether no run after those before `stop` can date the finding otherwise."""
    return tracked.change == "level" and tracked.first + DATED_BY <= stop


def last_of_change(watched: Watched, tracked: Tracked, first: int, last: int) -> int:
    """The last of the runs `first` to `last`, which confirm a change together, that shows it: the runs of a later
    version in which it is taken back already say nothing of its size. At least one run after `first`.
    """
    version = watched.runs[first].version
    while last > first + 1 and watched.runs[last].version > version:
        before = size_of(watched, tracked, range(first, last))
        effect = effect_of(watched, tracked, last)
        if before is None or effect is None or effect >= tracked.life.calm(before):
            break
        last -= 1
    return last


def is_gone(watched: Watched, tracked: Tracked, run: int, least: int = 1) -> bool:
    """Whether no run of this version, up to this one, has the series, though `least` of them tell of such series."""
    if tracked.change == "presence":
        return False
    version, first = watched.runs[run].version, run
    while first > 0 and watched.runs[first - 1].version == version:
        first -= 1
    told = [place for place in range(first, run + 1) if watched.tells(tracked.row, place)]
    return len(told) >= least and bool(np.isnan(watched.raw[tracked.row, told]).all())


def is_bistable(watched: Watched, tracked: Tracked, columns: Sequence[int], normal: BOOL) -> bool:
    """Whether the series jumps between two levels from run to run, and `columns` are on one of them.

    `normal`: (series, runs), which runs were as they should be.
    """
    if tracked.change != "level":
        return False
    before = slice(max(0, tracked.first - MODES_OF), tracked.first)
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
    first = max(0, run + 1 - LAST_RUNS)
    values = watched.centred[tracked.row, first : run + 1]
    known = np.flatnonzero(~np.isnan(values))
    logs = tracked.sign * np.log(values[known])
    since = int(np.searchsorted(known, max(0, tracked.first - first)))
    if len(known) - since < 2 * _LASTING or median(logs[since:-_LASTING]) - median(logs[-_LASTING:]) < wanted:
        return None
    places = [place for place in change_points(values[known]) if place >= since + _LASTING]
    if not places:
        return None
    last = places[-1]
    before = logs[places[-2] if len(places) > 1 else since : last]
    size = float(median(before) - median(logs[last:]))
    began = first + int(known[last])
    told = tracked.turned is not None and abs(began - tracked.turned) <= _LASTING
    return None if told or size < wanted else (size, began)
