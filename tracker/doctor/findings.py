"""What `tracker doctor` found, on its way to a report. None: the files do not say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct, field

from tracker.readers import NotRecognised
from tracker.results.screens import Result
from tracker.units import counted


class Lack(Struct, frozen=True):
    """Something that stays empty in the database: what, why, and what to do to have it ("": nothing helps)."""

    what: str
    why: str
    remedy: str = ""


class CaptureFound(Struct, frozen=True):
    """One capture that can be read: one rank, one process and device.

    `steps`: between markers, 0 where there are none. `counts`: what happened how often (`ops`, `kernels`, ...), only
    what is there. `started_at_ns`, `ended_at_ns`: UTC. `lacks`: in the order of the rules.
    """

    paths: tuple[str, ...]
    format: str
    rank: int | None
    world_size: int | None
    device: str
    device_ordinal: int | None
    host: str
    started_at_ns: int | None
    ended_at_ns: int | None
    steps: int
    counts: Mapping[str, int]
    quality: str
    quality_reason: str
    settings: Mapping[str, str]
    labels: Mapping[str, str]
    configuration: Mapping[str, str]
    lacks: tuple[Lack, ...]
    warnings: tuple[str, ...] = ()


class Failure(Struct, frozen=True):
    """A file or folder that cannot be read. `formats`: the readers that claim it; several are the problem itself."""

    path: str
    formats: tuple[str, ...]
    problem: str
    remedy: str


class RunFormed(Struct, frozen=True):
    """A run that an ingest of all readable profiles would form. `reason`: why these captures, and no others.

    `missing_ranks`: of the job, where the world size is known.
    """

    ranks: tuple[int, ...]
    world_size: int | None
    missing_ranks: tuple[int, ...]
    device: str
    steps: int
    started_at_ns: int | None
    paths: tuple[str, ...]
    reason: str


class Unclaimed(Struct, frozen=True):
    """Files (or folders) of one kind that look like profiles and that no reader takes. `bytes`: of all of them."""

    kind: str
    remedy: str
    count: int
    bytes: int
    examples: tuple[str, ...]


class Findings(Result, frozen=True):
    """All that was found. `passed_over`: number of other files. `command`: the words of the next command, () for none;
    `commands`: one per folder, where folders side by side hold runs of their own, each of a version; else ().

    `notes`: sentences about what a user should know before an ingest. `not_recognised`: all files that no reader takes
    and that do not belong to a profile, with why.
    """

    word: ClassVar[str] = "doctor"
    printed_by: ClassVar[str] = "tracker doctor PATH"

    paths: tuple[str, ...]
    captures: tuple[CaptureFound, ...] = ()
    runs: tuple[RunFormed, ...] = ()
    failures: tuple[Failure, ...] = ()
    unclaimed: tuple[Unclaimed, ...] = ()
    passed_over: int = 0
    notes: tuple[str, ...] = field(default=())
    command: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    not_recognised: tuple[NotRecognised, ...] = ()

    @property
    def headline(self) -> str:
        """The paths, and how much of them can be read."""
        unreadable = counted(len(self.failures), "unreadable file")
        return f"{', '.join(self.paths)}: {counted(len(self.captures), 'capture')}, {unreadable}"
