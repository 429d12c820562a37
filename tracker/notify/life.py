"""What a channel should hear of an incident now, from what it was told before. Pure.

Opened once; what is found later, once and no more often than `interval`; a reminder while somebody should act, at
growing distances; recovered once, to those who were told. What nobody wants to hear now (muted, silenced, acknowledged)
is no news later either, unless it is still there when the mute ends. What further runs of its version may take back
waits for them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tracker.config import Alerts
from tracker.notify.seen import Incident, Seen
from tracker.results.waiting import AwaitedRuns
from tracker.store.notifications import TOLD, Record

OPENING: Final = frozenset({"opened", "added"})
"""Events that say that something is wrong; messages of these events on one version join."""

_MOST: Final = 0.75
_STRETCH: Final = 2
_LONGEST_STRETCH: Final = 10


@dataclass(frozen=True)
class Heard:
    """What one channel was told, and what it will never be told. What follows from it is worked out once."""

    records: tuple[Record, ...]

    @cached_property
    def settled(self) -> frozenset[str]:
        """Events that are told, or left untold for good."""
        return frozenset(event for record in self.records for event in record.covers)

    @cached_property
    def told(self) -> frozenset[str]:
        """Events that are told, or on their way."""
        return frozenset(event for record in self.records if record.state in TOLD for event in record.covers)

    @cached_property
    def untried(self) -> tuple[Record, ...]:
        """Messages that can still become others."""
        return tuple(
            one for one in self.records if (one.state, one.attempts, one.claimed_until_ns) == ("pending", 0, None)
        )

    @cached_property
    def is_started(self) -> bool:
        """Whether the channel was served before."""
        return any(record.event == "start" for record in self.records)

    def of(self, incident: Incident, states: Collection[str] = TOLD) -> list[Record]:
        """The messages on an incident, or on its findings under another date."""
        names = [incident.key, *(event for finding in incident.findings for event in finding.events)]
        places = sorted({place for name in names for place in self._places.get(name, ())})
        return [record for place in places if (record := self.records[place]).state in states]

    def next_counter(self, incident: str, event: str) -> int:
        """The number of the next message of this event on an incident."""
        return 1 + self._counters.get(f"{incident}:{event}", 0)

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """Incident or event -> where the messages on it stand."""
        found: dict[str, list[int]] = {}
        for place, record in enumerate(self.records):
            for name in (*record.incidents, *record.covers):
                found.setdefault(name, []).append(place)
        return found

    @cached_property
    def _counters(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for record in self.records:
            start = record.key.rpartition(":")[0]
            found[start] = max(record.counter, found.get(start, 0))
        return found


@dataclass(frozen=True, slots=True)
class Want:
    """What a channel should hear of an incident. `event` None: nothing, but `covers` is settled with it.

    `not_before_ns`: unless it is more severe than `severity`, of the message before.
    """

    event: str | None
    covers: frozenset[str]
    not_before_ns: int | None = None
    severity: str = "info"


def wanted(incident: Incident, heard: Heard, alerts: Alerts, now_ns: int) -> Want | None:
    """What is due of an incident to a channel that was told `heard`; None: nothing."""
    live = [finding for finding in incident.findings if finding.is_live]
    known = {finding.group for finding in incident.findings if finding.began in heard.told}
    fresh, news = _find_news(incident, heard, known)
    if news and all(finding.awaits for finding in news):
        fresh, news = [], []
    covers = frozenset(finding.began for finding in fresh)
    if news and not known:
        return Want("opened", covers)
    if news:
        mine = heard.of(incident)
        if not mine or any(record in heard.untried for record in mine):
            return Want("added", covers)  # it joins a message that nobody has tried yet
        last = max(mine, key=_when)
        return Want("added", covers, _when(last) + alerts.interval_ns, last.severity)
    if covers and known:
        return Want(None, covers)
    over = _over(incident, heard)
    return over or _reminder(live, heard.of(incident, TOLD | {"dead"}), alerts, now_ns)


def find_awaited(incident: Incident, heard: Heard) -> tuple[str, AwaitedRuns] | None:
    """What is not told of an incident yet, opened or recovered, and the runs that it waits for; None: nothing waits."""
    known = {finding.group for finding in incident.findings if finding.began in heard.told}
    _, news = _find_news(incident, heard, known)
    begins = [finding.awaits for finding in news]
    if begins and begins[0] is not None and all(begins):
        return "opened", begins[0]
    for finding in incident.findings:
        is_told = finding.began in heard.told and finding.ended not in heard.settled
        if finding.is_top and finding.is_over and finding.end_awaits is not None and is_told:
            return "recovered", finding.end_awaits
    return None


def _find_news(incident: Incident, heard: Heard, known: Collection[tuple[str, str]]) -> tuple[list[Seen], list[Seen]]:
    """What somebody should act on and no message covers; and what of it is worth one, for its group is not `known`."""
    fresh = [finding for finding in incident.findings if finding.is_live and finding.began not in heard.settled]
    return fresh, [finding for finding in fresh if finding.is_top and finding.group not in known]


def _over(incident: Incident, heard: Heard) -> Want | None:
    """The end of what was told: three quarters of it, and the step if that was told, are over.

    What is left and ends later is no message of its own.
    """
    if incident.direction != "regression":
        return None
    over = [one for one in incident.findings if one.is_surely_over and one.ended]
    # what says the same as others ends with them, so that nothing is left to look at
    ended = frozenset(one.ended for one in over if one.ended) - heard.settled
    if not ended or not any(one.began in heard.told for one in over):
        return None
    tops = [one for one in incident.findings if one.is_top and one.state not in {"expected", "invalid"}]
    if all(one.ended not in ended for one in over if one.is_top):
        return Want(None, ended) if all(one.is_surely_over for one in tops) else None
    return _end(incident, heard, ended, tops)


def _end(incident: Incident, heard: Heard, ended: frozenset[str], tops: list[Seen]) -> Want | None:
    gone = [one for one in tops if one.is_surely_over and one.ended]
    if not any(one.began in heard.told for one in gone):
        return None
    if any(one.is_whole and one not in gone for one in tops) or _weight(gone, tops) < _MOST:
        return None
    mine = [record for record in heard.of(incident) if record.event != "reminder"]
    said = [place for place, record in enumerate(mine) if record.event == "recovered"]
    since = mine[said[-1] + 1 :] if said else []
    if said and not since:
        return Want(None, ended)
    news = frozenset(event for record in since for event in record.covers)
    if any(not one.events.isdisjoint(news) and one not in gone for one in tops):
        return None  # what was told after that is not over
    return Want("recovered", ended)


def _weight(part: Collection[Seen], whole: Collection[Seen]) -> float:
    """How much of a whole, by the change of the step, or by number where nothing else is known."""
    known = [one for one in whole if one.row.unit == "ns" and one.row.contribution and not one.is_whole]
    total = sum(abs(one.row.contribution or 0.0) for one in known)
    if not total:
        return len(part) / len(whole) if whole else 0.0
    return float(sum(abs(one.row.contribution or 0.0) for one in known if one in part) / total)


def _reminder(live: list[Seen], mine: list[Record], alerts: Alerts, now_ns: int) -> Want | None:
    """A reminder of what is open: after `repeat`, then after twice as long, and so on. Also of what never arrived."""
    covered = frozenset(event for record in mine for event in record.covers)
    if not any(finding.began in covered for finding in live) or any(record.settled_ns is None for record in mine):
        return None
    since = 0
    for record in sorted(mine, key=_when):
        since = since + 1 if record.event == "reminder" else 0
    due = max(map(_when, mine)) + alerts.repeat_ns * _STRETCH ** min(since, _LONGEST_STRETCH)
    return Want("reminder", frozenset()) if now_ns >= due else None


def _when(record: Record) -> int:
    return max(record.created_ns, record.settled_ns or 0)
