"""The life of a finding: one series, one direction, from the first suspicion to its end (JUDGEMENT 6).

A pure machine: `step` takes a finding and one event and gives the finding after it, with a row per transition that says
why. The same events always give the same rows, so that states need not be stored to be known, and another rule can be
run over the same history.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from tracker.detectors import rule
from tracker.detectors.life_parts import (
    ENDED,
    NOTIFIED,
    OPEN,
    RULE,
    TRANSITIONS,
    Acted,
    Action,
    Event,
    Finding,
    LifeRule,
    Observed,
    Passed,
    State,
    Transition,
)

__all__ = [
    "ENDED", "NOTIFIED", "OPEN", "RULE", "TRANSITIONS", "Acted", "Action", "Event", "Finding", "LifeRule", "Observed",
    "Passed", "State", "Transition", "refusal", "step",
]  # fmt: skip

_CALM: Final = "below half of the smallest change that counts, or a quarter of its size"


def step(finding: Finding, event: Event, life: LifeRule) -> tuple[Finding, list[Transition]]:
    """The finding after one event, and the transitions it made: none, one, or a few in a row."""
    walk = _Walk(finding, event, life)
    if finding.state == "muted":
        walk.end_of_mute()
    if isinstance(event, Acted):
        walk.acted(event)
    elif isinstance(event, Observed):
        walk.observed(event)
    return walk.finding, walk.rows


_ACTED: Final[dict[str, tuple[State, str]]] = {
    "ack": ("acknowledged", "acknowledged"),
    "expect": ("expected", "expected"),
    "invalid": ("invalid", "invalid"),
}
_CAN: Final[dict[Action, frozenset[str]]] = {
    "ack": NOTIFIED - {"acknowledged"},
    "expect": OPEN,
    "invalid": frozenset(TRANSITIONS) - {"invalid", "normal"},
    "unmute": frozenset({"muted"}),
    "mute": OPEN,
}
"""From which states an action leads on."""


def refusal(state: State, event: Acted) -> str | None:
    """Why a finding in this state cannot be changed so; None where it can."""
    if state not in _CAN[event.action]:
        return f"a finding that is {state} cannot be changed by {event.action}"
    lies_ahead = event.until_version is not None or (
        event.until_ns is not None and event.when_ns is not None and event.until_ns > event.when_ns
    )
    return "a mute needs an end that lies ahead" if event.action == "mute" and not lies_ahead else None


class _Walk:
    """One event on its way through the machine: the finding so far, and the rows so far."""

    def __init__(self, finding: Finding, event: Event, life: LifeRule) -> None:
        self.finding, self.event, self.life = finding, event, life
        self.rows: list[Transition] = []

    def to(self, target: State, kind: str, reason: str, *, notifies: bool = False, **changes: Any) -> None:
        """One transition; `changes` are fields of the finding."""
        event, source = self.event, self.finding.state
        if target != source and target not in TRANSITIONS[source]:
            raise AssertionError(f"no transition leads from {source} to {target}")
        self.finding = replace(self.finding, state=target, told=self.finding.told or notifies, **changes)
        self.rows.append(
            Transition(
                self.finding.number,
                source,
                target,
                kind,
                event.who if isinstance(event, Acted) else RULE,
                event.when_ns,
                event.run if isinstance(event, Observed) else None,
                self.life.version,
                reason,
                notifies,
            )
        )

    def end_of_mute(self) -> None:
        """Unmutes when its time or version has come."""
        finding, event = self.finding, self.event
        if finding.until_ns is not None and event.when_ns is not None and event.when_ns >= finding.until_ns:
            self.unmute("its time is over")
        elif (
            finding.until_version is not None and isinstance(event, Observed) and event.version >= finding.until_version
        ):
            self.unmute("the version it was muted until is here")

    def unmute(self, reason: str) -> None:
        target = self.finding.muted_before
        untold = target in NOTIFIED and not self.finding.told
        self.to(target, "unmuted", reason, notifies=untold, until_ns=None, until_version=None)

    def acted(self, event: Acted) -> None:
        state = self.finding.state
        why = refusal(state, event)
        if why is not None:
            fits = state in _CAN[event.action]
            self.to(state, "ignored", f"without effect, {why if fits else f'since it is {state} now'}: {event.reason}")
        elif event.action == "unmute":
            self.unmute(event.reason)
        elif event.action == "mute":
            before = self.finding.muted_before if state == "muted" else state  # a second mute replaces the end
            self.to(
                "muted", "muted", event.reason, muted_before=before, until_ns=event.until_ns,
                until_version=event.until_version,
            )  # fmt: skip
        else:
            target, kind = _ACTED[event.action]
            self.to(target, kind, event.reason)

    def observed(self, event: Observed) -> None:
        if event.gone:
            self._vanish()
            return
        if event.effect is None:
            if event.confirms is False:
                self._undecided(event)
            return
        if self.finding.state == "vanished":
            self.to(self.finding.vanished_before, "returned", "the series is back")
        if self.finding.state in ENDED or self.finding.state == "normal":
            self._open(event)
        elif self.finding.state == "recovered":
            self._recovered(event)
        elif self._state() == "suspect":
            self._suspect(event)
        elif self._state() == "recovering":
            good = self._is_back(event.effect)
            self._recovering(event, event.effect)
            self._count(event, good=good)
        else:
            self._bad(event, event.effect)
            self._count(event, good=self._is_good(event))

    def _vanish(self) -> None:
        state = self.finding.state
        if state not in ENDED | {"normal", "vanished"}:
            self.to("vanished", "vanished", "no run of this version has the series", vanished_before=state)

    def _undecided(self, event: Observed) -> None:
        """A suspicion that the runs since leave as it is ends as none."""
        if self.finding.state == "muted":
            self.unmute("nothing decided")
        if "suspect" in (self.finding.state, self.finding.vanished_before, self.finding.muted_before):
            self.to("normal", "cleared", f"nothing decided it: {event.because}")

    def _state(self) -> State:
        """The state, or the one below the mute: what is muted is still measured."""
        return self.finding.muted_before if self.finding.state == "muted" else self.finding.state

    def _open(self, event: Observed) -> None:
        if not event.screens:
            return
        self.finding = Finding(number=self.finding.number + 1, first_bad_run=event.run, first_bad_version=event.version)
        self.to("suspect", "suspected", event.because or "one run passes the screen; the next runs decide")
        if event.confirms:
            self._confirm(event)

    def _suspect(self, event: Observed) -> None:
        if event.confirms:
            if self.finding.state == "muted":
                reason = "the confirming runs show it too"
                self.to("muted", "confirmed", reason, muted_before="new", **self._measured(event))
            else:
                self._confirm(event)
            self._count_confirming(event)
        elif event.confirms is False:
            if self.finding.state == "muted":
                self.unmute("the confirming runs decided")
            because = f": {event.because}" if event.because else ""
            self.to("normal", "cleared", f"the confirming runs do not show it{because}")

    def _count_confirming(self, event: Observed) -> None:
        """The last of the runs that confirm a finding may be good ones already."""
        good = self._is_good(event)
        self.finding = replace(self.finding, good_runs=event.runs if good else 0)
        self._count(event, good=good)
        if good and event.runs >= self.life.recovery_runs and self.finding.state != "muted":
            self._end_by_version(event)

    def _end_by_version(self, event: Observed) -> None:
        """The runs of one version, enough of them, are good again: it is over with them."""
        reason = f"the {event.runs} runs of the version {_CALM}"
        self.to("recovering", "recovering", reason, before=self._after_recovery(), good_runs=0, worse_runs=0)
        self._recover(event.version, reason)

    def _confirm(self, event: Observed) -> None:
        reason = event.because or "the confirming runs show it too"
        self.to("new", "confirmed", reason, notifies=True, **self._measured(event))

    def _measured(self, event: Observed) -> dict[str, Any]:
        level = max(event.size or event.effect or 0.0, 0.0)
        return {"size": level, "notified_level": level}

    def _bad(self, event: Observed, effect: float) -> None:
        """A confirmed finding: is it over, worse, or simply still there?"""
        life, finding = self.life, self.finding
        good = finding.good_runs + event.runs if self._is_good(event) else 0
        turned = finding.size > 0 and event.opposite_step >= life.opposite_step * finding.size
        if good >= life.recovery_runs or turned:
            if finding.state == "muted":
                self.unmute("it recovers")
            if good and event.runs >= life.recovery_runs:
                self._end_by_version(event)
                return
            reason = "a step back" if turned else f"{good} runs {_CALM}"
            self.to("recovering", "recovering", reason, before=self._after_recovery(), good_runs=0, worse_runs=0)
            return
        beyond = max(life.effect, life.worse_share * finding.size)
        worse = finding.worse_runs + event.runs if effect - finding.notified_level >= beyond else 0
        self.finding = replace(finding, good_runs=good, worse_runs=worse)
        if worse >= life.worse_runs or (worse and event.runs >= rule.FINDING_RUNS):
            self._worsen(effect)
        later = finding.first_bad_version is not None and event.version > finding.first_bad_version
        if self.finding.state in {"new", "reopened"} and later and good == 0:
            self.to("persisting", "persisted", "the next version is still bad")

    def _count(self, event: Observed, *, good: bool) -> None:
        """At which level the good runs lie."""
        finding, effect = self.finding, event.effect or 0.0
        level, runs = (finding.back_level, finding.back_runs) if self._is_good(event) else (0.0, 0)
        if good:
            level, runs = level + (effect - level) * event.runs / (runs + event.runs), runs + event.runs
        self.finding = replace(finding, back_level=level, back_runs=runs)

    def _is_good(self, event: Observed) -> bool:
        """Whether the runs are as they should be: low enough, or so as a version."""
        return event.cleared or (event.effect or 0.0) < self._calm()

    def _calm(self) -> float:
        return self.life.calm(self.finding.size)

    def _worsen(self, effect: float) -> None:
        if self.finding.state == "muted":
            self.unmute("it got worse")
        reason = "worse than when it was told, by the smallest change that counts and a quarter of its size"
        self.to(
            self.finding.state, "worsened", reason, notifies=True, notified_level=effect, worse_runs=0
        )  # fmt: skip

    def _after_recovery(self) -> State:
        return "acknowledged" if self._state() == "acknowledged" else "persisting"

    def _recovering(self, event: Observed, effect: float) -> None:
        life, finding = self.life, self.finding
        if effect >= max(life.effect, self._calm()):
            if finding.state == "muted":
                self.finding = replace(finding, muted_before=finding.before, good_runs=0, worse_runs=0)
            else:
                reason = "bad again before it had recovered"
                self.to(finding.before, "relapsed", reason, good_runs=0, worse_runs=0)
            return
        back = self._is_back(effect)
        calm = event.runs if effect < self._calm() else 0
        good, other = (finding.good_runs + event.runs, 0) if back else (0, finding.worse_runs + calm)
        self.finding = replace(finding, good_runs=good, worse_runs=other)
        if good >= life.recovery_runs:
            self._recover(event.version, f"{good} more runs {_CALM}")
        elif other >= life.recovery_runs:
            self._recover(event.version, f"{finding.back_runs} runs {_CALM}, then another change")

    def _is_back(self, effect: float) -> bool:
        """Whether a run is good, and no change of its own that begins before the recovery is complete: of a large
        finding a quarter may be much more than the smallest change that counts.
        """
        finding = self.finding
        changed = finding.back_runs > 0 and effect - finding.back_level >= self.life.effect
        return effect < self._calm() and not changed

    def _recover(self, version: int, reason: str) -> None:
        if self.finding.state == "muted":
            self.unmute("it recovered")
        self.to("recovered", "recovered", reason, notifies=True, good_runs=0, worse_runs=0, recovered_version=version)

    def _recovered(self, event: Observed) -> None:
        """What is confirmed was suspicious within its versions, however late the runs came that confirm it."""
        finding, life = self.finding, self.life
        if event.confirms:
            measured = self._measured(event)
            if measured["size"] >= life.effect:
                self.to(
                    "reopened", "reopened", "bad again soon after it recovered", notifies=True,
                    reopened=finding.reopened + 1, worse_runs=0, **measured,
                )  # fmt: skip
                self._count_confirming(event)
        elif event.version - (finding.recovered_version or 0) > life.reopen_versions:
            self.to("normal", "closed", f"{life.reopen_versions} versions have passed since it recovered")
            self._open(event)
        elif event.screens:
            self.finding = replace(finding, first_bad_run=event.run, first_bad_version=event.version)
