"""The runs that the verdicts of a version rest on, each series its own: found by judging the version again.

A series has a level of its own, of which the newest runs count: where the step or the series changed in a version
before, these are not the runs of the step. Compared with those it would show a number that its verdict does not rest
on: a peak that no run had, an operator as new that came three versions ago, +34.6 % where -1.0 % was judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from sqlalchemy import Connection

from tracker.columns import I64, Flags
from tracker.detect.bases import own_bases
from tracker.regressions.judged_rows import step_reference
from tracker.regressions.step_kinds import JudgedVersion, judge_kinds
from tracker.regressions.track import TrackRuns, join_main
from tracker.regressions.track_reader import TrackReader
from tracker.schema.series import SeriesKey


class OwnBase(Struct, frozen=True):
    """The runs that a series is compared with, where these are not those that its step is.

    `runs`: their numbers, ascending; `other_level`: numbers of runs of the step in which the series had another level.
    """

    runs: tuple[int, ...]
    other_level: tuple[int, ...] = ()


Bases = Mapping[SeriesKey, OwnBase]
"""Of the series that are compared with other runs than the step. All others are compared with the runs of the step."""


def read_bases(connection: Connection, track: TrackRuns, version_id: int) -> Bases:
    """Return the runs that the series of a judged version were judged against. Reads only."""
    bases: dict[SeriesKey, OwnBase] = {}
    for one in _judge_again(connection, track, version_id).kinds:
        now = one.result.now
        of_step = np.isin(now.run_ids, step_reference(one.track, one.result)[1])
        base, other_level = own_bases(now, one.result.judged, of_step)
        bases |= _list_bases(one.track.keys, base, other_level, now.run_ids, of_step)
    return bases


def _list_bases(
    keys: Sequence[SeriesKey], base: Flags, other_level: Flags, run_ids: I64, of_step: Flags
) -> dict[SeriesKey, OwnBase]:
    """Return the `base` runs (series, runs) of the series of which these are not the runs of the step.

    `other_level` (series, runs): see OwnBase.
    """
    bases = {}
    for row in np.flatnonzero((base != of_step).any(axis=1)).tolist():
        runs, others = (tuple(sorted(run_ids[chosen[row]].tolist())) for chosen in (base, other_level))
        bases[keys[row]] = OwnBase(runs, others)
    return bases


def _judge_again(connection: Connection, track: TrackRuns, version_id: int) -> JudgedVersion:
    """Return how a version is judged when it comes.

    One of a branch is judged as the next one of its main line.
    """
    if track.main is None:
        joined, reader = track, TrackReader(track.key)
    else:
        joined, known = join_main(connection, track, version_id)
        reader = TrackReader(joined.key, before=known)
    place = joined.place[version_id]
    state = reader.load(connection, joined, place).before(place)
    data = reader.track(connection, joined, state, place)
    return judge_kinds(data, state, place, joined.thresholds)
