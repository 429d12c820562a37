"""What commands and pages list of a database: runs, versions and thresholds, and what each of their columns means."""

from __future__ import annotations

from msgspec import Struct


class ListedRun(Struct, frozen=True, kw_only=True):
    """A run.

    - branch: of its workload, "" for the main line
    - state: active, excluded or deleted; state_reason: why it is not active
    - ranks: that came; ranks_expected: as the run says; ranks_awaited: which it lacks for a verdict, None: it has all
    - e2e_ns, step_ns: as of the run as a whole
    - tags, machine, paths: as text; machine: what slowed it down
    - rules_version: of the rules by which its numbers were made
    - why: why it is outdated, of a list of outdated runs
    """

    run_id: int
    workload: str
    branch: str
    version: str
    device: str | None
    vendor: str | None
    configuration: str
    state: str
    state_reason: str | None
    started_at_ns: int | None
    ranks: int
    ranks_expected: int | None
    ranks_awaited: int | None
    world_size: int | None
    steps: int | None
    format: str
    e2e_ns: int | None
    step_ns: int | None
    tags: str | None
    machine: str | None
    paths: str | None
    commit: str | None
    note: str | None
    rules_version: int | None
    why: str | None = None


class RunFact(Struct, frozen=True, kw_only=True):
    """What is known of a run beside its numbers.

    - kind: fact, configuration or tag
    - key, value: as text
    """

    run_id: int
    kind: str
    key: str
    value: str


class ListedVersion(Struct, frozen=True, kw_only=True):
    """A version.

    - ordinal: its place among those of its workload
    - pinned: 1 where it is the pinned one
    - runs: how many active ones it has
    """

    workload: str
    version: str
    ordinal: int
    commit: str | None
    pinned: int | None
    note: str | None
    runs: int
    first_started_at_ns: int | None


class ListedThreshold(Struct, frozen=True, kw_only=True):
    """A limit that was set.

    - configuration, vendor, device: where it holds, None: everywhere
    - kind, pattern: of the series that it is for, "" for all
    - name: of the limit; threshold: its value
    """

    threshold_id: int
    workload: str
    configuration: str | None
    vendor: str | None
    device: str | None
    kind: str
    pattern: str
    name: str
    threshold: float
    who: str
    when_ns: int
    reason: str
