"""A message: what happened, in a form that can be stored, sent to machines, and written out for people."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

MESSAGE_SCHEMA: Final = 1
"""Version of the JSON form of a Message; it grows when a field changes its meaning or goes."""


class ToldFinding(Struct, frozen=True, kw_only=True):
    """A finding, as FINDINGS_COLUMNS["findings"] means its columns. `owner`: who answers for it; empty: nobody said.

    `is_news`: this message is the first to tell of it, or of what happened to it.
    """

    finding_id: int
    kind: str
    name: str
    input_shapes: str
    part: str
    change: str
    direction: str
    state: str
    unit: str
    ratio: float | None
    baseline_value: float | None
    candidate_value: float | None
    delta: float | None
    share_of_change: float | None
    baseline_calls: float | None
    candidate_calls: float | None
    cause: str | None
    owner: str = ""
    is_news: bool = True


class ToldIncident(Struct, frozen=True, kw_only=True):
    """An incident, as FINDINGS_COLUMNS["incidents"] means its columns.

    `shown`: its largest findings; `more`: how many others there are; `beside`: the largest that went the other way.
    `silenced`: findings that somebody muted. `environment`: what else changed, as (key, before, after). `by_step`: the
    step itself is a finding. `advice`: what could undo it, a sentence each. Of what is over: `recovered_in`: the
    version, `left`: names of findings that are still open.
    """

    incident_id: int
    workload: str
    configuration: str
    device: str
    version: str
    good_version: str | None
    direction: str
    severity: str
    baseline_runs: tuple[int, ...]
    candidate_runs: tuple[int, ...]
    baseline_step_ns: float | None
    candidate_step_ns: float | None
    step_delta_ns: float | None
    operators_ns: float | None
    new_ns: float | None = None
    gone_ns: float | None = None
    machine_ns: float | None = None
    other_operators_ns: float | None = None
    beside_ns: float | None = None
    shared_factor: float | None
    causes: tuple[str, ...]
    environment: tuple[tuple[str, str | None, str | None], ...]
    by_step: bool
    shown: tuple[ToldFinding, ...]
    more: int = 0
    silenced: int = 0
    recovered_in: str | None = None
    left: tuple[str, ...] = ()
    beside: tuple[ToldFinding, ...] = ()
    advice: tuple[str, ...] = ()


class Message(Struct, frozen=True, kw_only=True):
    """What happened. `key`: the same for every delivery of it, so that a repetition is recognised.

    `event`: opened, added, reminder or recovered, of incidents; missing_runs, quarantined or
    watcher, of what is none; test.
    `incidents`: of one version and direction, the most severe first: one line each. `held_back`: why its details are
    not told; empty: they are. `narrowed_to`: the patterns of operators that this channel answers for; empty: all.
    `title`, `lines`: of what is no incident.
    """

    event: str
    key: str
    workload: str
    severity: str = "warning"
    schema: int = MESSAGE_SCHEMA
    incidents: tuple[ToldIncident, ...] = ()
    owners: tuple[str, ...] = ()
    narrowed_to: tuple[str, ...] = ()
    held_back: str = ""
    commands: dict[str, str] = field(default_factory=dict)
    title: str = ""
    lines: tuple[str, ...] = ()
