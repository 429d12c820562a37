"""Which runs are whole: how many ranks each should have, and which wait for some and are no runs of their track.

The world size of a job is not how many of its ranks record. A run should have as many ranks as a user stated; else as
many as its job has handed over, or as the last whole run of its track had. With fewer it is not judged, and in no
level. Ranks come at different moments. So only a run whose last rank came a while ago says that there are no more:
three such runs in a row with one number of ranks are what the track records from then on.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from sqlalchemy import Connection, text

from tracker.store.sql import statement
from tracker.store.tracks import TrackKey, main_track_of

LEAST_IN_A_ROW: Final = 3
"""Runs in a row with one number of ranks, fewer than those before them, that are whole by that."""

_AWAIT: Final = text("UPDATE run SET ranks_awaited = :ranks WHERE id = :run_id")
_CAME: Final = text(
    "UPDATE run SET last_rank_at_ns = :now_ns, ranks_handed_over = CASE WHEN COALESCE(ranks_handed_over, 0) < "
    "CAST(:handed_over AS BIGINT) THEN CAST(:handed_over AS BIGINT) ELSE ranks_handed_over END WHERE id = :run_id"
)


class RunRanks(Struct, frozen=True):
    """The ranks of a run.

    `ranks`: that came.
    `expected`: as a user stated it; None: nobody did.
    `handed_over`: ranks of its job that had handed over a profile; None: not known.
    `last_rank_at_ns`: when the last one came; None: before this was kept, long ago.
    `awaited`: as it is stored, see `find_awaited`.
    """

    run_id: int
    ranks: int
    expected: int | None = None
    handed_over: int | None = None
    last_rank_at_ns: int | None = None
    awaited: int | None = None


def find_awaited(
    runs: Iterable[RunRanks], *, now_ns: int, settled_ns: int, usual: int | None = None
) -> dict[int, int | None]:
    """Return run -> how many ranks it should have, where it has fewer and is no run of its track; None: it is one.

    `runs`: of one track, in the order in which they came in. `settled_ns`: how long after its last rank a run waits for
    others. `usual`: ranks of the last whole run before these, of a branch those of its main line; None: there is none.

    >>> runs = [RunRanks(1, 2), RunRanks(2, 1), RunRanks(3, 2)]
    >>> find_awaited(runs, now_ns=0, settled_ns=1)
    {1: None, 2: 2, 3: None}
    """
    awaited: dict[int, int | None] = {}
    short_runs: list[RunRanks] = []
    for run in runs:
        should_have = run.expected
        if should_have is None:
            should_have = max(run.handed_over or 0, usual or 0)
        is_over = run.last_rank_at_ns is None or now_ns - run.last_rank_at_ns >= settled_ns
        # what was stated or handed over is waited for only for a while, the runs of the level are a rule
        is_whole = run.ranks >= should_have or (is_over and run.ranks >= (usual or 0))
        awaited[run.run_id] = None if is_whole else should_have
        if is_whole:
            usual, short_runs = run.ranks, []
            continue
        if not is_over:
            continue
        if short_runs and short_runs[-1].ranks != run.ranks:
            short_runs = []
        short_runs.append(run)
        if len(short_runs) == LEAST_IN_A_ROW:
            awaited.update(dict.fromkeys([one.run_id for one in short_runs]))
            usual, short_runs = run.ranks, []
    return awaited


def note_arrival(
    connection: Connection, run_ids: Iterable[int], handed_over: Mapping[int, int | None], *, now_ns: int | None = None
) -> None:
    """Note that ranks of these runs came just now. `handed_over`: run -> ranks of its job that handed over a profile,
    None where that is not known.
    """
    now_ns = time.time_ns() if now_ns is None else now_ns
    for run_id in sorted(run_ids):
        values = {"run_id": run_id, "now_ns": now_ns, "handed_over": handed_over.get(run_id)}
        connection.execute(_CAME, values)


def list_outdated(
    connection: Connection, track_key: TrackKey, settled_ns: int, *, now_ns: int | None = None
) -> dict[int, int | None]:
    """Return what `find_awaited` says of the runs of a track, for those of which something else is stored."""
    now_ns = time.time_ns() if now_ns is None else now_ns
    runs = _read_ranks(connection, track_key)
    usual = None
    main = main_track_of(connection, track_key)
    if main is not None:
        whole = [run.ranks for run in _read_ranks(connection, main) if run.awaited is None]
        usual = whole[-1] if whole else None
    awaited = find_awaited(runs, now_ns=now_ns, settled_ns=settled_ns, usual=usual)
    return {run.run_id: awaited[run.run_id] for run in runs if awaited[run.run_id] != run.awaited}


def write_awaited(connection: Connection, awaited: Mapping[int, int | None]) -> None:
    """Store how many ranks runs should have, None for those that are runs of their track."""
    for run_id in sorted(awaited):
        connection.execute(_AWAIT, {"run_id": run_id, "ranks": awaited[run_id]})


def list_tracks_that_wait(connection: Connection) -> list[TrackKey]:
    """Return the tracks with active runs that wait for ranks."""
    rows = connection.execute(statement("waiting_runs"), {"workload": None})
    return list(dict.fromkeys(TrackKey(row.workload_id, row.configuration_id, row.device_id) for row in rows))


def _read_ranks(connection: Connection, track_key: TrackKey) -> Sequence[RunRanks]:
    rows = connection.execute(statement("track_ranks"), track_key.parameters)
    return [RunRanks(*row) for row in rows]
