"""Keeps the judgement of a track true: judges the versions that rest on other runs, or limits, than before.

A version rests on the runs of all versions up to it, in their order, and on the limits. From the first version that
rests on something else on, all are judged again: what was said of them is forgotten, findings are withdrawn or open
again, and the walk goes on from there. Every version is a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from sqlalchemy import Connection

from tracker.columns import I64
from tracker.regressions import rows
from tracker.regressions.lifecycle import TrackState, judge_next, needed_runs
from tracker.regressions.track import ReadBefore, Track, TrackRuns, read_track, runs_of_track
from tracker.store import Store, judged, labels, regressions, samples, thresholds
from tracker.store.judged import Line
from tracker.store.regressions import FindingRow

_ATTEMPTS: Final = 3

Write = Callable[[Connection], object]


def lines_of(store: Store, run_ids: Iterable[int] | None = None, workload: str | None = None) -> list[Line]:
    """The tracks of these runs, or all of a workload, or all."""
    with store.connect() as connection:
        return judged.lines(connection, run_ids, workload)


def update(store: Store, lines: Iterable[Line]) -> int:
    """Judge what is out of date in these tracks; how many versions were judged.

    Runs without samples get them first. What is interrupted goes on the next time; what another process judges
    meanwhile is left to it.
    """
    count = 0
    for line in dict.fromkeys(lines):
        with store.connect() as connection:
            track = runs_of_track(connection, line)
        if not track.late and track.judged.keys() <= track.rests_on.keys():
            continue
        stale = [run.run_id for run in track.runs if run.stale]
        for run_id in stale:
            store.transact(partial(_make_samples, run_id=run_id))
        reader = TrackReader(line, None if stale else track)
        for _ in range(max(1, len(track.late))):
            done = _judge_next_version(store, reader)
            if done is None:
                break
            count += done
    return count


def _make_samples(connection: Connection, run_id: int) -> None:
    labels.hold_run(connection, run_id)
    samples.refresh(connection, [run_id])


def _judge_next_version(store: Store, reader: TrackReader) -> int | None:
    """Judge the first version that is out of date; None where there is none, else how many were judged.

    Judging takes long and writing does not. On SQLite, where a writer keeps all others out, what is read and worked
    out comes before the transaction that writes, which looks whether it still holds. On Postgres a lock per track lets
    one at a time pass.
    """

    def work(connection: Connection) -> int | None:
        regressions.lock(connection, reader.line)
        reader.renew(connection)
        return write(connection, reader.make(connection))

    def write(connection: Connection, made: tuple[int, list[Write]] | None, is_checked: bool = True) -> int | None:
        if made is None or not (is_checked or reader.holds(connection)):
            return None
        for own in made[1]:
            own(connection)
        return made[0]

    if store.dialect == "postgresql":
        return store.transact(work)
    with store.turn("judges"):
        for _ in range(_ATTEMPTS):
            with store.connect() as connection:
                made = reader.make(connection)
            if made is None:
                return None
            done = store.transact(partial(write, made=made, is_checked=False))
            if done is not None:
                return done
            reader.renew(connection=None)
        return store.transact(work)


class TrackReader(Struct):
    """Reads and judges the next version of a track. What a run says is read once. `runs`: of the track, None to read
    them again; `known`: what was judged; `before`: what was read.
    """

    line: Line
    runs: TrackRuns | None = None
    known: dict[int, bytes] = field(default_factory=dict)
    before: ReadBefore = field(default_factory=ReadBefore)

    def holds(self, connection: Connection) -> bool:
        """Whether what the last judgement was made of is as it was."""
        return self.known == regressions.rests_on(connection, self.line) and self.is_current(connection)

    def is_current(self, connection: Connection) -> bool:
        """Whether the runs and limits are as they were read."""
        return (
            self.runs is not None
            and self.runs.rows == judged.rows_of_runs(connection, self.line)
            and self.runs.limits == thresholds.of_line(connection, self.line)
        )

    def renew(self, connection: Connection | None) -> None:
        """Forget all that was read, samples as well, unless `connection` sees that it is as it was."""
        if connection is None or not self.is_current(connection):
            self.runs, self.before = None, ReadBefore()

    def make(self, connection: Connection) -> tuple[int, list[Write]] | None:
        """The judgement of the first version that is out of date, None where none is: how many versions it judges (0
        where only versions without runs are to be forgotten), and what writes it.
        """
        known = self.known = regressions.rests_on(connection, self.line)
        track = self.runs = self.runs or runs_of_track(connection, self.line)
        first = track.first_difference(known)
        if first is None:
            return None
        line, order, place, limits = self.line, track.order, track.place, track.thresholds
        forgets = sorted(version for version in known if place.get(version, rows.GONE) >= first)
        findings = regressions.findings_of(connection, line)
        loaded = self.load(connection, track, first, findings)
        state = loaded.before(first)
        writes: list[Write] = [partial(regressions.forget, line=line, version_ids=forgets)]
        own: list[Write] = []
        data: Track | None = None
        if first <= len(order):
            data = self.track(connection, track, state, first)
            result = judge_next(data, state, first, limits)
            own = [
                partial(regressions.put_incidents, line=line, rows=list(rows.incidents_of(data, state, result, order))),
                partial(
                    regressions.write_version,
                    line=line,
                    row=rows.judged_row(data, result, order[first - 1], track.rests_on[order[first - 1]]),
                    levels=rows.stored_levels(state, first, data.there, data.ids, order),
                    verdicts=rows.verdict_columns(data, state, result, order, limits),
                    facts=rows.facts_of(data, result),
                ),
            ]
        ids = self.before.series_of(connection, line).ids
        for at in loaded.levels:
            if rows.changed_levels(loaded, state, at):
                levels = rows.stored_levels(state, at, None, ids, order)
                decided = rows.decided_in(loaded, state, at, ids)
                writes += [
                    partial(regressions.set_levels, line=line, version_id=order[at - 1], levels=levels),
                    partial(regressions.decide, version_id=order[at - 1], series=decided),
                ]
        changed = changed_findings(findings, state, data, first, order, ids)
        return len(own) // 2, [*writes, partial(regressions.put_findings, line=line, rows=changed), *own]

    def load(self, connection: Connection, track: TrackRuns, first: int, findings: Sequence[FindingRow]) -> TrackState:
        """The stored levels of the versions that the one at `first` looks back on, and these findings."""
        ids, place = self.before.series_of(connection, self.line).ids, track.place
        versions = track.order[max(0, first - 1 - track.thresholds.look_back) : first - 1]
        stored = regressions.levels_of(connection, self.line, versions)
        at = {own: row for row, own in enumerate(ids.tolist())}
        state = TrackState(len(at))
        for version in versions:
            rows.load_levels(state, place[version], stored[version], ids, place)
        state.findings = [rows.finding_of(row, at, place) for row in findings if row.series_id in at]
        return state

    def track(self, connection: Connection, track: TrackRuns, state: TrackState, first: int) -> Track:
        """The runs that the version at `first` is judged with."""
        versions = np.array([track.place[run.version_id] for run in track.runs])
        run_ids = np.array([run.run_id for run in track.runs])
        wanted = set(needed_runs(versions, run_ids, state, first, track.thresholds).tolist())
        # the version before is looked at as a whole, and suspects by their runs
        runs = [run for run in track.runs if run.run_id in wanted]
        own = track.runs_of(track.order[first - 1])
        return read_track(connection, track, runs, timed_by=own, known=self.before)


def changed_findings(
    stored: Sequence[FindingRow], state: TrackState, data: Track | None, version: int, order: Sequence[int], ids: I64
) -> list[FindingRow]:
    """The rows of findings that are new, or other than they were."""
    found = {one.key: one for one in stored}
    kept: set[tuple[Any, ...]] = set()
    changed = []
    for one in state.findings:
        if one.first_version == rows.GONE:
            continue
        key = (int(ids[one.series]), rows.DIRECTIONS[one.sign], one.how, order[one.first_version - 1])
        made = rows.finding_row(one, ids, order, found.get(key), data, version)
        kept.add(key)
        if made != found.get(key):
            changed.append(made)
    lost = [one for key, one in found.items() if key not in kept and one.state != "withdrawn"]
    return changed + [replace(one, state="withdrawn", ended_version_id=None, ended_by_version_id=None) for one in lost]
