"""Who hears of an incident: the rules and owners of the settings. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from msgspec import Struct

from tracker.config import Alerts, Rule
from tracker.config.owners import fits_device, matches

When = Literal["at once", "grouped"]

SEVERITIES: Final = ("info", "warning", "critical")
SOONEST: Final[tuple[When, ...]] = ("at once", "grouped")
"""How a channel may hear of something, the soonest first."""


class Subject(Struct, frozen=True):
    """What rules look at. `names`: of the operators that may be told of."""

    workload: str
    device: str
    severity: str
    direction: str
    names: Sequence[str]


class Route(Struct, frozen=True):
    """How a channel hears of an incident. `narrowed_to`: the patterns of operators that it answers for; empty: all."""

    when: When
    narrowed_to: tuple[str, ...] = ()


def routes(alerts: Alerts, subject: Subject) -> dict[str, Route]:
    """Channel -> how it hears of `subject`. The soonest of several rules counts; a rule goes before an owner."""
    found: dict[str, Route] = {}
    for rule in alerts.rules:
        if _holds(rule, subject):
            when = rule.when or default_when(subject.severity)
            for channel in rule.channels:
                known = found.get(channel, Route("grouped")).when
                found[channel] = Route(min(when, known, key=SOONEST.index))
    for channel, patterns in _owned(alerts, subject).items():
        found.setdefault(channel, Route(default_when(subject.severity), patterns))
    return found


def default_when(severity: str) -> When:
    """Critical incidents at once, others with what else comes."""
    return "at once" if severity == "critical" else "grouped"


def alarm_channels(alerts: Alerts, workload: str) -> list[str]:
    """Who hears of what is no incident: the rules for all operators of the workload, else all rules for it.

    An empty workload stands for all of them. So an alarm is never lost because rules are narrow.
    """
    near = [rule for rule in alerts.rules if not workload or matches(rule.workload, workload)]
    broad = [
        rule for rule in near if rule.op == "*" and rule.severity != "critical" and "regression" in rule.directions
    ]
    return _channels(broad) or _channels(near) or _channels(alerts.rules)


def channels_of(alerts: Alerts) -> list[str]:
    """The channels that hear of incidents at all."""
    owners = (name for owner in alerts.owners for name in owner.channels)
    return list(dict.fromkeys([*_channels(alerts.rules), *owners]))


def _channels(rules: Iterable[Rule]) -> list[str]:
    return list(dict.fromkeys(name for rule in rules for name in rule.channels))


def _holds(rule: Rule, subject: Subject) -> bool:
    # an improvement has no severity: who asks for improvements hears of them
    loud = subject.direction == "improvement" or not is_louder(rule.severity, subject.severity)
    return (
        loud
        and subject.direction in rule.directions
        and matches(rule.workload, subject.workload)
        and fits_device(rule.device, subject.device)
        and (rule.op == "*" or any(matches(rule.op, name) for name in subject.names))
    )


def _owned(alerts: Alerts, subject: Subject) -> dict[str, tuple[str, ...]]:
    """The channels of owners whose operators got worse, unless it is too little to be told at all."""
    found: dict[str, tuple[str, ...]] = {}
    if subject.direction != "regression" or is_louder("warning", subject.severity):
        return found
    for owner in alerts.owners:
        if matches(owner.workload, subject.workload) and any(matches(owner.op, name) for name in subject.names):
            for channel in owner.channels:
                found[channel] = (*found.get(channel, ()), owner.op)
    return found


def is_louder(severity: str, than: str) -> bool:
    """Whether a severity is above another one."""
    return SEVERITIES.index(severity) > SEVERITIES.index(than)
