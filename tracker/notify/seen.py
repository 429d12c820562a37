"""What there is to tell: incidents with their findings as messages see them, read in one go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from tracker.config.owners import fits_device, matches
from tracker.regressions.found import FoundFinding
from tracker.regressions.inbox import found_rows
from tracker.regressions.incidents import STEP
from tracker.results.waiting import AwaitedRuns
from tracker.store import Store, notifications, queries
from tracker.store.notifications import Silence
from tracker.store.queries.judgement import FindingStanding

LIVE: Final = frozenset({"new", "persisting"})
"""States of findings that somebody should act on."""

OVER: Final = frozenset({"recovered", "vanished"})
"""States of regressions that ended by themselves."""

_ONE_THING: Final = {"op_name": "op", "kernel": "kernel"}


class Seen(Struct, frozen=True):
    """A finding. Its events have names that stay when it is found again.

    `group`: what says the same of one operator. `is_top`: no other finding of the incident covers it. `is_silent`:
    somebody muted it. `began`, `ended`: events; None: it is not over. `awaits`, `end_awaits`: runs that may still come
    and take these back; None: none.
    """

    row: FoundFinding
    group: tuple[str, str]
    is_top: bool
    is_silent: bool
    began: str
    ended: str | None
    awaits: AwaitedRuns | None = None
    end_awaits: AwaitedRuns | None = None

    @property
    def state(self) -> str:
        """Where it stands."""
        return self.row.state

    @property
    def is_live(self) -> bool:
        """Whether somebody should act on it and wants to hear of it."""
        return self.state in LIVE and not self.is_silent

    @property
    def is_open(self) -> bool:
        """Whether it is not over, and somebody wants to hear of that."""
        return self.state in LIVE | {"acknowledged"} and not self.is_silent

    @property
    def is_over(self) -> bool:
        """Whether it ended by itself, not by a word of a user."""
        return self.state in OVER

    @property
    def is_surely_over(self) -> bool:
        """Whether it ended by itself, and no runs are awaited that may take that back."""
        return self.is_over and self.end_awaits is None

    @property
    def is_whole(self) -> bool:
        """Whether it is the step itself, under one of its names."""
        return self.row.kind == "run" and self.row.name in STEP

    @property
    def events(self) -> frozenset[str]:
        """All that can be told of it."""
        return frozenset({self.began} | ({self.ended} if self.ended else set()))


class Incident(Struct, frozen=True):
    """What one version of a track made worse, or what it made better: one direction of an incident. `key`: track,
    version and direction, which stay; `link`: shared with those on other devices.

    `is_new`: the newest version of its track began it, or decided it.
    """

    key: str
    link: str
    is_new: bool
    findings: tuple[Seen, ...]

    @property
    def rows(self) -> list[FoundFinding]:
        """Its findings as `inbox.found_rows` gives them."""
        return [finding.row for finding in self.findings]

    @property
    def number(self) -> int:
        """The number of the incident."""
        # suspects are no findings yet
        return self.findings[0].row.incident_id or 0

    @property
    def direction(self) -> str:
        """Regression or improvement."""
        return self.findings[0].row.direction


def read(store: Store, now_ns: int, finding_ids: Sequence[int] | None = None, settle_ns: int = 0) -> list[Incident]:
    """All incidents, or those of these findings, in the order of their tracks and versions; those of a branch are told
    to its pull request alone. `settle_ns`: how long a version waits for the usual number of runs.
    """
    if finding_ids == [] or not len(queries.tracks(store)):
        return []
    rows = found_rows(store, finding_ids=finding_ids, now_ns=now_ns, branches=False, settle_ns=settle_ns)
    # another name alone is no news
    rows = [row for row in rows if row.incident_id is not None and row.state != "renamed"]
    silences = notifications.silences(store, now_ns)
    found: dict[str, list[Seen]] = {}
    links = {}
    for row in rows:
        key, name, is_over = incident_key(row), finding_name(row), row.state in OVER
        links[key] = f"{row.track_key.workload_id}.{row.version_id}.{row.direction}"
        where = {"op": row.name, "workload": row.workload, "device": row.device}
        finding = Seen(
            row=row,
            group=(str(_ONE_THING.get(row.kind, row.kind)), row.name),
            is_top=row.under is None,
            is_silent=row.state == "muted" or silenced(silences, **where),
            began=f"{name}.began",
            ended=f"{name}.{row.state}" if is_over else None,
            awaits=row.awaited,
            end_awaits=row.end_awaited,
        )
        found.setdefault(key, []).append(finding)
    return [
        Incident(key, links[key], any(one.row.is_new or one.row.is_newest for one in own), tuple(own))
        for key, own in found.items()
    ]


def incident_key(row: FoundFinding) -> str:
    """Track, version and direction of the incident of a finding."""
    track = row.track_key
    names = (track.workload_id, track.configuration_id, track.device_id, row.version_id, row.direction)
    return ".".join(map(str, names))


def finding_name(row: FoundFinding | FindingStanding) -> str:
    """A name that stays when a finding is found again; its events are this and what happened."""
    return f"{row.series_id}.{row.direction[0]}.{row.change}.{row.version_id}"


def silenced(silences: Iterable[Silence], *, op: str, workload: str, device: str) -> bool:
    """Whether a silence holds for this operator."""
    return any(
        matches(one.op, op) and matches(one.workload, workload) and fits_device(one.device, device) for one in silences
    )
