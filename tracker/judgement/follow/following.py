"""Run by run: suspicions are raised, confirmed or cleared, and findings live on (JUDGEMENT 3 to 6)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.detectors.life import (
    ENDED,
    NOTIFIED,
    RULE,
    Acted,
    Finding,
    Observed,
    Over,
    Passed,
    Transition,
)
from tracker.judgement.follow.baselines import Baselines
from tracker.judgement.follow.creeping import crept
from tracker.judgement.follow.further import further_step
from tracker.judgement.follow.rejected import why_not
from tracker.judgement.follow.tracked import (
    Key,
    Tracked,
    UserAction,
    effect_of,
    good_runs,
    is_bistable,
    is_gone,
    last_of_change,
    life_of,
    size_of,
    step_back,
)
from tracker.judgement.follow.tracks import Change, Said, calls, levels, presence
from tracker.judgement.follow.watched import Watched
from tracker.judgement.follow.windows import Windows

I64 = NDArray[np.int64]

_NEW_BASELINE: Final = "what got better is the new baseline"
_CREPT: Final = {
    "suspected": "worse than the best level before, though no step from version to version counts",
    "confirmed": "the runs of the version show it together",
}
"""Why a slow creep is a finding, by the kind of the transition: it is judged when its version is there."""
_STEPPED: Final = "worse with a later version: that step is a finding of its own"


def follow(watched: Watched, actions: Iterable[UserAction] = (), *, now_ns: int | None = None) -> list[Tracked]:
    """All findings of a line, by the run that raised them, then by series. `actions` in the order of their time.

    `now_ns`: mutes whose end lies before are over; None: only runs make time pass.
    """
    follower = Follower(watched, actions)
    for run in range(len(watched.runs)):
        follower.observe(run)
    return follower.result(now_ns)


class Follower:
    """Where the following of a line stands: everything but the runs themselves that the next run is judged by.

    `baselines`: what each series is judged against. `found`: all findings; `open`: those that a run may still change,
    by key, and `further` steps of them. `snapshots`: the windows as they were before a run that raised suspicions.
    """

    def __init__(self, watched: Watched, actions: Iterable[UserAction]) -> None:
        self.watched = watched
        self.baselines = Baselines(watched)
        self.found: list[Tracked] = []
        self.open: dict[Key, Tracked] = {}
        self.further: list[Tracked] = []
        self.snapshots: dict[int, I64] = {}
        self.actions: dict[int, list[UserAction]] = {}
        for action in actions:
            self.actions.setdefault(self.place(action), []).append(action)

    def result(self, now_ns: int | None) -> list[Tracked]:
        """All findings, after the mutes that are over by `now_ns`; see `follow`."""
        for tracked in self.found if now_ns is not None else ():
            end = tracked.finding.until_ns
            if tracked.finding.state == "muted" and end is not None and now_ns is not None and end <= now_ns:
                tracked.take(Passed(end))
        return sorted(self.found, key=lambda tracked: (tracked.first, tracked.row, tracked.sign, tracked.change))

    def place(self, action: UserAction) -> int:
        """The run after which an action counts: the last one here of those that were there when it was made, since runs
        are numbered as they come; so other runs may be excluded, or put into another order, without losing it.
        """
        there = [place for place, run in enumerate(self.watched.runs) if run.run_id <= (action.after_run or 0)]
        return max(there, default=len(self.watched.runs) - 1)

    def observe(self, run: int) -> None:
        """Everything that the run in this column says."""
        self._accept_improvements(run)
        self._end_version(run)
        said = {
            "level": levels(self.watched, self.baselines.windows, [run]),
            "calls": calls(self.watched, self.baselines.windows, [run]),
            "presence": presence(self.watched, run, [run], self.baselines.comes_from),
        }
        confirmed, because = self._confirmed(run)
        for tracked in self.further.copy():
            self._observe(tracked, run)
        for tracked in list(self.open.values()):
            if tracked.change != "creep":
                self._observe(tracked, run, confirmed.get(tracked.key), because.get(tracked.key, ""))
        for change in ("level", "calls", "presence"):
            self._suspect(run, change, said)
        self._creep(run)
        self.baselines.accept(run, (*self.open.values(), *self.further))
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
            if change != "presence" and self._comes(row, said["presence"]):
                continue  # the level of when it was there before is no measure for what was not there any more
            known = self.open.get(key)
            if known is not None and known.finding.state != "recovered":
                continue
            self.snapshots.setdefault(run, self.baselines.windows.columns.copy())
            if known is not None:
                known.suspected = known.suspected if known.suspected is not None else run
                continue
            tracked = self._new(key, run, said[change].of(row))
            tracked.suspected = run
            tracked.take(self._event(tracked, run, screens=True))
            self.open[key] = tracked

    def _comes(self, row: int, said: Said) -> bool:
        """Whether a series has just come or gone, as far as anybody knows yet."""
        own = (self.open.get((row, sign, "presence")) for sign in (1, -1))
        return bool(said.sign[row]) or any(one is not None and one.finding.state == "suspect" for one in own)

    def _new(self, key: Key, run: int, gates: dict[str, Any], baseline: tuple[int, ...] | None = None) -> Tracked:
        """`baseline`: the runs that it is measured against; None: those of its window."""
        row, sign, change = key
        if baseline is None:
            baseline = self.baselines.of(self.baselines.windows.columns, row, change, run)
        before = Finding(number=self._count_of(key))
        tracked = Tracked(row, sign, change, run, baseline, (run,), gates, life_of(self.watched, key, run), before)
        self.found.append(tracked)
        return tracked

    def _count_of(self, key: Key) -> int:
        """How many findings of a key there were."""
        return max((old.finding.number for old in self.found if old.key == key), default=0)

    def _runs_since(self, tracked: Tracked, run: int) -> int:
        """How many runs after the suspicion, up to this one, tell of the series."""
        first = run if tracked.suspected is None else tracked.suspected
        return sum(self.watched.tells(tracked.row, place) for place in range(first + 1, run + 1))

    def _confirmed(self, run: int) -> tuple[dict[Key, bool], dict[Key, str]]:
        """What the confirming runs say of the suspicions that have them all with this run, and why they say no."""
        due = [
            one
            for one in self.open.values()
            if one.suspected is not None
            and self._runs_since(one, run) >= self.watched.thresholds.confirm
            and effect_of(self.watched, one, run) is not None  # what the run does not tell of waits for one that does
        ]
        found: dict[Key, bool] = {}
        because: dict[Key, str] = {}
        for place, change in dict.fromkeys((one.suspected or 0, one.change) for one in due):
            own = [one for one in due if one.suspected == place and one.change == change]
            said = self._decide(change, place, list(range(place + 1, run + 1)), own, every=False)
            all_runs = self._decide(change, place, list(range(place, run + 1)), own, every=True)
            shown = {(place, run): all_runs}
            for one in own:
                why = self._why_not(one, said, all_runs, range(place, run + 1))
                found[one.key] = why is None
                one.suspected = None
                if why is not None:
                    because[one.key] = why
                    if one.finding.state == "recovered":
                        self.baselines.join(one, range(place, run))
                    continue
                last = last_of_change(self.watched, one, place, run)
                if (place, last) not in shown:
                    shown[place, last] = self._decide(change, place, list(range(place, last + 1)), own, every=True)
                if one.finding.state == "recovered":
                    one = self._again(one, place, last)  # noqa: PLW2901 what follows is of the second time
                one.gates = shown[place, last].of(one.row)
                # a run that tells nothing of the series, recorded differently, decided nothing
                one.candidate = tuple(at for at in range(place, last + 1) if self.watched.tells(one.row, at))
                one.step_baseline = self.baselines.of_step(self.snapshots[place], place)
        return found, because

    def _why_not(self, tracked: Tracked, confirming: Said, whole: Said, columns: range) -> str | None:
        """Why `columns` do not show the change, the first of which raised it: by what the others say, or all; None:
        they show it.
        """
        why = why_not(self.watched, tracked, confirming, columns[1:])
        if why is not None:
            return why
        why = why_not(self.watched, tracked, whole, columns)
        if why is not None:
            return f"together with the run that raised it: {why}" if why else ""
        bistable = is_bistable(self.watched, tracked, columns[1:], self.baselines.normal)
        return "it jumps between two levels from run to run" if bistable else None

    def _again(self, old: Tracked, place: int, run: int) -> Tracked:
        """A finding that recovered, and the run `place` began another change of its series: one of its own, measured
        against the level that the old one recovered to. It is the old one reopened where it is as large as that was.
        """
        key = old.key
        tracked = self._new(key, place, {})
        tracked.baseline = self.baselines.of(self.snapshots[place], old.row, old.change, place)
        size = size_of(self.watched, tracked, range(place + 1, run + 1)) or 0.0
        if abs(size - old.finding.size) <= old.life.worse_share * old.finding.size:
            tracked.finding = old.finding
        tracked.take(self._event(tracked, place, screens=True))
        self.open[key] = tracked
        return tracked

    def _decide(self, change: Change, place: int, columns: list[int], own: Sequence[Tracked], *, every: bool) -> Said:
        """What `columns` say, against the windows as they were before the run `place`: of the suspects `own` alone, or
        of `every` series of their families.
        """
        windows = Windows(len(self.watched.names))
        windows.columns = self.snapshots[place]
        windows.variance, windows.freedom = self.baselines.windows.variance, self.baselines.windows.freedom
        families = {self.watched.families[one.row] for one in own}
        if change == "presence":
            return presence(self.watched, place, columns, self.baselines.comes_from, families)
        if change == "calls":
            return calls(self.watched, windows, columns, families)
        if every:
            return levels(self.watched, windows, columns, families=families)
        sign = np.zeros(len(self.watched.names), dtype=np.int64)
        sign[[one.row for one in own]] = [one.sign for one in own]
        return levels(self.watched, windows, columns, sign)

    def _observe(self, tracked: Tracked, run: int, confirms: bool | None = None, because: str = "") -> None:
        """The next run of an open finding, and what its transitions do to the window of the series."""
        turned = step_back(self.watched, tracked, run)
        size, tracked.turned = (0.0, tracked.turned) if turned is None else turned
        gone = is_gone(self.watched, tracked, run, 1 + self.watched.thresholds.confirm)
        event = self._event(tracked, run, confirms=confirms, because=because, gone=gone, opposite_step=size)
        if tracked.finding.state == "recovered" and tracked.suspected is not None:
            return  # what it is, the runs that confirm the suspicion decide
        if confirms:
            event = replace(event, size=size_of(self.watched, tracked, tracked.candidate[1:]))
        self._settle(tracked, tracked.take(event), run)

    def _settle(self, tracked: Tracked, transitions: Sequence[Transition], run: int) -> None:
        for transition in transitions:
            if transition.kind == "worsened":
                self._step_further(tracked, transition, run)
            elif transition.kind == "cleared":
                self.baselines.join(tracked, range(tracked.first, run))
            elif transition.kind == "recovered":
                self.baselines.join(tracked, good_runs(self.watched, tracked, run))
            elif transition.kind == "invalid":
                self.baselines.take_back(tracked, transition.source, run)
                self.baselines.forget_creep(tracked, run)
            elif transition.kind == "expected" or (transition.kind == "confirmed" and tracked.sign < 0):
                self.baselines.restart(tracked, run)
                self.baselines.forget_creep(tracked, run)
                if tracked.change == "presence" and transition.kind == "expected" and transition.who != RULE:
                    self.baselines.comes_from[tracked.row] = tracked.first
            if tracked.change == "presence" and tracked.sign > 0 and transition.kind in {"confirmed", "reopened"}:
                self.baselines.restart(tracked, run)
        state = tracked.finding.state
        if state in ENDED | {"normal"} and self.open.get(tracked.key) is tracked:
            del self.open[tracked.key]
        if tracked.further and state in ENDED | {"recovered"}:
            self.further = [one for one in self.further if one is not tracked]
            whole = self.open.get(tracked.key)
            if whole is not None:  # the next step from there is told again
                whole.finding = replace(whole.finding, notified_level=whole.finding.size)

    def _step_further(self, tracked: Tracked, worsened: Transition, run: int) -> None:
        """What got worse with a later version is a finding of that version; the one of before lives on, untold."""
        step = further_step(self.watched, tracked, run)
        if step is None:
            return
        step.finding = Finding(number=self._count_of(step.key))
        self.found.append(step)
        self.further.append(step)
        step.step_baseline = tuple(
            at for at in self.baselines.of_step(self.baselines.windows.columns, run) if at < step.first
        )
        step.take(self._event(step, step.first, screens=True))
        step.take(self._event(step, run, confirms=True))
        stepped = replace(worsened, kind="stepped", notifies=False, reason=_STEPPED)
        tracked.transitions = [stepped if row is worsened else row for row in tracked.transitions]

    def _accept_improvements(self, run: int) -> None:
        """What got better in an earlier version needs nobody's consent to be the baseline."""
        here = self.watched.runs[run]
        for tracked in list(self.open.values()):
            first = tracked.finding.first_bad_version
            if tracked.sign < 0 and tracked.finding.state in NOTIFIED and first is not None and here.version > first:
                tracked.take(Acted("expect", RULE, here.started_at_ns, _NEW_BASELINE))
                self.open.pop(tracked.key)

    def _end_version(self, run: int) -> None:
        """With the first run of a version: which findings have recovered by the one before, or have no series in it."""
        here, last = self.watched.runs[run], self.watched.runs[max(0, run - 1)]
        if here.version == last.version:
            return
        for tracked in (*self.further, *self.open.values()):
            if tracked.change != "creep":  # creep is seen version by version
                gone = is_gone(self.watched, tracked, run - 1)
                over = tracked.take(Over(last.run_id, last.version, here.started_at_ns, gone))
                self._settle(tracked, over, run)

    def _creep(self, run: int) -> None:
        """With the last run of a version: which series have crept away from their best level."""
        runs = self.watched.runs
        if run + 1 < len(runs) and runs[run + 1].version == runs[run].version:
            return
        first = next(place for place in range(run, -1, -1) if place == 0 or runs[place - 1].version < runs[run].version)
        said, best = crept(self.watched, first, run, self.baselines.creeps_from)
        for tracked in [one for one in self.open.values() if one.change == "creep"]:
            ratio = said.of(tracked.row)["ratio"]
            event = self._observed(run, None if ratio is None else math.log1p(ratio))
            self._measure(tracked, range(first, run + 1))
            self._settle(tracked, tracked.take(replace(event, gone=is_gone(self.watched, tracked, run))), run + 1)
        for row in np.flatnonzero(said.sign).tolist():
            key: Key = (row, 1, "creep")
            if key in self.open or any((row, 1, change) in self.open for change in ("level", "calls")):
                continue
            tracked = self._new(key, first, said.of(row), best[row])
            tracked.candidate = tuple(range(first, run + 1))
            self._measure(tracked, tracked.candidate)
            size = math.log1p(tracked.gates["ratio"])
            tracked.take(replace(self._observed(first, size), screens=True))
            tracked.take(replace(self._observed(run, size), confirms=True))
            tracked.transitions = [replace(row, reason=_CREPT[row.kind]) for row in tracked.transitions]
            self.open[key] = tracked

    def _measure(self, tracked: Tracked, columns: Iterable[int]) -> None:
        """The effect of the last one of these runs that has the series."""
        for run in columns:
            effect = effect_of(self.watched, tracked, run)
            if effect is not None:
                tracked.effect, tracked.last = effect, run

    def _act(self, action: UserAction, run: int) -> None:
        same = [tracked for tracked in self.found if tracked.key == action.key]
        meant = [tracked for tracked in same if self.watched.runs[tracked.first].run_id == action.first_run]
        if not meant and all(here.run_id != action.first_run for here in self.watched.runs):
            meant = same[-1:]  # the run that raised it is excluded: it began with the next one
        for tracked in meant:
            self._settle(tracked, tracked.take(action.acted), run + 1)

    def _event(self, tracked: Tracked, run: int, **more: Any) -> Observed:
        effect = effect_of(self.watched, tracked, run)
        if effect is not None:
            tracked.effect, tracked.last = effect, run
        return replace(self._observed(run, effect), **more)

    def _observed(self, run: int, effect: float | None) -> Observed:
        here = self.watched.runs[run]
        return Observed(here.run_id, here.version, here.started_at_ns, effect)
