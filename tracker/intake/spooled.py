"""Profiles that jobs queued: taken from the spool into the database, each tried a number of times, none lost.

`tracker.hooks.spool` says what a spool is, and writes entries. An entry leaves it when its profile is in the database;
after ATTEMPTS tries it moves to the sub-folder `failed`, with its last error, and stays there for KEPT_NS.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, ParamSpec, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tracker import config
from tracker.errors import SourceError, StoreError, TrackerError, our_fault
from tracker.hooks import spool
from tracker.intake import sidecar
from tracker.intake.ingesting import IngestResult, ingest_of_job, judge_runs
from tracker.intake.sidecar import NOTHING, Sidecar
from tracker.limits.deadline import LOOK_S
from tracker.limits.files import MOST_FILES
from tracker.limits.touch import LateError, touch
from tracker.units import NS_PER_DAY, NS_PER_MINUTE

if TYPE_CHECKING:
    from tracker.intake.touching import Toucher
    from tracker.store import Store

P = ParamSpec("P")
Answer = TypeVar("Answer")

ATTEMPTS: Final = 20
KEPT_NS: Final = 90 * NS_PER_DAY
"""How long what was given up stays in `failed`."""

_FIRST_PAUSE_NS: Final = NS_PER_MINUTE
_LONGEST_PAUSE_NS: Final = NS_PER_DAY
_REMEDY: Final = "see what wrote it; the profile can be ingested by its path"


_Count = Annotated[int, msgspec.Meta(ge=0)]


class Entry(Struct, frozen=True, kw_only=True):
    """The content of an entry: see `tracker.hooks.spool.add`. `said`: as options of the ingest; `otherwise`: as
    `IngestOptions.otherwise`. `wait_for`: a file that is there once the profile is complete. `error`: of the last try.
    `database`: for which it was queued, without its user; '' for the default one, or where it is not known.
    """

    profile: str
    schema: int = 1
    host: str = ""
    database: str = ""
    queued_at_ns: int = 0
    attempts: _Count = 0
    tried_at_ns: int = 0
    wait_for: str | None = None
    error: str = ""
    said: Sidecar = NOTHING
    otherwise: Sidecar = NOTHING


class Spooled(Struct, frozen=True):
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


class Waiting(Struct, frozen=True):
    """An entry that is in a spool. `why`: what it waits for, or the error of its last try; '' before the first.

    `is_barred`: this user may not read the profile, or not for the user who
    queued it. `next_try_ns`: not before then, 0: now. `kept_until_ns`: of what was given up; None: it is tried again.
    """

    entry: Path
    profile: str
    queued_at_ns: int
    attempts: int
    why: str
    given_up: bool
    database: str = ""
    is_barred: bool = False
    next_try_ns: int = 0
    kept_until_ns: int | None = None


class _How(Struct, frozen=True):
    """How profiles are read: see `IngestOptions`."""

    max_bytes: int
    loaders: tuple[str, ...]


def take_spooled(  # noqa: PLR0913 each is one thing that a watcher says, or a user
    store: Store,
    folder: Path,
    *,
    now_ns: int | None = None,
    again: bool = False,
    judge: bool = True,
    max_bytes: int = config.MAX_BYTES,
    loaders: tuple[str, ...] = (),
    unsaid: Sidecar = NOTHING,
    begins: Callable[[str], bool] = lambda profile: True,
    toucher: Toucher | None = None,
) -> list[Spooled]:
    """Ingest what waits in the spools at or below `folder` into `store`; what became of each entry that was tried.

    Each in an ingest of its own, those first that were tried least; the versions that they are of are judged once, at
    the end, unless `judge` says that the caller does it. Left alone: what another process is taking, what is still
    being analysed, what lies on another machine or may not be read here, and what was tried too short a time ago: one
    minute after the first try, twice as long after each further one, at most a day. `again`: that as well, and what was
    given up. `unsaid`: version and workload of entries that say none, nor their sidecars, and what the main line is
    called, whatever they say. `begins` is told of each
    profile before it is read, and says whether to go on.
    `loaders`: as of `IngestOptions`. `toucher`: looks at the profiles and reads them in another process. A database
    that fails ends it with its StoreError, and counts against no entry; nor does a signal.
    """
    now = time.time_ns() if now_ns is None else now_ns
    done: list[Spooled] = []
    for place in _places(folder):
        with _taking(place) as mine:
            if not mine:
                continue
            _forget(place, now - KEPT_NS)
            if again:
                _take_back(place)
            ranks_of_job = _count_ranks_of_jobs(place, toucher)
            for path, entry in _due(place, now, again):
                if not begins(str(path) if isinstance(entry, SourceError) else entry.profile):
                    break
                if isinstance(entry, Entry):
                    try:
                        is_within_reach = _ask(toucher, entry, _is_within_reach, path, entry, now)
                    except SourceError as error:
                        done.append(_failed(path, entry, str(error), now))
                        continue
                    if not is_within_reach:
                        continue
                handed_over = None
                if isinstance(entry, Entry):
                    job = _sidecar_of(entry, toucher).facts.get("job_id", "")
                    handed_over = ranks_of_job.get(job)
                labelled = _labelled(entry, unsaid)
                done.append(_take(store, path, labelled, _How(max_bytes, loaders), now, toucher, handed_over))
    if judge:
        judge_runs(store, [run_id for one in done for run_id in one.run_ids])
    return done


def _count_ranks_of_jobs(place: Path, toucher: Toucher | None) -> dict[str, int]:
    """Return job -> how many of its ranks have a profile in a spool; a rank may have several, of one cycle each."""
    ranks: dict[str, set[int]] = {}
    for path in map(Path, spool.entries(str(place))):
        try:
            said = _sidecar_of(_read(path), toucher)
        except (SourceError, OSError):
            continue
        job = said.facts.get("job_id")
        if job and said.rank is not None:
            ranks.setdefault(job, set()).add(said.rank)
    return {job: len(own) for job, own in ranks.items()}


def _sidecar_of(entry: Entry, toucher: Toucher | None) -> Sidecar:
    """Return what lies beside a profile; NOTHING where there is no sidecar, or none that can be read."""
    if _elsewhere(entry):
        return NOTHING
    try:
        return _ask(toucher, entry, _read_sidecar, entry.profile)
    except (TrackerError, OSError):
        # who takes the profile meets the same error, and reports it
        return NOTHING


def _read_sidecar(profile: str) -> Sidecar:
    path = sidecar.sidecar_of(Path(profile))
    return NOTHING if path is None else sidecar.read(path)[0]


def _labelled(entry: Entry | SourceError, unsaid: Sidecar) -> Entry | SourceError:
    """An entry with the version and workload that hold where neither its job nor a sidecar says any, and with the name
    of the main line.
    """
    if isinstance(entry, SourceError) or unsaid == NOTHING:
        return entry
    version, workload = entry.otherwise.version or unsaid.version, entry.otherwise.workload or unsaid.workload
    return replace(
        entry,
        said=replace(entry.said, main_branch=unsaid.main_branch or entry.said.main_branch),
        otherwise=replace(entry.otherwise, version=version, workload=workload),
    )


def _places(folder: Path) -> list[Path]:
    """The spools at or below a folder, also those of which all entries were given up."""
    return sorted({path.parent.parent if _is_given_up(path) else path.parent for path in _entries_below(folder)})


@contextmanager
def _taking(place: Path) -> Iterator[bool]:
    """Whether what is in a spool may be taken now: nobody else does, and we may write there."""
    try:
        lock = spool.locked(str(place), spool.TAKING)
        mine = lock.__enter__()
    except OSError:  # `hooks.places.shut` tells of it
        yield False
        return
    try:
        yield mine
    finally:
        lock.__exit__(None, None, None)


def _ask(
    toucher: Toucher | None, entry: Entry, function: Callable[P, Answer], *args: P.args, **named: P.kwargs
) -> Answer:
    """Return what `function` says, which looks at the profile of `entry`; LateError where that does not answer."""
    if toucher is not None:
        return toucher.call(Path(entry.profile), min(LOOK_S, toucher.seconds), function, *args, **named)
    with touch(entry.profile):
        return function(*args, **named)


def _is_within_reach(path: Path, entry: Entry, now_ns: int) -> bool:
    """Whether a profile is complete, lies where this machine sees it, and may be read by this process."""
    is_ready = spool.is_ready(msgspec.structs.asdict(entry), now_ns)
    return is_ready and not _elsewhere(entry) and not _barrier(path, entry)


def _entries_below(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith(spool.SUFFIX) and not name.startswith("."):
                yield Path(parent, name)


def _is_given_up(path: Path) -> bool:
    return path.parent.name == spool.FAILED


def waiting(folder: Path, toucher: Toucher | None = None) -> list[Waiting]:
    """All that is in the spools at or below `folder`, oldest first, what was given up last.

    toucher: looks at the profiles in another process.
    """
    found = [_waiting(path, toucher) for path in _entries_below(folder)]
    return sorted(found, key=lambda one: (one.given_up, one.queued_at_ns, one.entry))


def _waiting(path: Path, toucher: Toucher | None) -> Waiting:
    given_up = _is_given_up(path)
    kept = _written_ns(path) + KEPT_NS if given_up else None
    try:
        entry = _read(path)
    except SourceError as error:
        return Waiting(path, "", 0, 0, str(error), given_up, kept_until_ns=kept)
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
        return Waiting(path, "", 0, 0, problem, given_up, is_barred=True, kept_until_ns=kept)
    why, is_barred = entry.error, False
    if not given_up:
        try:
            why, is_barred = _ask(toucher, entry, _hindrance, path, entry)
        except LateError as error:
            why = str(error)
    next_ns = 0 if given_up else _next_ns(entry)
    return Waiting(
        path,
        entry.profile,
        entry.queued_at_ns,
        entry.attempts,
        why,
        given_up,
        entry.database,
        is_barred,
        next_ns,
        kept_until_ns=kept,
    )


def _hindrance(path: Path, entry: Entry) -> tuple[str, bool]:
    """Return why an entry waits, "" for nothing, and whether that is because this user may not read the profile."""
    if barrier := _barrier(path, entry):
        return barrier, True
    if _elsewhere(entry):
        return f"lies on {entry.host}", False
    if not spool.is_ready(msgspec.structs.asdict(entry), time.time_ns()):
        return f"waits for {entry.wait_for}", False
    return entry.error, False


def _due(place: Path, now_ns: int, again: bool) -> list[tuple[Path, Entry | SourceError]]:
    """The entries of one spool whose turn it is, and what is wrong with those that are none; no profile is touched."""
    found: list[tuple[int, Path, Entry | SourceError]] = []
    for path in map(Path, spool.entries(str(place))):
        try:
            entry = _read(path)
        except SourceError as error:
            found.append((0, path, error))
            continue
        except OSError:  # taken meanwhile; or `waiting` tells of it
            continue
        if again or not _next_ns(entry) > now_ns >= entry.tried_at_ns:  # or our own clock went back
            found.append((entry.attempts, path, entry))
    return [(path, either) for _, path, either in sorted(found, key=lambda item: item[:2])]


def _next_ns(entry: Entry) -> int:
    """An entry is not tried again before; 0: now."""
    if not entry.attempts:
        return 0
    return entry.tried_at_ns + min(_FIRST_PAUSE_NS << min(entry.attempts - 1, ATTEMPTS), _LONGEST_PAUSE_NS)


def _elsewhere(entry: Entry) -> bool:
    """Whether the profile lies on a disk of the machine that wrote it, which is not this one."""
    return entry.host not in ("", spool.host_name()) and not os.path.exists(entry.profile)


def _barrier(path: Path, entry: Entry) -> str:
    """Why the profile is left alone; '': it is not. Of another user's entry, only what that user owns is read: this
    process may read more than that user may.
    """
    try:
        os.stat(entry.profile)
        user = path.stat().st_uid
    except PermissionError:
        return f"user {os.getuid()} may not read it"
    except (OSError, ValueError):
        return ""
    if not os.access(entry.profile, os.R_OK):
        return f"user {os.getuid()} may not read it"
    foreign = user != os.geteuid() and not _owns(user, entry.profile)
    return f"user {user} queued it and does not own it" if foreign else ""


def _owns(user: int, profile: str) -> bool:
    """Whether all of a profile is the user's, what links lead to as well; a link that leads nowhere is not."""
    below = (os.path.join(parent, name) for parent, *names in os.walk(profile) for name in (*names[0], *names[1]))
    try:
        for count, each in enumerate(chain([profile], below)):
            # a folder of more files is no profile, and to look at each would keep all others waiting
            if count > MOST_FILES or os.stat(each).st_uid != user:
                return False
    except OSError:
        return False
    return True


def _read(path: Path) -> Entry:
    """SourceError for what is no entry, OSError for what cannot be read."""
    if not stat.S_ISREG(path.lstat().st_mode):
        problem = "is no entry of a spool: a link, a pipe or a device, no file"
        raise SourceError(path, "", problem, remedy="see what put it there, and remove it")
    try:
        entry = msgspec.json.decode(spool.content(str(path)), type=Entry)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(path, "", f"is no entry of a spool ({error})", remedy=_REMEDY) from error
    for said in (entry.said, entry.otherwise):
        for key, problem in sidecar.problems(said):
            raise SourceError(path, f"key {key}", problem, remedy=_REMEDY)
    return entry


def _take(
    store: Store, path: Path, entry: Entry | SourceError, how: _How, now_ns: int, toucher: Toucher | None,
    handed_over: int | None,
) -> Spooled:  # fmt: skip
    """Try one entry. The attempt is written down first: a profile that ends the process counts it all the same."""
    if isinstance(entry, SourceError):
        return _give_up(path, Spooled(path, str(path), error=str(entry)))
    if entry.attempts >= ATTEMPTS:
        error = entry.error or f"reading it ended tracker {entry.attempts} times"
        return _give_up(path, Spooled(path, entry.profile, error=error, attempts=entry.attempts))
    attempts = entry.attempts + 1
    try:
        _rewrite(path, {"attempts": attempts, "tried_at_ns": now_ns, "error": ""})
        results = _ingested(store, path, entry, how, toucher, handed_over)
    except Exception as error:
        if isinstance(error, StoreError):
            raise
        return _failed(path, entry, _problem(error), now_ns)
    with suppress(OSError):  # it comes in again, and is in already
        path.unlink(missing_ok=True)
    run_ids = tuple(result.run_id for result in results)
    return Spooled(path, entry.profile, run_ids, attempts=attempts, results=tuple(results))


def _failed(path: Path, entry: Entry, problem: str, now_ns: int) -> Spooled:
    """Write down that an attempt failed."""
    attempts = entry.attempts + 1
    with suppress(OSError):
        _rewrite(path, {"attempts": attempts, "tried_at_ns": now_ns, "error": problem})
    failed = Spooled(path, entry.profile, error=problem, attempts=attempts)
    return _give_up(path, failed) if attempts >= ATTEMPTS else failed


def _ingested(
    store: Store, path: Path, entry: Entry, how: _How, toucher: Toucher | None, handed_over: int | None
) -> list[IngestResult]:
    """The runs of an entry. An attempt that the database, or a signal, broke off counts for none."""
    before = {"attempts": entry.attempts, "tried_at_ns": entry.tried_at_ns, "error": entry.error}
    try:
        return ingest_of_job(
            store,
            [Path(entry.profile)],
            said=entry.said,
            otherwise=entry.otherwise,
            max_bytes=how.max_bytes,
            loaders=how.loaders,
            judge=False,
            as_stored=True,  # else what was ingested by hand, under labels of its own, would never leave the queue
            read_all_with=None if toucher is None else toucher.read_all,
            ranks_handed_over=handed_over,
        )
    except Exception as error:
        from tracker.store import failures  # only now: readers of profiles in processes of their own need no database

        is_lost = failures.is_connection_lost(error)
        if not is_lost and not isinstance(error, StoreError):
            raise
        _rewrite(path, before)
        if is_lost:
            raise StoreError(f"{store.url}: the connection was lost", remedy="try again") from error
        raise
    except BaseException:
        _rewrite(path, before)
        raise


def _problem(error: Exception) -> str:
    if isinstance(error, TrackerError):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory"
    return our_fault(error)


def _rewrite(path: Path, changed: Mapping[str, Any]) -> None:
    """Change fields of an entry; what a newer hook wrote into it stays."""
    spool.replace(str(path), {**msgspec.json.decode(spool.content(str(path))), **changed})


def _give_up(path: Path, done: Spooled) -> Spooled:
    """Move an entry to `failed`, beside it its error in plain text; where that cannot be done, it stays."""
    folder = path.parent / spool.FAILED
    try:
        spool.make(str(folder))
        reason = f"{done.error}\n".encode(errors="replace")
        spool.write(str(_error_of(folder / path.name)), reason, 0o666, whatever_umask=False)
        os.utime(path, follow_symlinks=False)  # from now on it is kept for so long
        path.replace(folder / path.name)
    except OSError:
        return done
    return Spooled(folder / path.name, done.profile, error=done.error, attempts=done.attempts, given_up=True)


def _error_of(entry: Path) -> Path:
    return entry.with_name(f"{entry.name}.txt")


def _written_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return time.time_ns()


def _forget(place: Path, before_ns: int) -> None:
    """Remove what was given up before a moment."""
    for entry in map(Path, spool.entries(str(place / spool.FAILED))):
        if _written_ns(entry) < before_ns:
            with suppress(OSError):
                entry.unlink()
                _error_of(entry).unlink()


def _take_back(place: Path) -> None:
    """Let what was given up be tried again, as if it never had been."""
    for entry in map(Path, spool.entries(str(place / spool.FAILED))):
        with suppress(OSError, msgspec.DecodeError):
            _rewrite(entry, {"attempts": 0, "tried_at_ns": 0, "error": ""})
            entry.replace(place / entry.name)
            _error_of(entry).unlink(missing_ok=True)
