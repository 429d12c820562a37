"""How many runs a version of a track usually has, and which versions may still get more.

What is found in a version with fewer runs than usual is found so far: its further runs may take it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_low
from typing import Final

from tracker.results.waiting import AwaitedRuns
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
