"""What watches, what waits, and what went wrong, as the database knows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tracker import intake
from tracker.config import Alerts, Folder
from tracker.notify.enqueueing import list_waiting
from tracker.regressions.audit import audit_judge
from tracker.regressions.inbox import found_rows, uncovered
from tracker.regressions.track import named_tracks, read_tracks
from tracker.results.status import (
    ExpectedStatus,
    FolderStatus,
    MessageStatus,
    ProfileStatus,
    ShutStatus,
    SilenceStatus,
    SpooledStatus,
    Status,
    WatcherStatus,
)
from tracker.store import Store, inbox, notifications, read_one_state, watchers
from tracker.store.watchers import LEASE_LIFETIME_NS, Expectation, LastRun, WatchedFolder, Watcher
from tracker.units import NS_PER_DAY
from tracker.watch.alarms import is_stuck, missing
from tracker.watch.find import listing
from tracker.watch.work import this_host

_LATE_ROUNDS: Final = 5
_ORDER: Final = ("quarantined", "working", "ready", "waiting")


@read_one_state
def status(
    store: Store, *, now_ns: int, spools: Sequence[Path] = (), shut: Sequence[tuple[Path, str]] = (),
    alerts: Alerts | None = None,
) -> Status:  # fmt: skip
    """All of it, what waits in `spools`, which folders of spools are `shut`, and which `alerts` wait for runs.

    Of watchers that are no more, only those of the last day, and the last one that ended well.
    """
    expected = watchers.expectations(store, now_ns=now_ns)
    late = {one.id for one in missing(expected, now_ns)}
    last = watchers.last_runs(store)
    counts = inbox.counts(store)
    profiles = sorted(inbox.entries(store, open_only=True), key=lambda one: (_ORDER.index(one.state), one.path))
    tracks = read_tracks(store, named_tracks(store))
    rows = found_rows(store, now_ns=now_ns, tracks=tracks) if tracks else []
    muted = len(uncovered([row for row in rows if row.state == "muted"]))
    return Status(
        database=store.url,
        now_ns=now_ns,
        watchers=tuple(_watchers(watchers.watchers(store), now_ns)),
        folders=tuple(
            _folder(
                folder,
                [one for one in counts if one.folder_id == folder.id],
                [
                    _expected(one, last.get(one.workload), one.id in late)
                    for one in expected
                    if one.folder_id == folder.id
                ],
                tuple(_not_taken(store, folder, counts)),
            )
            for folder in watchers.folders(store)
        ),
        profiles=tuple(
            ProfileStatus(**{name: getattr(entry, name) for name in ProfileStatus.__struct_fields__})
            for entry in profiles
        ),
        messages=tuple(_messages(store)),
        silences=tuple(
            SilenceStatus(**{name: getattr(one, name) for name in SilenceStatus.__struct_fields__})
            for one in notifications.silences(store, now_ns)
        ),
        muted=muted,
        spooled=tuple(
            SpooledStatus(
                str(one.entry),
                one.profile,
                one.queued_at_ns,
                one.attempts,
                one.why,
                one.given_up,
                one.next_try_ns,
                one.kept_until_ns,
            )
            for place in spools
            for one in intake.waiting(place)
        ),
        shut=tuple(ShutStatus(str(place), problem) for place, problem in shut),
        judge=audit_judge(tracks, rows),
        waiting_alerts=tuple(list_waiting(store, alerts, now_ns=now_ns)) if alerts is not None else (),
    )


def _messages(store: Store) -> list[MessageStatus]:
    """The messages that were not delivered, those given up first."""
    rows = notifications.listed(store).rows(*MessageStatus.__struct_fields__)
    found = [MessageStatus(*row) for row in rows]
    return sorted(found, key=lambda one: (one.state != "dead", one.created_ns, one.id))


def _watchers(known: list[Watcher], now_ns: int) -> list[WatcherStatus]:
    found, has_ended = [], False
    for watcher in known:
        state = _state(watcher, now_ns)
        if state == "ended":
            if has_ended:
                continue
            has_ended = True
        if watcher.ended_ns is not None and now_ns - watcher.ended_ns > NS_PER_DAY:
            continue
        said = {name: getattr(watcher, name) for name in WatcherStatus.__struct_fields__ if name != "state"}
        found.append(WatcherStatus(**said, state=state))
    return found


def _state(watcher: Watcher, now_ns: int) -> str:
    if watcher.outcome:
        return watcher.outcome
    since_ns = watcher.round_ns or watcher.started_ns
    is_late = (
        is_stuck(watcher.doing, watcher.every_ns, now_ns)
        or now_ns - watcher.heartbeat_ns > LEASE_LIFETIME_NS
        or (watcher.every_ns is not None and now_ns - since_ns > _LATE_ROUNDS * watcher.every_ns + LEASE_LIFETIME_NS)
    )
    return "late" if is_late else "alive"


def _folder(
    folder: WatchedFolder,
    counts: list[inbox.Count],
    expected: list[ExpectedStatus],
    not_taken: tuple[tuple[str, str], ...],
) -> FolderStatus:
    return FolderStatus(
        path=folder.path,
        host=folder.host,
        layout=folder.layout,
        looked_ns=folder.looked_ns,
        error=folder.error,
        error_ns=folder.error_ns,
        profiles={one.state: one.profiles for one in counts if one.profiles},
        arrived_ns=max((one.arrived_ns for one in counts if one.arrived_ns is not None), default=None),
        expected=tuple(expected),
        not_taken=not_taken,
    )


def _not_taken(store: Store, folder: WatchedFolder, counts: Sequence[inbox.Count]) -> Iterator[tuple[str, str]]:
    """What was passed over, and what the layout has no place for, where this machine sees the folder."""
    if any(one.folder_id == folder.id and one.state == "passed" and one.profiles for one in counts):
        for entry in inbox.entries(store, folder.id):
            if entry.state == "passed" and entry.gone_ns is None:
                yield entry.path, entry.reason
    if folder.host in ("", this_host()) and Path(folder.path).is_dir():
        for path in listing(Folder(path=folder.path, layout=folder.layout), Path(folder.path)).unplaced:
            yield str(path), "fits no part of the layout"


def _expected(one: Expectation, last: LastRun | None, is_missing: bool) -> ExpectedStatus:
    return ExpectedStatus(
        workload=one.workload,
        every_ns=one.every_ns,
        last_ns=one.last_ns,
        run_id=None if last is None else last.run_id,
        version=None if last is None else last.version,
        due_ns=one.since_ns + one.every_ns,
        is_missing=is_missing,
    )
