"""What watches, what waits, and what went wrong: the result of `tracker status`. Moments are ns since 1970 UTC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import asdict

from tracker.results.audit import JudgeAudit
from tracker.results.screens import Result, Rows
from tracker.results.waiting import WaitingAlert
from tracker.units import counted

__all__ = ["Status"]


class WatcherStatus(Struct, frozen=True):
    """A process that watches, or did.

    `state`: alive; late: its last sign of life, or its last round, is too long ago, or what it is at takes too long;
    ended; killed: its machine found it dead; lost: nobody has heard of it for long. `every_ns`: None for one round
    only. `round_ns`: None: none yet. `job`, `job_ns`: what it is at and since when, None: nothing.
    """

    host: str
    pid: int
    state: str
    program: str
    every_ns: int | None
    started_ns: int
    heartbeat_ns: int
    round_ns: int | None
    ended_ns: int | None
    error: str
    error_ns: int | None
    job: str | None = None
    job_ns: int | None = None


class ExpectedStatus(Struct, frozen=True):
    """A workload ('': any) of which runs are expected. `last_ns`: None: none came; `due_ns`: the next one is late then.

    `run_id`, `version`: of its last run in the database, whichever way it came.
    """

    workload: str
    every_ns: int
    last_ns: int | None
    run_id: int | None
    version: str | None
    due_ns: int
    is_missing: bool


class FolderStatus(Struct, frozen=True):
    """A watched folder. `host`: '' where all machines see the same one. `profiles`: how many in which state.

    `arrived_ns`: when its last new run came in; None: none did. `error`, `error_ns`: what keeps a look from seeing
    everything, and since when. `not_taken`: (path, why) of profiles and files that no reader takes; of a folder that
    this machine sees also of what fits no part of the layout.
    """

    path: str
    host: str
    layout: str
    looked_ns: int
    error: str
    error_ns: int | None
    profiles: Mapping[str, int]
    arrived_ns: int | None
    expected: tuple[ExpectedStatus, ...]
    not_taken: tuple[tuple[str, str], ...] = ()


class ProfileStatus(Struct, frozen=True):
    """A profile that is not in the database yet. `reason`: why, '' where nothing is wrong; `next_try_ns`: 0: now."""

    path: str
    host: str
    workload: str
    version: str
    state: str
    state_ns: int
    changed_ns: int
    size_bytes: int
    attempts: int
    next_try_ns: int
    reason: str


class MessageStatus(Struct, frozen=True):
    """A message that was not delivered yet, or given up (`state` dead); `next_try_ns`: None: not by itself."""

    id: int
    channel: str
    event: str
    state: str
    workload: str
    title: str
    created_ns: int
    next_try_ns: int | None
    attempts: int
    last_error: str | None


class SilenceStatus(Struct, frozen=True):
    """What nothing is told of until `until_ns`: patterns of operator, workload and device."""

    silence_id: int
    op: str
    workload: str
    device: str
    who: str
    reason: str
    until_ns: int


class SpooledStatus(Struct, frozen=True):
    """A profile that a job queued. `why`: what it waits for, or its last error; `is_given_up`: it is tried no more.

    `next_try_ns`: 0: now; `kept_until_ns`: of what was given up, None: it is tried again.
    """

    entry: str
    profile: str
    queued_ns: int
    attempts: int
    why: str
    is_given_up: bool
    next_try_ns: int = 0
    kept_until_ns: int | None = None


class ShutStatus(Struct, frozen=True):
    """A folder in which jobs may have queued profiles, and from which this user cannot take them."""

    path: str
    problem: str


class Status(Result, frozen=True):
    """All of it, at `now_ns`. `profiles`: quarantined first, then what is at work, ready and waiting.

    `messages`: those given up first. `muted`: findings that users muted one by one. `spooled`: what lies in the spools
    that were named, of this machine; `shut`: folders of those that this user cannot take from. `waiting_alerts`:
    incidents that wait for the usual number of runs of a version. `judge`: what it found of late.
    """

    word: ClassVar[str] = "status"
    printed_by: ClassVar[str] = "tracker status"

    database: str
    now_ns: int
    watchers: tuple[WatcherStatus, ...] = ()
    folders: tuple[FolderStatus, ...] = ()
    profiles: tuple[ProfileStatus, ...] = ()
    messages: tuple[MessageStatus, ...] = ()
    silences: tuple[SilenceStatus, ...] = ()
    muted: int = 0
    spooled: tuple[SpooledStatus, ...] = ()
    shut: tuple[ShutStatus, ...] = ()
    waiting_alerts: tuple[WaitingAlert, ...] = ()
    judge: JudgeAudit = JudgeAudit()

    def chosen_tables(self, only: Sequence[str] = (), limit: int | None = None) -> dict[str, Rows]:
        """Return what it says of the whole, then its lists, that of what is expected the last."""
        whole: dict[str, Any] = {}
        lists: dict[str, Rows] = {}
        for name, value in asdict(self).items():
            if isinstance(value, tuple):
                lists[name] = [asdict(row) for row in value]
            else:
                whole[name] = value
        lists["folders"] = [_folder_row(folder) for folder in self.folders]
        expected = [{"path": folder.path} | asdict(one) for folder in self.folders for one in folder.expected]
        return {"status": [whole], **lists, "expected": expected}

    @property
    def headline(self) -> str:
        """The database, and how much watches and waits."""
        watching = sum(one.state in ("alive", "late") for one in self.watchers)
        return f"{self.database}: {counted(watching, 'watcher')}, {counted(len(self.profiles), 'profile')} waiting"


def _folder_row(folder: FolderStatus) -> dict[str, Any]:
    """Return a watched folder as a row, what it lists as text; what is expected of it has a table of its own."""
    row = asdict(folder)
    del row["expected"]
    row["profiles"] = str(dict(folder.profiles))
    row["not_taken"] = str([list(pair) for pair in folder.not_taken])
    return row
