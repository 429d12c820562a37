"""Looks at the watched folders, and writes down what is new, what changed, what stands still, and what is gone."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Final

from tracker import readers
from tracker.errors import SourceError, TrackerError, our_fault
from tracker.limits.touch import LateError
from tracker.store import inbox, watchers
from tracker.store.dimensions import digest_of
from tracker.store.inbox import Entry, Seen, State
from tracker.units import NS_PER_DAY, counted
from tracker.watch.content import Content, content_of
from tracker.watch.failing import each
from tracker.watch.find import Item, Listing, listing
from tracker.watch.work import Event, Place, Work

PATIENCE_NS: Final = NS_PER_DAY
"""A profile that stands still this long is taken although its profiler did not say that it is done."""

_NAMED: Final = 5
"""So many paths outside the layout are named; more are counted."""

_MOST_LATE: Final = 5
"""So many paths that do not answer are waited for in one look at a folder; the next look leaves them out."""

_DATA: Final = re.compile(r".*\.(?:json|json\.gz|csv|db|sqlite)", re.IGNORECASE)
_NAMED_SO: Final = re.compile(r".*(?:trace|profil).*", re.IGNORECASE)
"""Files that nobody knows, but that somebody calls a profile, or that are empty: exports that failed."""


def scan(work: Work, *, always: bool = False) -> None:
    """Look at all folders; not where another watcher did within half the time between two looks, unless `always`.

    One that cannot be looked at keeps none of the others from it.
    """
    each(work, (partial(_look, work, place, always=always) for place in work.places))


def _look(work: Work, place: Place, *, always: bool) -> None:
    since = None if always else work.now() - work.settings.watch.every_ns // 2
    name = f"scan:{digest_of((place.host, place.root)).hex()}"
    with work.lease(name, undone_since_ns=since) as ours:
        if ours:
            _scan(work, place)


def _scan(work: Work, place: Place) -> None:
    now = work.now()
    number = watchers.folder_id(work.store, place.host, str(place.root), place.folder.layout, now_ns=now)
    found = _listed(work, place)
    known = {entry.path: entry for entry in inbox.entries(work.store, number)}
    seen: list[Seen] = []
    back: list[Entry] = []
    for item in found.items:
        try:
            content = work.touching(item.path, content_of, item.path)
            if content is None:
                continue
            entry = known.pop(str(item.path), None)
            as_seen = _seen(work, place, item, content, entry)
        except LateError as error:
            found.unseen[item.path] = str(error)
            work.note_late(item.path, str(error))
            continue
        except Exception as error:  # noqa: BLE001 one profile must not keep all others out
            where = getattr(error, "filename", None) or item.path
            found.unseen[item.path] = f"{where}: {_why(error)}"
            continue
        if as_seen is not None:
            seen.append(as_seen)
        elif entry is not None and entry.gone_ns is not None:
            back.append(entry)
    gone = [entry for entry in known.values() if entry.gone_ns is None and not found.may_hold(Path(entry.path))]
    inbox.note(work.store, number, seen, gone, back, now_ns=now)
    watchers.note_folder(work.store, number, _problem(found), _expected(work, place, number, found), now_ns=now)
    _say(work, place, seen, found)


def _listed(work: Work, place: Place) -> Listing:
    """What is below a folder. A path that is late is left out, for a while, and the others are looked at; that nothing
    of the folder is known where too many are.
    """
    problem = ""
    for _ in range(_MOST_LATE):
        try:
            return work.touching(place.root, listing, place.folder, place.root, work.late_paths())
        except LateError as error:
            work.note_late(Path(error.path), str(error))
            problem = str(error)
        except SourceError as error:
            return Listing(unseen={place.root: str(error)})
    return Listing(unseen={place.root: problem})


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot be looked into ({error.strerror})"
    if isinstance(error, TrackerError):
        return str(error)
    return our_fault(error)


def _seen(work: Work, place: Place, item: Item, content: Content, entry: Entry | None) -> Seen | None:
    """What there is to write down of a profile; None where nothing is new."""
    now = work.now()
    if entry is None:
        changed = content.still_since_ns(now)
    elif entry.content != content.digest or entry.changed_ns > now:  # or our own clock went back
        changed = now
    elif entry.state == "waiting":
        changed = entry.changed_ns
    else:
        return None
    state, reason = _state(work, place, item, now - changed)
    known = None if entry is None else (entry.state, entry.reason, entry.content, entry.changed_ns, entry.gone_ns)
    if known == (state, reason, content.digest, changed, None):
        return None
    return Seen(
        path=str(item.path),
        state=state,
        content=content.digest,
        size_bytes=content.size_bytes,
        written_ns=content.written_ns,
        changed_ns=changed,
        reason=reason,
        known_id=None if entry is None else entry.id,
        known_content=None if entry is None else entry.content,
        workload=item.labels.workload or "",
        version=item.labels.version or "",
    )


def _state(work: Work, place: Place, item: Item, still_ns: int) -> tuple[State, str]:
    """What can be done with a profile that stands still for so long, and why not more."""
    if still_ns < work.settings.watch.settled_ns:
        return "waiting", ""
    passed, unfinished = work.touching(item.path, _look_at, item.path, place.folder.format)
    if passed:
        return "passed", passed
    return ("waiting", unfinished) if unfinished and still_ns < PATIENCE_NS else ("ready", "")


def _look_at(path: Path, format: str | None) -> tuple[str, str]:
    """Why a profile is passed over, and why its profiler is not done with it; "" each where it is not, and is."""
    looks = list(readers.survey(path, format))
    if not any(look.claims or look.problem for look in looks) and not _is_failed_export(path):
        return _why_passed(path), ""
    return "", next(filter(None, map(readers.unfinished, looks)), "")


def _why_passed(path: Path) -> str:
    """Return why no reader takes a file or a folder, with what to give in place of a file of another tool."""
    if not path.is_file():
        return "no profile in this folder"
    refused = readers.refused_kind(path)
    return "no reader knows this file" if refused is None else f"{refused.title}; {refused.instead}"


def _is_failed_export(path: Path) -> bool:
    if not _DATA.fullmatch(path.name) or not path.is_file():
        return False
    return path.stat().st_size == 0 or _NAMED_SO.fullmatch(path.name) is not None


def _problem(found: Listing) -> str:
    """What kept the look from seeing everything, '' for nothing."""
    reasons = list(found.unseen.values())
    more = f", and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}" if reasons else ""


def _unplaced(found: Listing) -> str:
    """The files that fit no part of the layout, '' for none."""
    shown = ", ".join(str(path) for path in found.unplaced[:_NAMED])
    more = f" and {len(found.unplaced) - _NAMED} more" if len(found.unplaced) > _NAMED else ""
    return f"{counted(len(found.unplaced), 'path')} outside the layout: {shown}{more}" if found.unplaced else ""


def _expected(work: Work, place: Place, number: int, found: Listing) -> dict[str, int]:
    """The workloads of which runs are expected in a folder, and how often.

    Those that the layout has folders for, or the one of the settings; '' is any. What could not be seen stays.
    """
    every = place.folder.expect_every_ns
    if every is None:
        return {}
    known = {one.workload for one in watchers.expectations(work.store, now_ns=work.now()) if one.folder_id == number}
    workloads = found.workloads | (known if found.unseen else set())
    return dict.fromkeys(workloads or {place.folder.workload or ""}, every)


def _say(work: Work, place: Place, seen: list[Seen], found: Listing) -> None:
    new = sum(one.known_id is None for one in seen)
    if new:
        work.say(Event("found", f"{counted(new, 'profile')} in {place.root}"))
    for one in seen:
        if one.state == "passed":
            work.say(Event("passed over", f"{one.path}: {one.reason}"))
        elif one.reason:
            work.say_once(one.path, Event("put off", f"{one.path}: {one.reason}"))
    unplaced = _unplaced(found)
    if unplaced or work.told.get(f"layout:{place.root}"):
        said = unplaced or f"{place.root}: all of it fits the layout"
        work.say_once(f"layout:{place.root}", Event("passed over", said))
    problem = _problem(found)
    if problem or work.told.get(str(place.root)):
        work.say_once(str(place.root), Event("folder", problem or f"{place.root}: all of it can be looked at again"))
