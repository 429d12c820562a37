"""Reads a track as far as its next judgement needs it, and makes what is written of the version that comes next."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from msgspec import Struct, field
from sqlalchemy import Connection

from tracker.columns import I64
from tracker.detect.track import Track
from tracker.regressions.judged_rows import (
    GONE,
    decided_word,
    facts_of_kinds,
    finding_of,
    finding_row,
    incidents_of_kinds,
    judged_row_of_kind,
    stored_levels,
    time_of_kinds,
    verdict_columns_of_kinds,
)
from tracker.regressions.lifecycle import UNDECIDED, TrackState, needed_runs
from tracker.regressions.step_kinds import judge_kinds
from tracker.regressions.track import BEGINNING, ReadBefore, TrackRuns, read_track, unjudged_track
from tracker.store import findings as stored_findings
from tracker.store import tracks as stored_tracks
from tracker.store.tracks import TrackKey, TrackRun

Write = Callable[[Connection], object]


class TrackReader(Struct):
    """Reads and judges the next version of a track. `known`: what was judged; `seen`: the track as it was read last;
    `left`: how many versions are out of date, of the last judgement those after it; `before`: what was read of them,
    once; `runs`: that the last judgement was made of.
    """

    key: TrackKey
    known: dict[int, bytes] = field(default_factory=dict)
    seen: TrackRuns | None = None
    before: ReadBefore = field(default_factory=ReadBefore)
    left: int = 1
    runs: frozenset[TrackRun] = frozenset()

    def holds(self, connection: Connection) -> bool:
        """Return whether nobody else judged since the last judgement was made, and its runs are as they were.

        Who changed others judges after this, again from there.
        """
        runs = stored_tracks.list_track_runs(connection, self.key, [run.run_id for run in self.runs])
        return self.known == stored_findings.read_rests(connection, self.key) and self.runs == {*runs}

    def make(self, connection: Connection) -> tuple[int, list[Write]] | None:
        """Make the judgement of the first version that is out of date, None where none is: how many versions it judges
        (0 where only versions without runs are to be forgotten), and what writes it.
        """
        # in this order: what comes in between is judged again, and never taken for judged
        known = self.known = stored_findings.read_rests(connection, self.key)
        track = unjudged_track(connection, self.key, last=self.seen)
        if track is not self.seen:
            self.seen, self.before = track, ReadBefore()
        first = track.first_difference(known)
        if first is None:
            return None
        track_key, order = self.key, track.order
        self.left = max(0, len(order) - first)
        forgets = sorted(version for version in known if track.place.get(version, GONE) >= first)
        writes: list[Write] = [partial(stored_findings.forget_versions, track_key=track_key, version_ids=forgets)]
        loaded = self.load(connection, track, first)
        state = loaded.before(first)
        data: Track | None = None
        if first <= len(order):
            data = self.track(connection, track, state, first)
            judged = judge_kinds(data, state, first, track.thresholds)
            main = judged.choose_main(time_of_kinds(connection, judged, [run.run_id for run in self.runs]))
            writes += [
                partial(
                    stored_findings.write_incidents, track_key=track_key, rows=incidents_of_kinds(judged, main, order)
                ),
                partial(
                    stored_findings.write_version,
                    track_key=track_key,
                    row=judged_row_of_kind(judged, main, order[first - 1], track.rests_on[order[first - 1]]),
                    basis=track.basis[order[first - 1]],
                    levels=stored_levels(state, first, data.there, data.ids, order),
                    verdicts=verdict_columns_of_kinds(judged, order),
                    facts=facts_of_kinds(judged),
                ),
            ]
        ids = self.before.series_of(connection, track_key).ids
        for at, levels in loaded.levels.items():
            moved = np.flatnonzero(levels != state.levels[at]).tolist()
            if moved or not np.array_equal(loaded.settled[at], state.settled[at]):
                own = stored_levels(state, at, None, ids, order)
                decided = [(int(ids[row]), decided_word(state, at, row)) for row in moved]
                writes += [
                    partial(stored_findings.write_levels, track_key=track_key, version_id=order[at - 1], levels=own),
                    partial(stored_findings.decide_series, version_id=order[at - 1], series=decided),
                ]
        pairs = [(one.stored, finding_row(one, ids, order, data, first)) for one in state.findings]
        changed = [row for stored, row in pairs if row != stored]
        return int(data is not None), [
            *writes,
            partial(stored_findings.write_findings, track_key=track_key, rows=changed),
        ]

    def load(self, connection: Connection, track: TrackRuns, first: int) -> TrackState:
        """Load the stored levels of the versions that the one at `first` looks back on, and all findings."""
        ids = self.before.series_of(connection, self.key).ids
        at = {own: row for row, own in enumerate(ids.tolist())}
        place = {UNDECIDED: UNDECIDED, BEGINNING: BEGINNING, **track.place}

        def placed(versions: I64) -> I64:
            distinct, inverse = np.unique(versions, return_inverse=True)
            return np.array([place.get(one, GONE) for one in distinct.tolist()], dtype=np.int64)[inverse]

        versions = track.order[max(0, first - 1 - track.thresholds.look_back) : first - 1]
        state = TrackState(len(at))
        for version, stored in stored_findings.read_levels(connection, self.key, versions).items():
            # series that are not stored are at their first level
            where, own = stored_tracks.places_in(ids, stored.series_ids), place[version]
            state.levels[own] = np.append(placed(stored.levels), BEGINNING)[where]
            state.settled[own] = np.append(placed(stored.settled), own)[where]
            state.waits[own] = np.append(stored.waits, 0)[where]
        rows = stored_findings.read_findings(connection, self.key)
        state.findings = [finding_of(row, at, place) for row in rows if row.series_id in at]
        return state

    def track(self, connection: Connection, track: TrackRuns, state: TrackState, first: int) -> Track:
        """Return the runs that the version at `first` is judged with."""
        places = np.array([track.place[run.version_id] for run in track.runs], dtype=np.int64)
        numbers = np.array([run.run_id for run in track.runs], dtype=np.int64)
        wanted = set(needed_runs(places, numbers, state, first, track.thresholds).tolist())
        runs = [run for run in track.runs if run.run_id in wanted]
        own = [run for run in runs if run.version_id == track.order[first - 1]]
        self.runs = frozenset(runs)
        return read_track(connection, track, runs, timed_by=own, known=self.before, step_kind=None)
