"""Version by version: all runs of one are judged together, and the findings of those before live on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.detectors import rule
from tracker.detectors.life import (
    ENDED,
    NOTIFIED,
    RULE,
    Acted,
    Finding,
    Observed,
    Passed,
    Transition,
)
from tracker.detectors.within import MODES_OF
from tracker.judgement.families import RUN
from tracker.judgement.follow.acting import meant_by, places_of
from tracker.judgement.follow.baselines import Baselines
from tracker.judgement.follow.creeping import crept
from tracker.judgement.follow.further import further_step
from tracker.judgement.follow.jumps import reason_of_jump
from tracker.judgement.follow.rejected import why_not
from tracker.judgement.follow.tracked import (
    Key,
    Tracked,
    UserAction,
    dated_of,
    effect_of,
    good_runs,
    is_bistable,
    is_dated,
    is_gone,
    last_of_change,
    life_of,
    size_of,
    step_back,
)
from tracker.judgement.follow.tracks import Change, Said, calls, levels, presence
from tracker.judgement.follow.version_verdicts import VersionVerdicts, verdicts_of_version
from tracker.judgement.follow.watched import Watched, versions_of
from tracker.judgement.follow.windows import Windows
from tracker.results.verdicts import BACK

I64 = NDArray[np.int64]

_NEW_BASELINE: Final = "it held for its whole version and the next: the new baseline"
_JUMPS: Final = "it jumps between two levels from run to run"
_CREPT: Final = {
    "suspected": "worse than the best level before, though no step from version to version counts",
    "confirmed": "the runs of the version show it together",
}
"""Why a slow creep is a finding, by the kind of the transition: it is judged when its version is there."""
_CHANGED: Final = "changed against the accepted runs before its version"
_TOGETHER: Final = "the runs of the version show it together"
_NOT_YET: Final = "worse with a later version, whose runs do not show it by themselves yet"
_STEPPED: Final = "worse with a later version: that step is a finding of its own"
_UNDECIDED: Final = 100
"""Runs that may leave a suspicion undecided: its series is gone then, or hardly ever recorded."""


def follow(watched: Watched, actions: Iterable[UserAction] = (), *, now_ns: int | None = None) -> list[Tracked]:
    """All findings of a line, by the run that raised them, then by series. `actions` in the order of their time.

    `now_ns`: mutes whose end lies before are over; None: only runs make time pass.
    """
    follower = Follower(watched, actions)
    for runs in versions_of(watched.runs):
        follower.observe(runs)
    return follower.result(now_ns)


class Follower:
    """Where the following of a line stands: everything but the runs themselves that the next version is judged by.

    `baselines`: what each series is judged against. `found`: all findings; `open`: those that a run may still change,
    by key, and `further` steps of them. `snapshots`: the windows as they were before a run that raised suspicions.
    `verdicts`: of the versions that were observed, in order. `ended`: how many of a key ended before `found`; None: 0.
    """

    def __init__(self, watched: Watched, actions: Iterable[UserAction]) -> None:
        self.watched = watched
        self.baselines = Baselines(watched)
        self.found: list[Tracked] = []
        self.open: dict[Key, Tracked] = {}
        self.further: list[Tracked] = []
        self.snapshots: dict[int, I64] = {}
        self.verdicts: list[VersionVerdicts] = []
        self.actions: dict[int, list[UserAction]] = {}
        self.ended: dict[Key, int] | None = None
        asked = list(actions)
        for place, action in zip(places_of(asked, watched.runs), asked, strict=True):
            self.actions.setdefault(place, []).append(action)

    def result(self, now_ns: int | None) -> list[Tracked]:
        """All findings, after the mutes that are over by `now_ns`; see `follow`."""
        for tracked in self.found if now_ns is not None else ():
            end = tracked.finding.until_ns
            if tracked.finding.state == "muted" and end is not None and now_ns is not None and end <= now_ns:
                tracked.take(Passed(end))
        return sorted(self.found, key=lambda tracked: (tracked.first, tracked.row, tracked.sign, tracked.change))

    def observe(self, runs: range) -> None:
        """Everything that a version says, whose runs these are: all of them together."""
        self._give_up(runs)
        columns = list(runs)
        said: dict[Change, Said] = {
            "level": levels(self.watched, self.baselines.windows, columns, whole=True),
            "calls": calls(self.watched, self.baselines.windows, columns),
            "presence": presence(self.watched, runs.start, columns, self.baselines.comes_from),
        }
        self._doubt(runs, said["level"])
        self.verdicts.append(verdicts_of_version(self.watched, self.baselines.windows, runs, **said))
        confirmed, because = self._confirmed(runs)
        for tracked in self.further.copy():
            self._observe(tracked, runs)
        for tracked in list(self.open.values()):
            if tracked.change != "creep":
                self._observe(tracked, runs, confirmed.get(tracked.key), because.get(tracked.key, ""))
        for change in ("level", "calls", "presence"):
            self._raise(runs, change, said)
        self._creep(runs)
        self._accept_improvements(runs)
        for run in runs:
            self.baselines.accept(run, (*self.open.values(), *self.further))
        for run in runs:
            for action in self.actions.get(run, ()):
                self._act(action, runs.stop)
        for tracked in [one for one in (*self.open.values(), *self.further) if is_dated(one, runs.stop)]:
            tracked.dated = dated_of(self.watched, tracked)
        self.snapshots = {
            place: columns
            for place, columns in self.snapshots.items()
            if any(tracked.suspected == place for tracked in self.open.values())
        }

    def _give_up(self, runs: range) -> None:
        """Suspicions that too many runs have left undecided are none."""
        for tracked in list(self.open.values()):
            place, state = tracked.suspected, tracked.finding.state
            if place is None or runs.start - place <= _UNDECIDED:
                continue
            tracked.suspected = None
            if (tracked.finding.vanished_before if state == "vanished" else state) == "recovered":
                self.baselines.join(tracked, range(place, runs.start))
                continue
            over = replace(self._observed([runs.start - 1], None), confirms=False, because=f"{_UNDECIDED} runs")
            self._settle(tracked, tracked.take(over), range(runs.start, runs.start))

    def _doubt(self, runs: range, level: Said) -> None:
        """What jumps between two levels in older runs has not changed when it is on one of them again."""
        first = max(0, runs.start - MODES_OF)
        device_timed = all(self.watched.runs[run].device_timed for run in runs)
        for row in np.flatnonzero(level.sign).tolist():
            window = self.baselines.windows.columns[row]
            normal = first + np.flatnonzero(self.baselines.normal[row, first : runs.start])
            reason = reason_of_jump(
                self.watched, row, normal.tolist(), runs, window[window >= 0].tolist(), device_timed=device_timed
            )
            if reason:
                level.sign[row] = 0
                level.gates["verdict"][row], level.gates["reason"][row] = rule.INCONCLUSIVE, reason

    def _raise(self, runs: range, change: Change, said: dict[Change, Said]) -> None:
        """Opens a finding for every series that these runs show to have changed; a suspicion where one run does."""
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
            gates = said[change].of(row)
            enough = sum(self.watched.tells(row, run) for run in runs) >= self.watched.thresholds.deciding
            if enough and gates["verdict"] != rule.SUSPECT:
                self._found(key, runs, gates, known)
            else:
                self._suspect(key, runs, gates, known)

    def _suspect(self, key: Key, runs: range, gates: dict[str, Any], known: Tracked | None) -> None:
        """Too few runs to decide are suspicious; `known`: a finding of the key that recovered."""
        run = next(run for run in runs if self.watched.tells(key[0], run))
        run = next((run for run in runs if not math.isnan(self.watched.raw[key[0], run])), run)
        self.snapshots.setdefault(run, self.baselines.windows.columns.copy())
        if known is not None:
            known.suspected = known.suspected if known.suspected is not None else run
            return
        tracked = self._new(key, run, gates)
        tracked.suspected = run
        tracked.take(self._event(tracked, [run], screens=True))
        self.open[key] = tracked

    def _found(self, key: Key, runs: range, gates: dict[str, Any], known: Tracked | None) -> None:
        """The runs of the version show it together; `known`: a finding of the key that recovered."""
        windows = self.baselines.windows.columns
        telling = [run for run in runs if self.watched.tells(key[0], run)]
        there = [run for run in telling if not math.isnan(self.watched.raw[key[0], run])] or telling
        tracked = self._new(key, there[0], gates)
        tracked.candidate = tuple(telling)
        tracked.step_baseline = self.baselines.of_step(windows, runs.start)
        back_at = self.baselines.level_of_before(tracked, there)
        if back_at:
            gates["reason"] = f"{gates['reason']}; {BACK}{back_at}"
            self.verdicts[-1].columns["reason"][key[0]] = gates["reason"]
        size = size_of(self.watched, tracked, there)
        if known is not None and self._is_again(known, size):
            tracked.finding = known.finding
        tracked.take(self._event(tracked, there[:1], screens=True, because=_CHANGED))
        transitions = tracked.take(self._event(tracked, there, confirms=True, size=size, because=_TOGETHER))
        self.open[key] = tracked
        self._settle(tracked, transitions, runs)

    def _comes(self, row: int, said: Said) -> bool:
        """Whether a series has just come or gone, as far as anybody knows yet."""
        own = (self.open.get((row, sign, "presence")) for sign in (1, -1))
        return bool(said.sign[row]) or any(one is not None and one.finding.state == "suspect" for one in own)

    def _new(self, key: Key, run: int, gates: dict[str, Any], baseline: tuple[int, ...] | None = None) -> Tracked:
        """`baseline`: the runs that it is measured against; None: those of its window."""
        row, sign, change = key
        if baseline is None:
            baseline = self.baselines.of(self.baselines.windows.columns, row, change, run)
        # what was a step of one that is over now is a change of its own
        steps = {id(one) for one in self.further if one.key == key and one.first == run}
        self.found, self.further = ([one for one in own if id(one) not in steps] for own in (self.found, self.further))
        before = Finding(number=self._count_of(key))
        tracked = Tracked(row, sign, change, run, baseline, (run,), gates, life_of(self.watched, key, run), before)
        self.found.append(tracked)
        return tracked

    def _count_of(self, key: Key) -> int:
        """How many findings of a key there were."""
        numbers = [old.finding.number for old in self.found if old.key == key]
        return max(numbers, default=0) if self.ended is None else max(*numbers, self.ended.get(key, 0), 0)

    def _decides(self, tracked: Tracked, runs: range) -> bool:
        """Whether a suspicion is decided with the version of these runs: by as many runs as are wanted since it was
        raised, or by those of the version alone where they are enough.
        """
        first = runs.start if tracked.suspected is None else tracked.suspected
        own = [run for run in runs if effect_of(self.watched, tracked, run) is not None]
        since = sum(self.watched.tells(tracked.row, place) for place in range(first + 1, runs.stop))
        limits = self.watched.thresholds
        return bool(own) and (len(own) >= limits.deciding or since >= limits.confirm)

    def _confirmed(self, runs: range) -> tuple[dict[Key, bool], dict[Key, str]]:
        """What the confirming runs say of the suspicions that have them all with this version, and why they say no."""
        due = [one for one in self.open.values() if one.suspected is not None and self._decides(one, runs)]
        found: dict[Key, bool] = {}
        because: dict[Key, str] = {}
        run = runs.stop - 1
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
                        self.baselines.join(one, range(place, runs.start))
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
        return _JUMPS if is_bistable(self.watched, tracked, columns[1:], self.baselines.normal) else None

    def _again(self, old: Tracked, place: int, run: int) -> Tracked:
        """A finding that recovered, and the run `place` began another change of its series: one of its own, measured
        against the level that the old one recovered to. It is the old one reopened where it is as large as that was.
        """
        key = old.key
        tracked = self._new(key, place, {})
        tracked.baseline = self.baselines.of(self.snapshots[place], old.row, old.change, place)
        if self._is_again(old, size_of(self.watched, tracked, range(place + 1, run + 1))):
            tracked.finding = old.finding
        tracked.take(self._event(tracked, [place], screens=True))
        self.open[key] = tracked
        return tracked

    def _is_again(self, old: Tracked, size: float | None) -> bool:
        """Whether another change of a series is as large as the one that recovered; a whole run has many causes."""
        if self.watched.families[old.row][0] == RUN:
            return False
        return abs((size or 0.0) - old.finding.size) <= old.life.worse_share * old.finding.size

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

    def _observe(self, tracked: Tracked, runs: range, confirms: bool | None = None, because: str = "") -> None:
        """The next version of an open finding, and what its transitions do to the window of the series."""
        last = runs.stop - 1
        turned = step_back(self.watched, tracked, last)
        size, tracked.turned = (0.0, tracked.turned) if turned is None else turned
        # of the newest version more runs may come
        least = 1 + self.watched.thresholds.confirm if runs.stop == len(self.watched.runs) else 1
        gone = is_gone(self.watched, tracked, last, least)
        event = self._event(
            tracked, runs, confirms=confirms, because=because, gone=gone, opposite_step=size,
            cleared=self._is_cleared(tracked, runs),
        )  # fmt: skip
        if tracked.finding.state == "recovered" and tracked.suspected is not None:
            return  # what it is, the runs that confirm the suspicion decide
        if confirms:
            event = replace(event, size=size_of(self.watched, tracked, tracked.candidate[1:]))
        self._settle(tracked, tracked.take(event), runs)

    def _is_cleared(self, tracked: Tracked, runs: range) -> bool:
        """Whether a version that has runs enough is no longer called changed, and is nearer to the level of before."""
        if tracked.change != "level" or not tracked.finding.size:
            return False
        own = [effect for run in runs if (effect := effect_of(self.watched, tracked, run)) is not None]
        if len(own) < self.watched.thresholds.deciding or sum(own) / len(own) >= 0.5 * tracked.finding.size:
            return False
        return self.verdicts[-1].columns["verdict"][tracked.row] not in rule.CHANGED

    def _settle(self, tracked: Tracked, transitions: Sequence[Transition], runs: range) -> None:
        """What transitions do to the window of the series; `runs`: of the version that made them."""
        for transition in transitions:
            if transition.kind == "worsened":
                self._step_further(tracked, transition, runs)
            elif transition.kind == "cleared":
                self.baselines.join(tracked, range(tracked.first, runs.start))
            elif transition.kind == "recovered":
                self.baselines.join(tracked, good_runs(self.watched, tracked, runs))
                self._say_recovered(tracked)
            elif transition.kind == "invalid":
                self.baselines.take_back(tracked, transition.source, runs.stop)
                self.baselines.forget_creep(tracked, runs.stop)
            elif transition.kind == "expected":
                self.baselines.restart(tracked, runs.stop)
                self.baselines.forget_creep(tracked, runs.stop)
                if tracked.change == "presence" and transition.who != RULE:
                    self.baselines.comes_from[tracked.row] = self.watched.place(tracked.first)
            if tracked.change == "presence" and tracked.sign > 0 and transition.kind in {"confirmed", "reopened"}:
                self.baselines.restart(tracked, runs.start)
        state = tracked.finding.state
        if state in ENDED | {"normal"} and self.open.get(tracked.key) is tracked:
            del self.open[tracked.key]
        if tracked.further and state in ENDED | {"recovered"}:
            self.further = [one for one in self.further if one is not tracked]
            whole = self.open.get(tracked.key)
            if whole is not None:  # the next step from there is told again
                whole.finding = replace(whole.finding, notified_level=whole.finding.size)

    def _say_recovered(self, tracked: Tracked) -> None:
        """In the verdict of the version: it is not merely unchanged against the level of before."""
        runs, good = self.watched.runs, max(tracked.baseline, default=None)
        if tracked.change not in ("level", "calls") or good is None:
            return
        what = "regression" if tracked.sign > 0 else "improvement"
        reason = f"{BACK}{runs[good].label}: the {what} of {runs[tracked.first].label} is taken back"
        if self.verdicts[-1].columns["verdict"][tracked.row] in (*rule.CALM, rule.INCONCLUSIVE, rule.TOO_FEW_RUNS):
            self.verdicts[-1].columns["reason"][tracked.row] = reason

    def _step_further(self, tracked: Tracked, worsened: Transition, runs: range) -> None:
        """What got worse with a later version is a finding of that version; the one of before lives on, untold."""
        step = further_step(self.watched, tracked, runs)
        if step is None:
            later = self.watched.runs[runs.start].version > (tracked.finding.first_bad_version or 0)
            if later:  # whether that version made it, more runs of it will show
                quiet = replace(worsened, kind="stepped", notifies=False, reason=_NOT_YET)
                tracked.transitions = [quiet if row is worsened else row for row in tracked.transitions]
            return
        stepped = replace(worsened, kind="stepped", notifies=False, reason=_STEPPED)
        tracked.transitions = [stepped if row is worsened else row for row in tracked.transitions]
        if tracked.stepped is not None and step.first <= tracked.stepped:
            return  # that step is found already: from here, or from another one of these
        for one in (*self.open.values(), *self.further, step):
            if one.key == step.key:
                one.stepped = step.first
        step.finding = Finding(number=self._count_of(step.key))
        self.found.append(step)
        self.further.append(step)
        step.step_baseline = tuple(
            at for at in self.baselines.of_step(self.baselines.windows.columns, runs.start) if at < step.first
        )
        step.take(self._event(step, [step.first], screens=True))
        step.take(self._event(step, step.candidate, confirms=True))

    def _accept_improvements(self, runs: range) -> None:
        """What got better, and held for its whole version and this one, needs nobody's consent to be the baseline."""
        here = self.watched.runs[runs.start]
        for tracked in list(self.open.values()):
            first = tracked.finding.first_bad_version
            if tracked.sign > 0 or tracked.finding.state not in NOTIFIED or first is None or here.version <= first:
                continue
            own = [run for run in runs if effect_of(self.watched, tracked, run) is not None]
            if not own or tracked.finding.good_runs:
                continue
            accepted = tracked.take(Acted("expect", RULE, here.started_at_ns, _NEW_BASELINE))
            # the runs of this version join with all others
            self._settle(tracked, accepted, range(runs.start, runs.start))

    def _creep(self, runs: range) -> None:
        """Which series have crept away from their best level by this version."""
        first, run = runs.start, runs.stop - 1
        said, best = crept(self.watched, first, run, self.baselines.creeps_from)
        for tracked in [one for one in self.open.values() if one.change == "creep"]:
            ratio = said.of(tracked.row)["ratio"]
            event = self._observed([run], None if ratio is None else math.log1p(ratio))
            self._measure(tracked, runs)
            self._settle(tracked, tracked.take(replace(event, gone=is_gone(self.watched, tracked, run))), runs)
        for row in np.flatnonzero(said.sign).tolist():
            key: Key = (row, 1, "creep")
            if key in self.open or any((row, 1, change) in self.open for change in ("level", "calls")):
                continue
            tracked = self._new(key, first, said.of(row), best[row])
            tracked.candidate = tuple(runs)
            self._measure(tracked, tracked.candidate)
            size = math.log1p(tracked.gates["ratio"])
            tracked.take(replace(self._observed([first], size), screens=True))
            tracked.take(replace(self._observed([run], size), confirms=True))
            tracked.transitions = [replace(row, reason=_CREPT[row.kind]) for row in tracked.transitions]
            self.open[key] = tracked

    def _measure(self, tracked: Tracked, columns: Iterable[int]) -> None:
        """The effect of the last one of these runs that has the series."""
        for run in columns:
            effect = effect_of(self.watched, tracked, run)
            if effect is not None:
                tracked.effect, tracked.last = effect, run

    def _act(self, action: UserAction, stop: int) -> None:
        """What a user did, after the version whose last run is the one before `stop`."""
        for tracked in meant_by(action, self.found, self.watched.runs, is_whole=self.ended is None):
            self._settle(tracked, tracked.take(action.acted), range(stop, stop))

    def _event(self, tracked: Tracked, columns: Sequence[int], **more: Any) -> Observed:
        """What these runs of one version say of a finding: their mean effect."""
        known = [(run, effect) for run in columns if (effect := effect_of(self.watched, tracked, run)) is not None]
        if not known:
            return replace(self._observed(columns, None), **more)
        tracked.last, tracked.effect = known[-1]
        mean = sum(effect for _, effect in known) / len(known)
        return replace(self._observed([run for run, _ in known], mean), **more)

    def _observed(self, columns: Sequence[int], effect: float | None) -> Observed:
        """What a version says is dated to the run with which there were enough of it: more runs do not say it again."""
        here = self.watched.runs[columns[min(len(columns), self.watched.thresholds.deciding) - 1]]
        return Observed(here.run_id, here.version, here.started_at_ns, effect, runs=len(columns))
