"""How many ranks each run should have. A run that has fewer is not whole: it is not judged, and in no level.

The world size of a job is not how many of its ranks record. A run should have as many ranks as a user stated; else as
many as its job has handed over, or as the last whole run before it had. Ranks come at different moments, so that only a
run whose last rank came a while ago says that there are no more: three such runs in a row with one number of ranks are
what the job records from then on.
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

_SET_AWAITED: Final = text("UPDATE run SET ranks_awaited = :ranks WHERE id = :run_id")
_SET_ARRIVAL: Final = text(
    "UPDATE run SET last_rank_at_ns = :now_ns, ranks_handed_over = CASE WHEN COALESCE(ranks_handed_over, 0) < "
    "CAST(:handed_over AS BIGINT) THEN CAST(:handed_over AS BIGINT) ELSE ranks_handed_over END WHERE id = :run_id"
)


class RunRanks(Struct, frozen=True):
    """The ranks of a run.

    `ranks`: that came.
    `expected`: as a user stated it; None: no user did.
    `handed_over`: ranks of its job that had handed over a profile; None: not known.
    `last_rank_at_ns`: when the last one came; None: an earlier program stored it, which did not ask.
    `awaited`: as it is stored, see `find_awaited`.
    """

    run_id: int
    ranks: int
    expected: int | None = None
    handed_over: int | None = None
    last_rank_at_ns: int | None = None
    awaited: int | None = None


def find_awaited(
    runs: Iterable[RunRanks], *, now_ns: int, settled_ns: int, of_main: Iterable[RunRanks] = ()
) -> dict[int, int | None]:
    """Return run -> how many ranks it should have; None where it is whole.

    `runs`: of one track. They are looked at as they came in, by their numbers: versions may be put into another order,
    and older ones come later.
    `settled_ns`: how long after its last rank a run waits for others.
    `of_main`: of a branch, the runs of its main line; the last whole one before a run of the branch says what it should
    have as one of the branch does.

    >>> runs = [RunRanks(1, 2, last_rank_at_ns=0), RunRanks(2, 1, last_rank_at_ns=0), RunRanks(3, 2, last_rank_at_ns=0)]
    >>> find_awaited(runs, now_ns=5, settled_ns=1)
    {1: None, 2: 2, 3: None}
    """
    awaited: dict[int, int | None] = {}
    short_runs: list[RunRanks] = []
    usual_ranks = 0
    own_runs = {run.run_id: run for run in runs}
    main_runs = {run.run_id: run for run in of_main if run.awaited is None}
    for run_id in sorted({*own_runs, *main_runs}):
        if run_id in main_runs:
            usual_ranks = main_runs[run_id].ranks
            continue
        run = own_runs[run_id]
        needed_ranks = run.expected
        if needed_ranks is None:
            needed_ranks = max(run.handed_over or 0, usual_ranks)
        # what an earlier program judged stays judged
        is_older = run.last_rank_at_ns is None
        is_over = run.last_rank_at_ns is not None and now_ns - run.last_rank_at_ns >= settled_ns
        # no longer waited for, a run is compared with those before it, which must not have more
        is_comparable = is_over and run.ranks >= usual_ranks
        if is_older or run.ranks >= needed_ranks or is_comparable:
            awaited[run_id] = None
            usual_ranks, short_runs = run.ranks, []
            continue
        awaited[run_id] = needed_ranks
        if not is_over:
            # its other ranks may be on their way: it neither counts as a short run nor ends a row of them
            continue
        if short_runs and short_runs[-1].ranks != run.ranks:
            short_runs = []
        short_runs.append(run)
        if len(short_runs) == LEAST_IN_A_ROW:
            awaited.update(dict.fromkeys([short.run_id for short in short_runs]))
            usual_ranks, short_runs = run.ranks, []
    return awaited


def note_arrival(connection: Connection, handed_over: Mapping[int, int | None]) -> None:
    """Note that ranks of these runs came just now. `handed_over`: run -> ranks of its job that handed over a profile,
    None where that is not known.
    """
    now_ns = time.time_ns()
    for run_id in sorted(handed_over):
        values = {"run_id": run_id, "now_ns": now_ns, "handed_over": handed_over[run_id]}
        connection.execute(_SET_ARRIVAL, values)


def list_outdated(
    connection: Connection, track_key: TrackKey, settled_ns: int, *, now_ns: int | None = None
) -> dict[int, int | None]:
    """Return what `find_awaited` says of the runs of a track, for those of which something else is stored."""
    now_ns = time.time_ns() if now_ns is None else now_ns
    runs = _read_ranks(connection, track_key)
    main = main_track_of(connection, track_key)
    of_main = () if main is None else _read_ranks(connection, main)
    awaited = find_awaited(runs, now_ns=now_ns, settled_ns=settled_ns, of_main=of_main)
    return {run.run_id: awaited[run.run_id] for run in runs if awaited[run.run_id] != run.awaited}


def write_awaited(connection: Connection, awaited: Mapping[int, int | None]) -> None:
    """Store how many ranks runs should have, None for those that are whole."""
    for run_id in sorted(awaited):
        connection.execute(_SET_AWAITED, {"run_id": run_id, "ranks": awaited[run_id]})


def list_tracks_that_wait(connection: Connection) -> list[TrackKey]:
    """Return the tracks with active runs that wait for ranks."""
    rows = connection.execute(statement("waiting_runs"), {"workload": None})
    return list(dict.fromkeys(TrackKey(row.workload_id, row.configuration_id, row.device_id) for row in rows))


def _read_ranks(connection: Connection, track_key: TrackKey) -> Sequence[RunRanks]:
    rows = connection.execute(statement("track_ranks"), track_key.parameters)
    return [RunRanks(*row) for row in rows]
