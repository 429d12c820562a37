"""From incidents to a message: what of it this channel is told, the largest first, with the commands to go on."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from tracker.advice.versions import on_findings
from tracker.compare.commits import VersionCommits, choose_pair, list_commits
from tracker.config import Alerts
from tracker.config.owners import matches, owner_of
from tracker.notify.routes import SEVERITIES, Route, Subject
from tracker.notify.seen import Incident, Seen
from tracker.regressions.found import FoundFinding, as_one
from tracker.regressions.incidents import FoundIncident, explain_incident, share_of
from tracker.reports.commands import exact_command
from tracker.reports.message import changes, is_pasteable
from tracker.reports.rows import plain
from tracker.results import Message, ToldFinding, ToldIncident
from tracker.results.findings import ListedIncident
from tracker.schema.column_names import DEVICE_ID
from tracker.store import Store, queries

_SHOWN: Final = 5
_BESIDE: Final = 3
_FIRST: Final = frozenset({"op", "op_name", "communication"})
_METHOD: Final = "profiler "
_NO_LABEL: Final = ("-", ".", "/", "~")
"""A side that starts so would be an option, or a path."""

_CAUSES: Final = re.compile(r", (?!was |is )")
"""Between causes; one may be `renamed, was aten::gelu`."""

_INCIDENT: Final = (
    "incident_id", "workload", "configuration", "device", "version", "good_version", "direction", "severity",
    "baseline_step_ns", "candidate_step_ns", "step_delta_ns", "operators_ns", "new_ns", "gone_ns", "machine_ns",
    "other_operators_ns", "earlier_ns", "beside_ns", "shared_factor", "step_kind", "so_far", "coverage",
    "leading_cause",
)  # fmt: skip
_FINDING: Final = (
    "finding_id", "kind", "name", "input_shapes", "part", "step_kind", "change", "direction", "state", "unit", "ratio",
    "baseline_value", "candidate_value", "delta", "baseline_calls", "candidate_calls", "cause",
)  # fmt: skip


_Environment = tuple[tuple[str, str | None, str | None], ...]
"""What else changed: a key, and its values before and after."""


class _Explained(Struct, frozen=True):
    """An incident, and what else changed with it."""

    incident: FoundIncident
    environment: _Environment


class Composer:
    """Writes messages on incidents; each incident is measured once."""

    def __init__(self, store: Store, alerts: Alerts, incidents: Sequence[Incident]) -> None:
        self.incidents = {incident.key: incident for incident in incidents}
        self._store, self.alerts = store, alerts
        everything = [row for incident in incidents for row in incident.rows]
        self._of: dict[int | None, list[FoundFinding]] = {}
        for row in everything:
            self._of.setdefault(row.incident_id, []).append(row)
        self._explained: dict[int, _Explained] = {}
        self._devices: dict[str, int] = {}

    def explain(self, key: str) -> _Explained:
        """Return an incident with what went the other way in its version, and what else changed."""
        number = self.incidents[key].number
        if number not in self._explained:
            incident, changed = explain_incident(self._store, self._of[number])
            environment = tuple((one.key, one.before, one.after) for one in changed)
            self._explained[number] = _Explained(incident, environment)
        return self._explained[number]

    def is_part_of_another(self, key: str) -> bool:
        """Whether these are the losses of a version that is faster on the whole, or the gains of one that is slower: a
        note of the message on the version, and no message of their own.
        """
        return bool(self.incidents[key].direction != self.explain(key).incident.direction)

    def subject(self, key: str) -> Subject:
        """An incident as rules look at it."""
        row = self.explain(key).incident
        names = [finding.row.name for finding in self.incidents[key].findings if not finding.is_silent]
        return Subject(row.workload, row.device, row.severity, row.direction, names)

    def held_back(self, key: str) -> str:
        """Return why a message leaves out the details of an incident; "" where it names them.

        Other profiler settings measure something else: what looks slower may be the measurement.
        """
        explained = self.explain(key)
        environment = tuple(change for change in explained.environment if change[0].startswith(_METHOD))
        if not environment:
            return ""
        changed = changes(_told_incident(explained.incident, (), environment=environment))
        return f"other profiler settings measure something else ({changed}); runs with equal settings would tell"

    def message(self, keys: Sequence[str], wish: Wish) -> Message:
        """Return the message on incidents of one version and direction, the loudest of them first."""
        order = sorted(keys, key=self._loudness)
        first = self.explain(order[0]).incident
        held = "; ".join(dict.fromkeys(filter(None, map(self.held_back, order))))
        incidents = tuple(self._incident(key, wish, is_first=key == order[0]) for key in order)
        owners = dict.fromkeys(one.owner for one in incidents[0].shown if one.owner)
        return Message(
            event=wish.event,
            key=wish.key,
            workload=first.workload,
            severity=first.severity,
            incidents=incidents,
            owners=tuple(owners),
            narrowed_to=wish.route.narrowed_to,
            held_back=held,
            commands=self._commands(first, incidents, wish.event),
        )

    def _loudness(self, key: str) -> tuple[Any, ...]:
        row = self.explain(key).incident
        return -SEVERITIES.index(row.severity), -abs(row.step_delta_ns or 0.0), key

    def _incident(self, key: str, wish: Wish, *, is_first: bool) -> ToldIncident:
        incident, explained = self.incidents[key], self.explain(key)
        row = explained.incident
        tops = [finding for finding in incident.findings if finding.is_top]
        chosen = sorted((one for one in tops if _is_shown(one, wish)), key=_rank)
        named = [one for one in chosen if not one.is_whole]
        others = [] if not is_first or wish.event == "recovered" else self._beside(key)
        shown = [self._finding(one, row, wish) for one in named[: _SHOWN if is_first else 0]]
        return _told_incident(
            row,
            tuple(shown),
            environment=explained.environment,
            by_step=any(one.is_whole for one in chosen),
            more=sum(_counts(one, wish) for one in tops) - len(shown) if is_first else 0,
            silenced=sum(one.is_silent for one in tops),
            beside=tuple(self._finding(one, row, wish) for one in others),
            **self._commits(row),
            advice=self._advice(row, tops) if is_first and wish.event != "recovered" else (),
            **_end_of(tops) if wish.event == "recovered" else {},
        )

    def _commits(self, row: ListedIncident) -> dict[str, str]:
        """Return the commits of the versions between which the cause is, {} where one is not known."""
        pair = choose_pair(self._known_commits, [as_one(finding) for finding in self._of[row.incident_id]])
        if pair is None:
            return {}
        return {"good_commit": pair.good_commit, "good_commit_version": pair.good_version, "commit": pair.commit}

    @cached_property
    def _known_commits(self) -> VersionCommits:
        return list_commits(self._store)

    def _advice(self, row: ListedIncident, tops: Sequence[Seen]) -> tuple[str, ...]:
        if row.direction != "regression":
            return ()
        sides = [_numbers(runs) for runs in (row.baseline_runs, row.candidate_runs)]
        return tuple(item.sentence for item in on_findings(self._store, [one.row for one in tops], *sides))

    def _beside(self, key: str) -> list[Seen]:
        """The largest findings of the version that went the other way, in time and not only against the machine."""
        own = self.incidents[key]
        sign = 1.0 if own.direction == "improvement" else -1.0
        return sorted(
            (
                finding
                for other in self.incidents.values()
                if other.number == own.number and other.key != key
                for finding in other.findings
                if finding.is_top and not finding.is_whole and not finding.is_silent
                if finding.row.unit == "ns" and (finding.row.delta or 0.0) * sign > 0
            ),
            key=_rank,
        )[:_BESIDE]

    def _finding(self, finding: Seen, incident: ListedIncident, wish: Wish) -> ToldFinding:
        row = as_one(finding.row)
        return ToldFinding(
            **{name: plain(getattr(row, name)) for name in _FINDING},
            share_of_change=plain(share_of(row, incident)),
            owner=owner_of(self.alerts.owners, row.workload, finding.row.name),
            is_news=not finding.events.isdisjoint(wish.covers),
        )

    def _commands(self, row: FoundIncident, incidents: Sequence[ToldIncident], event: str) -> dict[str, str]:
        """What to do about it; without what no name can be written for such that a shell takes it as it is."""
        where = ("--workload", row.workload)
        if event == "recovered":
            over = exact_command("tracker", "findings", "--state", "recovered", *where, "--version", row.version)
            return {"look": over} if over else {}
        named = [f"I-{one.incident_id}" for one in incidents]
        shown = incidents[0].shown
        found = {
            "reproduce": self._reproduce(row, incidents[0]),
            "look": exact_command("tracker", "findings", *where, "--version", row.version),
            "explain": exact_command("tracker", "explain", str(shown[0].finding_id)) if shown else None,
            "acknowledge": exact_command("tracker", "ack", *named, "--reason", "..."),
            "mute": exact_command("tracker", "mute", *named, "--until", "2w", "--reason", "..."),
        }
        return {purpose: line for purpose, line in found.items() if line and is_pasteable(line)}

    def _reproduce(self, row: FoundIncident, incident: ToldIncident) -> str | None:
        """The diff that has the numbers of the message: of both versions, or of one with its level where that is more
        than the version before; by their runs where a version cannot be named, or others decided with it.
        """
        if not row.good_version:
            return None
        model = row.device.removeprefix(row.vendor).strip()
        at = f"@{model}" if self._has_devices(row.workload) else ""
        sides = [f"{row.good_version}{at}", f"{row.version}{at}"]
        if len(incident.level) > 1:
            sides = sides[1:]
        line = exact_command("tracker", "diff", *sides, "--workload", row.workload)
        findings = self._of[incident.incident_id]
        is_decided_alone = any(one.decided_version_id == one.version_id for one in findings)
        if line and is_decided_alone and is_pasteable(line) and not any(side.startswith(_NO_LABEL) for side in sides):
            return line
        runs = [",".join(f"run:{run}" for run in side) for side in (incident.baseline_runs, incident.candidate_runs)]
        return exact_command("tracker", "diff", *runs) if all(runs) else None

    def _has_devices(self, workload: str) -> bool:
        """Whether a version of the workload is on several devices, so that a diff must name one."""
        if workload not in self._devices:
            self._devices[workload] = len({*queries.tracks(self._store, workload).listed(DEVICE_ID)})
        return self._devices[workload] > 1


class Wish(Struct, frozen=True):
    """What a message should be. `covers`: the events that it is the first to tell of."""

    event: str
    key: str
    route: Route
    covers: frozenset[str]


def _told_incident(
    row: FoundIncident, shown: tuple[ToldFinding, ...], environment: _Environment, **more: Any
) -> ToldIncident:
    return ToldIncident(
        **{name: plain(getattr(row, name)) for name in _INCIDENT},
        baseline_runs=_numbers(row.baseline_runs),
        candidate_runs=_numbers(row.candidate_runs),
        level=row.level_versions,
        causes=tuple(filter(None, _CAUSES.split(row.causes))),
        shown=shown,
        environment=environment,
        **{"by_step": False, **more},
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split())


def _end_of(findings: Sequence[Seen]) -> dict[str, Any]:
    """When an incident ended, and what is left of it."""
    ends = [one for one in findings if one.ended and one.row.ended_version]
    last = max(ends, key=lambda one: one.row.ended_by_version_id or 0) if ends else None
    left = dict.fromkeys(one.row.name for one in findings if one.is_open)
    return {"recovered_in": last.row.ended_version if last else None, "left": tuple(left)[:_SHOWN]}


def _is_shown(finding: Seen, wish: Wish) -> bool:
    patterns: Collection[str] = wish.route.narrowed_to
    if patterns and not any(matches(pattern, finding.row.name) for pattern in patterns):
        return False
    if wish.event == "recovered":
        return finding.ended in wish.covers
    if wish.event == "added":
        return finding.is_open and not finding.events.isdisjoint(wish.covers)
    return finding.is_live


def _counts(finding: Seen, wish: Wish) -> bool:
    """Whether it is among those of which a message shows the largest."""
    if finding.is_whole:
        return False
    return finding.ended in wish.covers if wish.event == "recovered" else finding.is_open


def _rank(finding: Seen) -> tuple[Any, ...]:
    """Operators first, then what they are part of, then bytes; the largest part of the step first."""
    row = finding.row
    tier = 0 if row.kind in _FIRST else 2 if row.unit != "ns" else 1
    return tier, -abs(row.contribution or 0.0), -abs(row.delta or 0.0), row.finding_id
