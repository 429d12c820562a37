"""Run by run: suspicions are raised, confirmed or cleared, and findings live on (JUDGEMENT 3 to 6)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracker.detectors.life import (
    ENDED,
    NOTIFIED,
    OPEN,
    Acted,
    Event,
    Finding,
    LifeRule,
    Observed,
    Passed,
    Transition,
    step,
)
from tracker.detectors.within import MODES_OF, jumps_between
from tracker.judgement.families import RUN, Family
from tracker.judgement.follow.creeping import crept
from tracker.judgement.follow.tracks import Change, Said, calls, levels, presence
from tracker.judgement.follow.watched import Watched
from tracker.judgement.follow.windows import Windows

I64 = NDArray[np.int64]
BOOL = NDArray[np.bool_]

_NEW_BASELINE: Final = "what got better is the new baseline"
_BLOCKING: Final = OPEN | {"vanished"}
"""States in which the runs of a series are no baseline for it."""

Key = tuple[int, int, Change]


@dataclass(slots=True)
class Tracked:
    """A finding of the series `row`: `sign` 1 for worse, -1 for better; `change`: in what.

    `first`: the run (column) that raised the suspicion; `began`: the same, or of one that came back the run that raised
    it again. `baseline`: the runs it is measured against, frozen then (and when it came back).
    `candidate`: the runs that decided; the first one, until then. `gates`: what they said. `effect`: log change of the
    last run that has the series, `last` that run.
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
    again: int | None = None

    @property
    def began(self) -> int:
        """See above."""
        return self.first if self.again is None else self.again

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


def follow(watched: Watched, actions: Iterable[UserAction] = (), *, now_ns: int | None = None) -> list[Tracked]:
    """All findings of a line, by the run that raised them, then by series. `actions` in the order of their time.

    `now_ns`: mutes whose end lies before are over; None: only runs make time pass.
    """
    follower = _Follower(watched, actions)
    for run in range(len(watched.runs)):
        follower.observe(run)
    if now_ns is not None:
        for tracked in follower.found:
            end = tracked.finding.until_ns
            if tracked.finding.state == "muted" and end is not None and end <= now_ns:
                tracked.take(Passed(end))
    return sorted(follower.found, key=lambda tracked: (tracked.first, tracked.row, tracked.sign, tracked.change))


class _Follower:
    def __init__(self, watched: Watched, actions: Iterable[UserAction]) -> None:
        self.watched = watched
        self.windows = Windows(len(watched.names))
        self.normal: BOOL = np.zeros(watched.raw.shape, dtype=bool)
        self.found: list[Tracked] = []
        self.open: dict[Key, Tracked] = {}
        self.snapshots: dict[int, I64] = {}
        self.actions: dict[int, list[UserAction]] = {}
        self.telling: dict[Family, BOOL] = {
            family: np.asarray(~np.isnan(watched.raw[rows]).all(axis=0)) for family, rows in watched.kinds.items()
        }
        self.creeps_from: I64 = np.zeros(len(watched.names), dtype=np.int64)
        for action in actions:
            self.actions.setdefault(self._place(action), []).append(action)

    def _place(self, action: UserAction) -> int:
        """The run after which an action counts: the last one here of those that were there when it was made, since runs
        are numbered as they come; so other runs may be excluded, or put into another order, without losing it.
        """
        there = [place for place, run in enumerate(self.watched.runs) if run.run_id <= (action.after_run or 0)]
        return max(there, default=len(self.watched.runs) - 1)

    def observe(self, run: int) -> None:
        """Everything that the run in this column says."""
        self._accept_improvements(run)
        said = {
            "level": levels(self.watched, self.windows, [run]),
            "calls": calls(self.watched, self.windows, [run]),
            "presence": presence(self.watched, run, [run]),
        }
        confirmed = self._confirmed(run)
        for tracked in list(self.open.values()):
            if tracked.change != "creep":
                self._observe(tracked, run, confirmed.get(tracked.key))
        for change in ("level", "calls", "presence"):
            self._suspect(run, change, said)
        self._creep(run)
        self._accept(run)
        for action in self.actions.get(run, ()):
            self._act(action, run)
        self.snapshots = {
            place: columns
            for place, columns in self.snapshots.items()
            if any(tracked.suspected == place for tracked in self.open.values())
        }

    def _suspect(self, run: int, change: Change, said: dict[str, Said]) -> None:
        """Opens a suspicion for every series that this run alone makes suspicious."""
        sign = said[change].sign
        for row in np.flatnonzero(sign).tolist():
            key = (row, int(sign[row]), change)
            if change == "calls" and (row, key[1], "level") in self.open:
                continue  # the time says it already; that calls explain it, the finding says
            known = self.open.get(key)
            if known is not None and known.finding.state != "recovered":
                continue
            self.snapshots.setdefault(run, self.windows.columns.copy())
            if known is not None:
                known.suspected = known.suspected if known.suspected is not None else run
                continue
            tracked = self._new(key, run, said[change].of(row))
            tracked.suspected = run
            tracked.take(self._event(tracked, run, screens=True))
            self.open[key] = tracked

    def _new(self, key: Key, run: int, gates: dict[str, Any]) -> Tracked:
        row, sign, change = key
        baseline = self._baseline(self.windows.columns, row, change, run)
        number = max((old.finding.number for old in self.found if old.key == key), default=0)
        tracked = Tracked(row, sign, change, run, baseline, (run,), gates, self._life(key, run), Finding(number=number))
        self.found.append(tracked)
        return tracked

    @staticmethod
    def _baseline(windows: I64, row: int, change: Change, run: int) -> tuple[int, ...]:
        """The runs that the change of a series with `run` is measured against; `windows`: as they were then."""
        window = windows[row]
        if change == "presence":
            return tuple(range(max(0, run - len(window)), run))
        return tuple(window[window >= 0].tolist())

    def _life(self, key: Key, run: int) -> LifeRule:
        row, _, change = key
        if change == "presence":
            return LifeRule(effect=0.5)
        family, names = self.watched.families[row], [self.watched.names[row]]
        if change == "creep":
            limits, _ = self.watched.thresholds.creep(family, names)
        else:
            device_timed = self.watched.runs[run].device_timed
            limits = self.watched.thresholds.limits(family, names, device_timed=device_timed)
        return LifeRule(effect=float(np.max(limits.effect)))

    def _runs_since(self, tracked: Tracked, run: int) -> int:
        """How many runs after the suspicion, up to this one, tell of the series."""
        first = run if tracked.suspected is None else tracked.suspected
        return sum(self._tells(tracked.row, place) for place in range(first + 1, run + 1))

    def _confirmed(self, run: int) -> dict[Key, bool]:
        """What the confirming runs say of the suspicions that have them all with this run."""
        due = [
            one
            for one in self.open.values()
            if one.suspected is not None
            and self._runs_since(one, run) >= self.watched.thresholds.confirm
            and self._effect(one, run) is not None  # what the run does not tell of waits for one that does
        ]
        found: dict[Key, bool] = {}
        for place, change in dict.fromkeys((one.suspected or 0, one.change) for one in due):
            own = [one for one in due if one.suspected == place and one.change == change]
            said = self._decide(change, place, list(range(place + 1, run + 1)), own)
            all_runs = self._decide(change, place, list(range(place, run + 1)), None)
            for one in own:
                agree = int(said.sign[one.row]) == int(all_runs.sign[one.row]) == one.sign
                found[one.key] = agree and not self._bistable(one, range(place + 1, run + 1))
                if found[one.key]:
                    one.gates, one.candidate = all_runs.of(one.row), tuple(range(place, run + 1))
                    if one.finding.state == "recovered":  # it comes back: against the level that it recovered to
                        one.baseline = self._baseline(self.snapshots[place], one.row, change, place)
                one.suspected = None
        return found

    def _decide(self, change: Change, place: int, columns: list[int], suspects: Sequence[Tracked] | None) -> Said:
        """What `columns` say, against the windows as they were before the run `place`: of `suspects`, or of all."""
        windows = Windows(len(self.watched.names))
        windows.columns = self.snapshots[place]
        windows.variance, windows.freedom = self.windows.variance, self.windows.freedom
        if change == "presence":
            return presence(self.watched, place, columns)
        if change == "calls":
            return calls(self.watched, windows, columns)
        if suspects is None:
            return levels(self.watched, windows, columns)
        sign = np.zeros(len(self.watched.names), dtype=np.int64)
        sign[[one.row for one in suspects]] = [one.sign for one in suspects]
        return levels(self.watched, windows, columns, sign)

    def _bistable(self, tracked: Tracked, columns: Sequence[int]) -> bool:
        """Whether the series jumps between two levels from run to run, and this is one of them."""
        if tracked.change != "level":
            return False
        before = slice(max(0, columns[0] - 1 - MODES_OF), columns[0] - 1)
        # what a confirmed finding did to it is no level between which it jumps
        own = self.watched.centred[tracked.row, before][self.normal[tracked.row, before]]
        now = self.watched.centred[tracked.row, list(columns)]
        return jumps_between(own, now, tracked.life.effect) is not None

    def _observe(self, tracked: Tracked, run: int, confirms: bool | None) -> None:
        """The next run of an open finding, and what its transitions do to the window of the series."""
        event = self._event(tracked, run, confirms=confirms, gone=self._gone(tracked, run))
        self._settle(tracked, tracked.take(event), run)

    def _settle(self, tracked: Tracked, transitions: Sequence[Transition], run: int) -> None:
        for transition in transitions:
            if transition.kind == "reopened":
                tracked.again = tracked.candidate[0]
            elif transition.kind == "cleared":
                self._join(tracked, range(tracked.first, run))
            elif transition.kind == "recovered":
                self._join(tracked, range(run - 2 * tracked.life.recovery_runs + 1, run))
            elif transition.kind == "invalid":
                self._join(tracked, [*tracked.baseline, *range(tracked.first, run)])
                self._forget_creep(tracked, run)
            elif transition.kind == "expected" or (transition.kind == "confirmed" and tracked.sign < 0):
                self._restart(tracked, run)
                self._forget_creep(tracked, run)
        if tracked.finding.state in ENDED | {"normal"} and self.open.get(tracked.key) is tracked:
            del self.open[tracked.key]

    def _join(self, tracked: Tracked, columns: Iterable[int]) -> None:
        if tracked.change in {"level", "calls"}:
            known = [column for column in columns if not math.isnan(self.watched.raw[tracked.row, column])]
            self.windows.join(tracked.row, known)
            self.normal[tracked.row, known] = True

    def _forget_creep(self, tracked: Tracked, run: int) -> None:
        """What a user settled of a slow creep is no level to creep away from any more."""
        if tracked.change == "creep":
            self.creeps_from[tracked.row] = run

    def _restart(self, tracked: Tracked, run: int) -> None:
        if tracked.change in {"level", "calls"}:
            known = ~np.isnan(self.watched.raw[tracked.row, tracked.began : run])
            columns = (tracked.began + np.flatnonzero(known)).tolist()
            self.windows.restart(tracked.row, columns[-self.windows.columns.shape[1] :], self.watched.centred)
            self.normal[tracked.row, columns] = True

    def _accept(self, run: int) -> None:
        """The run joins the windows of all series that are as they should be."""
        free = ~np.isnan(self.watched.raw[:, run])
        for tracked in self.open.values():
            if tracked.change in {"level", "calls"} and self._blocks(tracked):
                free[tracked.row] = False
        self.windows.accept(np.flatnonzero(free), run)
        self.normal[free, run] = True

    @staticmethod
    def _blocks(tracked: Tracked) -> bool:
        if tracked.sign < 0 and tracked.finding.state in NOTIFIED:
            return False
        return tracked.finding.state in _BLOCKING or tracked.suspected is not None

    def _accept_improvements(self, run: int) -> None:
        """What got better in an earlier version needs nobody's consent to be the baseline."""
        here = self.watched.runs[run]
        for tracked in list(self.open.values()):
            first = tracked.finding.first_bad_version
            if tracked.sign < 0 and tracked.finding.state in NOTIFIED and first is not None and here.version > first:
                tracked.take(Acted("expect", "rule", here.started_at_ns, _NEW_BASELINE))
                self.open.pop(tracked.key)

    def _creep(self, run: int) -> None:
        """With the last run of a version: which series have crept away from their best level."""
        runs = self.watched.runs
        if run + 1 < len(runs) and runs[run + 1].version == runs[run].version:
            return
        first = next(place for place in range(run, -1, -1) if place == 0 or runs[place - 1].version < runs[run].version)
        said = crept(self.watched, first, run, self.creeps_from)
        for tracked in [one for one in self.open.values() if one.change == "creep"]:
            ratio = said.of(tracked.row)["ratio"]
            event = self._observed(run, None if ratio is None else math.log1p(ratio))
            if ratio is not None:
                tracked.effect, tracked.last = math.log1p(ratio), run
            self._settle(tracked, tracked.take(replace(event, gone=self._gone(tracked, run))), run + 1)
        for row in np.flatnonzero(said.sign).tolist():
            key: Key = (row, 1, "creep")
            if key in self.open or any((row, 1, change) in self.open for change in ("level", "calls")):
                continue
            tracked = self._new(key, first, said.of(row))
            tracked.candidate = tuple(range(first, run + 1))
            tracked.effect, tracked.last = math.log1p(tracked.gates["ratio"]), run
            event = self._observed(first, tracked.effect)
            tracked.take(replace(event, screens=True, confirms=True))
            self.open[key] = tracked

    def _act(self, action: UserAction, run: int) -> None:
        same = [tracked for tracked in self.found if tracked.key == action.key]
        meant = [tracked for tracked in same if self.watched.runs[tracked.first].run_id == action.first_run]
        if not meant and all(here.run_id != action.first_run for here in self.watched.runs):
            meant = same[-1:]  # the run that raised it is excluded: it began with the next one
        for tracked in meant:
            self._settle(tracked, tracked.take(action.acted), run + 1)

    def _gone(self, tracked: Tracked, run: int) -> bool:
        """Whether no run of this version, so far, has the series."""
        if tracked.change == "presence":
            return False
        runs = self.watched.runs
        same = [place for place in range(run + 1) if runs[place].version == runs[run].version]
        told = [place for place in same if self._tells(tracked.row, place)]
        return bool(told) and bool(np.isnan(self.watched.raw[tracked.row, told]).all())

    def _tells(self, row: int, run: int) -> bool:
        """Whether a run says anything of the family of a series: what was not recorded is not gone."""
        return bool(self.telling[self.watched.families[row]][run])

    def _event(self, tracked: Tracked, run: int, **more: Any) -> Observed:
        effect = self._effect(tracked, run)
        if effect is not None:
            tracked.effect, tracked.last = effect, run
        return replace(self._observed(run, effect), **more)

    def _observed(self, run: int, effect: float | None) -> Observed:
        here = self.watched.runs[run]
        return Observed(here.run_id, here.version, here.started_at_ns, effect)

    def _effect(self, tracked: Tracked, run: int) -> float | None:
        """How much worse the run is than the baseline, as a log, in the direction of the finding; None: not known."""
        row, columns = tracked.row, list(tracked.baseline)
        value = self.watched.raw[row, run]
        if tracked.change == "presence":
            return float((not math.isnan(value)) == (tracked.sign > 0)) if self._tells(row, run) else None
        if tracked.change == "calls":
            before, now = self.watched.calls[row, columns], float(self.watched.calls[row, run])
            known = before[before > 0]
            return tracked.sign * math.log(now / float(np.median(known))) if len(known) and now > 0 else None
        if math.isnan(value):
            return None
        before = self.watched.centred[row, columns]
        level = float(np.log(before[~np.isnan(before)]).mean())
        effect = tracked.sign * (math.log(self.watched.centred[row, run]) - level)
        if self.watched.families[row][0] != RUN or not self.watched.is_clocked(row):
            return effect
        # of a whole run the part counts that the machine does not explain, as when it was found (JUDGEMENT 4.9)
        shared = float(self.watched.shared[run] - self.watched.shared[columns].mean())
        return min(effect, effect - tracked.sign * shared)
