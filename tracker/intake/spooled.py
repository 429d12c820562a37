"""Profiles that jobs queued: taken from the spool into the database, each tried a number of times, none lost.

`tracker.hooks.spool` says what a spool is, and writes entries. An entry leaves it when its profile is in the database;
after ATTEMPTS tries it moves to the sub-folder `failed`, with its last error.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from tracker import config
from tracker.errors import SourceError, StoreError, UsageError
from tracker.hooks import spool
from tracker.intake import sidecar
from tracker.intake.ingesting import IngestResult, ingest_of_job
from tracker.intake.sidecar import NOTHING, Sidecar
from tracker.units import NS_PER_S

if TYPE_CHECKING:
    from tracker.store import Store

ATTEMPTS: Final = 20
_FIRST_PAUSE_NS: Final = 60 * NS_PER_S
_LONGEST_PAUSE_NS: Final = 24 * 3600 * NS_PER_S
_REMEDY: Final = "see what wrote it; the profile can be ingested by its path"


class Entry(Struct, frozen=True, kw_only=True):
    """The content of an entry: see `tracker.hooks.spool.add`. `said`: as options of the ingest; `otherwise`: as
    `IngestOptions.otherwise`. `wait_for`: a file that is there once the profile is complete. `error`: of the last try.
    """

    profile: str
    schema: int = 1
    host: str = ""
    queued_at_ns: int = 0
    attempts: int = 0
    tried_at_ns: int = 0
    wait_for: str | None = None
    error: str = ""
    said: Sidecar = NOTHING
    otherwise: Sidecar = NOTHING


@dataclass(frozen=True, slots=True)
class Spooled:
    """What became of one entry that was tried. `error`: None where its profile is in the database and the entry gone.

    `given_up`: it was the last try, and the entry lies in `failed`. `attempts`: with this one.
    """

    entry: Path
    profile: str
    run_ids: tuple[int, ...] = ()
    error: str | None = None
    attempts: int = 1
    given_up: bool = False
    results: tuple[IngestResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """An entry that is in a spool. `why`: what it waits for, or the error of its last try; '' before the first."""

    entry: Path
    profile: str
    queued_at_ns: int
    attempts: int
    why: str
    given_up: bool


def take_spooled(
    store: Store, folder: Path, *, max_bytes: int = config.MAX_BYTES, now_ns: int | None = None
) -> list[Spooled]:
    """Ingest what waits in the spools at or below `folder` into `store`; what became of each entry that was tried.

    Each in an ingest of its own, those first that were tried least. Left alone: what another process is taking, what
    is still being analysed, and what lies on another machine. With `now_ns`, also what was tried too short a time ago:
    one minute after the first try, twice as long after each further one, at most a day. A database that fails ends it
    with its StoreError, and counts against no entry.
    """
    done: list[Spooled] = []
    for place in spool.spools(str(folder)):
        with spool.locked(place, spool.TAKING) as mine:
            if mine:
                for path, entry in _ready(Path(place), now_ns):
                    done.append(_take(store, path, entry, max_bytes, now_ns))
    return done


def waiting(folder: Path) -> list[Waiting]:
    """All that is in the spools at or below `folder`, oldest first, what was given up last."""
    found = []
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith(spool.SUFFIX) and not name.startswith("."):
                found.append(_waiting(Path(parent, name)))
    return sorted(found, key=lambda one: (one.given_up, one.queued_at_ns, one.entry))


def _waiting(path: Path) -> Waiting:
    given_up = path.parent.name == spool.FAILED
    try:
        entry = _read(path)
    except SourceError as error:
        return Waiting(path, "", 0, 0, str(error), given_up)
    why = entry.error
    if not given_up and _elsewhere(entry):
        why = f"lies on {entry.host}"
    elif not given_up and not spool.is_ready(msgspec.structs.asdict(entry)):
        why = f"waits for {entry.wait_for}"
    return Waiting(path, entry.profile, entry.queued_at_ns, entry.attempts, why, given_up)


def _ready(place: Path, now_ns: int | None) -> Iterator[tuple[Path, Entry | SourceError]]:
    """The entries of one spool that can be tried now, and what is wrong with those that are none."""
    found: list[tuple[int, Path, Entry | SourceError]] = []
    for name in spool.entries(str(place)):
        path = Path(name)
        try:
            entry = _read(path)
        except SourceError as error:
            found.append((0, path, error))
            continue
        if spool.is_ready(msgspec.structs.asdict(entry)) and not _elsewhere(entry) and _due(entry, now_ns):
            found.append((entry.attempts, path, entry))
    for _, path, either in sorted(found, key=lambda item: item[:2]):
        yield path, either


def _due(entry: Entry, now_ns: int | None) -> bool:
    if now_ns is None or not entry.attempts:
        return True
    pause_ns = min(_FIRST_PAUSE_NS << (entry.attempts - 1), _LONGEST_PAUSE_NS)
    return now_ns >= entry.tried_at_ns + pause_ns


def _elsewhere(entry: Entry) -> bool:
    """Whether the profile lies on a disk of the machine that wrote it, which is not this one."""
    return entry.host not in ("", socket.gethostname()) and not Path(entry.profile).exists()


def _read(path: Path) -> Entry:
    try:
        entry = msgspec.json.decode(path.read_bytes(), type=Entry)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(path, "", f"is no entry of a spool ({error})", remedy=_REMEDY) from error
    for said in (entry.said, entry.otherwise):
        for key, problem in sidecar.problems(said):
            raise SourceError(path, f"key {key}", problem, remedy=_REMEDY)
    return entry


def _take(store: Store, path: Path, entry: Entry | SourceError, max_bytes: int, now_ns: int | None) -> Spooled:
    """Try one entry. The attempt is written down first: a profile that ends the process counts it all the same."""
    if isinstance(entry, SourceError):
        return _give_up(path, Spooled(path, str(path), error=str(entry)))
    if entry.attempts >= ATTEMPTS:
        error = entry.error or f"reading it ended tracker {entry.attempts} times"
        return _give_up(path, Spooled(path, entry.profile, error=error, attempts=entry.attempts))
    attempts = entry.attempts + 1
    _rewrite(path, {"attempts": attempts, "tried_at_ns": now_ns or 0, "error": ""})
    try:
        results = ingest_of_job(
            store, [Path(entry.profile)], said=entry.said, otherwise=entry.otherwise, max_bytes=max_bytes
        )
    except StoreError:
        _rewrite(path, {"attempts": entry.attempts, "tried_at_ns": entry.tried_at_ns, "error": entry.error})
        raise
    except (SourceError, UsageError) as error:
        _rewrite(path, {"error": str(error)})
        failed = Spooled(path, entry.profile, error=str(error), attempts=attempts)
        return _give_up(path, failed) if attempts >= ATTEMPTS else failed
    path.unlink(missing_ok=True)
    run_ids = tuple(result.run_id for result in results)
    return Spooled(path, entry.profile, run_ids, attempts=attempts, results=tuple(results))


def _rewrite(path: Path, changed: Mapping[str, Any]) -> None:
    """Change fields of an entry; what a newer hook wrote into it stays."""
    spool.replace(str(path), {**msgspec.json.decode(path.read_bytes()), **changed})


def _give_up(path: Path, done: Spooled) -> Spooled:
    """Move an entry to `failed`, beside it its error in plain text."""
    folder = path.parent / spool.FAILED
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / f"{path.name}.txt").write_text(f"{done.error}\n", encoding="utf-8")
    path.replace(folder / path.name)
    return Spooled(folder / path.name, done.profile, error=done.error, attempts=done.attempts, given_up=True)
