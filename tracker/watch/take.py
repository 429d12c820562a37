"""Ingests the profiles that are ready, one by one; what cannot be read is quarantined, and the rest goes on.

The runs are not judged here: a line is judged once for all that came.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tracker import intake
from tracker.config import Watch
from tracker.errors import SourceError, StoreError, UsageError, our_fault, without_place
from tracker.intake import IngestOptions, Sidecar
from tracker.limits.touch import LateError
from tracker.readers import not_recognised_line
from tracker.store import failures, inbox
from tracker.store.inbox import Arrival, End, Entry
from tracker.units import NS_PER_HOUR, NS_PER_MINUTE, NS_PER_S
from tracker.watch.content import content_of
from tracker.watch.failing import each
from tracker.watch.find import Labels, labels_of
from tracker.watch.work import Event, Place, Work

if TYPE_CHECKING:
    from tracker.intake import IngestResult, Toucher

MAX_DEATHS: Final = 3
"""A profile during which a watcher died so often in a row is not tried again."""

_PAUSES_MINUTES: Final = (1, 5, 15, 60)
"""After what is not the profile's fault: until the next attempt; the last one for all further ones."""

_AGAIN_S: Final = 60.0
_AT_ONCE_NS: Final = NS_PER_HOUR
_PASSING: Final = frozenset(
    {
        errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ESTALE, errno.ETIMEDOUT,
        errno.EBUSY, errno.EAGAIN, errno.EINTR, errno.ENOTCONN, errno.EHOSTDOWN, errno.EREMOTEIO,
    }
)  # fmt: skip
"""What goes wrong with disks, networks and memory, whatever the file."""


class _Task(Struct, frozen=True):
    """A profile with the watched folder that it lies in."""

    entry: Entry
    place: Place

    @property
    def path(self) -> Path:
        return Path(self.entry.path)


def take(work: Work, *, until_ns: int | None = None) -> None:
    """Ingest what is ready, in order; begin no further profile after `until_ns`.

    A StoreError ends it: the database is not there, and what was being read stays ready. Anything else that goes wrong
    beside the reading of a profile (nobody hears what is said) ends the work on that one alone.
    """
    places = {(place.host, str(place.root)): place for place in work.places}
    now = work.now()
    due = [
        entry
        for entry in inbox.entries(work.store, open_only=True)
        if entry.state in ("ready", "working")
        and (entry.host, entry.folder) in places
        and not now < entry.next_try_ns <= now + _PAUSES_MINUTES[-1] * NS_PER_MINUTE  # or our own clock went back
    ]

    def begun() -> Iterator[Callable[[], None]]:
        for entry in in_order(due):
            if until_ns is not None and work.now() >= until_ns:
                return
            died = entry.id not in work.broken_off
            if inbox.start(work.store, entry, work.owner, now_ns=work.now(), died=died):
                yield partial(_take, work, _Task(entry, places[(entry.host, entry.folder)]))

    each(work, begun())


def take_spooled(work: Work, *, until_ns: int | None = None) -> None:
    """Ingest what jobs of this machine, and of those that share its spool, left there; begin none after `until_ns`."""
    each(work, (partial(_take_spool, work, place, until_ns) for place in work.spools()))


def _take_spool(work: Work, place: Path, until_ns: int | None) -> None:
    outer = work.doing

    settings = work.settings
    try:
        with _limited(work.settings.watch) as limit:

            def begins(profile: str) -> bool:
                limit(profile)
                work.doing = (f"reading {profile}", work.now())
                return until_ns is None or work.now() < until_ns

            taken = intake.take_spooled(
                work.store, place, now_ns=work.now(), judge=False, max_bytes=settings.max_bytes,
                loaders=settings.loaders, begins=begins,
                unsaid=Sidecar(main_branch=settings.main_branch), toucher=_reader(work),
            )  # fmt: skip
    except BaseException:
        work.to_judge = None  # something may have come in before
        raise
    finally:
        work.doing = outer
    if work.to_judge is not None:  # before anything is said: whatever becomes of that, all of it is judged
        work.to_judge |= {run_id for done in taken for run_id in done.run_ids}
    for done in taken:
        if done.error is None:
            _say(work, done.profile, done.results)
        else:
            fate = "given up" if done.given_up else f"attempt {done.attempts}"
            why = without_place(done.error, done.profile)
            work.say(Event("put off", f"{done.profile}: {why} ({fate}, {done.entry})"))


def in_order(entries: Sequence[Entry]) -> list[Entry]:
    """Profiles in the order of their versions, as far as it can be told: versions stand in the order they come in.

    Those of one folder and workload go by the time at which they were written; were all written within an hour, they
    were copied, and go by their names. Numbers in names count as numbers.
    """
    groups: dict[tuple[int, str], list[Entry]] = {}
    for entry in entries:
        groups.setdefault((entry.folder_id, entry.workload), []).append(entry)
    ordered: list[list[Entry]] = []
    for group in groups.values():
        times = [entry.written_ns for entry in group]
        by_name = max(times) - min(times) < _AT_ONCE_NS
        ordered.append(sorted(group, key=lambda entry: (0 if by_name else entry.written_ns, _natural(entry.path))))
    return [entry for group in sorted(ordered, key=lambda group: group[0].written_ns) for entry in group]


def _natural(text: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text)]


def _take(work: Work, task: _Task) -> None:
    """The work on one profile, which is ours; whatever comes of it is written down."""
    entry = task.entry
    try:
        with work.at(f"reading {entry.path}"):
            end = _died_too_often(work, entry) or _ingested(work, task)
        inbox.finish(work.store, entry, work.owner, end, now_ns=work.now())
    except BaseException:
        # an attempt that was broken off (by a signal, or as nobody hears what is said) says nothing about the profile
        work.broken_off.add(entry.id)
        with suppress(StoreError, *failures.CONNECTION_ERRORS):
            again = End("ready", entry.reason, entry.attempts, entry.deaths)
            inbox.finish(work.store, entry, work.owner, again, now_ns=work.now())
        raise
    work.broken_off.discard(entry.id)
    if end.state == "quarantined":
        work.say(Event("quarantined", f"{entry.path}: {without_place(end.reason, entry.path)}"))
    elif end.state == "ready":
        work.say(Event("put off", f"{entry.path}: {without_place(end.reason, entry.path)}"))


def _died_too_often(work: Work, entry: Entry) -> End | None:
    deaths = entry.deaths + 1  # this one is not counted yet
    if entry.state != "working" or deaths < MAX_DEATHS or entry.id in work.broken_off:
        return None
    problem = f"the watcher died while it read this, {deaths} times in a row"
    return End("quarantined", f"{problem}; it may need more memory than there is: tracker doctor reads it alone")


def _ingested(work: Work, task: _Task) -> End:
    entry = task.entry
    if not _is_as_seen(work, task):
        return End("waiting")  # it changed since the last look; the next one writes down how
    labels = labels_of(task.place.folder, task.path.relative_to(task.place.root).parts)
    if labels is None:
        return End("waiting", "the layout means it no longer")
    try:
        with _limited(work.settings.watch) as limit:
            limit(entry.path)
            results = intake.ingest(work.store, [task.path], options=_options(work, task.place, labels))
    except StoreError:
        raise
    except (SourceError, UsageError, MemoryError, OSError) as error:
        if not isinstance(error, LateError) and not _is_there(work, task):
            return End("waiting")
        return _put_off(work, entry, error) if _is_passing(error) else End("quarantined", str(error))
    except Exception as error:  # a fault of ours in one profile must not keep all others out
        if failures.is_connection_lost(error):
            raise StoreError(f"{work.store.url}: the connection was lost", remedy="it is tried again") from error
        work.say(Event("failed", traceback.format_exc().strip()))
        return End("quarantined", our_fault(error))
    if work.to_judge is not None:
        work.to_judge |= {result.run_id for result in results}
    _say(work, entry.path, results)
    return End("ingested", arrival=_arrival(results, entry))


def _is_there(work: Work, task: _Task) -> bool:
    """Whether a profile is still there, or may be."""
    try:
        return work.touching(task.path, os.path.exists, task.path)
    except SourceError:
        return True


@contextmanager
def _limited(watch: Watch) -> Iterator[Callable[[str], None]]:
    """Within the block, a profile for which the function was called ends with a SourceError after `watch.limit`; also
    in the middle of a pattern, and again each minute, should something take the first for an error of its own.
    """

    def begin(path: str) -> None:
        def give_up(*_: object) -> None:
            problem = f"reading it took longer than {watch.limit}"
            raise SourceError(path, "", problem, remedy="raise watch.limit in the settings, or ingest it alone")

        signal.signal(signal.SIGALRM, give_up)
        signal.setitimer(signal.ITIMER_REAL, watch.limit_ns / NS_PER_S, _AGAIN_S)

    before = signal.getsignal(signal.SIGALRM)
    try:
        yield begin
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _reader(work: Work) -> Toucher | None:
    """What reads profiles in another process, in the time that the settings allow."""
    if work.touch is not None:
        work.touch.seconds = work.settings.watch.limit_ns / NS_PER_S
    return work.touch


def _is_as_seen(work: Work, task: _Task) -> bool:
    """Whether a profile is what the last look saw, and all of it can still be looked into."""
    with suppress(OSError, SourceError):
        content = work.touching(task.path, content_of, task.path)
        return content is not None and content.digest == task.entry.content
    return False


def _options(work: Work, place: Place, labels: Labels) -> IngestOptions:
    """What a profile says of itself goes before what its folders say."""
    otherwise = Sidecar(
        workload=labels.workload,
        branch=labels.branch,
        version=labels.version,
        configuration=dict(labels.configuration),
        tags=dict(labels.tags),
        device=place.folder.device,
        expect_ranks=place.folder.expect_ranks,
    )
    reader = _reader(work)
    return IngestOptions(
        otherwise=otherwise, format=place.folder.format, max_bytes=work.settings.max_bytes, judge=False,
        loaders=work.settings.loaders, main_branch=work.settings.main_branch,
        read_all_with=None if reader is None else reader.read_all,
    )  # fmt: skip


def _is_passing(error: BaseException | None) -> bool:
    """Whether an error comes from a disk, a network or memory, and not from what the file holds."""
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _PASSING):
            return True
        error = error.__cause__
    return False


def _put_off(work: Work, entry: Entry, error: BaseException) -> End:
    attempts = entry.attempts + 1
    minutes = _PAUSES_MINUTES[min(attempts, len(_PAUSES_MINUTES)) - 1]
    reason = "out of memory" if isinstance(error, MemoryError) else " ".join(str(error).split())
    return End("ready", reason, attempts, next_try_ns=work.now() + minutes * NS_PER_MINUTE)


def _arrival(results: Sequence[IngestResult], entry: Entry) -> Arrival:
    is_new = bool(entry.attempts) or entry.state == "working" or any(not result.already for result in results)
    return Arrival([result.run_id for result in results], results[0].workload, results[0].version, is_new)


def _say(work: Work, path: str, results: Sequence[IngestResult]) -> None:
    for result in results:
        if result.not_recognised:
            work.say(Event("passed over", f"{path}: {not_recognised_line(result.not_recognised, Path(path))}"))
        for warning in result.warnings:
            work.say(Event("warning", f"{path}: {warning}"))
        words = {"already in": result.already, "ranks added": result.joined, "another cycle": result.renewed}
        state = next((word for word, holds in words.items() if holds), "new")
        text = f"{path}: run:{result.run_id} {state}, {result.version} of {result.workload}"
        work.say(Event("unchanged" if result.already else "ingested", text))
