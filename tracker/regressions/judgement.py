"""Keeps the judgement of a track true: judges the versions that rest on other runs, or limits, than before.

A version rests on the runs of all versions up to it, in their order, and on the limits. From the first version that
rests on something else on, all are judged again: what was said of them is forgotten, findings are withdrawn or open
again, and the walk goes on from there. Every version is a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray
from sqlalchemy import Connection

from tracker.detect import SeriesTraits, Thresholds
from tracker.regressions import comparable
from tracker.regressions.incidents import incidents_of
from tracker.regressions.limits import limits_key, track_limits, traits_of
from tracker.regressions.rows import (
    DIRECTIONS,
    GONE,
    changed_levels,
    decided_in,
    facts_of,
    finding_of,
    finding_row,
    incident_row,
    judged_row,
    load_levels,
    series_in_order,
    stored_levels,
    track_of_runs,
    verdict_columns,
)
from tracker.regressions.state import TrackState
from tracker.regressions.track import Track
from tracker.regressions.walk import judge_next, needed_runs
from tracker.store import Store, judged, labels, regressions, samples, thresholds
from tracker.store.bulk import Column
from tracker.store.dimensions import digest_of
from tracker.store.judged import Line, LineRun, SeriesTable
from tracker.store.regressions import FindingRow, IncidentRow, JudgedRow, Levels
from tracker.store.samples import SAMPLE_RULES
from tracker.store.samples.arrays import SampleArray
from tracker.store.thresholds import Threshold

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
BOOL = NDArray[np.bool_]

RULE_VERSION: Final = 6
"""Changes with the rules, so that all versions are judged again."""

_ATTEMPTS: Final = 3


class TrackRuns(Struct, frozen=True):
    """The active runs of a track and the limits that hold in it. `order`: its versions; `rests_on`: of each of them;
    `rows`: what was read of the runs.
    """

    rows: Sequence[tuple[Any, ...]]
    runs: Sequence[LineRun]
    limits: tuple[Threshold, ...]
    order: list[int]
    rests_on: dict[int, bytes]

    @property
    def place(self) -> dict[int, int]:
        """Version -> its place in their order, from 1."""
        return {version: at for at, version in enumerate(self.order, 1)}

    def first_difference(self, known: dict[int, bytes]) -> int | None:
        """The place of the first version that was judged from something else than what is there now; None: all is
        judged. `known`: what was judged rests on.
        """
        for at, version in enumerate(self.order, 1):
            if known.get(version) != self.rests_on[version]:
                return at
        return len(self.order) + 1 if known.keys() - self.rests_on.keys() else None


def lines_of(store: Store, run_ids: Iterable[int] | None = None, workload: str | None = None) -> list[Line]:
    """The tracks of these runs, or all of a workload, or all."""
    with store.connect() as connection:
        return judged.lines(connection, run_ids, workload)


def runs_of_track(connection: Connection, line: Line) -> TrackRuns:
    """What the judgement of a track rests on now."""
    rows = judged.rows_of_runs(connection, line)
    runs = judged.runs_of(connection, line, rows)
    limits = thresholds.of_line(connection, line)
    chain = digest_of((SAMPLE_RULES, RULE_VERSION, *limits_key(limits)))
    found = {}
    for version, own in groupby(runs, lambda run: run.version_id):
        said = (f"{run.run_id} {run.ranks} {run.timeline} {run.recording_id}" for run in own)
        chain = found[version] = digest_of((chain.hex(), version, *said))
    return TrackRuns(rows, runs, limits, list(found), found)


def update(store: Store, lines: Iterable[Line]) -> int:
    """Judge what is out of date in these tracks; how many versions were judged.

    Runs without samples get them first. What is interrupted goes on the next time; what another process judges
    meanwhile is left to it.
    """
    return sum(_update_line(store, line) for line in dict.fromkeys(lines))


def _update_line(store: Store, line: Line) -> int:
    with store.connect() as connection:
        track = runs_of_track(connection, line)
        first = track.first_difference(regressions.rests_on(connection, line))
    if first is None:
        return 0
    stale = [run.run_id for run in track.runs if run.stale]
    for run_id in stale:
        store.transact(partial(_make_samples, run_id=run_id))
    reader = TrackReader(line, None if stale else track)
    count = 0
    for _ in range(max(1, len(track.order) + 1 - first)):
        done = _judge_apart(store, reader)
        if done is None:
            break
        count += done
    return count


def _make_samples(connection: Connection, run_id: int) -> None:
    labels.hold_run(connection, run_id)
    samples.refresh(connection, [run_id])


class Made(Struct, frozen=True):
    """How a version was judged, to be written. `forgets`: the versions from it on that were judged before; `row`: None
    where nothing is left to judge. `levels`, `decided`: of older versions that it decided.
    """

    forgets: list[int]
    row: JudgedRow | None
    own_levels: Levels | None
    verdicts: list[Column]
    facts: list[tuple[int, str, float, float]]
    levels: dict[int, Levels]
    decided: dict[int, list[tuple[int, str | None]]]
    findings: list[FindingRow]
    incidents: list[IncidentRow]


def _judge_apart(store: Store, reader: TrackReader) -> int | None:
    """Judge the first version that is out of date; None where there is none, else how many were judged.

    Judging takes long and writing does not. On SQLite, where a writer keeps all others out, what is read and worked
    out comes before the transaction that writes, which looks whether it still holds. On Postgres a lock per track lets
    one at a time pass.
    """

    def work(connection: Connection) -> int | None:
        regressions.lock(connection, reader.line)
        reader.renew(connection)
        made = reader.make(connection)
        return None if made is None else _write(connection, reader.line, made)

    def write(connection: Connection, made: Made) -> int | None:
        return _write(connection, reader.line, made) if reader.holds(connection) else None

    if store.dialect == "postgresql":
        return store.transact(work)
    with store.turn("judges"):
        for _ in range(_ATTEMPTS):
            with store.connect() as connection:
                made = reader.make(connection)
            if made is None:
                return None
            done = store.transact(partial(write, made=made))
            if done is not None:
                return done
            reader.renew(connection=None)
        return store.transact(work)


def _write(connection: Connection, line: Line, made: Made) -> int:
    regressions.forget(connection, line, made.forgets)
    for version, levels in made.levels.items():
        regressions.set_levels(connection, line, version, levels)
    for version, decided in made.decided.items():
        regressions.decide(connection, version, decided)
    regressions.put_findings(connection, line, made.findings)
    regressions.put_incidents(connection, line, made.incidents)
    if made.row is None or made.own_levels is None:
        return 0
    regressions.write_version(connection, line, made.row, made.own_levels, made.verdicts, made.facts)
    return 1


class TrackReader(Struct):
    """Reads and judges the next version of a track. What a run says is read once. `runs`: of the track, None to read
    them again; `known`: what was judged.
    """

    line: Line
    runs: TrackRuns | None = None
    series: SeriesTable | None = None
    arrays: dict[int, SampleArray] = field(default_factory=dict)
    traits: dict[bool, SeriesTraits] = field(default_factory=dict)
    known: dict[int, bytes] = field(default_factory=dict)

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
            self.runs, self.series, self.arrays, self.traits = None, None, {}, {}

    def make(self, connection: Connection) -> Made | None:
        """The judgement of the first version that is out of date."""
        known = self.known = regressions.rests_on(connection, self.line)
        if self.runs is None:
            self.runs = runs_of_track(connection, self.line)
        track = self.runs
        first = track.first_difference(known)
        if first is None:
            return None
        if self.series is None:
            self.series = series_in_order(judged.series_of(connection, self.line))
        series, place, limits = self.series, track.place, track_limits(track.limits)
        forgets = sorted(version for version in known if place.get(version, GONE) >= first)
        before = track.order[max(0, first - 1 - limits.look_back) : first - 1]
        rows = regressions.findings_of(connection, self.line)
        loaded = self.load(connection, track, before, rows)
        state = loaded.before(first)
        row: JudgedRow | None = None
        own_levels: Levels | None = None
        verdicts: list[Column] = []
        facts: list[tuple[int, str, float, float]] = []
        incidents: list[IncidentRow] = []
        version = 0
        data: Track | None = None
        if first <= len(track.order):
            version = track.order[first - 1]
            data, keep = self.track(connection, track, state, first, limits)
            result = judge_next(data, state, first, limits)
            own_levels = stored_levels(state, first, keep, series.ids, track.order)
            verdicts = verdict_columns(data, state, result, series.ids, track.order, limits)
            facts = facts_of(data, result, series.ids)
            row = judged_row(data, state, result, version, track.rests_on[version])
            incidents = [incident_row(one, track.order) for one in incidents_of(data, state, result)]
        changed = [own for own in before if changed_levels(loaded, state, place[own])]
        all_rows = np.ones(len(series.ids), dtype=bool)
        return Made(
            forgets=forgets,
            row=row,
            own_levels=own_levels,
            verdicts=verdicts,
            facts=facts,
            levels={own: stored_levels(state, place[own], all_rows, series.ids, track.order) for own in changed},
            decided={own: decided_in(loaded, state, place[own], series.ids) for own in changed},
            findings=self.changed_findings(rows, state, data, first, track.order),
            incidents=incidents,
        )

    def load(
        self, connection: Connection, track: TrackRuns, versions: Sequence[int], findings: Sequence[FindingRow]
    ) -> TrackState:
        """The stored levels of these versions, and these findings."""
        if self.series is None:
            self.series = series_in_order(judged.series_of(connection, self.line))
        ids, place = self.series.ids, track.place
        stored = regressions.levels_of(connection, self.line, versions)
        at = {own: row for row, own in enumerate(ids.tolist())}
        state = TrackState(len(at))
        for version in versions:
            load_levels(state, place[version], stored[version], ids, place)
        state.findings = [finding_of(row, at, place) for row in findings if row.series_id in at]
        return state

    def track(
        self, connection: Connection, track: TrackRuns, state: TrackState, first: int, limits: Thresholds
    ) -> tuple[Track, BOOL]:
        """The runs that a version is judged with, and which series any of them has."""
        series, place = self.series or series_in_order(judged.series_of(connection, self.line)), track.place
        versions = np.array([place[run.version_id] for run in track.runs])
        run_ids = np.array([run.run_id for run in track.runs])
        wanted = set(needed_runs(versions, run_ids, state, first, limits).tolist())
        # the version before is looked at as a whole, and suspects by their runs
        runs = [run for run in track.runs if run.run_id in wanted]
        values, calls = judged.values_of(connection, [run.run_id for run in runs], series, self.arrays)
        recorded = comparable.recorded_runs(connection, runs)
        own = [run for run in runs if place[run.version_id] == first]
        device_timed = all(run.timeline == "device" for run in own)
        if device_timed not in self.traits:
            self.traits[device_timed] = traits_of(series.keys, track.limits, device_timed=device_timed)
        data = track_of_runs(series.keys, values, calls, runs, place, recorded, self.traits[device_timed])
        return data, np.asarray(~np.isnan(values).all(axis=1))

    def changed_findings(
        self, rows: Sequence[FindingRow], state: TrackState, data: Track | None, version: int, order: Sequence[int]
    ) -> list[FindingRow]:
        """The rows of findings that are new, or other than they were."""
        ids = self.series.ids if self.series is not None else np.zeros(0, dtype=np.int64)
        found = {one.key: one for one in rows}
        kept: set[tuple[object, ...]] = set()
        changed = []
        for one in state.findings:
            if one.first_version == GONE:
                continue
            key = (int(ids[one.series]), DIRECTIONS[one.sign], one.how, order[one.first_version - 1])
            made = finding_row(one, ids, order, found.get(key), data, version)
            kept.add(key)
            if made != found.get(key):
                changed.append(made)
        lost = [one for key, one in found.items() if key not in kept and one.state != "withdrawn"]
        return changed + [
            replace(one, state="withdrawn", ended_version_id=None, ended_by_version_id=None) for one in lost
        ]
