"""How many runs a version of a track usually has, and which versions may still get more.

What is found in a version with fewer runs than usual is found so far: its further runs may take it back.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median_low
from typing import Final

from tracker.detect.thresholds import track_limits
from tracker.results.waiting import AwaitedRuns
from tracker.store import Store
from tracker.store import tracks as stored_tracks
from tracker.store.sql import statement
from tracker.store.tracks import TrackRun

_LEAST_VERSIONS: Final = 3
"""Versions that make a usual number: fewer show no habit."""


def find_usual_number(counts: Sequence[int], look_back: int) -> int | None:
    """Return the usual number of runs of a version: the median over the versions before it that have one of the newest
    `look_back` runs, at least three of them; None where there are fewer.

    It is a number that half of these versions have or more: of an even number of them the lower middle.

    counts: runs of each version before, the oldest first.

    >>> find_usual_number([1, 1, 3, 3, 2, 3], 32), find_usual_number([3, 3], 32), find_usual_number([1, 1, 3, 3, 3], 9)
    (2, None, 3)
    """
    newest: list[int] = []
    for count in reversed(counts):
        if len(newest) >= _LEAST_VERSIONS and sum(newest) >= look_back:
            break
        newest.append(count)
    return median_low(newest) if len(newest) >= _LEAST_VERSIONS else None


def list_awaited_runs(
    runs: Sequence[TrackRun], *, look_back: int, settle_ns: int, now_ns: int
) -> dict[int, AwaitedRuns]:
    """Return the versions of a track that have fewer runs than usual and may still get more: version -> what it lacks.

    The time counts from the first run, not from the newest: so an alert comes at most `settle_ns` after it, however the
    others trickle in.

    runs: all active ones of the track, in the order of versions.
    """
    counts: dict[int, int] = {}
    first_ns: dict[int, int] = {}
    labels: dict[int, str] = {}
    for run in runs:
        # what came before arrivals were kept, came long ago
        arrived_ns = run.arrived_ns or 0
        counts[run.version_id] = counts.get(run.version_id, 0) + 1
        first_ns[run.version_id] = min(arrived_ns, first_ns.get(run.version_id, arrived_ns))
        labels[run.version_id] = run.version
    numbers = list(counts.values())
    reach = max(look_back, _LEAST_VERSIONS)
    awaited = {}
    for place, (version_id, count) in enumerate(counts.items()):
        until_ns = first_ns[version_id] + settle_ns
        if until_ns <= now_ns:
            continue
        usual = find_usual_number(numbers[max(0, place - reach) : place], look_back)
        if usual is not None and count < usual:
            awaited[version_id] = AwaitedRuns(labels[version_id], count, usual, until_ns)
    return awaited


def find_awaited_runs(store: Store, run_ids: Sequence[int], *, now_ns: int | None = None) -> AwaitedRuns | None:
    """Return what the version lacks that is exactly these runs; None where it lacks none, or they are no version."""
    now_ns = time.time_ns() if now_ns is None else now_ns
    with store.connect() as connection:
        first_ns = connection.execute(statement("first_arrival"), {"run_ids": [*run_ids]}).scalar_one()
        # a track may have thousands of runs, and most versions are older
        if first_ns is None or first_ns + store.runs_settle_ns <= now_ns:
            return None
        track_keys = stored_tracks.list_tracks(connection, run_ids)
        if len(track_keys) != 1:
            return None
        runs = stored_tracks.list_track_runs(connection, track_keys[0])
        limits = track_limits(stored_tracks.limits_of_track(connection, track_keys[0]))
    settle_ns = store.runs_settle_ns
    awaited = list_awaited_runs(runs, look_back=limits.look_back, settle_ns=settle_ns, now_ns=now_ns)
    return next((own for version, own in awaited.items() if _is_version(runs, version, run_ids)), None)


def _is_version(runs: Sequence[TrackRun], version_id: int, run_ids: Sequence[int]) -> bool:
    return {run.run_id for run in runs if run.version_id == version_id} == {*run_ids}
