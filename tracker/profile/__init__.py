"""THE CONTRACT between readers, timeline and store: what one source of a profile says, in columns.

A reader turns files into a `Profile`: who ran (facts) and, per rank, what happened (`Events`, columns of NumPy arrays,
never one object per event). `tracker.timeline` turns the events of one rank into `Rows`: sums per distinct thing, the
grain of the database. A source that has only sums fills `Rows` itself.

Conventions: times are int64 ns on one clock per source; spans are half open, `start_ns <= end_ns`. Text is
dictionary-coded: an int32 code into `Strings`, code 0 is the empty string ("none"). A missing integer is `MISSING`
(never 0), a missing reference is -1. All arrays of one table have equal length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tracker.profile.events import (
    F64,
    I8,
    I32,
    I64,
    MISSING,
    MODULE_CALLS,
    NO_OP,
    NO_STEP,
    PHASES,
    UNLINKED_OP,
    Allocations,
    CollectiveLinks,
    Collectives,
    CollectiveTasks,
    CollectiveTimes,
    Columns,
    Counters,
    DeviceEvents,
    DeviceKind,
    Events,
    Extras,
    Frames,
    HostOps,
    KernelMetrics,
    Launches,
    LaunchLevel,
    Markers,
    MemoryPoints,
    StepTimes,
    Strings,
    empty,
)
from tracker.profile.rows import (
    ROW_COLUMNS,
    Breakdown,
    Column,
    Rows,
    StepRow,
    Table,
)

__all__ = [
    "CPU",
    "F64",
    "I8",
    "I32",
    "I64",
    "MISSING",
    "MODULE_CALLS",
    "NO_OP",
    "NO_STEP",
    "OF_A_RUN",
    "OF_THE_CODE",
    "PHASES",
    "ROW_COLUMNS",
    "UNKNOWN_DEVICE",
    "UNLINKED_OP",
    "Allocations",
    "Breakdown",
    "Capture",
    "CollectiveLinks",
    "CollectiveTasks",
    "CollectiveTimes",
    "Collectives",
    "Column",
    "Columns",
    "Counters",
    "Device",
    "DeviceEvents",
    "DeviceKind",
    "Digest",
    "Events",
    "Extras",
    "Frames",
    "HostOps",
    "KernelMetrics",
    "LaunchLevel",
    "Launches",
    "Markers",
    "MemoryPoints",
    "Profile",
    "Rows",
    "Source",
    "StepRow",
    "StepTimes",
    "Strings",
    "Table",
    "empty",
]

Digest = bytes


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was read: where, how large (bytes on disk), and the digest of its decompressed content.

    The digest of a file that is nothing without the main file of its capture covers that one as well.
    """

    path: str
    bytes: int
    digest: Digest


@dataclass(frozen=True, slots=True)
class Device:
    """A hardware model; `cpu` without a device, `unknown` where the source has device work but does not name it."""

    vendor: str
    model: str


CPU: Final = Device("", "cpu")
UNKNOWN_DEVICE: Final = Device("", "unknown")
OF_A_RUN: Final = frozenset({"job_id"})
"""Facts that name a run: they differ from run to run and tell nothing of a version."""

OF_THE_CODE: Final = frozenset({"git_commit", "git_dirty"})
"""Facts of the code that ran: they differ from version to version, and are no environment."""


@dataclass(frozen=True, slots=True)
class Capture:
    """One rank of a run: one process and one device.

    `rank`, `world_size`: None where the source does not say. `started_at_ns`, `ended_at_ns`: UTC, None where the
    source's clock is not absolute. `settings`: the profiler's own (record_shapes, ...); `profiler`: `off` where the
    numbers were measured without one, `summary` where they are sums that it printed; of a throughput `throughput_unit`
    and `throughput_scope` (`per rank`, `total`). `facts`: environment, allow-listed by the reader. `quality`: `ok` or
    `partial`, with the reason. Exactly one of `events` and `rows` is set. `parallel`: where the source says it, the
    place of the rank: `stage` (of the pipeline), and its index in `dp`, `tp`, `pp`, `ep`, `cp`. `labels`: what the
    files call the run, used where the user does not say: `workload`, `version`, `commit`, and `date` (YYYY-MM-DD) of
    the version. `configuration`: what they say of it (`batch_size`, `precision`, `devices`, ...).
    """

    rank: int | None
    world_size: int | None
    host: str
    device: Device
    device_ordinal: int | None
    started_at_ns: int | None
    ended_at_ns: int | None
    sources: tuple[Source, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    quality: str = "ok"
    quality_reason: str = ""
    events: Events | None = None
    rows: Rows | None = None
    parallel: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    configuration: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Profile:
    """What one claimed file or folder holds: the reader's name, and a capture per process and device."""

    format: str
    path: str
    captures: tuple[Capture, ...]
    warnings: tuple[str, ...] = ()
