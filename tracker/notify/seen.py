"""What there is to tell: incidents with their findings as messages see them, read in one go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from tracker.judgement import tell
from tracker.judgement.families import THE_STEP
from tracker.notify.routes import fits_device, matches
from tracker.results import STATES, FindingsOptions
from tracker.store import Store, findings, notifications, queries
from tracker.store.findings import IncidentEvent, Named
from tracker.store.notifications import Silence

LIVE: Final = frozenset({"new", "persisting", "reopened"})
"""States of findings that somebody should act on."""

_OVER: Final = frozenset({"recovered", "vanished", "normal"})
_ONE_THING: Final = {"op_name": "op", "kernel": "kernel"}
_OPENS: Final = frozenset({"confirmed", "reopened"})
_ENDS: Final = frozenset({"recovered", "vanished"})


class Seen(Struct, frozen=True):
    """A finding. Its events have names that stay when findings are made again.

    `group`: what says the same of one operator. `is_top`: no other finding of the incident covers it. `is_silent`:
    somebody muted it. `opened`: the last event that made it news; `came_back`: that was not its first.
    `worsened`: events. `ended`: the event that ended it, where it is over, by run `ended_run` of version `ended_in`.
    `was_gone`, `returned`: the last time that no run had it, and that one had it again.
    """

    row: Mapping[str, Any]
    group: tuple[str, str]
    is_top: bool
    is_silent: bool
    opened: str
    came_back: bool
    worsened: tuple[str, ...]
    ended: str | None
    ended_in: str | None
    ended_run: int = -1
    was_gone: str | None = None
    returned: str | None = None

    @property
    def state(self) -> str:
        """Where it stands."""
        return str(self.row["state"])

    @property
    def is_live(self) -> bool:
        """Whether somebody should act on it and wants to hear of it."""
        return self.state in LIVE and not self.is_silent

    @property
    def is_measured(self) -> bool:
        """Whether it may still get worse and somebody wants to hear of that."""
        return self.state in LIVE | {"acknowledged"} and not self.is_silent

    @property
    def is_over(self) -> bool:
        """Whether it ended by itself, not by a word of a user."""
        return self.state in _OVER

    @property
    def is_whole(self) -> bool:
        """Whether it is the step itself, under one of its names."""
        return self.row["kind"] == "run" and self.row["name"] in THE_STEP

    @property
    def openings(self) -> frozenset[str]:
        """The events that are told with it when it is news."""
        return frozenset({self.opened} if self.returned is None else {self.opened, self.returned})

    @property
    def events(self) -> frozenset[str]:
        """All that can be told of it."""
        return self.openings | frozenset(self.worsened) | ({self.ended} if self.ended else frozenset())


class Incident(Struct, frozen=True):
    """What one version of a line made worse, or what it made better: one direction of an incident. `key`: line, version
    and direction, which stay; `link`: shared with those on other devices.

    `is_new`: the newest version of its line began it, or confirmed it.
    """

    key: str
    link: str
    is_new: bool
    findings: tuple[Seen, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Its findings as `tell.found_rows` gives them."""
        return [dict(finding.row) for finding in self.findings]

    @property
    def number(self) -> int:
        """The number of the incident."""
        return int(self.findings[0].row["incident_id"])

    @property
    def direction(self) -> str:
        """Regression or improvement."""
        return str(self.findings[0].row["direction"])


def read(store: Store, now_ns: int, finding_ids: Sequence[int] | None = None) -> list[Incident]:
    """All incidents, or those of these findings, in the order of their lines and versions."""
    if finding_ids == [] or not len(queries.lines.columns(store)):
        return []
    found_rows = tell.found_rows(store, FindingsOptions(states=STATES), finding_ids=finding_ids)
    rows = [row for row in found_rows if row["incident_id"] is not None]
    with store.connect() as connection:
        events = findings.incident_events(connection, finding_ids)
    silences = notifications.silences(store, now_ns)
    found: dict[str, list[Seen]] = {}
    links = {}
    for row in rows:
        key = incident_key(row)
        links[key] = f"{row['workload_id']}.{row['version_id']}.{row['direction']}"
        found.setdefault(key, []).append(_seen(row, events.get(row["finding_id"], []), silences))
    return [
        Incident(key, links[key], any(one.row["is_new"] or one.row["is_newest"] for one in own), tuple(own))
        for key, own in found.items()
    ]


def incident_key(row: Mapping[str, Any]) -> str:
    """Line, version and direction of the incident of a finding."""
    names = ("workload_id", "configuration_id", "device_id", "version_id", "direction")
    return ".".join(str(row[name]) for name in names)


def finding_name(finding: Named) -> str:
    """A name that stays when findings are made again; its events are this, their kind and their run."""
    return f"{finding.series_id}.{finding.direction[0]}.{finding.change}.{finding.first_run_id}"


def silenced(silences: Iterable[Silence], *, op: str, workload: str, device: str) -> bool:
    """Whether a silence holds for this operator."""
    return any(
        matches(one.op, op) and matches(one.workload, workload) and fits_device(one.device, device) for one in silences
    )


def _seen(row: Mapping[str, Any], events: Sequence[IncidentEvent], silences: Sequence[Silence]) -> Seen:
    name = finding_name(Named(row["series_id"], row["direction"], row["change"], row["first_run_id"]))

    def named(event: IncidentEvent) -> str:
        return f"{name}.{event.kind}.{event.run_id}"

    opened = [event for event in events if event.kind in _OPENS]
    ended = [event for event in events if event.kind in _ENDS]
    over = row["state"] in _OVER and bool(ended)
    gone = [event for event in events if event.kind == "vanished"]
    back = [event for event in events if event.kind == "returned"]
    silent = row["state"] == "muted" or silenced(
        silences, op=row["name"], workload=row["workload"], device=row["device"]
    )
    return Seen(
        row=row,
        group=(_ONE_THING.get(row["kind"], row["kind"]), row["name"]),
        is_top=row["under"] is None,
        is_silent=silent,
        opened=named(opened[-1]) if opened else f"{name}.confirmed.",
        came_back=bool(opened) and opened[-1].kind == "reopened",
        worsened=tuple(named(event) for event in events if event.kind == "worsened"),
        ended=named(ended[-1]) if over else None,
        ended_in=ended[-1].version if over else None,
        ended_run=(ended[-1].run_id or -1) if over else -1,
        was_gone=named(gone[-1]) if gone else None,
        returned=named(back[-1]) if back else None,
    )
