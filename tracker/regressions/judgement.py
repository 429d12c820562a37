"""Keeps the judgement of a track true: judges the versions that rest on other runs, or limits, than before.

A version rests on the runs of all versions up to it, in their order, and on the limits. From the first version that
rests on something else on, all are judged again: what was said of them is forgotten, findings are withdrawn or open
again, and the walk goes on from there. Every version is a transaction of its own. In memory versions are places in
their order, in the database they are ids.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from sqlalchemy import Connection

from tracker.regressions.branches import first_late, judge_next
from tracker.regressions.track import MainTrack, unjudged_track
from tracker.regressions.track_reader import TrackReader, Write
from tracker.store import Store, awaited_ranks, completing, labels
from tracker.store import findings as stored_findings
from tracker.store import tracks as stored_tracks
from tracker.store.failures import Raced
from tracker.store.tracks import TrackKey

_ATTEMPTS: Final = 3


def tracks_of(store: Store, run_ids: Iterable[int] | None = None, workload: str | None = None) -> list[TrackKey]:
    """Return the tracks of these runs, or all of a workload, or all."""
    with store.connect() as connection:
        return stored_tracks.list_tracks(connection, run_ids, workload)


def with_branches(store: Store, track_keys: Iterable[TrackKey]) -> list[TrackKey]:
    """Return these tracks, and those of the branches that are judged against them."""
    found = list(dict.fromkeys(track_keys))
    with store.connect() as connection:
        every = stored_tracks.list_branch_tracks(connection)
        found += [track_key for track_key in every if stored_tracks.main_track_of(connection, track_key) in found]
    return list(dict.fromkeys(found))


def update(store: Store, track_keys: Iterable[TrackKey]) -> int:
    """Judge what is out of date in these tracks; how many versions were judged.

    Runs without samples get them first. What is interrupted goes on the next time; what another process judges
    meanwhile is left to it. A branch is judged after its main line.
    """
    count = 0
    up_to_date: set[TrackKey] = set()
    mains: dict[TrackKey, MainTrack] = {}
    for track_key in dict.fromkeys(track_keys):
        await_ranks(store, track_key)
        with store.connect() as connection:
            stale = stored_tracks.list_stale_runs(connection, track_key)
            main = stored_tracks.main_track_of(connection, track_key)
        for run_id in stale:
            store.transact(partial(completing.hold_and_make_again, run_id=run_id))
        if main is not None:
            if main not in up_to_date:
                count += update(store, [main])
            up_to_date.add(main)
            count += update_branch(store, track_key, mains)
            continue
        reader = TrackReader(track_key)
        while reader.left and (done := _judge_next_version(store, reader)) is not None:
            count += done
    return count


def update_branch(store: Store, track_key: TrackKey, mains: dict[TrackKey, MainTrack]) -> int:
    """Judge what is out of date of a branch; return how many versions were judged, each in a transaction of its own.

    `mains`: main lines that were read before. Where runs came to the main line since it was judged, it is judged first;
    where that happens over and over, the rest is left to the next time.
    """
    count = attempts = 0
    while attempts < _ATTEMPTS:
        with store.connect() as connection:
            known = stored_findings.read_rests(connection, track_key)
            track = unjudged_track(connection, track_key, mains)
        if first_late(track, known) is None:
            break
        with store.turn("judges"):
            done = store.transact(partial(judge_next, track_key=track_key))
        if done == "nothing":
            break
        if done == "judged":
            count += 1
            continue
        mains.clear()
        assert track.main is not None
        count += update(store, [track.main.key])
        attempts += 1
    return count


def await_ranks(store: Store, track_key: TrackKey) -> None:
    """Note which runs of a track wait for ranks by now, and which have waited long enough."""

    def write(connection: Connection) -> None:
        stored_findings.lock_track(connection, track_key)
        for run_id in sorted(awaited_ranks.list_outdated(connection, track_key, store.settled_ns)):
            labels.hold_run(connection, run_id)
        # of a run that was held by another process a rank may have come
        awaited = awaited_ranks.list_outdated(connection, track_key, store.settled_ns)
        for run_id in sorted(awaited):
            labels.hold_run(connection, run_id)
        awaited_ranks.write_awaited(connection, awaited)
        completing.complete(connection, [run_id for run_id, ranks in awaited.items() if ranks is None])

    with store.connect() as connection:
        is_outdated = bool(awaited_ranks.list_outdated(connection, track_key, store.settled_ns))
    if is_outdated:
        store.transact(write)


def tracks_that_waited(store: Store) -> list[TrackKey]:
    """Return the tracks with a run that has waited for ranks long enough since they were judged."""
    with store.connect() as connection:
        waiting = awaited_ranks.list_tracks_that_wait(connection)
        return [key for key in waiting if awaited_ranks.list_outdated(connection, key, store.settled_ns)]


def _judge_next_version(store: Store, reader: TrackReader) -> int | None:
    """Judge the first version that is out of date; None where there is none, else how many were judged.

    Judging takes long and writing does not. On SQLite, where a writer keeps all others out, what is read and worked
    out comes before the transaction that writes, which looks whether it still holds. On Postgres a lock per track lets
    one at a time pass.
    """

    def write(connection: Connection, made: tuple[int, list[Write]] | None = None) -> int | None:
        if made is None:
            stored_findings.lock_track(connection, reader.key)
            made = reader.make(connection)
            if made is not None and not reader.holds(connection):
                # a rank came between two questions
                raise Raced
        elif not reader.holds(connection):
            return None
        for own in made[1] if made else ():
            own(connection)
        return made[0] if made else None

    with store.turn("judges"):
        for _ in range(0 if store.dialect == "postgresql" else _ATTEMPTS):
            with store.connect() as connection:
                made = reader.make(connection)
            done = None if made is None else store.transact(partial(write, made=made))
            if made is None or done is not None:
                return done
        return store.transact(write)
